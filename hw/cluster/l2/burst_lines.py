"""Bursts, line by line."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from tilewright.golden.spec import PAGE_BYTES

from ..memory.layouts import RequestLayout
from .layouts import LinePartLayout

__all__ = ["BurstLines"]


class BurstLines(wiring.Component):
    """Says of each burst which words of which lines it has.

    Latency 1, one line a cycle, without a gap from burst to burst.

    Parameters
    ----------
    geometry : Geometry

    Members
    -------
    i : In(stream of RequestLayout(geometry.addr_width, geometry.id_width))
        Bursts of whole bus words, INCR, within a page of 4 KiB.
    o : Out(stream of LinePartLayout(geometry))
    """

    def __init__(self, geometry):
        self._geometry = geometry
        self.part = Signal(LinePartLayout(geometry))  # ``last`` and ``end`` are not kept
        self.left = Signal(8)  # words behind the first one
        super().__init__(
            {
                "i": In(stream.Signature(RequestLayout(geometry.addr_width, geometry.id_width))),
                "o": Out(stream.Signature(LinePartLayout(geometry))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        geometry, part, request, o = self._geometry, self.part, self.i.payload, self.o
        bus_log2 = geometry.line_log2 - geometry.word_log2
        in_page = exact_log2(PAGE_BYTES) - geometry.line_log2
        reach = Signal(9)
        m.d.comb += [
            reach.eq(part.first + self.left),
            o.payload.eq(part),
            o.payload.end.eq(reach < geometry.words),
            o.payload.last.eq(Mux(o.payload.end, reach, geometry.words - 1)),
            self.i.ready.eq(~o.valid | (o.ready & o.payload.end)),
        ]
        with m.If(self.i.ready):
            m.d.sync += [
                o.valid.eq(self.i.valid),
                part.id.eq(request.id),
                part.line.eq(request.addr[geometry.line_log2 :]),
                part.first.eq(request.addr[bus_log2 : geometry.line_log2]),
                self.left.eq(request.len),
            ]
        with m.Elif(o.ready):
            m.d.sync += [
                part.line[:in_page].eq(part.line[:in_page] + 1),
                part.first.eq(0),
                self.left.eq(reach - geometry.words),
            ]
        return m
