"""Payloads between the stages of the load path."""

from amaranth.hdl import unsigned
from amaranth.lib import data

from tilewright.spec import BANKS, CHUNK_BYTES

from ..layouts import TransferLayout, always_zero, delivery_members

__all__ = [
    "BOUNDS",
    "AlignedLayout",
    "ChunksLayout",
    "ContextLayout",
    "PieceLayout",
    "RunLayout",
    "StepLayout",
    "never_set",
]

#: Members of a piece that are bytes of its line, or behind it.
BOUNDS = ("first", "end", "data_first", "data_end")


class ContextLayout(data.StructLayout):
    """What the stages after the tracker need of a transfer; each member means the same as in ``TransferLayout``."""

    def __init__(self, params):
        ending = ("tag", "quiet", "signal", "barrier", "bytes", *delivery_members(params))
        moving = ("swizzle", "tf32", "loop", "stage", "reduction", "element")
        transfer = TransferLayout(params)
        # The fill of loads has a period of four bytes.
        super().__init__({name: transfer[name].shape for name in ending + moving} | {"fill": unsigned(32)})


def never_set(params, context):
    """Members of a context that the hardware lacks whatever sets them."""
    return [context[name] for name in always_zero(params) if name in context.shape().members]


class RunLayout(data.StructLayout):
    """One run in byte addresses of shared memory, ``start <= data_start < data_end <= end``.

    Ends are exclusive and may be the size of the memory, hence the bit more than an address has.
    """

    def __init__(self, params):
        address = unsigned(params.smem.addr_width + 1)
        super().__init__(
            {
                "start": address,
                "end": address,  # more than start
                "inside": unsigned(1),  # the next four members mean something; otherwise the whole run is fill
                "data_start": address,
                "data_end": address,
                "word_end": address,  # where the byte after the first bus word would land
                "shared": unsigned(1),  # the first bus word is the last one of the previous inside run
                "close": unsigned(1),  # nothing follows in the line in which the run ends
                "last": unsigned(1),  # last run of the transfer; implies close
                "context": ContextLayout(params),
            }
        )


class PieceLayout(data.StructLayout):
    """The bytes of one step, relative to the start of ``line``; what reaches past 128 lies in the next line.

    Bytes ``first … end - 1`` are written: those in ``data_first … data_end - 1`` come from the bus word, others are
    fill. If nothing is data, ``data_end`` is zero; if the step writes nothing, ``first`` equals ``end``.
    """

    def __init__(self, params):
        super().__init__(
            {
                "line": unsigned(params.smem.row_width),
                "first": unsigned(7),
                "end": unsigned(8),
                "data_first": unsigned(7),
                "data_end": unsigned(8),
                # Data of the line's first segment below it come from the word before, as that one was rotated; if there
                # are any, all data of the step lie there, and the step before is in this line or in the one before it.
                # Otherwise 0.
                "joint": unsigned(params.bus_log2),
                "last": unsigned(1),  # the transfer is complete with this step
            }
        )


class StepLayout(data.StructLayout):
    """One step: the piece, and where its bus word comes from."""

    def __init__(self, params):
        super().__init__(
            {
                "piece": PieceLayout(params),
                # Takes the next bus word, and with the piece's ``joint`` the one before as well. Otherwise the data, if
                # there are any, lie in the word that was taken last.
                "pull": unsigned(1),
                # To the left, in bytes: puts byte i of the word at i + rotate modulo the bus. Without data it is that
                # of the step before.
                "rotate": unsigned(params.bus_log2),
                "complement": unsigned(CHUNK_BYTES.bit_length() - 1),  # of as many bits of it, as of ``rotate_bytes``
                "context": ContextLayout(params),
            }
        )


class ChunksLayout(data.StructLayout):
    """Where chunks lie in the line as it is swizzled, a bit for each place: of a byte that bounds what is written."""

    def __init__(self):
        super().__init__(
            {
                "whole": unsigned(BANKS),  # chunks that lie wholly below it
                "partly": unsigned(BANKS),  # its own, if it is in the line; anything where a chunk begins with it
            }
        )


class AlignedLayout(data.StructLayout):
    """A piece and the word that its data come from."""

    def __init__(self, params):
        super().__init__(
            {
                "piece": PieceLayout(params),
                "chunks": data.StructLayout(dict.fromkeys(BOUNDS, ChunksLayout())),  # made of the piece and its swizzle
                # Byte p belongs to every destination address of p modulo the bus, but for the swizzle of the line,
                # which permutes the chunks.
                "word": unsigned(params.bus_width),
                # Of each 32 bits of it with ``tf32``: they are a NaN, they are rounded up.
                "roundings": data.ArrayLayout(data.StructLayout({"nan": 1, "up": 1}), params.bus_width // 32),
                "context": ContextLayout(params),
                # With ``stage``: the transfer's last piece, which ends inside another segment than it begins in.
                "remains": unsigned(1),
                "error": unsigned(1),  # a word that the piece answers for came with an error
                "address": unsigned(params.addr_width),  # of the first such word
            }
        )
