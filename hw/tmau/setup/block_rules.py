"""Rules of commands on blocks and descriptor fields (docs/tmau.md, "Block copies", "Descriptor maintenance")."""

from amaranth.hdl import Cat, Module, Mux, Signal, signed, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from tilewright.spec import BLOCK, DESCRIPTOR, REPLACE, Error, Opcode, Reduction, Space
from tilewright.spec.cluster import ClusterError

from ...lib.layouts import command_layout, command_view
from .rules import (
    above,
    lands_apart,
    missing_floats,
    no_reduction,
    outside_global,
    outside_shared,
    unnameable,
    unreadable,
)

__all__ = ["FieldLocator", "MeasuredLayout", "PlaceLayout", "block_rules"]


class PlaceLayout(data.StructLayout):
    """Position of an element of a field in a descriptor. It lies in one 64-bit word."""

    def __init__(self):
        super().__init__(
            {
                "no_field": unsigned(1),  # no field has this number; the other members are undefined
                "no_index": unsigned(1),  # the field has no such element
                "word": unsigned(4),  # number of the 64-bit word in the descriptor
                "lsb": unsigned(6),  # lowest bit in that word
                "ones": unsigned(64),  # mask of the element's width
            }
        )


class FieldLocator(wiring.Component):
    """Looks a field up in ``spec.DESCRIPTOR``. Combinational."""

    field: In(8)  # Number of the field.
    index: In(3)  # Element of an array field; 0 for other fields.
    place: Out(PlaceLayout())

    def elaborate(self, platform):
        m = Module()
        place, bit = self.place, Signal(10)
        m.d.comb += [place.word.eq(bit >> 6), place.lsb.eq(bit)]
        with m.Switch(self.field):
            for number, field in enumerate(DESCRIPTOR.fields):
                with m.Case(number):
                    m.d.comb += [
                        place.no_index.eq(self.index >= len(field.lsbs)),
                        place.ones.eq((1 << field.width) - 1),
                    ]
                    with m.Switch(self.index):
                        for index, lsb in enumerate(field.lsbs):
                            with m.Case(index):
                                m.d.comb += bit.eq(lsb)
            with m.Default():
                m.d.comb += place.no_field.eq(1)
        return m


class MeasuredLayout(data.StructLayout):
    """A command with the numbers that the rules compare."""

    def __init__(self, params):
        # Bits of addresses and sizes that are compared. Without windows and REPLACE those of shared memory are enough,
        # because larger sizes are refused, and larger addresses are outside.
        whole = params.has("windows") or params.has("reductions_global")
        self.bits = max(params.addr_width, 32) if whole else params.smem.addr_width + 1
        super().__init__(
            {
                "command": command_layout(),
                # Address of the last byte, for REPLACE of the descriptor, without the start's bits above ``bits``. An
                # empty block ends before its start.
                "source_last": signed(self.bits + 2),
                "destination_last": signed(self.bits + 2),
                # Distances in units of 16 bytes, to which all blocks are aligned, modulo 2^addr_width bytes.
                "forward": unsigned(params.addr_width - 4),  # from the source to the destination
                "backward": unsigned(params.addr_width - 4),  # from the destination to the source
                "place": PlaceLayout(),
            }
        )


def block_rules(params, windows, measured):
    """Every rule as (code, format, field, broken), by code and then by field number; no format: no field.

    Parameters
    ----------
    windows : View of WindowsLayout
    measured : View of MeasuredLayout
    """
    smem, command = params.smem, measured.command
    block, replace = command_view(BLOCK, command), command_view(REPLACE, command)
    copies = block.opcode == Opcode.COPY_BLOCK
    replaces = (block.opcode == Opcode.REPLACE) & params.has("reductions_global")
    moves = copies | (block.opcode == Opcode.PREFETCH_BLOCK)
    sized = block.size != 0
    from_shared = copies & (block.source_space == Space.SHARED)
    to_shared = copies & (block.destination_space == Space.SHARED)
    from_global, to_global = moves & ~from_shared, copies & ~to_shared
    signals = to_shared & block.signal
    local = params.has("local_copies")
    within_one = copies & sized & (block.source_space == block.destination_space) & local
    overlapping = (measured.forward < block.size >> 4) | (measured.backward < block.size >> 4)

    bits = MeasuredLayout(params).bits

    def beyond(first, last):
        return ((last >= 0) & last[smem.addr_width :].any()) | above(first, bits)

    def leaves(first, last):
        return outside_global(windows, first, Cat(last, above(first, bits)))

    def outside(shared, is_global, address, last):
        return sized & (
            (is_global & leaves(address, last))
            | (shared & outside_shared(windows, address[: smem.addr_width], last[: smem.addr_width]))
        )

    barrier = block.barrier[: smem.addr_width]
    missing_space = (to_global & (not params.has("stores"))) | (
        copies & (block.source_space == block.destination_space) & (not local)
    )
    reduces = copies & (block.reduction != Reduction.NONE)
    missing_reduction = reduces & Mux(
        to_global, not params.has("reductions_global"), not params.has("reductions_shared")
    )
    asks = {
        "destination_space": missing_space,
        "reduction": missing_reduction,
        "element": reduces & missing_floats(params, block.element),
    }
    cluster = []
    if params.cores > 1:
        within_one &= ~(to_shared & lands_apart(params, windows, measured.command))
        strange = (to_shared & unnameable(params, windows, measured.command)) | (
            from_shared & unreadable(params, windows, measured.command)
        )
        cluster += [(ClusterError.CORES, None, None, strange)]
    return [
        *((Error.UNSUPPORTED, BLOCK, field, asks[field]) for field in sorted(asks, key=BLOCK.index)),
        (Error.BARRIER_ALIGNMENT, BLOCK, "barrier", signals & block.barrier[:3].any()),
        (Error.BARRIER_RANGE, BLOCK, "barrier", signals & block.barrier[smem.addr_width :].any()),
        (Error.REDUCTION, BLOCK, "reduction", reduces & no_reduction(block.reduction, block.element)),
        (Error.BLOCK_ALIGNMENT, BLOCK, "size", moves & block.size[:4].any()),
        (Error.BLOCK_ALIGNMENT, BLOCK, "source", moves & block.source[:4].any()),
        (Error.BLOCK_ALIGNMENT, BLOCK, "destination", copies & block.destination[:4].any()),
        (Error.BLOCK_RANGE, BLOCK, "size", copies & (block.size > smem.size_bytes)),
        (Error.BLOCK_RANGE, BLOCK, "source", from_shared & beyond(block.source, measured.source_last)),
        (Error.BLOCK_RANGE, BLOCK, "destination", to_shared & beyond(block.destination, measured.destination_last)),
        (Error.OVERLAP, BLOCK, "destination", within_one & overlapping),
        (Error.FIELD, REPLACE, "field", replaces & measured.place.no_field),
        (Error.FIELD, REPLACE, "index", replaces & measured.place.no_index),
        (Error.FIELD, REPLACE, "value", replaces & (replace.value & ~measured.place.ones).any()),
        (Error.WINDOW, REPLACE, "descriptor", replaces & leaves(replace.descriptor, measured.source_last)),
        (Error.WINDOW, BLOCK, "barrier", signals & outside_shared(windows, barrier, barrier)),
        (Error.WINDOW, BLOCK, "source", outside(from_shared, from_global, block.source, measured.source_last)),
        (
            Error.WINDOW,
            BLOCK,
            "destination",
            outside(to_shared, to_global, block.destination, measured.destination_last),
        ),
        *cluster,
    ]
