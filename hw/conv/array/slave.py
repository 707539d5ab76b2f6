"""A slave: its compute units and their accumulators."""

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from ...lib.logic import delay
from ..layouts import HalvesLayout, StepLayout
from ..params import FOLDS
from .memory import bias_columns
from .sums import Sums
from .units import ComputeUnit, Factors, FloatUnit, factors_layout

__all__ = ["FloatStepLayout", "Slave", "features_layout", "sums_layout"]


def features_layout(params):
    """Rows of factors, one for each unit."""
    return data.ArrayLayout(factors_layout(params.conv.row_bytes, wide=params.wide), params.conv.units)


def sums_layout(params):
    """Accumulators of one channel, of each unit."""
    return data.ArrayLayout(data.ArrayLayout(32, FOLDS), params.conv.units)


class FloatStepLayout(data.StructLayout):
    """What slaves multiply where floats are summed: rows and biases are those of the step of two cycles ago."""

    def __init__(self, params):
        conv = params.conv
        super().__init__(
            {
                "sum": 1,  # floats are summed: this and the next two are constant from a step to its sums
                "brain": 1,  # they are bf16, not fp16
                "ordered": 1,  # the largest of them is looked for, as of integers
                "rows": data.ArrayLayout(8 * conv.row_bytes, conv.units),
                "biases": data.ArrayLayout(32, bias_columns(params)),  # of all elements of a row, in lane-private mode
            }
        )


class Slave(wiring.Component):
    """Multiplies one row of its own with a row of each unit in each cycle, and adds the products to accumulators.

    A row of 2^``granularity`` bytes is repeated until it fills a row of the units; in lane-private mode it is as long.
    Its own row has to come in the cycle after a step, ``features`` have to come ``FEATURES`` cycles after it.

    Latency: ``LATENCY`` cycles from a step until its sums can be read, of floats ``FLOATS``. Throughput: a step a
    cycle; but of floats a step with the same accumulators comes ``LOOP`` cycles after the one before, or later. Nothing
    stalls it.

    Parameters
    ----------
    params : ConvUnitParams

    Members
    -------
    valid : In(1)
    step : In(StepLayout(params))
    features : In(features_layout(params))
    granularity : In(range(7))
    wide, lanes, maximum : In(1)
        Elements of 16 bits; lane-private mode; the larger number stays in it, in place of sums, where all of
        ``features`` are 1. These and what follows are constant from a step to its sums.
    is_signed : In(1)
        Elements of ``row`` are.
    zero : In(signed(17))
        Their zero point.
    row : In(8 * params.conv.row_bytes)
    read : In(range(params.accumulators))
        Channel and bank.
    on : In(params.sums) if params.sums_apart
        Accumulators that are read, unit by unit; the others are 0 in ``sums``.
    sums : Out(sums_layout(params))
        Combinational from ``read``; if ``params.sums_apart`` in the next cycle.
    floats : In(FloatStepLayout(params)) if params.floats
    bias : In(32) if params.floats
        Of the slave's own channel, with ``floats.biases``; in lane-private mode anything.
    """

    #: Cycles from a step to the features that it multiplies.
    FEATURES = 3
    LATENCY = FEATURES + ComputeUnit.LATENCY + 1
    #: Cycles from a step to what a sum of floats begins with, and to what it adds.
    _BEGUN = 2
    FLOATS = _BEGUN + FloatUnit.LATENCY + 1
    LOOP = FloatUnit.LATENCY + 1

    def __init__(self, params):
        self._params = params
        self._wide = params.wide
        super().__init__(
            ({"floats": In(FloatStepLayout(params)), "bias": In(32)} if params.floats else {})
            | ({"on": In(params.sums)} if params.sums_apart else {})
            | {
                "valid": In(1),
                "step": In(StepLayout(params)),
                "features": In(features_layout(params)),
                "granularity": In(range(7)),
                "wide": In(1),
                "lanes": In(1),
                "maximum": In(1),
                "is_signed": In(1),
                "zero": In(signed(17)),
                "row": In(8 * params.conv.row_bytes),
                "read": In(range(self._params.accumulators)),
                "sums": Out(sums_layout(params)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        conv = self._params.conv
        m.submodules.factors = factors = Factors(conv.row_bytes, wide=self._wide)
        m.d.sync += factors.row.eq(self._repeated(m, self._in_order(m, self.row)))
        m.d.comb += [factors.wide.eq(self.wide), factors.is_signed.eq(self.is_signed), factors.zero.eq(self.zero)]

        split = Signal(range(exact_log2(FOLDS) + 1))
        m.d.comb += split.eq(self.granularity - exact_log2(conv.row_bytes // FOLDS))
        done = self.LATENCY - 1
        valid = self.valid
        for cycle in range(done):
            before, valid = valid, Signal(name=f"valid{cycle + 1}")
            m.d.sync += valid.eq(before)
        halves = HalvesLayout(self._params)(delay(m, self.step.halves.as_value(), done, name="halves"))
        address = delay(m, self.step.channel | self.step.bank << 2, done, name="address")
        if self._params.floats:
            ended_valid, ended_halves, ended_address = self._ended(m, valid, halves, address)
        each = conv.units // self._params.halves  # units of a half
        for number in range(conv.units):
            half, in_half = divmod(number, each)
            m.submodules[f"unit{number}"] = unit = ComputeUnit(conv.row_bytes, in_half, wide=self._wide)
            lanes = max(0, min(FOLDS, conv.row_bytes - FOLDS * in_half))
            m.submodules[f"sums{number}"] = sums = Sums(
                lanes,
                17 if self._wide else 9,
                floats=self._params.floats,
                apart=self._params.sums_apart,
                depth=self._params.accumulators,
            )
            m.d.comb += [
                unit.a.eq(self.features[number]),
                unit.b.eq(factors.o),
                unit.split.eq(split),
                unit.lanes.eq(self.lanes),
                unit.wide.eq(self.wide),
                sums.i.eq(unit.o),
                sums.valid.eq(valid & ~halves.off[half]),
                sums.first.eq(halves.first[half]),
                sums.maximum.eq(self.maximum),
                sums.address.eq(address),
                sums.read.eq(self.read),
                self.sums[number].eq(sums.o),
            ]
            if self._params.sums_apart:
                m.d.comb += sums.on.eq(self.on.word_select(number, FOLDS))
            if self._params.floats:
                with m.If(self.floats.sum):
                    m.d.comb += sums.valid.eq(ended_valid & ~ended_halves.off[half])
                m.d.comb += sums.ended.eq(ended_address)
                self._float_unit(m, number, sums, factors.row, split)
        return m

    def _ended(self, m, valid, halves, address):
        """When sums of floats are made, and of which accumulators: later than what is given is."""
        later = self.FLOATS - self.LATENCY
        for cycle in range(later):
            before, valid = valid, Signal(name=f"float_valid{cycle + 1}")
            m.d.sync += valid.eq(before)
        halves, address = (
            delay(m, value, later, name=f"float_{name}")
            for name, value in (("halves", halves.as_value()), ("address", address))
        )
        return valid, HalvesLayout(self._params)(halves), address

    def _float_unit(self, m, number, sums, row, split):
        """Products are added to accumulators, or to biases."""
        half, in_half = divmod(number, self._params.conv.units // self._params.halves)
        floats, unit = self.floats, FloatUnit(self._params.conv.row_bytes, in_half)
        m.submodules[f"float_unit{number}"] = unit
        first = delay(m, self.step.halves.first[half], self._BEGUN, name=f"float_first{number}")
        begun = delay(m, self.step.channel | self.step.bank << 2, self._BEGUN, name=f"begun{number}")
        own = list(floats.biases)[FOLDS * in_half :][:FOLDS]
        for place in range(FOLDS):
            bias = Mux(self.lanes, own[place], self.bias) if place < len(own) else self.bias
            m.d.comb += unit.accumulators[place].eq(Mux(first, bias, sums.before[place]))
        m.d.comb += [
            unit.a.eq(floats.rows[number]),
            unit.b.eq(row),
            unit.brain.eq(floats.brain),
            unit.split.eq(split),
            unit.lanes.eq(self.lanes),
            sums.floats.eq(floats.sum),
            sums.begun.eq(begun),
            sums.sums.eq(unit.o),
        ]

    def _in_order(self, m, word):
        """Floats as integers of the same order, NaN the largest; -0 is less than +0 (docs/conv.md, "Maximum")."""
        if not self._params.floats:
            return word
        ordered = Signal(8 * self._params.conv.row_bytes)
        nan, infinite = Mux(self.floats.brain, 0x7FC0, 0x7E00), Mux(self.floats.brain, 0x7F80, 0x7C00)
        elements = [word.word_select(number, 16) for number in range(self._params.conv.row_bytes // 2)]
        turned = [
            Mux(bits[:15] > infinite, nan, Cat(bits[:15] ^ bits[15].replicate(15), bits[15])) for bits in elements
        ]
        m.d.comb += ordered.eq(Mux(self.floats.ordered, Cat(each[:16] for each in turned), word))
        return ordered

    def _repeated(self, m, word):
        """A part of the word, side by side with itself: halves are chosen down to the part, and repeated up again."""
        whole, halvings = exact_log2(self._params.conv.row_bytes), exact_log2(FOLDS)
        # Of each halving, the largest halves first: there are two of the same; which one is the part's.
        repeats, uppers = Signal(halvings), Signal(halvings)
        for number in range(halvings):
            m.d.comb += repeats[number].eq(~self.lanes & (self.granularity < whole - number))
        with m.Switch(self.granularity):
            for folded in range(1, halvings + 1):
                with m.Case(whole - folded):
                    m.d.comb += uppers.eq(Cat(self.step.part[:folded][::-1]) & repeats)
        repeats, uppers = delay(m, repeats, 1, name="repeats"), delay(m, uppers, 1, name="uppers")

        def named(value, name):
            signal = Signal.like(value, name=f"{name}_{len(value) // 8}")
            m.d.comb += signal.eq(value)
            return signal

        parts = [named(word, "part")]
        for upper in uppers:
            parts.append(named(parts[-1].word_select(upper, len(parts[-1]) // 2), "part"))
        row = parts.pop()
        for again in reversed(repeats):
            row = named(Cat(row, Mux(again, row, parts.pop()[len(row) :])), "row")
        return row
