"""Scatter port: writes bytes of any eight chunks, as many at once as lie in distinct banks, eight, four or two."""

from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.golden.spec import BANKS

from ..lib.choice import chosen, first_of
from .layouts import ScatteredLayout, ScatterWriteLayout

__all__ = ["ScatterPort"]


class ScatterPort(wiring.Component):
    """Turns writes of eight chunks into writes of the banks.

    Each bank has a place for one chunk that waits to be written. In each cycle every bank whose place is free, or gets
    free, takes the first lane that still waits for it; of lanes that write the same byte the last one thus wins. So a
    write takes as many cycles as the bank with the most lanes that write to it has of them, and one behind it goes on
    where a line does not hold it up. With ``params.writes_a_cycle`` of 4 or 2 a write has two or four parts, up to the
    last one that writes; of 2, all banks are free together.

    Latency: 1 cycle to the banks' write. Throughput: one write a cycle without conflicts, or one in as many cycles as
    it has parts.

    Members
    -------
    i : In(stream of ScatterWriteLayout)
        Should come from registers. Accepted with the last of its lanes.
    o : Out(ScatteredLayout)
        Registered: what waits, until it is taken.
    taken : In(BANKS)
        Banks in which it is written in this cycle.
    emptied : In(1)
        Nothing waits after this cycle: as ``taken`` tells, but sooner.
    idle : Out(1)
        What has been accepted is in the banks.
    conflict_stb : Out(1)
        High for one cycle for each cycle that a write takes beyond its first, banks that lines hold up apart.

    Attributes
    ----------
    written : Signal
        Lanes of the write at ``i`` that have been passed on; for proofs.
    part : Signal
        Part of it that is passed on; for proofs.
    """

    def __init__(self, params):
        self.written = Signal(BANKS)
        self.part = Signal(range(BANKS // params.writes_a_cycle))
        self._params = params
        super().__init__(
            {
                "i": In(stream.Signature(ScatterWriteLayout(params))),
                "o": Out(ScatteredLayout(params)),
                "taken": In(BANKS),
                "emptied": In(1),
                "idle": Out(1),
                "conflict_stb": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        ways = self._params.writes_a_cycle
        parts, lanes = BANKS // ways, range(ways)  # of a write, one after the other
        part, write = self.part, self.i.payload

        def at_hand(values):
            return [chosen(part, {p: values[p * ways + k] for p in range(parts)}) for k in lanes]

        free, left = Signal(BANKS), self.o.banks & ~self.taken
        # Where two chunks are for all banks, both go before the next ones come.
        m.d.comb += free.eq(self.emptied.replicate(BANKS) if ways == 2 else ~left)

        waiting = Signal(BANKS)
        m.d.comb += [waiting[k].eq(self.i.valid & write.strobes[k].any() & ~self.written[k]) for k in range(BANKS)]
        first = Signal(ways)  # of those that wait for the same bank
        passed_on = Signal(ways)
        waits, chunks = at_hand(waiting), at_hand(write.chunks)
        for k in lanes:
            before = [waits[j] & (chunks[j][:3] == chunks[k][:3]) for j in range(k)]
            m.d.comb += first[k].eq(waits[k] & ~reduce(or_, before, 0))
            m.d.comb += passed_on[k].eq(first[k] & free.bit_select(chunks[k][:3], 1))

        served = Signal(BANKS)  # lanes that are passed on
        complete = Signal()
        m.d.comb += [
            served.eq(Cat(passed_on & (part == p).replicate(ways) for p in range(parts))),
            complete.eq((waiting & ~served) == 0),
            self.i.ready.eq(complete),
            self.conflict_stb.eq(~complete & (passed_on == first)),
            self.idle.eq(self.o.banks == 0),
        ]
        m.d.sync += self.written.eq(self.written | served)
        with m.If(complete):
            m.d.sync += [self.written.eq(0), part.eq(0)]
        with m.Elif((Cat(waits) & ~passed_on) == 0):
            m.d.sync += part.eq(part + 1)

        values, strobes, out = at_hand(write.data), at_hand(write.strobes), self.o
        m.d.sync += out.banks.eq(left)
        if ways == 2:
            with m.If(free[0]):
                m.d.sync += [out.data[k].eq(values[k]) for k in lanes]
        for bank in range(BANKS):
            wants = [waits[k] & (chunks[k][:3] == bank) for k in lanes]
            lane = Signal(range(ways), name=f"lane{bank}")
            m.d.comb += lane.eq(first_of(wants))
            with m.If(free[bank]):
                m.d.sync += [
                    out.banks[bank].eq(Cat(wants).any()),
                    out.rows[bank].eq(chosen(lane, {k: chunks[k][3:] for k in lanes})),
                    out.strobes[bank].eq(chosen(lane, dict(enumerate(strobes)))),
                ]
                if ways == 2:
                    m.d.sync += out.second[bank].eq(wants[1] & ~wants[0])
                else:
                    m.d.sync += out.data[bank].eq(chosen(lane, dict(enumerate(values))))
        return m
