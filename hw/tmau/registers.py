"""The TMAU's registers: what it is, what it does, what went wrong, and how often (tmau.md sections 8 and 9)."""

from amaranth.hdl import Module, Mux, Signal, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from tilewright.golden.spec.registers import REGISTERS

from ..bus.axi4_lite import AccessLayout, AnswerLayout
from ..bus.csr import RegisterFile
from .core import EventsLayout
from .finish import DoneLayout

__all__ = ["TmauRegisters"]


class TmauRegisters(wiring.Component):
    """The registers of ``golden.spec.registers`` and the logic that fills them.

    The error record keeps the first error since ``control.clear_error``; ``error_count`` counts all and stops at its
    largest value. An error in the cycle of the clear is recorded. Counters wrap at 2^32.

    Members
    -------
    accesses : In(stream of AccessLayout)
    answers : Out(stream of AnswerLayout)
        One cycle after the access.
    done : In(DoneLayout)
        The end of a command; with a code other than zero, an error.
    events : In(EventsLayout)
        What to count.
    landed_bytes : In(unsigned)
        Bytes that the transfer ending in this cycle has written; zero if none ends.
    conflict_stb : In(1)
        A read of the consumer takes a cycle longer because of bank conflicts.
    queue_level : In(unsigned)
        Commands that wait.
    idle : In(1)
        No command is under way.
    invalidate_descriptors : Out(1)
        Strobe.
    irq : Out(1)
        Level: an enabled bit of ``irq_status`` is set.
    """

    def __init__(self, params):
        self.params = params
        super().__init__(
            {
                "accesses": In(stream.Signature(AccessLayout())),
                "answers": Out(stream.Signature(AnswerLayout())),
                "done": In(DoneLayout()),
                "events": In(EventsLayout()),
                "landed_bytes": In(unsigned(params.smem.addr_width + 1)),
                "conflict_stb": In(1),
                "queue_level": In(range(params.queue_depth + 1)),
                "idle": In(1),
                "invalidate_descriptors": Out(1),
                "irq": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.file = file = RegisterFile(REGISTERS)
        connect(m, accesses=flipped(self.accesses), file=file.accesses)
        connect(m, answers=flipped(self.answers), file=file.answers)
        self._show_params(m, file)
        self._record_errors(m, file)
        self._count(m, file)
        m.d.comb += [
            self.invalidate_descriptors.eq(file.control.invalidate_descriptors),
            file.status.idle.eq(self.idle),
            file.status.error.eq(file.error.code != 0),
            file.status.queue_level.eq(self.queue_level),
            self.irq.eq((file.irq_status.as_value() & file.irq_enable.as_value()).any()),
        ]
        return m

    def _show_params(self, m, file):
        params = self.params
        m.d.comb += [
            file.params0.bus_bytes.eq(params.bus_bytes),
            file.params0.addr_width.eq(params.addr_width),
            file.params0.queue_depth.eq(params.queue_depth),
            file.params0.cache_entries.eq(params.cache_entries),
            file.params1.max_outstanding.eq(params.max_outstanding),
            file.params1.commands_in_flight.eq(params.commands_in_flight),
            file.params2.smem_bytes.eq(params.smem.size_bytes),
        ]

    def _record_errors(self, m, file):
        record = self.done.record
        error = Signal()
        m.d.comb += [
            error.eq(self.done.valid & (record.code != 0)),
            file.irq_status_set.error.eq(error),
            file.irq_status_set.done.eq(self.done.valid & ~error),
        ]
        kept = Signal.like(record)
        count = Signal.like(file.error_count.count)
        clear = file.control.clear_error
        with m.If(clear):
            m.d.sync += [kept.eq(Mux(error, record.as_value(), 0)), count.eq(error)]
        with m.Elif(error):
            with m.If(kept.code == 0):
                m.d.sync += kept.eq(record)
            m.d.sync += count.eq(count + ~count.all())
        m.d.comb += [
            file.error.code.eq(kept.code),
            file.error.field.eq(kept.field),
            file.error.tag.eq(kept.tag),
            file.error_value_lo.value.eq(kept.value[:32]),
            file.error_value_hi.value.eq(kept.value[32:]),
            file.error_count.count.eq(count),
        ]

    def _count(self, m, file):
        events = self.events
        increments = {
            "busy_cycles": ~self.idle,
            "commands": events.command,
            "requests": events.request,
            "beats": events.beat,
            "bytes": self.landed_bytes,
            "stall_credit": events.stall_credit,
            "stall_ar": events.stall_ar,
            "stall_data": events.stall_data,
            "stall_smem": events.stall_smem,
            "descriptor_hits": events.descriptor_hit,
            "descriptor_misses": events.descriptor_miss,
            "bank_conflicts": self.conflict_stb,
        }
        for name, increment in increments.items():
            count = Signal(32, name=name)
            m.d.sync += count.eq(count + increment)
            with m.If(file.control.clear_counters):
                m.d.sync += count.eq(0)
            m.d.comb += getattr(file, name).count.eq(count)
