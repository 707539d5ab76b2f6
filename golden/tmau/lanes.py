"""Where the elements of a tensor lie in lane-local memory (docs/layouts.md, "Lane-local memory")."""

from typing import NamedTuple

import numpy as np

from tilewright.spec import Element, Error, LaneLayout
from tilewright.spec.tmau_registers import FEATURES

from .checks import Windows, barrier_rules, first_refusal

__all__ = ["LaneStrides", "check_lanes", "copy_lanes", "lane_copy", "lane_places", "lane_strides"]


class LaneStrides(NamedTuple):
    """Distances in bytes, in one lane.

    Element (n, c, h, w) lies in lane (start + c) mod lanes, at the tensor's base there plus
    ``n * batch + (start + c) // lanes * channel + h * row + w * element_bytes``.
    """

    row: int  #: from row to row
    channel: int  #: from channel to channel of the same lane
    batch: int  #: from batch to batch
    bytes: int  #: that a lane needs


def lane_strides(shape, element_bytes, start_lane, lanes, eu_bytes, layout):
    """The strides of a tensor in lanes.

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
        GLOBAL is one lane, in which everything is contiguous; start lane and lanes do not count then.

    Returns
    -------
    LaneStrides
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


_MAX_LANES_LOG2, _MAX_EU_LOG2 = 6, 7
_PADDED = (LaneLayout.ALIGNED, LaneLayout.ROW_ALIGNED)


def check_lanes(command, smem_bytes, windows=None, addr_width=64, features=tuple(FEATURES)):
    """What hardware must report for a LANES command, as ``LANES.unpack`` gives it; or None.

    Other arguments are those of ``check_command``.
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


def copy_lanes(command, gmem, smem, addr_width):
    """Carries out a legal LANES command. What it reads must lie in ``gmem``; what it writes need not.

    Returns the bytes of the tensor, in memory order.
    """
    source, destination = (lane_places(command, name, len(smem), addr_width) for name in ("source", "destination"))
    data = gmem.at(source) if command["source_layout"] == LaneLayout.GLOBAL else smem[source]
    if command["destination_layout"] == LaneLayout.GLOBAL:
        held = gmem.holds(destination, 1)
        gmem.put(destination[held], data[held])
    else:
        smem[destination] = data
    return len(data)


def lane_copy(array, smem, address, layout, *, lanes, eu_bytes=1, start_lane=0, store=False):
    """Scatters an array of shape (N, C, H, W) over the lanes of ``smem``, or with ``store`` gathers it from there.

    Parameters
    ----------
    array : array
        Changed in place by ``store``; then it must be contiguous.
    smem : uint8 array
        Shared memory; lane i is its i-th equal part.
    address : int
        Byte address of the tensor in every lane.
    layout : LaneLayout
    lanes, eu_bytes, start_lane : int
        As for ``lane_strides``.

    Raises
    ------
    ValueError
        If the tensor does not fit its lanes.
    """
    shape = array.shape[::-1]
    lane_bytes = len(smem) // lanes
    strides = lane_strides(shape, array.itemsize, start_lane, lanes, eu_bytes, layout)
    if address + strides.bytes > lane_bytes:
        raise ValueError(f"the tensor must end before byte {lane_bytes} of its lane, not at {address + strides.bytes}")
    places = _lane_bytes(shape, array.itemsize, address, strides, start_lane, lanes, lane_bytes)
    if store:
        array.reshape(-1).view(np.uint8)[:] = smem[places]
    else:
        smem[places] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _strides(command, name):
    """Strides of the tensor at the source or the destination."""
    return lane_strides(
        command["shape"],
        Element(command["element"]).bytes,
        command[f"{name}_lane"],
        1 << command["lanes_log2"],
        1 << command["eu_log2"],
        command[f"{name}_layout"],
    )


def lane_places(command, name, smem_bytes, addr_width):
    """Address of every byte of the tensor, in the order W, H, C, N, in global or in shared memory; uint64."""
    strides, address = _strides(command, name), command[name]
    if command[f"{name}_layout"] == LaneLayout.GLOBAL:
        mask = (1 << addr_width) - 1
        return np.uint64(address & mask) + np.arange(strides.bytes, dtype=np.uint64) & np.uint64(mask)
    lanes = 1 << command["lanes_log2"]
    element = Element(command["element"]).bytes
    lane_bytes = smem_bytes // lanes
    return _lane_bytes(command["shape"], element, address, strides, command[f"{name}_lane"], lanes, lane_bytes)


def _lane_bytes(shape, element_bytes, address, strides, start_lane, lanes, lane_bytes):
    """The same in shared memory, from what the page says of an element."""
    n, c, h, w = np.ogrid[tuple(slice(count) for count in reversed(shape))]
    row, lane = np.divmod(start_lane + c, lanes)
    first = (
        lane * lane_bytes + address + n * strides.batch + row * strides.channel + h * strides.row + w * element_bytes
    )
    return (first[..., None] + np.arange(element_bytes)).reshape(-1)


def _rules(command, smem_bytes, windows, addr_width):
    """Yields code, field, whether it is broken, and value, in order of code."""
    lanes, eu_bytes = 1 << command["lanes_log2"], 1 << command["eu_log2"]
    element = Element(command["element"]).bytes
    lane_bytes = smem_bytes // lanes
    layouts = {name: command[f"{name}_layout"] for name in ("source", "destination")}
    in_lanes = [name for name, layout in layouts.items() if layout != LaneLayout.GLOBAL]
    ends = {name: command[name] + _strides(command, name).bytes for name in layouts}
    signals = command["signal"] and "destination" in in_lanes
    if signals:
        yield from barrier_rules(command, smem_bytes)
    for name, layout in layouts.items():
        granule = max(element, eu_bytes) if layout in _PADDED else element
        yield Error.BLOCK_ALIGNMENT, name, command[name] % granule != 0, command[name]
    for name in in_lanes:
        yield Error.BLOCK_RANGE, name, ends[name] > lane_bytes, command[name]
    meet = command["source"] < ends["destination"] and command["destination"] < ends["source"]
    yield Error.OVERLAP, "destination", len(in_lanes) == 2 and meet, command["destination"]
    yield Error.LANES, "lanes_log2", command["lanes_log2"] > _MAX_LANES_LOG2, command["lanes_log2"]
    wrong_eu = command["eu_log2"] > _MAX_EU_LOG2 or eu_bytes < element
    yield Error.LANES, "eu_log2", wrong_eu, command["eu_log2"]
    yield Error.LANES, "destination_layout", not in_lanes, command["destination_layout"]
    for name in layouts:
        lane = command[f"{name}_lane"]
        yield Error.LANES, f"{name}_lane", lane >= (lanes if name in in_lanes else 1), lane
    if signals:
        yield Error.WINDOW, "barrier", not windows.hold_shared(command["barrier"], 8), command["barrier"]
    for name in layouts:
        if name in in_lanes:
            held = windows.hold_shared(0, smem_bytes)
        else:
            held = windows.hold_global(command[name], ends[name] - command[name], addr_width)
        yield Error.WINDOW, name, not held, command[name]
