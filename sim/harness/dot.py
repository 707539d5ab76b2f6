"""A ``DotRow`` that reads rows from an array and writes the results to another, a row a cycle."""

import numpy as np
from amaranth.hdl import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from tilewright.hw.dot_product.row import DotRow
from tilewright.hw.lib.logic import delay

from ..hdl.testbench import Array, make_design
from ..hdl.word_array import WordArray

__all__ = ["DotHarness", "make_dot_design", "pack_dot_rows", "run_dot_rows"]


class DotHarness(wiring.Component):
    """Multiplies ``count`` rows.

    Parameters
    ----------
    width_bytes, segments : int
        Bytes of a row, and its units. A split s makes 2^s sums of a row.
    depth : int
        Rows that fit.
    """

    def __init__(self, width_bytes, segments, depth):
        sizes = [segments >> split for split in range(segments.bit_length())]
        self._unit = DotRow(count=segments, unit_bytes=width_bytes // segments, sizes=sizes)
        #: An item of the array ``rows``.
        self.row = data.StructLayout(
            {
                "type": 4,
                "split": 4,
                "accumulators": data.ArrayLayout(32, segments),
                "a": 8 * width_bytes,
                "b": 8 * width_bytes,
            }
        )
        self._rows = WordArray(width=self.row.size, depth=depth)
        self._results = WordArray(width=32 * segments, depth=depth)
        # All results are in the array.
        # Begin with row 0.
        super().__init__({"start": In(1), "count": In(range(depth + 1)), "finished": Out(1)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.rows, m.submodules.results, m.submodules.unit = self._rows, self._results, self._unit
        sent, kept = Signal.like(self.count), Signal.like(self.count)
        running = Signal()
        row = data.View(self.row, self._rows.read_data)
        m.d.comb += [
            self._rows.read_enable.eq(1),
            self._rows.read_address.eq(sent),
            self._unit.type.eq(row.type),
            self._unit.select.eq(row.split),
            self._unit.a.eq(row.a),
            self._unit.b.eq(row.b),
            self._unit.accumulators.eq(row.accumulators),
            self._results.write_address.eq(kept),
            self._results.write_data.eq(self._unit.o),
            self.finished.eq((kept == self.count) & ~self.start),
        ]
        sends = running & (sent != self.count)
        arrives = delay(m, sends, 1 + self._unit.LATENCY, name="arrives")
        m.d.comb += self._results.write_enable.eq(arrives)
        m.d.sync += [sent.eq(sent + sends), kept.eq(kept + arrives)]
        with m.If(self.start):
            m.d.sync += [running.eq(1), sent.eq(0), kept.eq(0)]
        return m


def make_dot_design(width_bytes, segments, depth):
    """A ``Design`` whose arrays are ``rows`` and ``results``."""
    harness = DotHarness(width_bytes, segments, depth)
    arrays = {
        "rows": Array("rows.array.words", harness.row.size, depth),
        "results": Array("results.array.words", 32 * segments, depth),
    }
    return make_design(harness, arrays)


def pack_dot_rows(kind, split, accumulators, a, b):
    """Rows as the array ``rows`` has them.

    Parameters
    ----------
    kind : MmType
    split : int
    accumulators : ndarray of uint32, of shape (count, segments)
    a, b : ndarray of uint8, of shape (count, width_bytes)
    """
    control = np.full((len(a), 1), kind | split << 4, np.uint8)
    return np.hstack([control, np.ascontiguousarray(accumulators.astype("<u4")).view(np.uint8), a, b])


def run_dot_rows(simulation, rows):
    """Has rows multiplied; returns the results, uint32 of shape (count, segments)."""
    simulation.load("rows", 0, rows)
    simulation.controls["count"] = len(rows)
    limit = 2 * len(rows) + 100
    statuses, arrays = simulation.exchange(reset=True, start=True, limit=limit, dump={"results": (0, len(rows))})
    if not statuses["finished"]:
        raise RuntimeError(f"{len(rows)} rows are not done after {limit} cycles")
    return np.ascontiguousarray(arrays["results"]).view("<u4")
