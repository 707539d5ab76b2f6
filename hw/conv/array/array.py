"""All slaves side by side, with what is broadcast to them and what is read from them."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ...lib.delay import delay
from ..layouts import AccumulatorReadLayout, PlanLayout, WordWriteLayout
from .factors import FactorLayout, Factors
from .layouts import StepLayout
from .read import SumsReader
from .slave import Slave

__all__ = ["ConvArray"]


class ConvArray(wiring.Component):
    """Slaves, the rows that are broadcast to them, and reading of finished accumulators.

    In a convolution ``rows`` are features, one row for each unit, and a slave's memory holds its weights. In
    lane-private mode ``rows`` are rows of the kernel, all alike, and a slave's memory holds features of its own.

    Latency: ``LATENCY`` cycles from a step until its sums can be read; ``READ`` from a read to its sums. Throughput: a
    step and a read a cycle; nothing stalls them.

    Parameters
    ----------
    params : ConvUnitParams

    Members
    -------
    plan : In(PlanLayout(params))
        Constant from a step until its sums have been read.
    valid : In(1)
    step : In(StepLayout(params))
    rows : In(array of params.conv.units 8 * params.conv.row_bytes)
        What is broadcast, in the cycle after the step.
    writes : In(array of params.conv.slaves WordWriteLayout(params))
        Of each slave's memory: what is written can be read in the next cycle.
    read : In(AccumulatorReadLayout(params))
    sums : Out(array of params.conv.results 32)
        In a convolution number r is channel t of slave (part · R + r) mod NS at place index + r / NS; in lane-private
        mode element index + r of slave ``part``.
    """

    LATENCY = Slave.LATENCY
    READ = 1 + SumsReader.LATENCY

    def __init__(self, params):
        self._params = params
        conv = params.conv
        super().__init__(
            {
                "plan": In(PlanLayout(params)),
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
        conv, plan = self._params.conv, self.plan
        wide = "i16" in conv.types
        row = data.ArrayLayout(FactorLayout(wide=wide), conv.row_bytes // 2)
        features = Signal(data.ArrayLayout(row, conv.units))
        for number in range(conv.units):
            m.submodules[f"factors{number}"] = factors = Factors(conv.row_bytes, wide=wide)
            m.d.comb += [
                factors.row.eq(delay(m, self.rows[number], 1, name=f"row{number}")),
                factors.wide.eq(plan.wide),
                factors.signed.eq(Mux(plan.lanes, plan.k_signed, plan.x_signed)),
                factors.zero.eq(Mux(plan.lanes, plan.k_zero, plan.x_zero)),
                features[number].eq(factors.o),
            ]
        read = delay(m, self.read.as_value(), 1, name="read")
        read = AccumulatorReadLayout(self._params)(read)
        slaves = []
        for number in range(conv.slaves):
            m.submodules[f"slave{number}"] = slave = Slave(self._params)
            m.d.comb += [
                slave.valid.eq(self.valid),
                slave.step.eq(self.step),
                slave.features.eq(features),
                slave.granularity.eq(plan.granularity),
                slave.wide.eq(plan.wide),
                slave.lanes.eq(plan.lanes),
                slave.maximum.eq(plan.maximum),
                slave.signed.eq(Mux(plan.lanes, plan.x_signed, plan.k_signed)),
                slave.zero.eq(Mux(plan.lanes, plan.x_zero, plan.k_zero)),
                slave.write.eq(self.writes[number]),
                slave.read.eq(read.t | read.bank << 2),
            ]
            slaves.append(slave)
        m.submodules.reader = reader = SumsReader(self._params)
        m.d.comb += [
            reader.lanes.eq(plan.lanes),
            reader.granularity.eq(plan.granularity),
            reader.read.eq(read),
            *(sums.eq(slave.sums) for sums, slave in zip(reader.i, slaves, strict=True)),
            self.sums.eq(reader.o),
        ]
        return m
