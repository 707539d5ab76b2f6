"""The second-level cache."""

from amaranth.hdl import Cat, Const, Module, Signal, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import exact_log2

from ...bus.axi4 import MODIFIABLE, UNPRIVILEGED_NON_SECURE, Axi4Signature, Burst, forward_channels
from ...bus.axi4_lite import Axi4LiteSignature
from ...lib.routing import StreamArbiter
from ...lib.stream import Queue, SkidBuffer
from ..memory.layouts import give, taken
from .bursts import BurstLines, WriteBack, WriteLines
from .control import L2_ADDR_WIDTH, L2Control, Sweep
from .line_stage import LineStage
from .lookup import Lookup
from .params import AccessLayout, FillWordLayout, ForgetLayout, Kind

__all__ = ["L2"]


class L2(wiring.Component):
    """A cache between an AXI4 port and memory (docs/cluster.md, "L2").

    Answers of each ID are in order; answers of different IDs come in any order and interleaved. Every word of memory is
    accepted at once: it has space.

    Parameters
    ----------
    geometry : Geometry
    cores : int
        Of which each has its prefetches.
    """

    def __init__(self, geometry, cores):
        self._geometry = g = geometry
        self._cores = cores
        bus = Axi4Signature(g.addr_width, g.data_width, g.id_width)
        super().__init__(
            {
                # INCR bursts of whole bus words.
                "port": In(bus),
                # Lines to fill. Their data and errors are not reported.
                "prefetches": In(stream.Signature(unsigned(g.line_width))).array(cores),
                # Memory: whole lines, with ID 0.
                "axi": Out(bus),
                # Registers, at the offsets of ``spec.cluster``.
                "axil": In(Axi4LiteSignature(L2_ADDR_WIDTH)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        g, port = self._geometry, self.port
        m.submodules.reads = reads = BurstLines(g)
        m.submodules.writes = writes = WriteLines(g)
        m.submodules.sweep = sweep = Sweep(g)
        m.submodules.lookup = lookup = Lookup(g)
        m.submodules.lines = lines = LineStage(g)
        m.submodules.back = back = WriteBack(g)
        m.submodules.control = control = L2Control(g)
        # More than the lines that may fail before one of them is forgotten.
        m.submodules.forgets = forgets = Queue(ForgetLayout(g), 2 * g.misses)

        taken(m, port, "ar", reads.i)
        taken(m, port, "aw", writes.requests)
        taken(m, port, "w", writes.beats)
        give(m, lines.reads, port, "r")
        give(m, lines.answers, port, "b")
        connect(m, lines=lines.forgets, forgets=forgets.i)
        accesses = self._choose(m, reads, writes, sweep, forgets)
        connect(m, accesses=accesses, lookup=lookup.accesses)
        connect(m, lookup=lookup.entries, lines=lines.entries)
        connect(m, lookup=lookup.quick, lines=lines.quick)
        connect(m, writes=writes.words, lines=lines.words)
        connect(m, lines=lines.victims, back=back.victims)
        self._fill(m, lookup, lines)
        forward_channels(m, self.axi, back.axi)
        connect(m, axil=flipped(self.axil), control=control.axil)
        m.d.comb += [
            lines.victim_room.eq(back.room),
            lookup.done.eq(lines.done),
            lookup.filled.eq(lines.filled),
            lookup.arrived.eq(back.arrived),
            sweep.quiet.eq(lookup.quiet),
            sweep.flush.eq(control.flush),
            sweep.invalidate.eq(control.invalidate),
            sweep.ranged.eq(control.ranged),
            sweep.first.eq(control.first),
            sweep.last.eq(control.last),
            control.busy.eq(sweep.busy),
            control.hits.eq(lookup.hit),
            control.misses.eq(lookup.miss),
            control.evictions.eq(lookup.eviction),
            control.prefetches.eq(lookup.prefetch),
            control.write_errors.eq(back.failed),
        ]
        return m

    def _choose(self, m, reads, writes, sweep, forgets):
        """Accesses to be looked up: lines to be forgotten, then a sweep, then reads, writes and prefetches in turns."""
        g = self._geometry
        access = AccessLayout(g)
        m.submodules.prefetches = prefetches = StreamArbiter(unsigned(g.line_width), self._cores)
        m.submodules.turns = turns = StreamArbiter(access, 3)
        m.submodules.chosen = chosen = SkidBuffer(access)
        for number, lines in enumerate(self.prefetches):
            connect(m, lines=flipped(lines), prefetches=prefetches.i[number])
        reading, writing, fetching = turns.i
        connect(m, writes=writes.accesses, turns=writing)
        m.d.comb += [
            reading.valid.eq(reads.o.valid),
            reads.o.ready.eq(reading.ready),
            reading.payload.kind.eq(Kind.READ),
            reading.payload.part.eq(reads.o.payload),
            fetching.valid.eq(prefetches.o.valid),
            prefetches.o.ready.eq(fetching.ready),
            fetching.payload.kind.eq(Kind.PREFETCH),
            fetching.payload.part.line.eq(prefetches.o.payload),
        ]
        forgotten = Signal(access)
        m.d.comb += [
            forgotten.kind.eq(Kind.FORGET),
            forgotten.part.line.eq(forgets.o.payload.place[: g.set_log2]),
            forgotten.way.eq(forgets.o.payload.place[g.set_log2 :]),
            forgotten.born.eq(forgets.o.payload.born),
        ]
        with m.If(forgets.o.valid):
            m.d.comb += [chosen.i.valid.eq(1), chosen.i.payload.eq(forgotten), forgets.o.ready.eq(chosen.i.ready)]
        with m.Elif(sweep.sweeping):
            m.d.comb += [
                chosen.i.valid.eq(sweep.accesses.valid),
                chosen.i.payload.eq(sweep.accesses.payload),
                sweep.accesses.ready.eq(chosen.i.ready),
            ]
        with m.Else():
            m.d.comb += [
                chosen.i.valid.eq(turns.o.valid),
                chosen.i.payload.eq(turns.o.payload),
                turns.o.ready.eq(chosen.i.ready),
            ]
        return chosen.o

    def _fill(self, m, lookup, lines):
        """Lines that memory is asked for, and their words, for which there is space."""
        g, axi = self._geometry, self.axi
        m.submodules.brought = brought = Queue(FillWordLayout(g), g.misses * g.words)
        m.d.comb += [
            axi.araddr.eq(Cat(Const(0, g.line_log2), lookup.fills.payload)),
            axi.arlen.eq(g.words - 1),
            axi.arsize.eq(exact_log2(g.data_width // 8)),
            axi.arburst.eq(Burst.INCR),
            axi.arprot.eq(UNPRIVILEGED_NON_SECURE),
            axi.arcache.eq(MODIFIABLE),
            axi.arvalid.eq(lookup.fills.valid),
            lookup.fills.ready.eq(axi.arready),
            brought.i.payload.data.eq(axi.rdata),
            brought.i.payload.failed.eq(axi.rresp.as_value()[1]),
            brought.i.valid.eq(axi.rvalid),
            axi.rready.eq(1),
        ]
        connect(m, brought=brought.o, lines=lines.fills)
