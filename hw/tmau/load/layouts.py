"""Payloads between the stages of the load path."""

from amaranth.hdl import unsigned
from amaranth.lib import data

from tilewright.spec import BANKS

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

#: Members of a piece that are positions of bytes, relative to its line.
BOUNDS = ("first", "end", "data_first", "data_end")


class ContextLayout(data.StructLayout):
    """Members of ``TransferLayout`` that the stages after the tracker need."""

    def __init__(self, params):
        ending = ("tag", "quiet", "signal", "barrier", "bytes", *delivery_members(params))
        moving = ("swizzle", "tf32", "loop", "stage", "reduction", "element")
        transfer = TransferLayout(params)
        # The fill of loads has a period of four bytes.
        super().__init__({name: transfer[name].shape for name in ending + moving} | {"fill": unsigned(32)})


def never_set(params, context):
    """Members of a context that are constant zero because a feature is missing (``always_zero``)."""
    return [context[name] for name in always_zero(params) if name in context.shape().members]


class RunLayout(data.StructLayout):
    """One run in byte addresses of shared memory, ``start <= data_start < data_end <= end``.

    Ends are exclusive and may be equal to the size of the memory, so addresses have one bit more.
    """

    def __init__(self, params):
        address = unsigned(params.smem.addr_width + 1)
        super().__init__(
            {
                "start": address,
                "end": address,  # more than start
                "inside": unsigned(1),  # the next four members are defined; otherwise the whole run is fill
                "data_start": address,
                "data_end": address,
                "word_end": address,  # destination of the byte after the first bus word
                "shared": unsigned(1),  # the first bus word is the last one of the previous inside run
                "close": unsigned(1),  # no other run follows in the line in which the run ends
                "last": unsigned(1),  # last run of the transfer; implies close
                "context": ContextLayout(params),
            }
        )


class PieceLayout(data.StructLayout):
    """The bytes of one step, relative to the start of ``line``; positions of 128 and more are in the next line.

    Bytes ``first … end - 1`` are written: bytes ``data_first … data_end - 1`` from the bus word, the others with fill.
    Without data ``data_end`` is zero; if the step writes nothing, ``first`` equals ``end``.
    """

    def __init__(self, params):
        super().__init__(
            {
                "line": unsigned(params.smem.row_width),
                "first": unsigned(7),
                "end": unsigned(8),
                "data_first": unsigned(7),
                "data_end": unsigned(8),
                # In the line's first segment data below this position come from the previous word, with the rotation of
                # the previous step. Then all data of the step lie in that segment, and the previous step is in this
                # line or the line before. 0: all data come from the current word.
                "joint": unsigned(params.bus_log2),
                "last": unsigned(1),  # the transfer is complete with this step
            }
        )


class StepLayout(data.StructLayout):
    """One step: the piece, and the source of its bus word."""

    def __init__(self, params):
        super().__init__(
            {
                "piece": PieceLayout(params),
                # The step takes the next bus word. Otherwise its data, if any, are in the word that was taken last.
                "pull": unsigned(1),
                # Distance to the left in bytes: byte i of the word goes to (i + rotate) % bus_bytes. Without data the
                # distance of the previous step.
                "rotate": unsigned(params.bus_log2),
                "context": ContextLayout(params),
            }
        )


class ChunksLayout(data.StructLayout):
    """Chunks of the swizzled line below a bound of the piece, one bit per chunk."""

    def __init__(self):
        super().__init__(
            {
                "whole": unsigned(BANKS),  # chunks below the bound
                "partly": unsigned(
                    BANKS
                ),  # the chunk with the bound, if that is in the line; undefined if a chunk begins there
            }
        )


class AlignedLayout(data.StructLayout):
    """A piece with the word of its data."""

    def __init__(self, params):
        super().__init__(
            {
                "piece": PieceLayout(params),
                "chunks": data.StructLayout(
                    dict.fromkeys(BOUNDS, ChunksLayout())
                ),  # follows from the piece and its swizzle
                # Byte p goes to destination addresses that are p modulo bus_bytes, after the swizzle has permuted the
                # chunks.
                "word": unsigned(params.bus_width),
                # For each 32 bits of the word, with ``tf32``: it is a NaN; it is rounded up.
                "roundings": data.ArrayLayout(data.StructLayout({"nan": 1, "up": 1}), params.bus_width // 32),
                "context": ContextLayout(params),
                # With ``stage``: the transfer's last piece ends inside a segment, in which it does not begin.
                "remains": unsigned(1),
                "error": unsigned(1),  # a word of this or an earlier piece of the transfer had an error
                "address": unsigned(params.addr_width),  # of the first such word
            }
        )
