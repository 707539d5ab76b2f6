"""Lines that leave the cache, to memory."""

from amaranth.hdl import Cat, Const, Module, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from ...bus.axi4 import MODIFIABLE, UNPRIVILEGED_NON_SECURE, Axi4WriteSignature, Burst
from ...lib.stream import Queue, ShallowQueue
from ..memory.layouts import WriteBeatLayout, give
from .layouts import VictimLayout

__all__ = ["WriteBack"]

#: Lines that wait: one comes while others go.
_LINES = 4


class WriteBack(wiring.Component):
    """Writes whole lines, of which memory takes the bytes that were written.

    One burst a line; latency 1. Neither AW nor W waits for the other to be accepted, but for four lines. Every answer
    is taken at once.

    Parameters
    ----------
    geometry : Geometry

    Members
    -------
    victims : In(stream of VictimLayout(geometry), always ready)
        Whole lines, while there is ``room``.
    room : Out(1)
        Registered: two more words may come after this cycle.
    axi : Out(Axi4WriteSignature(geometry.addr_width, geometry.data_width, geometry.id_width))
        With ID 0.
    arrived : Out(1)
        Strobe: memory has answered.
    failed : Out(1)
        Strobe: with an error.
    """

    def __init__(self, geometry):
        self._geometry = g = geometry
        self.lines = ShallowQueue(unsigned(g.line_width), _LINES)
        self.words = Queue(WriteBeatLayout(g.data_width), _LINES * g.words)
        super().__init__(
            {
                "victims": In(stream.Signature(VictimLayout(g), always_ready=True)),
                "room": Out(1),
                "axi": Out(Axi4WriteSignature(g.addr_width, g.data_width, g.id_width)),
                "arrived": Out(1),
                "failed": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.lines = lines = self.lines
        m.submodules.words = words = self.words
        g, axi, victim = self._geometry, self.axi, self.victims
        m.d.comb += [
            lines.i.payload.eq(victim.payload.line),
            lines.i.valid.eq(victim.valid & victim.payload.first),
            words.i.payload.data.eq(victim.payload.data),
            words.i.payload.strb.eq(victim.payload.strb),
            words.i.payload.last.eq(victim.payload.last),
            words.i.valid.eq(victim.valid),
            axi.awaddr.eq(Cat(Const(0, g.line_log2), lines.o.payload)),
            axi.awlen.eq(g.words - 1),
            axi.awsize.eq(exact_log2(g.data_width // 8)),
            axi.awburst.eq(Burst.INCR),
            axi.awprot.eq(UNPRIVILEGED_NON_SECURE),
            axi.awcache.eq(MODIFIABLE),
            axi.awvalid.eq(lines.o.valid),
            lines.o.ready.eq(axi.awready),
            axi.bready.eq(1),
        ]
        give(m, words.o, axi, "w")
        # A word or line shows in the level two cycles after it was on its way, in which two others may follow.
        m.d.sync += [
            self.room.eq((words.level <= self.words.depth - 4) & (lines.level <= _LINES - 3)),
            self.arrived.eq(axi.bvalid),
            self.failed.eq(axi.bvalid & axi.bresp.as_value()[1]),
        ]
        return m
