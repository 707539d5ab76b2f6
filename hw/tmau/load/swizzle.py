"""Swizzler: permutes the chunks of a line and hands it on; with its last line the transfer is complete."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.golden.spec import BANKS, CHUNK_BYTES

from ...lib.crossbar import LaneCrossbar
from ...smem.swizzle import chunk_flips
from ..layouts import CompletionLayout, WrittenLineLayout
from .layouts import AssembledLayout

__all__ = ["Swizzler"]

_CHUNK_BITS = 8 * CHUNK_BYTES


class Swizzler(wiring.Component):
    """Puts the chunk at place p of a line at p XOR ``chunk_flips``, and completes transfers.

    The completion of a transfer that is not quiet is valid in the cycle in which its last line is accepted, and stays
    valid, with further lines held back, until it is accepted. ``completions.valid`` thus depends on ``writes.ready``.

    Latency: one cycle. Throughput: one line a cycle.

    Members
    -------
    lines : In(stream of AssembledLayout)
    writes : Out(stream of WrittenLineLayout)
    completions : Out(stream of CompletionLayout)
    """

    def __init__(self, params):
        self._params = params
        self.valid = Signal()  # a line, or what is left of it, is at the output
        self.completes = Signal()  # it is the last one of a transfer that is not quiet
        self.written = Signal()  # that line is accepted, its completion not yet
        super().__init__(
            {
                "lines": In(stream.Signature(AssembledLayout(params))),
                "writes": Out(stream.Signature(WrittenLineLayout(params))),
                "completions": Out(stream.Signature(CompletionLayout(params))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        lines = self.lines.payload
        line, context = lines.line, lines.context

        m.submodules.crossbar = crossbar = LaneCrossbar(_CHUNK_BITS + CHUNK_BYTES, BANKS)
        flips = chunk_flips(context.swizzle, line.row)
        swizzled_data, swizzled_strobe = [], []
        for place in range(BANKS):
            chunk, strobe = line.data.word_select(place, _CHUNK_BITS), line.strobe.word_select(place, CHUNK_BYTES)
            m.d.comb += [crossbar.i[place].eq(Cat(chunk, strobe)), crossbar.sel[place].eq(place ^ flips)]
            swizzled_data.append(crossbar.o[place][:_CHUNK_BITS])
            swizzled_strobe.append(crossbar.o[place][_CHUNK_BITS:])

        valid, completes, written = self.valid, self.completes, self.written
        writes, completions = self.writes, self.completions
        write, completion = writes.payload, completions.payload
        m.d.comb += [
            writes.valid.eq(valid & ~written),
            completions.valid.eq(valid & completes & (written | writes.ready)),
            self.lines.ready.eq(~valid | ((written | writes.ready) & (~completes | completions.ready))),
            completion.error.eq(write.error),
            completion.write.eq(0),
            completion.address.eq(write.address),
        ]
        with m.If(self.lines.ready):
            m.d.sync += [
                valid.eq(self.lines.valid),
                written.eq(0),
                completes.eq(lines.last & ~context.quiet),
                write.line.row.eq(line.row),
                write.line.data.eq(Cat(swizzled_data)),
                write.line.strobe.eq(Cat(swizzled_strobe)),
                write.error.eq(lines.error),
                write.address.eq(lines.address),
            ]
            m.d.sync += [write[name].eq(context[name]) for name in ("stage", "reduction", "element")]
            m.d.sync += [completion[name].eq(context[name]) for name in ("tag", "signal", "barrier", "bytes")]
        with m.Elif(writes.ready & completes):
            m.d.sync += written.eq(1)
        return m
