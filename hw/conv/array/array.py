"""All slaves, with their memories, the rows that are broadcast to them, and the read-out of their accumulators."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ...lib.component import shared_module
from ...lib.logic import delay
from ..layouts import AccumulatorReadLayout, BiasesLayout, PlanLayout, StepLayout, WordWriteLayout
from .memory import Biases, SlaveMemory
from .slave import FloatStepLayout, Slave, features_layout
from .sums import SumsReader
from .units import Factors

__all__ = ["ConvArray", "array_latency"]


def array_latency(params):
    """Cycles from a step until its sums can be read, for all types."""
    return (Slave.FLOATS if params.floats else Slave.LATENCY) + params.conv.rotation


class ConvArray(wiring.Component):
    """Slaves, the rows that are broadcast to them, and the read-out of finished accumulators.

    In a convolution ``rows`` are features, one row for each unit, and a slave's memory holds its weights. In
    lane-private mode ``rows`` are rows of the kernel, the same for all units of a half, and slaves' memories hold
    features; with rotation the rows that are read from them are rotated among slaves.

    Latency: ``latency`` cycles from a step until its sums can be read, for all types; ``READ`` from a read to its sums.
    Throughput: a step and a read a cycle, without stalls; steps that add floats to the same accumulators must be
    ``LOOP`` cycles apart.

    Parameters
    ----------
    params : ConvUnitParams
    """

    LOOP = Slave.LOOP
    READ = 1 + SumsReader.LATENCY

    def __init__(self, params):
        self._params = params
        self.latency = array_latency(params)
        conv = params.conv
        super().__init__(
            ({"biases": In(BiasesLayout(params))} if params.floats else {})
            | {
                "plan": In(PlanLayout(params)),  # constant from a step until its sums can be read
                # The job whose sums are read, which may be the previous one; constant from a read to its sums.
                "read_plan": In(PlanLayout(params)),
                "valid": In(1),
                "step": In(StepLayout(params)),
                "rows": In(data.ArrayLayout(8 * conv.row_bytes, conv.units)),  # one cycle after the step
                "writes": In(data.ArrayLayout(WordWriteLayout(params), conv.slaves)),  # readable in the next cycle
                "read": In(AccumulatorReadLayout(params)),
                # In a convolution sum r is that of channel t of slave (part · R + r) mod NS at place index + r / NS; in
                # lane-private mode accumulator index + r of slave ``part``, element by element of the row of each half.
                "sums": Out(data.ArrayLayout(32, conv.results)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        params, conv, plan = self._params, self._params.conv, self.plan
        slave_rows, valid, step, rows = self._read_rows(m, platform)
        features = Signal(features_layout(params))
        for number in range(conv.units):
            m.submodules[f"factors{number}"] = factors = Factors(conv.row_bytes, wide=params.wide)
            m.d.comb += [
                factors.row.eq(delay(m, rows[number], 1, name=f"row{number}")),
                factors.wide.eq(plan.wide),
                factors.is_signed.eq(Mux(plan.lanes, plan.k_signed, plan.x_signed)),
                factors.zero.eq(Mux(plan.lanes, plan.k_zero, plan.x_zero)),
                features[number].eq(factors.o),
            ]
        read = AccumulatorReadLayout(params)(delay(m, self.read.as_value(), 1, name="read"))
        m.submodules.reader = reader = SumsReader(params)
        m.d.comb += [
            reader.lanes.eq(self.read_plan.lanes),
            reader.granularity.eq(self.read_plan.granularity),
            reader.read.eq(read),
            self.sums.eq(reader.o),
        ]
        float_step = self._float_step(m, step, rows) if params.floats else None
        for number in range(conv.slaves):
            slave = Slave(params)
            m.submodules[f"slave{number}"] = shared_module(platform, slave, params)
            m.d.comb += [
                slave.valid.eq(valid),
                slave.step.eq(step),
                slave.row.eq(slave_rows[number]),
                slave.features.eq(features),
                slave.granularity.eq(plan.granularity),
                slave.wide.eq(plan.wide),
                slave.lanes.eq(plan.lanes),
                slave.maximum.eq(plan.maximum),
                slave.is_signed.eq(Mux(plan.lanes, plan.x_signed, plan.k_signed)),
                slave.zero.eq(Mux(plan.lanes, plan.x_zero, plan.k_zero)),
                slave.read.eq(read.t | read.bank << 2),
                reader.i[number].eq(slave.sums),
            ]
            if params.single_reads:
                m.d.comb += slave.on.eq(reader.on[number])
            if params.floats:
                m.d.comb += [slave.floats.eq(float_step), slave.bias.eq(float_step.biases[number])]
        return m

    def _read_rows(self, m, platform):
        """Reads the slaves' memories for a step. Returns the rows of slaves, and what goes with them: with rotation all
        a cycle later, so that the slaves get their rows in the cycle after the step."""
        params, parts = self._params, self._params.slave_parts
        read, rows = self.step.read, []
        for number, write in enumerate(self.writes):
            memory = SlaveMemory(params)
            m.submodules[f"memory{number}"] = shared_module(platform, memory, params)
            m.d.comb += [memory.write.eq(write), memory.enable.eq(self.valid)]
            for part, word in enumerate(memory.words):
                m.d.comb += word.eq(read.words[(number * parts + part) % params.row_parts])
            rows.append(memory.row)
        if not params.conv.rotation:
            return rows, self.valid, self.step, self.rows
        # Part p of the rotated rows is part p + ``turn`` of those that were read.
        rotated, part_bits = Cat(rows), 8 * params.conv.row_bytes // parts
        for bit, turns in enumerate(delay(m, read.turn, 1, name="turn")):
            before, rotated, shift = rotated, Signal.like(rotated, name=f"rotated{bit}"), part_bits << bit
            m.d.comb += rotated.eq(Mux(turns, Cat(before[shift:], before[:shift]), before))
        slave_rows = Signal(data.ArrayLayout(8 * params.conv.row_bytes, params.conv.slaves))
        valid = Signal()
        m.d.sync += [slave_rows.eq(rotated), valid.eq(self.valid)]
        step = StepLayout(params)(delay(m, self.step.as_value(), 1, name="step"))
        return slave_rows, valid, step, self.rows.shape()(delay(m, self.rows.as_value(), 1, name="rows"))

    def _float_step(self, m, step, rows):
        """What sums of floats need in addition: the rows themselves, and biases."""
        plan = self.plan
        m.submodules.biases = biases = Biases(self._params)
        float_step = Signal(FloatStepLayout(self._params))
        m.d.comb += [
            biases.lanes.eq(plan.lanes),
            biases.granularity.eq(plan.granularity),
            biases.i.eq(self.biases),
            biases.half.eq(delay(m, step.half, 1, name="half")),
            biases.channel.eq(delay(m, step.channel, 1, name="bias_channel")),
            float_step.sum.eq(plan.floats),
            float_step.brain.eq(plan.brain),
            float_step.ordered.eq(plan.ordered),
        ]
        for number, row in enumerate(rows):
            m.d.comb += float_step.rows[number].eq(delay(m, row, 1, name="float_row"))
        for number, bias in enumerate(biases.o):
            m.d.comb += float_step.biases[number].eq(delay(m, Mux(plan.bias, bias, 0), 1, name="bias"))
        return float_step
