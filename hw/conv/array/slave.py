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

__all__ = ["FloatStepLayout", "Slave", "features_layout"]


def features_layout(params):
    """Rows of factors, one for each unit."""
    return data.ArrayLayout(factors_layout(params.conv.row_bytes, wide=params.wide), params.conv.units)


class FloatStepLayout(data.StructLayout):
    """What slaves multiply where floats are summed: rows and biases of the step of two cycles ago."""

    def __init__(self, params):
        conv = params.conv
        super().__init__(
            {
                "sum": 1,  # floats are summed; the three flags are constant from a step to its sums
                "brain": 1,  # bf16, not fp16
                "ordered": 1,  # the maximum of floats is computed, on integers of the same order
                "rows": data.ArrayLayout(8 * conv.row_bytes, conv.units),
                "biases": data.ArrayLayout(32, bias_columns(params)),  # by element, for lane-private mode
            }
        )


class Slave(wiring.Component):
    """Multiplies one row of its own with a row of each unit in each cycle, and adds the products to accumulators.

    A row of 2^``granularity`` bytes is repeated until it fills a row of the units; in lane-private mode it has the full
    length.

    Latency: ``LATENCY`` cycles from a step until its sums can be read, ``FLOATS`` for floats. Throughput: a step a
    cycle, without stalls; steps that add floats to the same accumulators must be at least ``LOOP`` cycles apart.

    Parameters
    ----------
    params : ConvUnitParams
    """

    #: Cycles from a step to the features that it multiplies.
    FEATURES = 3
    LATENCY = FEATURES + ComputeUnit.LATENCY + 1
    #: Cycles from a step to the operands of its float sums.
    _OPERANDS = 2
    FLOATS = _OPERANDS + FloatUnit.LATENCY + 1
    LOOP = FloatUnit.LATENCY + 1

    def __init__(self, params):
        self._params = params
        super().__init__(
            # ``bias`` belongs to the slave's own channel, and is not used in lane-private mode.
            ({"floats": In(FloatStepLayout(params)), "bias": In(32)} if params.floats else {})
            # Accumulators that are read, unit by unit; the others are 0 in ``sums``.
            | ({"on": In(params.sums)} if params.single_reads else {})
            | {
                "valid": In(1),
                "step": In(StepLayout(params)),
                "features": In(features_layout(params)),  # ``FEATURES`` cycles after the step
                # These are constant from a step to its sums.
                "granularity": In(range(7)),
                "wide": In(1),  # elements have 16 bits
                "lanes": In(1),  # lane-private mode
                "maximum": In(1),  # accumulators keep the larger number; all of ``features`` are 1
                "is_signed": In(1),  # elements of ``row`` are signed
                "zero": In(signed(17)),  # their zero point
                "row": In(8 * params.conv.row_bytes),  # one cycle after the step
                "read": In(range(params.accumulators)),  # channel, with the bank above
                # By unit; combinational from ``read``, or with ``params.single_reads`` one cycle later.
                "sums": Out(data.ArrayLayout(data.ArrayLayout(32, FOLDS), params.conv.units)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        params, conv = self._params, self._params.conv
        m.submodules.factors = factors = Factors(conv.row_bytes, wide=params.wide)
        m.d.sync += factors.row.eq(self._repeated(m, self._in_order(m, self.row)))
        m.d.comb += [factors.wide.eq(self.wide), factors.is_signed.eq(self.is_signed), factors.zero.eq(self.zero)]

        split = Signal(range(exact_log2(FOLDS) + 1))
        m.d.comb += split.eq(self.granularity - exact_log2(conv.row_bytes // FOLDS))
        # When the sums of a step are written: of floats later than of integers.
        valids = Signal((self.FLOATS if params.floats else self.LATENCY) - 1)
        m.d.sync += valids.eq(Cat(self.valid, valids))
        address = self.step.channel | self.step.bank << 2
        halves = HalvesLayout(params)(delay(m, self.step.halves.as_value(), self.LATENCY - 1, name="halves"))
        sum_address = delay(m, address, self.LATENCY - 1, name="address")
        if params.floats:
            later = self.FLOATS - self.LATENCY
            float_halves = HalvesLayout(params)(delay(m, halves.as_value(), later, name="float_halves"))
            float_address = delay(m, sum_address, later, name="float_address")
            operand_address = delay(m, address, self._OPERANDS, name="operand_address")
        half_units = conv.units // params.halves
        for number in range(conv.units):
            half, in_half = divmod(number, half_units)
            m.submodules[f"unit{number}"] = unit = ComputeUnit(conv.row_bytes, in_half, wide=params.wide)
            m.submodules[f"sums{number}"] = sums = Sums(
                max(0, min(FOLDS, conv.row_bytes - FOLDS * in_half)),
                17 if params.wide else 9,
                floats=params.floats,
                single_reads=params.single_reads,
                depth=params.accumulators,
            )
            m.d.comb += [
                unit.a.eq(self.features[number]),
                unit.b.eq(factors.o),
                unit.split.eq(split),
                unit.lanes.eq(self.lanes),
                unit.wide.eq(self.wide),
                sums.i.eq(unit.o),
                sums.valid.eq(valids[self.LATENCY - 2] & ~halves.off[half]),
                sums.first.eq(halves.first[half]),
                sums.maximum.eq(self.maximum),
                sums.address.eq(sum_address),
                sums.read.eq(self.read),
                self.sums[number].eq(sums.o),
            ]
            if params.single_reads:
                m.d.comb += sums.on.eq(self.on.word_select(number, FOLDS))
            if params.floats:
                with m.If(self.floats.sum):
                    m.d.comb += sums.valid.eq(valids[-1] & ~float_halves.off[half])
                m.d.comb += [sums.sum_address.eq(float_address), sums.operand_address.eq(operand_address)]
                self._float_unit(m, number, sums, factors.row, split)
        return m

    def _float_unit(self, m, number, sums, row, split):
        """Adds products to accumulators, or to biases."""
        half, in_half = divmod(number, self._params.conv.units // self._params.halves)
        floats, unit = self.floats, FloatUnit(self._params.conv.row_bytes, in_half)
        m.submodules[f"float_unit{number}"] = unit
        first = delay(m, self.step.halves.first[half], self._OPERANDS, name=f"float_first{number}")
        biases = list(floats.biases)[FOLDS * in_half :][:FOLDS]
        for place in range(FOLDS):
            bias = Mux(self.lanes, biases[place], self.bias) if place < len(biases) else self.bias
            m.d.comb += unit.accumulators[place].eq(Mux(first, bias, sums.operands[place]))
        m.d.comb += [
            unit.a.eq(floats.rows[number]),
            unit.b.eq(row),
            unit.brain.eq(floats.brain),
            unit.split.eq(split),
            unit.lanes.eq(self.lanes),
            sums.floats.eq(floats.sum),
            sums.sums.eq(unit.o),
        ]

    def _in_order(self, m, word):
        """Floats as integers of the same order, NaN the largest; -0 is less than +0 (docs/conv.md, "Maximum")."""
        if not self._params.floats:
            return word
        ordered = Signal(8 * self._params.conv.row_bytes)
        nan, infinite = Mux(self.floats.brain, 0x7FC0, 0x7E00), Mux(self.floats.brain, 0x7F80, 0x7C00)
        elements = [word.word_select(number, 16) for number in range(self._params.conv.row_bytes // 2)]
        integers = [
            Mux(bits[:15] > infinite, nan, Cat(bits[:15] ^ bits[15].replicate(15), bits[15])) for bits in elements
        ]
        m.d.comb += ordered.eq(Mux(self.floats.ordered, Cat(integer[:16] for integer in integers), word))
        return ordered

    def _repeated(self, m, word):
        """Repeats a part of the word: the word is halved down to the part, which is then doubled up to a row."""
        whole, halvings = exact_log2(self._params.conv.row_bytes), exact_log2(FOLDS)
        # For each halving, the widest first: whether both halves are the same part, and whether it is the upper half.
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
        for repeat in reversed(repeats):
            row = named(Cat(row, Mux(repeat, row, parts.pop()[len(row) :])), "row")
        return row
