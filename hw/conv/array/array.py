"""All slaves side by side, with their memories, what is broadcast to them and what is read from them."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ...lib.component import alike
from ...lib.logic import delay
from ..layouts import AccumulatorReadLayout, BiasesLayout, PlanLayout, StepLayout, WordWriteLayout
from .memory import Biases, RowRotator, SlaveMemory
from .slave import FloatStepLayout, Slave, features_layout
from .sums import SumsReader
from .units import Factors

__all__ = ["ConvArray", "array_latency"]


def array_latency(params):
    """Cycles from a step until its sums can be read, of any type."""
    return (Slave.FLOATS if params.floats else Slave.LATENCY) + params.conv.rotation


class ConvArray(wiring.Component):
    """Slaves, the rows that are broadcast to them, and reading of finished accumulators.

    In a convolution ``rows`` are features, one row for each unit, and a slave's memory holds its weights. In
    lane-private mode ``rows`` are rows of the kernel, all alike in each half, and slaves' memories hold features: rows
    that are read of them are turned among slaves, if there is rotation.

    Latency: ``latency`` cycles from a step until its sums can be read, of integers too; ``READ`` from a read to its
    sums. Throughput: a step and a read a cycle; of floats steps with the same accumulators are ``LOOP`` cycles
    apart. Nothing stalls them.

    Parameters
    ----------
    params : ConvUnitParams

    Members
    -------
    plan : In(PlanLayout(params))
        Constant from a step until its sums can be read.
    valid : In(1)
    step : In(StepLayout(params))
    rows : In(array of params.conv.units 8 * params.conv.row_bytes)
        What is broadcast, in the cycle after the step.
    writes : In(array of params.conv.slaves WordWriteLayout(params))
        Of each slave's memory: what is written can be read in the next cycle.
    read_plan : In(PlanLayout(params))
        Of the job whose sums are read: that may be the one before. Constant from a read to its sums.
    read : In(AccumulatorReadLayout(params))
    sums : Out(array of params.conv.results 32)
        In a convolution number r is channel t of slave (part · R + r) mod NS at place index + r / NS; in lane-private
        mode accumulator index + r of slave ``part``: element by element of the row of each half.
    biases : In(BiasesLayout(params)) if params.floats
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
                "plan": In(PlanLayout(params)),
                "read_plan": In(PlanLayout(params)),
                "valid": In(1),
                "step": In(StepLayout(params)),
                "rows": In(data.ArrayLayout(8 * conv.row_bytes, conv.units)),
                "writes": In(data.ArrayLayout(WordWriteLayout(params), conv.slaves)),
                "read": In(AccumulatorReadLayout(params)),
                "sums": Out(data.ArrayLayout(32, conv.results)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        conv, plan, wide = self._params.conv, self.plan, self._params.wide
        own, valid, step, rows = self._read(m, platform)
        features = Signal(features_layout(self._params))
        for number in range(conv.units):
            m.submodules[f"factors{number}"] = factors = Factors(conv.row_bytes, wide=wide)
            m.d.comb += [
                factors.row.eq(delay(m, rows[number], 1, name=f"row{number}")),
                factors.wide.eq(plan.wide),
                factors.is_signed.eq(Mux(plan.lanes, plan.k_signed, plan.x_signed)),
                factors.zero.eq(Mux(plan.lanes, plan.k_zero, plan.x_zero)),
                features[number].eq(factors.o),
            ]
        read = delay(m, self.read.as_value(), 1, name="read")
        read = AccumulatorReadLayout(self._params)(read)
        slaves = []
        for number in range(conv.slaves):
            slave = Slave(self._params)
            m.submodules[f"slave{number}"] = alike(platform, slave, self._params)
            m.d.comb += [
                slave.valid.eq(valid),
                slave.step.eq(step),
                slave.row.eq(own[number]),
                slave.features.eq(features),
                slave.granularity.eq(plan.granularity),
                slave.wide.eq(plan.wide),
                slave.lanes.eq(plan.lanes),
                slave.maximum.eq(plan.maximum),
                slave.is_signed.eq(Mux(plan.lanes, plan.x_signed, plan.k_signed)),
                slave.zero.eq(Mux(plan.lanes, plan.x_zero, plan.k_zero)),
                slave.read.eq(read.t | read.bank << 2),
            ]
            slaves.append(slave)
        if self._params.floats:
            self._floats(m, slaves, step, [delay(m, row, 1, name="float_row") for row in rows])
        m.submodules.reader = reader = SumsReader(self._params)
        m.d.comb += [
            reader.lanes.eq(self.read_plan.lanes),
            reader.granularity.eq(self.read_plan.granularity),
            reader.read.eq(read),
            *(sums.eq(slave.sums) for sums, slave in zip(reader.i, slaves, strict=True)),
            self.sums.eq(reader.o),
        ]
        if self._params.sums_apart:
            m.d.comb += [slave.on.eq(on) for slave, on in zip(slaves, reader.on, strict=True)]
        return m

    def _read(self, m, platform):
        """What is read of memories for the step, by slaves; and the step, when they get that in the next cycle."""
        params, read = self._params, self.step.read
        own = Signal(data.ArrayLayout(8 * params.conv.row_bytes, params.conv.slaves))
        for number, write in enumerate(self.writes):
            memory = SlaveMemory(params)
            m.submodules[f"memory{number}"] = alike(platform, memory, params)
            m.d.comb += [memory.write.eq(write), memory.enable.eq(self.valid), own[number].eq(memory.row)]
            for part, word in enumerate(memory.words):
                m.d.comb += word.eq(read.words[(number * memory.parts + part) % params.row_parts])
        if not params.conv.rotation:
            return own, self.valid, self.step, self.rows
        m.submodules.rotator = rotator = RowRotator(params)
        m.d.comb += [rotator.i.eq(own), rotator.turn.eq(delay(m, read.turn, 1, name="turn"))]
        valid = Signal()
        m.d.sync += valid.eq(self.valid)
        step, rows = (
            delay(m, port.as_value(), 1, name=name) for port, name in ((self.step, "step"), (self.rows, "rows"))
        )
        return rotator.o, valid, StepLayout(params)(step), self.rows.shape()(rows)

    def _floats(self, m, slaves, at, rows):
        """What only sums of floats need: rows as they are, and biases."""
        plan = self.plan
        m.submodules.biases = biases = Biases(self._params)
        step = Signal(FloatStepLayout(self._params))
        m.d.comb += [
            biases.lanes.eq(plan.lanes),
            biases.granularity.eq(plan.granularity),
            biases.i.eq(self.biases),
            biases.half.eq(delay(m, at.half, 1, name="half")),
            biases.channel.eq(delay(m, at.channel, 1, name="bias_channel")),
            step.sum.eq(plan.floats),
            step.brain.eq(plan.brain),
            step.ordered.eq(plan.ordered),
            *(to.eq(row) for to, row in zip(step.rows, rows, strict=True)),
        ]
        for to, bias in zip(step.biases, biases.o, strict=True):
            m.d.comb += to.eq(delay(m, Mux(plan.bias, bias, 0), 1, name="bias"))
        for number, slave in enumerate(slaves):
            m.d.comb += [slave.floats.eq(step), slave.bias.eq(step.biases[number])]
