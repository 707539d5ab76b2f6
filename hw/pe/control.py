"""The processing engine as a processor sees it: status, error record, interrupt, counters, and what it puts."""

from amaranth import Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, flipped

from tilewright.golden.spec.pe.errors import PeError
from tilewright.golden.spec.pe.instruction import MM_FAMILIES
from tilewright.golden.spec.pe.registers import PE_REGISTERS

from ..bus.axi4_lite import AccessSignature
from ..bus.counters import widths_of
from ..bus.csr import RegisterFile
from ..bus.status import EngineStateSignature, ErrorRecord, connect_status, show_parameters
from ..lib.join import join
from .layouts import INSTRUCTION_BITS, FaultLayout, PageWriteLayout, SegmentWriteLayout
from .pager import PagerRequestLayout
from .staging import Staging

__all__ = ["Control", "EventsLayout", "built_with"]


def built_with(params):
    """Registers that show the parameters of the hardware: values of their fields, by their names."""
    return {
        "params0": {"threads": params.threads, "regs": params.regs},
        "params1": {
            "factor_regs": params.factor_regs,
            "uniform_regs": params.uniform_regs,
            "mm_in_flight": params.mm_in_flight,
            "types": sum(1 << bit for bit, family in enumerate(MM_FAMILIES) if family in params.types),
        },
        "params2": {"segments": params.segments, "pages": params.pages},
        "params3": {"smem_bytes": params.smem.size_bytes},
    }


class EventsLayout(data.StructLayout):
    """Strobes for the performance counters; see ``golden.spec.pe.registers``."""

    def __init__(self):
        super().__init__(
            {
                "instruction": 1,
                "step": 1,
                "stall_columns": 1,
                "stall_factors": 1,
                "stall_product": 1,
                "line_fills": unsigned(4),  # how many at once
                "bank_conflict": 1,
                "translation_miss": 1,
            }
        )


class Control(wiring.Component):
    """Registers of ``golden.spec.pe.registers``, fed by the blocks of the engine.

    Members
    -------
    accesses : In(AccessSignature)
        Registers, by byte offset; see ``RegisterFile``. Writes to the words that are put, while they have not been
        taken, are refused.
    issued, collected : In(stream of FaultLayout)
        One item for every instruction, from Issue or from FaultCollector, of code NONE if there was no error. One a
        cycle, Issue's first.
    reported : Out(1)
        Strobe: an item was accepted in the cycle before.
    report : Out(FaultLayout)
        That item.
    events : In(EventsLayout)
    halted : In(1)
        Strobe, not before the items of all instructions before were accepted.
    idle : In(1)
    instructions : Out(stream of INSTRUCTION_BITS)
    segments : Out(stream of SegmentWriteLayout)
    pages : Out(stream of PageWriteLayout)
    pager_requests : Out(stream of PagerRequestLayout)
        What the processor has put; one of the four at a time.
    put_busy : Out(1)
        That has not been taken.
    state : Out(EngineStateSignature())
    irq : Out(1)
        Level: a status bit is set that is enabled.
    """

    def __init__(self, params):
        self.params = params
        super().__init__(
            {
                "accesses": In(AccessSignature()),
                "issued": In(stream.Signature(FaultLayout(params))),
                "collected": In(stream.Signature(FaultLayout(params))),
                "reported": Out(1),
                "report": Out(FaultLayout(params)),
                "events": In(EventsLayout()),
                "halted": In(1),
                "idle": In(1),
                "instructions": Out(stream.Signature(INSTRUCTION_BITS)),
                "segments": Out(stream.Signature(SegmentWriteLayout(params))),
                "pages": Out(stream.Signature(PageWriteLayout(params))),
                "pager_requests": Out(stream.Signature(PagerRequestLayout(params))),
                "put_busy": Out(1),
                "state": Out(EngineStateSignature()),
                "irq": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.staging = staging = Staging(self.params)
        events, idle = self.events, self.idle & ~staging.busy
        counted = {
            "instructions": events.instruction,
            "busy_cycles": ~idle,
            "steps": events.step,
            "stall_columns": events.stall_columns,
            "stall_factors": events.stall_factors,
            "stall_product": events.stall_product,
            "line_fills": events.line_fills,
            "bank_conflicts": events.bank_conflict,
            "translation_misses": events.translation_miss,
        }
        m.submodules.registers = registers = RegisterFile(PE_REGISTERS, widths_of(counted))
        join(m, accesses=flipped(self.accesses.requests), staging=staging.accesses)
        join(m, staging=staging.checked, registers=registers.accesses.requests)
        join(m, registers=registers.accesses.answers, answers=flipped(self.accesses.answers))
        for name in ("instructions", "segments", "pages", "pager_requests"):
            join(m, staging=getattr(staging, name), port=flipped(getattr(self, name)))

        show_parameters(m, registers, built_with(self.params))
        m.d.comb += [
            registers.status.idle.eq(idle),
            registers.status.put_busy.eq(staging.busy),
            self.put_busy.eq(staging.busy),
            staging.put.eq(registers.put),
            staging.page_address.eq(registers.page_address.address),
            *(word.eq(getattr(registers, f"data{index}").word) for index, word in enumerate(staging.words)),
        ]
        # One cycle later, like the last report, so that who hears of the halt finds the record.
        halted = Signal()
        m.d.sync += halted.eq(self.halted)
        m.d.comb += registers.irq_status_set.halt.eq(halted)
        self._merge(m)
        errors = self._record(m, registers)

        m.d.comb += [
            self.state.idle.eq(idle),
            self.state.failed.eq(errors.kept.code != 0),
        ]
        m.d.comb += self.irq.eq(connect_status(m, registers, errors, counted, self.state.clear_error))
        return m

    def _merge(self, m):
        m.d.comb += [self.issued.ready.eq(1), self.collected.ready.eq(~self.issued.valid)]
        m.d.sync += [
            self.reported.eq(self.issued.valid | self.collected.valid),
            self.report.eq(Mux(self.issued.valid, self.issued.payload, self.collected.payload)),
        ]

    def _record(self, m, registers):
        """Jobs report later than instructions behind them: the error of the lowest number is the first."""
        m.submodules.errors = errors = ErrorRecord(self.report.shape())
        kept = errors.kept
        m.d.comb += [
            errors.errors.eq(self.reported & (self.report.code != PeError.NONE)),
            errors.record.eq(self.report),
            errors.before.eq(self.report.number < kept.number),
            registers.error.code.eq(kept.code),
            registers.error.register.eq(kept.register),
            registers.error_number.number.eq(kept.number),
            registers.error_threads.first.eq(kept.first),
            registers.error_threads.last.eq(kept.last),
        ]
        return errors
