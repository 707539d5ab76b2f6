"""The registers of the processing engine: status, error record, interrupt, counters, and words put by the processor."""

from amaranth.hdl import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from tilewright.spec.arithmetic import UNITS
from tilewright.spec.pe import DATA_WORDS, MM_FAMILIES, PE_REGISTERS, PeError, Put

from ..bus.axi4_lite import AccessLayout, AccessSignature
from ..bus.registers import EngineStateSignature, ErrorRecord, RegisterFile, connect_status, show_parameters, widths_of
from ..lib.layouts import packed_layout
from .layouts import INSTRUCTION_BITS, FaultLayout, PageWriteLayout, SegmentWriteLayout
from .pager import PagerRequestLayout

__all__ = ["Control", "EventsLayout", "Staging", "built_with"]

_REGISTERS = {register.name: register for register in PE_REGISTERS}
_PUT = _REGISTERS["put"]
#: Address without a register: an access to it is refused.
_NOWHERE = 0xFFFF_FFFC


def built_with(params):
    """Fields, by register and name, that show the parameters of the hardware."""
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
        "params4": {
            "kernel_words": params.kernel_words if params.units else 0,
            "lookup_words": params.lookup_words if "lookup" in params.units else 0,
            "units": sum(1 << bit for bit, unit in enumerate(UNITS) if unit in params.units),
        },
    }


def _put_streams(params):
    """Streams of the items that a processor puts."""
    return {
        "instructions": Out(stream.Signature(INSTRUCTION_BITS)),
        "segments": Out(stream.Signature(SegmentWriteLayout(params))),
        "pages": Out(stream.Signature(PageWriteLayout(params))),
        "pager_requests": Out(stream.Signature(PagerRequestLayout(params))),
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
                "line_fills": unsigned(4),  # several at once
                "bank_conflict": 1,
                "translation_miss": 1,
                "arithmetic": 1,
                "stall_operand": 1,
                "stall_port": 1,
            }
        )


class Staging(wiring.Component):
    """Sends the words that a processor puts as one item of a stream, and protects their registers until it is accepted.

    The item is valid from the cycle after ``put``. Accesses pass combinationally from ``accesses`` to ``checked``.
    Writes that must be refused get an address without a register: writes to ``data0`` and later registers while
    ``busy``, and writes to ``put`` with an unknown kind or index.
    """

    def __init__(self, params):
        self._params = params
        super().__init__(
            {
                "accesses": In(stream.Signature(AccessLayout())),
                "checked": Out(stream.Signature(AccessLayout())),
                "put": In(packed_layout(_PUT.format)),  # bits that were written, for one cycle
                "words": In(32).array(DATA_WORDS),  # registers
                "page_address": In(32),  # register
                "busy": Out(1),  # an item was put and has not been accepted
                **_put_streams(params),
            }
        )

    def elaborate(self, platform):
        m = Module()
        self._guard(m)
        words = Cat(*self.words)
        kind, index = Signal(3), Signal(16)  # of the pending item; kind 0: none
        page_commands = (Put.PAGE_IN, Put.PAGE_OUT, Put.PAGE_DROP)
        accepted = Signal()
        with m.Switch(kind):
            for port, kinds in (
                (self.instructions, (Put.INSTRUCTION,)),
                (self.segments, (Put.SEGMENT,)),
                (self.pages, (Put.PAGE,)),
                (self.pager_requests, page_commands),
            ):
                with m.Case(*kinds):
                    m.d.comb += [port.valid.eq(1), accepted.eq(port.ready)]
        with m.If(accepted):
            m.d.sync += kind.eq(0)
        with m.Elif(self.put.kind.any()):
            m.d.sync += [kind.eq(self.put.kind), index.eq(self.put.index)]

        request = self.pager_requests.payload
        m.d.comb += [
            self.busy.eq(self.put.kind.any() | kind.any()),
            self.instructions.payload.eq(words),
            *(port.payload.index.eq(index) for port in (self.segments, self.pages)),
            *(port.payload.word.eq(words) for port in (self.segments, self.pages)),
            request.op.eq(kind - Put.PAGE_IN),
            request.entry.eq(index),
            request.address.eq(self.page_address),
            request.command.eq(words),
        ]
        return m

    def _guard(self, m):
        """Forwards accesses. Addresses from ``data0`` on have a bit set that no earlier register has."""
        access, checked = self.accesses.payload, self.checked.payload
        limits = {
            Put.INSTRUCTION: 1,
            Put.SEGMENT: self._params.segments,
            **dict.fromkeys((Put.PAGE, Put.PAGE_IN, Put.PAGE_OUT, Put.PAGE_DROP), self._params.pages),
        }
        fields = Signal(packed_layout(_PUT.format))
        unknown, refused = Signal(init=1), Signal()
        m.d.comb += fields.eq(access.data)
        with m.Switch(fields.kind):
            for kind, limit in limits.items():
                with m.Case(kind):
                    m.d.comb += unknown.eq(fields.index[limit.bit_length() - 1 :].any())  # limits are powers of two
        is_put = access.address[2:] == _PUT.offset >> 2
        staged = access.address[_REGISTERS["data0"].offset.bit_length() - 1]
        m.d.comb += [
            refused.eq(access.write & ((staged & self.busy) | (is_put & unknown))),
            self.checked.valid.eq(self.accesses.valid),
            self.accesses.ready.eq(self.checked.ready),
            checked.eq(access),
        ]
        with m.If(refused):
            m.d.comb += checked.address.eq(_NOWHERE)


class Control(wiring.Component):
    """Registers of ``spec.pe``.

    An instruction has one item at ``issued`` or ``collected``, with code NONE if there was no error, or is counted by
    ``unreported``. One item is accepted a cycle; ``issued`` has priority.
    """

    def __init__(self, params):
        self._params = params
        super().__init__(
            {
                "accesses": In(AccessSignature()),  # by byte offset; see RegisterFile and Staging
                "issued": In(stream.Signature(FaultLayout(params))),
                "collected": In(stream.Signature(FaultLayout(params))),
                "unreported": In(2),  # words of the stream that have no item, in this cycle
                "reported": Out(1),  # strobe: an item was accepted in the previous cycle
                "report": Out(FaultLayout(params)),  # that item
                "events": In(EventsLayout()),
                "halted": In(1),  # strobe, not before the items of all earlier instructions have been accepted
                "idle": In(1),
                **_put_streams(params),  # at most one of them is valid
                "put_busy": Out(1),  # an item was put and has not been accepted
                "state": Out(EngineStateSignature()),
                "irq": Out(1),  # level: a status bit is set that is enabled
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.staging = staging = Staging(self._params)
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
            "arithmetic": events.arithmetic,
            "stall_operand": events.stall_operand,
            "stall_port": events.stall_port,
        }
        m.submodules.registers = registers = RegisterFile(PE_REGISTERS, widths_of(counted))
        connect(m, accesses=flipped(self.accesses.requests), staging=staging.accesses)
        connect(m, staging=staging.checked, registers=registers.accesses.requests)
        connect(m, registers=registers.accesses.answers, answers=flipped(self.accesses.answers))
        for name in _put_streams(self._params):
            connect(m, staging=getattr(staging, name), port=flipped(getattr(self, name)))

        show_parameters(m, registers, built_with(self._params))
        # One cycle later, like the last report, so that the record is complete when the halt is seen.
        halted = Signal()
        m.d.sync += halted.eq(self.halted)
        m.d.comb += [
            registers.irq_status_set.halt.eq(halted),
            registers.status.idle.eq(idle),
            registers.status.put_busy.eq(staging.busy),
            self.put_busy.eq(staging.busy),
            staging.put.eq(registers.put),
            staging.page_address.eq(registers.page_address.address),
            *(word.eq(getattr(registers, f"data{index}").word) for index, word in enumerate(staging.words)),
            self.issued.ready.eq(1),
            self.collected.ready.eq(~self.issued.valid),
        ]
        # Words without an item are reported when no item is. Instructions of kernels without an error are not.
        item, owed, pays = Signal.like(self.report), Signal(16), Signal()
        m.d.comb += [
            item.eq(Mux(self.issued.valid, self.issued.payload, self.collected.payload)),
            pays.eq((owed != 0) & ~self.issued.valid & ~self.collected.valid),
        ]
        m.d.sync += [
            owed.eq(owed + self.unreported - pays),
            self.reported.eq(
                pays | ((self.issued.valid | self.collected.valid) & ~(item.inside & (item.code == PeError.NONE)))
            ),
            self.report.eq(Mux(pays, 0, item)),
        ]
        errors = self._record(m, registers)
        m.d.comb += [
            self.state.idle.eq(idle),
            self.state.failed.eq(errors.first.code != 0),
            self.irq.eq(connect_status(m, registers, errors, counted, self.state.clear_error)),
        ]
        return m

    def _record(self, m, registers):
        """The error of the lowest instruction number is the first: jobs report later than following instructions."""
        m.submodules.errors = errors = ErrorRecord(self.report.shape())
        first = errors.first
        m.d.comb += [
            errors.errors.eq(self.reported & (self.report.code != PeError.NONE)),
            errors.record.eq(self.report),
            errors.before.eq(self.report.number < first.number),
            registers.error.code.eq(first.code),
            registers.error.register.eq(first.register),
            registers.error_number.number.eq(first.number),
            registers.error_threads.first.eq(first.first),
            registers.error_threads.last.eq(first.last),
        ]
        return errors
