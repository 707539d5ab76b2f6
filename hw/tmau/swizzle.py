"""Swizzler: permutes the chunks of a line and hands it to the shared memory; then the transfer is complete."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.golden.spec import Swizzle

from ..lib.crossbar import LaneCrossbar
from ..smem.layouts import LineLayout
from ..smem.params import BANKS, CHUNK_BYTES
from .fill import AssembledLayout
from .layouts import CompletionLayout

__all__ = ["Swizzler", "chunk_flips"]

_CHUNK_BITS = 8 * CHUNK_BYTES


def chunk_flips(swizzle, row):
    """What a chunk's place in its line is exclusive-ored with (tmau.md section 5): three bits.

    Parameters
    ----------
    swizzle : Value
        ``golden.spec.Swizzle``.
    row : Value
        The line's address in shared memory: byte address >> 7.
    """
    return Cat(row[0] & (swizzle >= Swizzle.B32), row[1] & (swizzle >= Swizzle.B64), row[2] & (swizzle == Swizzle.B128))


class Swizzler(wiring.Component):
    """Puts the chunk at place p of a line at p XOR ``chunk_flips``, and completes transfers.

    A transfer's completion is valid in the cycle in which its last line is accepted, and stays valid, with further
    lines held back, until it is accepted. ``completions.valid`` thus depends on ``writes.ready``.

    Latency: one cycle. Throughput: one line a cycle.

    Members
    -------
    lines : In(stream of AssembledLayout)
    writes : Out(stream of LineLayout)
    completions : Out(stream of CompletionLayout)
    """

    def __init__(self, params):
        self._params = params
        self.valid = Signal()  # a line, or what is left of it, is at the output
        self.last = Signal()
        self.written = Signal()  # the last line is accepted, its completion not yet
        super().__init__(
            {
                "lines": In(stream.Signature(AssembledLayout(params))),
                "writes": Out(stream.Signature(LineLayout(params.smem))),
                "completions": Out(stream.Signature(CompletionLayout(params))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        line = self.lines.payload.line

        m.submodules.crossbar = crossbar = LaneCrossbar(_CHUNK_BITS + CHUNK_BYTES, BANKS)
        flips = chunk_flips(self.lines.payload.swizzle, line.row)
        swizzled_data, swizzled_strobe = [], []
        for place in range(BANKS):
            chunk, strobe = line.data.word_select(place, _CHUNK_BITS), line.strobe.word_select(place, CHUNK_BYTES)
            m.d.comb += [crossbar.i[place].eq(Cat(chunk, strobe)), crossbar.sel[place].eq(place ^ flips)]
            swizzled_data.append(crossbar.o[place][:_CHUNK_BITS])
            swizzled_strobe.append(crossbar.o[place][_CHUNK_BITS:])

        valid, last, written = self.valid, self.last, self.written
        writes, completions = self.writes, self.completions
        m.d.comb += [
            writes.valid.eq(valid & ~written),
            completions.valid.eq(valid & last & (written | writes.ready)),
            self.lines.ready.eq(~valid | ((written | writes.ready) & (~last | completions.ready))),
        ]
        with m.If(self.lines.ready):
            m.d.sync += [
                valid.eq(self.lines.valid),
                written.eq(0),
                last.eq(self.lines.payload.last),
                writes.payload.row.eq(line.row),
                writes.payload.data.eq(Cat(swizzled_data)),
                writes.payload.strobe.eq(Cat(swizzled_strobe)),
                completions.payload.eq(self.lines.payload.completion),
            ]
        with m.Elif(writes.ready & last):
            m.d.sync += written.eq(1)
        return m
