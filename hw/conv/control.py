"""The convolution engine as a processor sees it: status, error record, interrupt, counters."""

from amaranth import Module, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out, flipped

from tilewright.spec import conv as conv_registers
from tilewright.spec.conv import CONV_REGISTERS, ConvError

from ..bus.axi4_lite import AccessSignature
from ..bus.registers import EngineStateSignature, ErrorRecord, RegisterFile, connect_status, show_parameters, widths_of
from ..lib.component import join
from .layouts import ConvEndLayout
from .result.layouts import ResultSizes

__all__ = ["ConvControl", "ConvEventsLayout", "built_with"]


def built_with(params):
    """Fields of the registers that show a :class:`ConvUnitParams`, by register."""
    return conv_registers.built_with(params.conv)


class ConvEventsLayout(data.StructLayout):
    """What happens in a cycle, for the performance counters of ``spec.conv``."""

    def __init__(self, params):
        conv = params.conv
        super().__init__(
            {
                "job": 1,  # accepted
                "step": 1,
                "feature_rows": range(max(conv.units, conv.slaves) + 1),
                "weight_rows": range(16 * params.lanes + 1),
                "results": range(ResultSizes(params).piece_bytes + 1),
                "stall_features": 1,
                "stall_weights": 1,
                "stall_results": 1,
                "bank_conflict": 1,
            }
        )


class ConvControl(wiring.Component):
    """Registers of ``spec.conv``, fed by the blocks of the engine.

    Members
    -------
    accesses : In(AccessSignature)
        Registers, by byte offset; see ``RegisterFile``.
    ended : In(1)
        Strobe: a job has ended.
    end : In(ConvEndLayout())
        How.
    events : In(ConvEventsLayout(params))
    waiting : In(8)
        Jobs in the queue.
    idle : In(1)
    state : Out(EngineStateSignature())
    irq : Out(1)
        Level: a status bit is set that is enabled.
    """

    def __init__(self, params):
        self._params = params
        super().__init__(
            {
                "accesses": In(AccessSignature()),
                "ended": In(1),
                "end": In(ConvEndLayout()),
                "events": In(ConvEventsLayout(params)),
                "waiting": In(unsigned(8)),
                "idle": In(1),
                "state": Out(EngineStateSignature()),
                "irq": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        events = self.events
        counted = {
            "jobs": events.job,
            "busy_cycles": ~self.idle,
            "steps": events.step,
            "feature_rows_fetched": events.feature_rows,
            "weight_rows_fetched": events.weight_rows,
            "results_written": events.results,
            "stall_features": events.stall_features,
            "stall_weights": events.stall_weights,
            "stall_results": events.stall_results,
            "bank_conflicts": events.bank_conflict,
        }
        m.submodules.registers = registers = RegisterFile(CONV_REGISTERS, widths_of(counted))
        m.submodules.errors = errors = ErrorRecord(ConvEndLayout())
        join(m, accesses=flipped(self.accesses), registers=registers.accesses)
        show_parameters(m, registers, built_with(self._params))
        failed = self.end.code != ConvError.NONE
        m.d.comb += [
            registers.status.idle.eq(self.idle),
            registers.status.queue_level.eq(self.waiting),
            registers.irq_status_set.done.eq(self.ended & ~failed),
            errors.errors.eq(self.ended & failed),
            errors.record.eq(self.end),
            registers.error.eq(errors.kept),
        ]
        m.d.comb += [
            self.state.idle.eq(self.idle),
            self.state.failed.eq(errors.kept.code != 0),
            self.state.tag.eq(errors.kept.tag),
        ]
        m.d.comb += self.irq.eq(connect_status(m, registers, errors, counted, self.state.clear_error))
        return m
