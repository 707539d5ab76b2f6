"""Layouts between the blocks that write results, and their sizes."""

from amaranth.hdl import Const, unsigned
from amaranth.lib import data

from tilewright.spec.conv import CHANNELS_AT_ONCE

__all__ = [
    "GroupLayout",
    "GroupPlaceLayout",
    "PieceOfRunLayout",
    "ResultSizes",
    "RunPieceLayout",
    "SecondPieceLayout",
    "both_places",
]


class ResultSizes:
    """Sizes of the blocks that write results; all are powers of two.

    Attributes
    ----------
    together : int
        P: places of a transfer in a convolution.
    pass_channels : int
        Channels of a pass of a convolution, 4 · NS.
    most_channels : int
        The most channels of a pass, in any mode.
    steps : int
        The most transfers of a group.
    piece_bytes : int
        W: bytes that are written at once.
    buffer_bytes : int
        B: bytes that are collected, P · W.
    pairs : bool
        Two pieces of at most W / 2 bytes, of two places, are written at once, as results come faster than one piece.
    """

    def __init__(self, params):
        conv = params.conv
        self.together = max(1, conv.results // conv.slaves)
        self.pass_channels = CHANNELS_AT_ONCE * conv.slaves
        self.most_channels = max(self.pass_channels, conv.row_bytes)
        self.steps = max(CHANNELS_AT_ONCE * max(1, conv.slaves // conv.results), conv.row_bytes // conv.results)
        self.piece_bytes = conv.write_bytes
        self.buffer_bytes = self.together * self.piece_bytes
        self.pairs = conv.writes_pairs


def both_places(sizes, payload):
    """Whether a payload stands for a place and the next one; a constant 0 without pairs of places."""
    return payload.both if sizes.pairs else Const(0, 1)


class GroupPlaceLayout(data.StructLayout):
    """A place, or two, as part of a group: the places whose results are read together.

    In a group no place that is there follows one that is not.
    """

    def __init__(self, params):
        address, sizes = unsigned(params.smem.addr_width), ResultSizes(params)
        super().__init__(
            {
                "there": 1,
                **({"both": 1} if sizes.pairs else {}),  # and the next place, whose point is the next one of the line
                "y": address,  # of the first result of this pass
                "addend": address,  # of the element of the second operand for that result
                # With pairs of lines: the pair has no second line; the place belongs to the second line.
                **({"alone": 1, "second": 1} if params.halves > 1 else {}),
                "any": 1,  # the first place of the group is there
                "channels": range(sizes.most_channels),  # of the pass, minus one
                "place": range(params.places),  # number in its tile
                "group_last": 1,
                "tile_last": 1,
                "pass_last": 1,
            }
        )


class GroupLayout(data.StructLayout):
    """A group of places to be read out; members as in :class:`GroupPlaceLayout`."""

    def __init__(self, params):
        super().__init__(
            {
                "any": 1,
                "channels": range(ResultSizes(params).most_channels),
                "place": range(params.places),  # a place of the group
                **({"second": 1} if params.halves > 1 else {}),
                "tile_last": 1,
                "pass_last": 1,
            }
        )


class SecondPieceLayout(data.StructLayout):
    """The second half of a window; members as in :class:`RunPieceLayout`, for that half."""

    def __init__(self, params):
        sizes = ResultSizes(params)
        half = sizes.piece_bytes // 2
        super().__init__(
            {
                "there": 1,  # it is a piece of its own
                "slot": range(sizes.buffer_bytes // 16),
                "origin": unsigned(params.smem.addr_width),
                "first": range(half + 16),  # if it is ``there``
                "last": range(half + 16),
            }
        )


def _piece_members(params):
    sizes = ResultSizes(params)
    return {
        "origin": unsigned(params.smem.addr_width),  # the address that the first byte of the window would have
        "first": range(sizes.piece_bytes + 16),  # first byte that is written
        "last": range(sizes.piece_bytes + 16),
        "bytes": range(sizes.piece_bytes),  # bytes of each piece, minus one
        **({"second": SecondPieceLayout(params)} if sizes.pairs else {}),
    }


class RunPieceLayout(data.StructLayout):
    """The place of a piece of a run, at most W bytes, in the buffer of collected results, and its destination.

    The *window* is the W bytes of the buffer from ``slot`` on. ``first`` and ``last`` count from the beginning of the
    chunk of shared memory with ``origin``.

    With pairs ``second`` describes the second half of the window: it continues the first half, or if it is ``there`` it
    is a piece of the next place.
    """

    def __init__(self, params):
        super().__init__(
            {
                "slot": range(ResultSizes(params).buffer_bytes // 16),  # the first slot, of 16 bytes, of the window
                **_piece_members(params),
                "flush_last": 1,  # the last piece of the buffer
            }
        )


class PieceOfRunLayout(data.StructLayout):
    """A piece of a run with its window; other members as in :class:`RunPieceLayout`."""

    def __init__(self, params):
        window = data.ArrayLayout(128, ResultSizes(params).piece_bytes // 16)
        super().__init__({**_piece_members(params), "window": window})
