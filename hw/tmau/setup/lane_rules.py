"""The rules that copies between memory and lanes must obey (docs/layouts.md, "Lane-local memory")."""

from amaranth import Cat, Mux

from tilewright.golden.spec import LANES, Element, Error, LaneLayout

from ...bus.commands import command_view
from .rules import above, outside_global, outside_shared

__all__ = ["MAX_EU_LOG2", "MAX_LANES_LOG2", "element_log2", "lane_rules"]

MAX_LANES_LOG2 = 6  # 64 lanes of 16 bytes are the smallest shared memory
MAX_EU_LOG2 = 7


def element_log2(element):
    """Log2 of the bytes of an element type, 0 for one that does not exist."""
    log2 = 0
    for member in Element:
        log2 |= Mux(element == member, member.bytes.bit_length() - 1, 0)
    return log2


def lane_rules(params, windows, sides):
    """Every rule as (code, field, broken), by code and then by field number.

    Parameters
    ----------
    windows : View of WindowsLayout
    sides : View of SidesLayout
    """
    smem, c, bits = params.smem, command_view(LANES, sides.command), sides.shape().bits
    source_global, destination_global = c.source_layout == LaneLayout.GLOBAL, c.destination_layout == LaneLayout.GLOBAL
    signals = ~destination_global & c.signal
    lane_bytes = smem.size_bytes >> c.lanes_log2
    last_lane = (1 << c.lanes_log2) - 1
    element_mask = (1 << element_log2(c.element)) - 1
    eu_mask = (1 << c.eu_log2) - 1
    barrier = c.barrier[: smem.addr_width]
    both_lanes = ~source_global & ~destination_global
    # Of sides that lie in their lanes, which is looked at before: all is as short as shared memory is.
    source, source_end, destination, destination_end = (
        place[: smem.addr_width + 1] for place in (c.source, sides.source_end, c.destination, sides.destination_end)
    )
    overlapping = (source < destination_end) & (destination < source_end)

    def misaligned(address, layout):
        padded = (layout == LaneLayout.ALIGNED) | (layout == LaneLayout.ROW_ALIGNED)
        return (address & (element_mask | Mux(padded, eu_mask, 0))).any()

    def beyond(name):
        strides, end = sides[name], sides[f"{name}_end"]
        behind = above(end, smem.addr_width + 1) | (end[: smem.addr_width + 1] > lane_bytes) | above(c[name], bits)
        return (c[f"{name}_layout"] != LaneLayout.GLOBAL) & (strides.too_large | behind)

    def no_lane(layout, lane):
        return lane > Mux(layout == LaneLayout.GLOBAL, 0, last_lane)

    def outside(is_global, address, end):
        # Lanes are spread over all of shared memory.
        last = Cat((end - 1)[: bits + 1], above(address, bits))
        return Mux(is_global, outside_global(windows, address, last), outside_shared(windows, 0, smem.size_bytes - 1))

    missing = (destination_global & (not params.has("stores"))) | (both_lanes & (not params.has("local_copies")))
    return [
        (Error.UNSUPPORTED, "destination_layout", missing),
        (Error.ELEMENT, "element", c.element > max(Element)),
        (Error.BARRIER_ALIGNMENT, "barrier", signals & c.barrier[:3].any()),
        (Error.BARRIER_RANGE, "barrier", signals & c.barrier[smem.addr_width :].any()),
        (Error.BLOCK_ALIGNMENT, "source", misaligned(c.source, c.source_layout)),
        (Error.BLOCK_ALIGNMENT, "destination", misaligned(c.destination, c.destination_layout)),
        (Error.BLOCK_RANGE, "source", beyond("source")),
        (Error.BLOCK_RANGE, "destination", beyond("destination")),
        (Error.OVERLAP, "destination", both_lanes & overlapping),
        (Error.LANES, "lanes_log2", c.lanes_log2 > MAX_LANES_LOG2),
        (Error.LANES, "eu_log2", (c.eu_log2 > MAX_EU_LOG2) | (c.eu_log2 < element_log2(c.element))),
        (Error.LANES, "destination_layout", source_global & destination_global),
        (Error.LANES, "source_lane", no_lane(c.source_layout, c.source_lane)),
        (Error.LANES, "destination_lane", no_lane(c.destination_layout, c.destination_lane)),
        (Error.WINDOW, "barrier", signals & outside_shared(windows, barrier, barrier)),
        (Error.WINDOW, "source", outside(source_global, c.source, sides.source_end)),
        (Error.WINDOW, "destination", outside(destination_global, c.destination, sides.destination_end)),
    ]
