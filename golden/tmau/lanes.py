"""Copies of tensors between global memory and lanes, and from lanes to lanes (docs/layouts.md, "Lane-local memory")."""

from typing import NamedTuple

import numpy as np

from tilewright.spec import Element, Error, LaneLayout
from tilewright.spec.tmau_registers import FEATURES

from .checks import Windows, barrier_rules, first_refusal

__all__ = ["LaneStrides", "check_lanes", "copy_lanes", "lane_places", "lane_strides"]

_MAX_LANES_LOG2, _MAX_EU_LOG2 = 6, 7
_PADDED = (LaneLayout.ALIGNED, LaneLayout.ROW_ALIGNED)


class LaneStrides(NamedTuple):
    """Distances in bytes, in one lane.

    Element (n, c, h, w) lies in lane (start + c) mod lanes, at the tensor's address in this lane plus
    ``n * batch + (start + c) // lanes * channel + h * row + w * element_bytes``.
    """

    row: int  #: from row to row
    channel: int  #: from channel to channel of the same lane
    batch: int  #: from batch to batch
    bytes: int  #: that a lane needs


def lane_strides(shape, element_bytes, start_lane, lanes, eu_bytes, layout):
    """The :class:`LaneStrides` of a tensor.

    Parameters
    ----------
    shape : sequence of int
        Elements, W H C N.
    element_bytes : int
    start_lane : int
        Lane of channel 0.
    lanes : int
    eu_bytes : int
    layout : LaneLayout
        GLOBAL is one lane with a contiguous tensor, for any ``start_lane`` and ``lanes``.
    """
    width, height, channels, batches = shape
    if layout == LaneLayout.GLOBAL:
        start_lane, lanes = 0, 1
    row = _rounded(width * element_bytes, eu_bytes if layout == LaneLayout.ROW_ALIGNED else 1)
    channel = _rounded(height * row, eu_bytes if layout == LaneLayout.ALIGNED else 1)
    batch = -(-(start_lane + channels) // lanes) * channel
    return LaneStrides(row, channel, batch, batches * batch)


def _rounded(count, unit):
    return -(-count // unit) * unit


def copy_lanes(command, gmem, smem, addr_width):
    """Executes a legal LANES command; its global source must lie in ``gmem``, its destination need not.

    Returns the number of bytes of the tensor.
    """
    source, destination = (lane_places(command, side, len(smem), addr_width) for side in ("source", "destination"))
    data = gmem.at(source) if command["source_layout"] == LaneLayout.GLOBAL else smem[source]
    if command["destination_layout"] == LaneLayout.GLOBAL:
        inside = gmem.holds(destination, 1)
        gmem.put(destination[inside], data[inside])
    else:
        smem[destination] = data
    return len(data)


def lane_places(command, side, smem_bytes, addr_width):
    """Address of every byte of the source or destination, in the order W, H, C, N, in global or shared memory."""
    strides, address = _strides(command, side), command[side]
    if command[f"{side}_layout"] == LaneLayout.GLOBAL:
        mask = (1 << addr_width) - 1
        return np.uint64(address & mask) + np.arange(strides.bytes, dtype=np.uint64) & np.uint64(mask)
    lanes, element_bytes = 1 << command["lanes_log2"], Element(command["element"]).bytes
    n, c, h, w = np.ogrid[tuple(slice(count) for count in reversed(command["shape"]))]
    row, lane = np.divmod(command[f"{side}_lane"] + c, lanes)
    in_lane = n * strides.batch + row * strides.channel + h * strides.row + w * element_bytes
    first = lane * (smem_bytes // lanes) + address + in_lane
    return (first[..., None] + np.arange(element_bytes)).reshape(-1)


def _strides(command, side):
    """Strides of the tensor at the source or the destination."""
    element, lanes, eu_bytes = Element(command["element"]), 1 << command["lanes_log2"], 1 << command["eu_log2"]
    layout = command[f"{side}_layout"]
    return lane_strides(command["shape"], element.bytes, command[f"{side}_lane"], lanes, eu_bytes, layout)


def check_lanes(command, smem_bytes, windows=None, addr_width=64, features=tuple(FEATURES)):
    """What hardware must report for a LANES command, as ``LANES.unpack`` gives it; or None.

    Other arguments as in ``check_command``.
    """
    to_global = command["destination_layout"] == LaneLayout.GLOBAL
    within = not to_global and command["source_layout"] != LaneLayout.GLOBAL
    missing = (to_global and "stores" not in features) or (within and "local_copies" not in features)
    first = [
        (Error.UNSUPPORTED, "destination_layout", missing, command["destination_layout"]),
        (Error.ELEMENT, "element", command["element"] > max(Element), command["element"]),
    ]
    return first_refusal(command, first) or first_refusal(
        command, _rules(command, smem_bytes, windows or Windows(), addr_width)
    )


def _rules(command, smem_bytes, windows, addr_width):
    """Yields code, field, whether it is broken, and value, in order of code."""
    lanes, eu_bytes = 1 << command["lanes_log2"], 1 << command["eu_log2"]
    element = Element(command["element"]).bytes
    lane_bytes = smem_bytes // lanes
    layouts = {side: command[f"{side}_layout"] for side in ("source", "destination")}
    in_lanes = [side for side, layout in layouts.items() if layout != LaneLayout.GLOBAL]
    ends = {side: command[side] + _strides(command, side).bytes for side in layouts}
    signals = command["signal"] and "destination" in in_lanes
    if signals:
        yield from barrier_rules(command, smem_bytes)
    for side, layout in layouts.items():
        granule = max(element, eu_bytes) if layout in _PADDED else element
        yield Error.BLOCK_ALIGNMENT, side, command[side] % granule != 0, command[side]
    for side in in_lanes:
        yield Error.BLOCK_RANGE, side, ends[side] > lane_bytes, command[side]
    meet = command["source"] < ends["destination"] and command["destination"] < ends["source"]
    yield Error.OVERLAP, "destination", len(in_lanes) == 2 and meet, command["destination"]
    yield Error.LANES, "lanes_log2", command["lanes_log2"] > _MAX_LANES_LOG2, command["lanes_log2"]
    wrong_eu = command["eu_log2"] > _MAX_EU_LOG2 or eu_bytes < element
    yield Error.LANES, "eu_log2", wrong_eu, command["eu_log2"]
    yield Error.LANES, "destination_layout", not in_lanes, command["destination_layout"]
    for side in layouts:
        lane = command[f"{side}_lane"]
        yield Error.LANES, f"{side}_lane", lane >= (lanes if side in in_lanes else 1), lane
    if signals:
        yield Error.WINDOW, "barrier", not windows.hold_shared(command["barrier"], 8), command["barrier"]
    for side in layouts:
        if side in in_lanes:
            inside = windows.hold_shared(0, smem_bytes)
        else:
            inside = windows.hold_global(command[side], ends[side] - command[side], addr_width)
        yield Error.WINDOW, side, not inside, command[side]
