"""Where the elements of a tensor lie in lane-local memory (docs/layouts.md, "Lane-local memory")."""

from typing import NamedTuple

from ..spec import LaneLayout

__all__ = ["LaneStrides", "lane_strides"]


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
