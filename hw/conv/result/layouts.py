"""What passes between the blocks of the read-out, and its sizes."""

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
    """Sizes of the read-out; all are powers of two.

    Attributes
    ----------
    together : int
        P: places of a transfer in a convolution.
    pass_channels : int
        Channels of a pass of a convolution, 4 · NS.
    most_channels : int
        Channels of a pass at most, of any mode.
    steps : int
        Transfers of a group at most.
    piece_bytes : int
        W: bytes that are written at once.
    buffer_bytes : int
        B: bytes that are collected, P · W.
    pairs : bool
        Two pieces of at most W / 2 bytes are written at once, of two places: more results come than one would take.
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
    """Whether a payload stands for a place and for the next one too; without pairs of places it is a constant 0."""
    return payload.both if sizes.pairs else Const(0, 1)


class GroupPlaceLayout(data.StructLayout):
    """A place, or two, and its part in a group: the places whose results are read together. In a group none that is
    there follows one that is not."""

    def __init__(self, params):
        address, sizes = unsigned(params.smem.addr_width), ResultSizes(params)
        super().__init__(
            {
                "there": 1,
                **({"both": 1} if sizes.pairs else {}),  # and the next place, whose point is the next one of the line
                "y": address,  # of the first result of this pass
                "addend": address,  # of the element that belongs to it
                # Of a pair of lines: the first one is alone; the place is of the second one.
                **({"alone": 1, "second": 1} if params.halves > 1 else {}),
                "any": 1,  # the first place of the group is there
                "channels": range(sizes.most_channels),  # of the pass, less one
                "place": range(params.places),  # number in its tile
                "group_last": 1,
                "tile_last": 1,
                "pass_last": 1,
                "job_last": 1,
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


class RunPieceLayout(data.StructLayout):
    """Where a piece of a run lies in the buffer of collected results, and where it goes: at most W bytes.

    The *window* is the W bytes of the buffer from ``slot`` on. ``first`` and ``last`` count from the chunk of shared
    memory that ``origin`` lies in.

    With pairs the second half of the window is told by itself, in ``second``. It is what follows the first half, or, if
    it is ``there``, a piece of the next place.
    """

    def __init__(self, params):
        sizes = ResultSizes(params)
        super().__init__(
            {
                "slot": range(sizes.buffer_bytes // 16),  # of 16 bytes, the first one of the window
                "origin": unsigned(params.smem.addr_width),  # where the first byte of the window would go
                "first": range(sizes.piece_bytes + 16),  # byte that is written
                "last": range(sizes.piece_bytes + 16),
                "bytes": range(sizes.piece_bytes),  # that are written, less one; of each piece
                **({"second": SecondPieceLayout(params)} if sizes.pairs else {}),
                "flush_last": 1,  # the buffer is done with
            }
        )


class SecondPieceLayout(data.StructLayout):
    """The second half of a window; members as in :class:`RunPieceLayout`, of that half."""

    def __init__(self, params):
        sizes = ResultSizes(params)
        half = sizes.piece_bytes // 2
        super().__init__(
            {
                "there": 1,  # it is a piece by itself
                "slot": range(sizes.buffer_bytes // 16),
                "origin": unsigned(params.smem.addr_width),
                "first": range(half + 16),  # if it is ``there``
                "last": range(half + 16),
            }
        )


class PieceOfRunLayout(data.StructLayout):
    """A piece of a run with its window; members as in :class:`RunPieceLayout`."""

    def __init__(self, params):
        sizes = ResultSizes(params)
        super().__init__(
            {
                "origin": unsigned(params.smem.addr_width),
                "first": range(sizes.piece_bytes + 16),
                "last": range(sizes.piece_bytes + 16),
                "bytes": range(sizes.piece_bytes),
                **({"second": SecondPieceLayout(params)} if sizes.pairs else {}),
                "window": data.ArrayLayout(128, sizes.piece_bytes // 16),
            }
        )
