"""A slave: its memory, its compute units and their accumulators."""

from amaranth.hdl import Module, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from ...lib.delay import delay
from ..layouts import WordWriteLayout
from .factors import FactorLayout, Factors
from .layouts import StepLayout
from .sums import Sums
from .unit import FOLDS, ComputeUnit

__all__ = ["Slave"]


class Slave(wiring.Component):
    """Multiplies one row of its memory with a row of each unit in each cycle, and adds the products to accumulators.

    A row of 2^``granularity`` bytes is repeated until it fills a row of the units; in lane-private mode it is as long.
    The memory is read in the cycle of a step; ``features`` have to come ``FEATURES`` cycles after it.

    Latency: ``LATENCY`` cycles from a step until its sums can be read. Throughput: a step a cycle; nothing stalls it.

    Parameters
    ----------
    params : ConvUnitParams

    Members
    -------
    valid : In(1)
    step : In(StepLayout(params))
    features : In(array of params.conv.units array of params.conv.row_bytes//2 FactorLayout)
    granularity : In(range(7))
    wide, lanes, maximum : In(1)
        Elements of 16 bits; lane-private mode; the larger number stays in it, in place of sums, where all of
        ``features`` are 1. These and what follows are constant from a step to its sums.
    signed : In(1)
        The memory's elements are.
    zero : In(signed(17))
        Their zero point.
    write : In(WordWriteLayout(params))
    read : In(3)
        Channel and bank.
    sums : Out(array of params.conv.units array of 16 32)
        Combinational from ``read``.
    """

    #: Cycles from a step to the features that it multiplies.
    FEATURES = 3
    LATENCY = FEATURES + ComputeUnit.LATENCY + 1

    def __init__(self, params):
        self._params = params
        self._wide = "i16" in params.conv.types
        conv = params.conv
        features = data.ArrayLayout(FactorLayout(wide=self._wide), conv.row_bytes // 2)
        super().__init__(
            {
                "valid": In(1),
                "step": In(StepLayout(params)),
                "features": In(data.ArrayLayout(features, conv.units)),
                "granularity": In(range(7)),
                "wide": In(1),
                "lanes": In(1),
                "maximum": In(1),
                "signed": In(1),
                "zero": In(signed(17)),
                "write": In(WordWriteLayout(params)),
                "read": In(3),
                "sums": Out(data.ArrayLayout(data.ArrayLayout(32, FOLDS), conv.units)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        conv = self._params.conv
        m.submodules.memory = memory = Memory(shape=8 * conv.row_bytes, depth=self._params.words, init=[])
        write, read = memory.write_port(granularity=8), memory.read_port()
        m.d.comb += [
            write.addr.eq(self.write.word),
            write.data.eq(self.write.data),
            write.en.eq(self.write.strobe),
            read.addr.eq(self.step.word),
            read.en.eq(self.valid),
        ]
        m.submodules.factors = factors = Factors(conv.row_bytes, wide=self._wide)
        m.d.sync += factors.row.eq(self._repeated(m, read.data))
        m.d.comb += [factors.wide.eq(self.wide), factors.signed.eq(self.signed), factors.zero.eq(self.zero)]

        split = Signal(range(exact_log2(FOLDS) + 1))
        m.d.comb += split.eq(self.granularity - exact_log2(conv.row_bytes // FOLDS))
        done = self.LATENCY - 1
        valid = self.valid
        for cycle in range(done):
            before, valid = valid, Signal(name=f"valid{cycle + 1}")
            m.d.sync += valid.eq(before)
        first = delay(m, self.step.first, done, name="first")
        address = delay(m, self.step.channel | self.step.bank << 2, done, name="address")
        for number in range(conv.units):
            m.submodules[f"unit{number}"] = unit = ComputeUnit(conv.row_bytes, number, wide=self._wide)
            lanes = max(0, min(FOLDS, conv.row_bytes - FOLDS * number))
            m.submodules[f"sums{number}"] = sums = Sums(lanes, 17 if self._wide else 9)
            m.d.comb += [
                unit.a.eq(self.features[number]),
                unit.b.eq(factors.o),
                unit.split.eq(split),
                unit.lanes.eq(self.lanes),
                unit.wide.eq(self.wide),
                sums.i.eq(unit.o),
                sums.valid.eq(valid),
                sums.first.eq(first),
                sums.maximum.eq(self.maximum),
                sums.address.eq(address),
                sums.read.eq(self.read),
                self.sums[number].eq(sums.o),
            ]
        return m

    def _repeated(self, m, word):
        """A part of the word, side by side with itself."""
        row_bytes = self._params.conv.row_bytes
        part = delay(m, self.step.part, 1, name="part")
        whole = exact_log2(row_bytes)
        rows = Signal(8 * row_bytes)
        m.d.comb += rows.eq(word)
        for folded in range(1, exact_log2(FOLDS) + 1):
            size = row_bytes >> folded
            with m.If(~self.lanes & (self.granularity == whole - folded)):
                m.d.comb += rows.eq(word.word_select(part[:folded], 8 * size).replicate(1 << folded))
        return rows
