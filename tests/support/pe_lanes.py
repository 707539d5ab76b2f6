"""Arithmetic of threads in Verilator: operands from an array, results to another."""

import numpy as np
from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from tilewright.hw.lib.logic import delay
from tilewright.sim.hdl.testbench import Array, make_design
from tilewright.sim.hdl.word_array import WordArray

__all__ = ["make_lanes_design", "run_lanes"]

#: Words of a row of one thread: function, part and predicates, a, b, c.
_WORDS = 4
#: Bits of the first word.
_FIELDS = {"part": slice(8, 11), "first": 11, "second": 12}


class _Harness(wiring.Component):
    """Has ``count`` rows of operands computed by an arithmetic row of one thread.

    Parameters
    ----------
    unit : Component
    latency : int or None
        In cycles. None: the next operands follow when it is ``done``.
    every : int
        Cycles after which it takes the next operands, with a latency.
    depth : int
        Rows that fit.
    early : bool
        The function comes a cycle before the operands.
    """

    def __init__(self, unit, latency, every, depth, early):
        self._unit, self._latency, self._every, self._early = unit, latency, every, early
        self._rows = WordArray(width=32 * _WORDS, depth=depth)
        self._results = WordArray(width=64, depth=depth)
        super().__init__({"start": In(1), "count": In(range(depth + 1)), "finished": Out(1)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.rows, m.submodules.results, m.submodules.unit = self._rows, self._results, self._unit
        unit, members = self._unit, self._unit.signature.members
        sent, kept = Signal.like(self.count), Signal.like(self.count)
        running, waits = Signal(), Signal()
        early = data.View(data.ArrayLayout(32, _WORDS), self._rows.read_data)
        words = data.View(data.ArrayLayout(32, _WORDS), delay(m, early.as_value(), self._early, name="words"))
        m.d.comb += [
            self._rows.read_enable.eq(1),
            self._rows.read_address.eq(sent),
            *(getattr(unit, name)[0].eq(words[1 + index]) for index, name in enumerate("abc") if name in members),
            self._results.write_address.eq(kept),
            self._results.write_data.eq(Cat(unit.o[0], unit.holds if "holds" in members else 0)),
            self.finished.eq((kept == self.count) & ~self.start),
        ]
        if "function" in members:
            m.d.comb += unit.function.eq(early[0][:8])
        for name, bits in _FIELDS.items():
            if name in members:
                m.d.comb += getattr(unit, name).eq((early if name == "part" else words)[0][bits])
        sends = running & (sent != self.count) & ~waits & ~self.start
        m.d.sync += [sent.eq(sent + sends), kept.eq(kept + self._results.write_enable)]
        # The operands are there for one cycle alone.
        started = delay(m, sends, 1, name="started")
        if "start" in members:
            m.d.comb += unit.start.eq(started)
        if self._latency is None:
            m.d.comb += self._results.write_enable.eq(waits & ~started & unit.done)
            m.d.sync += waits.eq(sends | (waits & ~self._results.write_enable))
        else:
            arrives, turn = Signal(1 + self._latency + self._early), Signal(range(self._every))
            m.d.sync += turn.eq(Mux(sends, self._every - 1, turn - (turn != 0)))
            m.d.comb += waits.eq(turn != 0)
            m.d.sync += arrives.eq(Cat(sends, arrives))
            m.d.comb += self._results.write_enable.eq(arrives[-1])
        with m.If(self.start):
            m.d.sync += [running.eq(1), sent.eq(0), kept.eq(0)]
        return m


def make_lanes_design(unit, latency, depth, *, every=1, early=False):
    """A ``Design`` whose arrays are ``rows`` and ``results``, of one of the arithmetic rows with one thread."""
    arrays = {"rows": Array("rows.array.words", 32 * _WORDS, depth), "results": Array("results.array.words", 64, depth)}
    return make_design(_Harness(unit, latency, every, depth, early), arrays)


def run_lanes(simulation, functions, a, b, c, part, *, first=0, second=0, cycles=1):
    """Results of functions of operands, one each.

    Parameters
    ----------
    first, second : ndarray, or 0
        Predicates that the functions read.
    cycles : int
        That each takes at most.

    Returns
    -------
    ndarray of uint32, ndarray of bool
        Results, and values of comparisons.
    """
    bits = functions.astype(np.uint32) | part << 8 | np.uint32(first) << 11 | np.uint32(second) << 12
    rows = np.stack([bits, a, b, c], axis=1).astype("<u4")
    simulation.load("rows", 0, np.ascontiguousarray(rows).view(np.uint8))
    simulation.controls["count"] = len(rows)
    limit = (cycles + 1) * len(rows) + 100
    statuses, arrays = simulation.exchange(reset=True, start=True, limit=limit, dump={"results": (0, len(rows))})
    if not statuses["finished"]:
        raise RuntimeError(f"{len(rows)} rows are not done after {limit} cycles")
    results = np.ascontiguousarray(arrays["results"]).view("<u4")
    return results[:, 0], results[:, 1] == 1
