"""Scatter port: writes bytes of any eight chunks, as many at once as lie in distinct banks."""

from functools import reduce
from operator import or_

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.golden.spec import BANKS, CHUNK_BYTES

from .layouts import CHUNK_BITS, BanksWriteLayout, ScatterWriteLayout

__all__ = ["ScatterPort"]


class ScatterPort(wiring.Component):
    """Turns writes of eight chunks into writes of the banks.

    A write takes as many cycles as the bank with the most lanes that write to it has of them. In each cycle every bank
    serves the first lane that still waits for it; of lanes that write the same byte the last one thus wins.

    Latency: 1 cycle to the banks' write. Throughput: one write a cycle without conflicts.

    Members
    -------
    i : In(stream of ScatterWriteLayout)
        Should come from registers. Accepted with the last of its lanes.
    o : Out(stream of BanksWriteLayout)
        Registered.
    idle : Out(1)
        What has been accepted is in the banks, or gets there in this cycle.
    conflict_stb : Out(1)
        High for one cycle for each cycle that a write takes beyond its first.

    Attributes
    ----------
    written : Signal
        Lanes of the write at ``i`` that have been passed on; for proofs.
    """

    def __init__(self, params):
        self.written = Signal(BANKS)
        self._params = params
        super().__init__(
            {
                "i": In(stream.Signature(ScatterWriteLayout(params))),
                "o": Out(stream.Signature(BanksWriteLayout(params))),
                "idle": Out(1),
                "conflict_stb": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        lanes, banks = range(BANKS), range(BANKS)
        write, chunks = self.i.payload, self.i.payload.chunks

        waiting = Signal(BANKS)
        first = Signal(BANKS)  # of those that wait for the same bank
        for k in lanes:
            m.d.comb += waiting[k].eq(write.strobes[k].any() & ~self.written[k])
            before = [waiting[j] & (chunks[j][:3] == chunks[k][:3]) for j in range(k)]
            m.d.comb += first[k].eq(waiting[k] & ~reduce(or_, before, 0))

        free, fire, complete = Signal(), Signal(), Signal()
        m.d.comb += [
            free.eq(~self.o.valid | self.o.ready),
            complete.eq((waiting & ~first) == 0),
            fire.eq(self.i.valid & free),
            self.i.ready.eq(free & complete),
            self.conflict_stb.eq(fire & ~complete),
            self.idle.eq(~self.o.valid),
        ]
        with m.If(fire):
            m.d.sync += self.written.eq(self.written | first)
            with m.If(complete):
                m.d.sync += self.written.eq(0)

        picks = Signal(data.ArrayLayout(BANKS, BANKS))  # by bank: the lane that it serves, one-hot
        with m.If(free):
            m.d.sync += self.o.valid.eq(self.i.valid)
        for bank in banks:
            for k in lanes:
                m.d.comb += picks[bank][k].eq(first[k] & (chunks[k][:3] == bank))
            # AND-OR and not a chain of multiplexers: a bank serves one lane at most.
            for port, values, width in (
                (self.o.payload.rows, [chunk[3:] for chunk in chunks], self._params.row_width),
                (self.o.payload.data, write.data, CHUNK_BITS),
                (self.o.payload.strobes, write.strobes, CHUNK_BYTES),
            ):
                served = [values[k] & picks[bank][k].replicate(width) for k in lanes]
                with m.If(free):
                    m.d.sync += port[bank].eq(reduce(or_, served))
        return m
