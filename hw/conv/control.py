"""Registers of the convolution engine: parameters, status, error record, interrupt, counters."""

from amaranth.hdl import Module, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from tilewright.spec import conv as conv_registers
from tilewright.spec.conv import CONV_REGISTERS, ConvError

from ..bus.axi4_lite import AccessSignature
from ..bus.registers import EngineStateSignature, ErrorRecord, RegisterFile, connect_status, show_parameters, widths_of
from .layouts import ConvEndLayout
from .result.layouts import ResultSizes

__all__ = ["ConvControl", "ConvEventsLayout", "built_with"]

#: Register of a counter -> member of :class:`ConvEventsLayout` that it counts.
_COUNTED = {
    "jobs": "job",
    "steps": "step",
    "feature_rows_fetched": "feature_rows",
    "weight_rows_fetched": "weight_rows",
    "results_written": "results",
    "stall_features": "stall_features",
    "stall_weights": "stall_weights",
    "stall_results": "stall_results",
    "bank_conflicts": "bank_conflict",
}


def built_with(params):
    """Fields of the registers that show a :class:`ConvUnitParams`, by register."""
    return conv_registers.built_with(params.conv)


class ConvEventsLayout(data.StructLayout):
    """The events of a cycle, for the performance counters of ``spec.conv.registers``."""

    def __init__(self, params):
        conv = params.conv
        super().__init__(
            {
                "job": 1,  # a job was accepted
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
    """The registers of ``spec.conv.registers``.

    Parameters
    ----------
    params : ConvUnitParams
    """

    def __init__(self, params):
        self._params = params
        super().__init__(
            {
                "accesses": In(AccessSignature()),  # by byte offset
                "ended": In(1),  # Strobe: a job has ended, as ``end`` says.
                "end": In(ConvEndLayout()),
                "events": In(ConvEventsLayout(params)),
                "waiting": In(unsigned(8)),  # Jobs in the queue.
                "idle": In(1),
                "state": Out(EngineStateSignature()),
                "irq": Out(1),  # A level: a status bit is set whose enable bit is set.
            }
        )

    def elaborate(self, platform):
        m = Module()
        counted = {register: self.events[event] for register, event in _COUNTED.items()}
        counted["busy_cycles"] = ~self.idle
        m.submodules.registers = registers = RegisterFile(CONV_REGISTERS, widths_of(counted))
        m.submodules.errors = errors = ErrorRecord(ConvEndLayout())
        connect(m, flipped(self.accesses), registers.accesses)
        show_parameters(m, registers, built_with(self._params))
        failed = self.end.code != ConvError.NONE
        m.d.comb += [
            registers.status.idle.eq(self.idle),
            registers.status.queue_level.eq(self.waiting),
            registers.irq_status_set.done.eq(self.ended & ~failed),
            errors.errors.eq(self.ended & failed),
            errors.record.eq(self.end),
            registers.error.eq(errors.first),
            self.state.idle.eq(self.idle),
            self.state.failed.eq(errors.first.code != 0),
            self.state.tag.eq(errors.first.tag),
            self.irq.eq(connect_status(m, registers, errors, counted, self.state.clear_error)),
        ]
        return m
