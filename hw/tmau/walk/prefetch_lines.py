"""The lines of a prefetch (docs/cluster.md, "L2")."""

from amaranth import Module, Signal, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from tilewright.golden.spec import LINE_BYTES

from ..layouts import BoxRunLayout

__all__ = ["LINE_LOG2", "PrefetchLines"]

#: Bits of a byte's place in a line.
LINE_LOG2 = exact_log2(LINE_BYTES)


class PrefetchLines(wiring.Component):
    """Names every line that a run has a byte in, but for that of the run before, of the same transfer.

    Latency 1; one line a cycle, and a cycle for each run.

    Members
    -------
    i : In(stream of BoxRunLayout)
        ``ready`` is a register.
    o : Out(stream of unsigned(params.addr_width - 7))
        Numbers of lines of 128 bytes. Registered.
    """

    def __init__(self, params):
        self._params = params
        lines = unsigned(params.addr_width - LINE_LOG2)
        self.left = Signal(params.smem.addr_width + 2 - LINE_LOG2)  # lines behind the one at the output
        self.named = Signal()  # a line of the transfer has been named, and the last one was
        self.previous = Signal(lines)
        super().__init__({"i": In(stream.Signature(BoxRunLayout(params))), "o": Out(stream.Signature(lines))})

    def elaborate(self, platform):
        m = Module()
        run, o = self.i.p, self.o
        first, beyond, again = Signal.like(o.p), Signal.like(self.left), Signal()
        m.d.comb += [
            first.eq(run.address[LINE_LOG2:]),
            beyond.eq((run.address[:LINE_LOG2] + run.bytes - 1) >> LINE_LOG2),
            again.eq(self.named & (first == self.previous)),
            self.i.ready.eq(~o.valid),
        ]
        with m.If(self.i.valid & self.i.ready):
            with m.If(run.inside):
                m.d.sync += [
                    o.valid.eq(~again | (beyond != 0)),
                    o.p.eq(first + again),
                    self.left.eq(beyond - again),
                    self.previous.eq(first + beyond),
                ]
            m.d.sync += self.named.eq((self.named | run.inside) & ~run.last)
        with m.Elif(o.valid & o.ready):
            m.d.sync += [o.valid.eq(self.left != 0), o.p.eq(o.p + 1), self.left.eq(self.left - 1)]
        return m
