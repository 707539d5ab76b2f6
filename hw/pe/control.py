"""Staging: words that a processor has written one by one become one item of a stream."""

from amaranth import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, flipped

from tilewright.spec.pe import DATA_WORDS, MM_FAMILIES, PE_REGISTERS, PeError, Put

from ..bus.axi4_lite import AccessLayout, AccessSignature
from ..bus.registers import EngineStateSignature, ErrorRecord, RegisterFile, connect_status, show_parameters, widths_of
from ..lib.component import join
from ..lib.layouts import packed_layout
from .layouts import INSTRUCTION_BITS, FaultLayout, PageWriteLayout, SegmentWriteLayout
from .pager import PagerRequestLayout

__all__ = ["Control", "EventsLayout", "Staging", "built_with"]

_REGISTERS = {register.name: register for register in PE_REGISTERS}
_PUT = _REGISTERS["put"]
#: No register is here: an access is refused.
_NOWHERE = 0xFFFF_FFFC


class Staging(wiring.Component):
    """Sends what is put, and guards the registers that it lies in until it is taken.

    Members
    -------
    accesses : In(stream of AccessLayout)
    checked : Out(stream of AccessLayout)
        The same on the way to the registers, combinational. If, in the cycle in which it is accepted, a write is one of
        ``data0`` or a later register and ``busy``, or one of an unknown kind or index to ``put``, its offset is that of
        no register: so it is refused.
    put : In(packed_layout(_PUT.format))
        Ones that were written, for one cycle.
    words : In(array of DATA_WORDS 32)
        Registers.
    page_address : In(32)
        Register.
    busy : Out(1)
        Something was put and has not been taken.
    instructions : Out(stream of INSTRUCTION_BITS)
        Valid from the cycle after ``put``, as the others.
    segments : Out(stream of SegmentWriteLayout)
    pages : Out(stream of PageWriteLayout)
    pager_requests : Out(stream of PagerRequestLayout)
    """

    def __init__(self, params):
        self.params = params
        super().__init__(
            {
                "accesses": In(stream.Signature(AccessLayout())),
                "checked": Out(stream.Signature(AccessLayout())),
                "put": In(packed_layout(_PUT.format)),
                "words": In(32).array(DATA_WORDS),
                "page_address": In(32),
                "busy": Out(1),
                "instructions": Out(stream.Signature(INSTRUCTION_BITS)),
                "segments": Out(stream.Signature(SegmentWriteLayout(params))),
                "pages": Out(stream.Signature(PageWriteLayout(params))),
                "pager_requests": Out(stream.Signature(PagerRequestLayout(params))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        self._guard(m)
        words = Cat(*self.words)
        kind, index = Signal(3), Signal(16)  # of what has not been taken; 0: there is nothing
        page_command = (Put.PAGE_IN, Put.PAGE_OUT, Put.PAGE_DROP)
        ports = (
            (self.instructions, (Put.INSTRUCTION,)),
            (self.segments, (Put.SEGMENT,)),
            (self.pages, (Put.PAGE,)),
            (self.pager_requests, page_command),
        )
        taken = Signal()
        with m.Switch(kind):
            for port, kinds in ports:
                with m.Case(*kinds):
                    m.d.comb += [port.valid.eq(1), taken.eq(port.ready)]
        with m.If(taken):
            m.d.sync += kind.eq(0)
        with m.Elif(self.put.kind.any()):
            m.d.sync += [kind.eq(self.put.kind), index.eq(self.put.index)]

        request = self.pager_requests.payload
        m.d.comb += [
            self.busy.eq(self.put.kind.any() | kind.any()),
            self.instructions.payload.eq(words),
            self.segments.payload.index.eq(index),
            self.segments.payload.word.eq(words),
            self.pages.payload.index.eq(index),
            self.pages.payload.word.eq(words),
            request.op.eq(kind - Put.PAGE_IN),
            request.entry.eq(index),
            request.address.eq(self.page_address),
            request.command.eq(words),
        ]
        return m

    def _guard(self, m):
        """Passes accesses on. Registers from ``data0`` on have addresses with one bit that no register before has."""
        access, checked = self.accesses.payload, self.checked.payload
        limits = {
            Put.INSTRUCTION: 1,
            Put.SEGMENT: self.params.segments,
            **dict.fromkeys((Put.PAGE, Put.PAGE_IN, Put.PAGE_OUT, Put.PAGE_DROP), self.params.pages),
        }
        fields = Signal(packed_layout(_PUT.format))
        wrong, refused = Signal(init=1), Signal()
        m.d.comb += fields.eq(access.data)
        with m.Switch(fields.kind):
            for kind, limit in limits.items():
                with m.Case(kind):
                    m.d.comb += wrong.eq(fields.index[limit.bit_length() - 1 :].any())  # limits are powers of two
        is_put = access.address[2:] == _PUT.offset >> 2
        staged = access.address[_REGISTERS["data0"].offset.bit_length() - 1]
        m.d.comb += [
            refused.eq(access.write & ((staged & self.busy) | (is_put & wrong))),
            self.checked.valid.eq(self.accesses.valid),
            self.accesses.ready.eq(self.checked.ready),
            checked.eq(access),
        ]
        with m.If(refused):
            m.d.comb += checked.address.eq(_NOWHERE)
        return m


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
    """Strobes for the performance counters; see ``spec.pe``."""

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
    """Registers of ``spec.pe``, fed by the blocks of the engine.

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
            self.state.failed.eq(errors.first.code != 0),
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
        kept = errors.first
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
