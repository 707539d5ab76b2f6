"""What passes between the parts of the gatherer."""

from amaranth import unsigned
from amaranth.lib import data

from tilewright.golden.spec import BANKS

from ...smem.layouts import read_data_layout

__all__ = ["AnswerLayout", "GatherReadLayout", "in_pairs"]


def in_pairs(params):
    """Whether one read has lanes for two chunks of every piece: then there are no other reads."""
    return 2 * params.lanes <= BANKS


class GatherReadLayout(data.StructLayout):
    """What becomes of one read, and of the request that it belongs to."""

    def __init__(self, params, tag):
        piece = {
            "offset": unsigned(4),  # of the piece's first byte in a chunk
            "low": unsigned(5),
            "high": unsigned(5),
            "two": unsigned(1),  # its bytes lie in two chunks
        }
        members = {
            "size": unsigned(3),
            "fill": unsigned(16),
            "tag": tag,
            "reads": unsigned(1),  # an answer of shared memory belongs to it
        }
        if not in_pairs(params):
            piece["lane"] = range(BANKS)  # that has the chunk of its first byte; the next one, modulo 8, the second
            members["halves"] = unsigned(2)  # of the pieces, that this read brings
            members["last"] = unsigned(1)  # of its request
        if params.keeps_reads:
            # Without a read it has the chunks that were kept as those of a part; or with one it keeps them.
            members |= {"part": range(params.parts), "keeps": unsigned(1), "repeats": unsigned(1)}
        super().__init__({"pieces": data.ArrayLayout(data.StructLayout(piece), params.lanes), **members})


class AnswerLayout(data.StructLayout):
    """The answer to a read, and what becomes of it."""

    def __init__(self, params, tag):
        super().__init__({"chunks": read_data_layout(), "read": GatherReadLayout(params, tag)})
