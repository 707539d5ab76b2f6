"""The TMAU as a processor sees it over registers: parameters, status, error record, interrupt, performance counters."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, flipped

from tilewright.golden.spec import Error
from tilewright.golden.spec.tmau.registers import TMAU_REGISTERS

from ..bus.axi4_lite import AccessLayout, AnswerLayout
from ..bus.csr import RegisterFile
from ..lib.join import join
from .datapath import EventsLayout
from .front.finish import DoneLayout
from .layouts import WindowsLayout

__all__ = ["Control"]


class Control(wiring.Component):
    """Registers of ``golden.spec.tmau.registers``, fed by the data path's events.

    Members
    -------
    accesses : In(stream of AccessLayout)
    answers : Out(stream of AnswerLayout)
        Registers, by byte offset; see ``RegisterFile``.
    done : In(DoneLayout)
    events : In(EventsLayout)
    barrier_error : In(1)
    barrier_address : In(params.smem.addr_width)
        Strobe: a barrier operation was refused, and the address it named.
    bank_conflict : In(1)
        Strobe, from shared memory.
    queue_level : In(range(params.queue_depth + 1))
    idle : In(1)
        From the data path.
    windows : Out(WindowsLayout)
    invalidate_descriptors : Out(1)
        Strobe.
    irq : Out(1)
        Level: a status bit is set that is enabled.
    """

    def __init__(self, params):
        self.params = params
        super().__init__(
            {
                "accesses": In(stream.Signature(AccessLayout())),
                "answers": Out(stream.Signature(AnswerLayout())),
                "done": In(DoneLayout(params)),
                "events": In(EventsLayout()),
                "barrier_error": In(1),
                "barrier_address": In(params.smem.addr_width),
                "bank_conflict": In(1),
                "queue_level": In(range(params.queue_depth + 1)),
                "idle": In(1),
                "windows": Out(WindowsLayout(params)),
                "invalidate_descriptors": Out(1),
                "irq": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.registers = registers = RegisterFile(TMAU_REGISTERS)
        join(m, accesses=flipped(self.accesses), registers=registers.accesses)
        join(m, registers=registers.answers, answers=flipped(self.answers))

        params, events = self.params, self.events
        failed = self.done.valid & (self.done.record.code != Error.NONE)
        completed = self.done.valid & (self.done.record.code == Error.NONE)
        m.d.comb += [
            registers.params0.bus_bytes.eq(params.bus_bytes),
            registers.params0.addr_width.eq(params.addr_width),
            registers.params0.queue_depth.eq(params.queue_depth),
            registers.params0.cache_entries.eq(params.cache_entries),
            registers.params1.max_outstanding.eq(params.max_outstanding),
            registers.params1.commands_in_flight.eq(params.commands_in_flight),
            registers.params2.smem_bytes.eq(params.smem.size_bytes),
            registers.status.idle.eq(self.idle),
            registers.status.queue_level.eq(self.queue_level),
            registers.irq_status_set.error.eq(failed | self.barrier_error),
            registers.irq_status_set.done.eq(completed),
            self.invalidate_descriptors.eq(registers.control.invalidate_descriptors),
            self.irq.eq((registers.irq_status.as_value() & registers.irq_enable.as_value()).any()),
        ]
        self._record_errors(m, registers, failed)
        self._show_windows(m, registers)

        counted = {
            "busy_cycles": ~self.idle,
            "commands": events.command,
            "requests": events.request,
            "beats": events.beat,
            "bytes": Mux(completed & ~self.done.stored, self.done.bytes, 0),
            "stall_credit": events.stall_credit,
            "stall_ar": events.stall_ar,
            "stall_data": events.stall_data,
            "stall_smem": events.stall_smem,
            "descriptor_hits": events.descriptor_hit,
            "descriptor_misses": events.descriptor_miss,
            "bank_conflicts": self.bank_conflict,
            "write_requests": events.write_request,
            "write_beats": events.write_beat,
            "write_bytes": Mux(completed & self.done.stored, self.done.bytes, 0),
        }
        for name, increment in counted.items():
            count = Signal(32, name=name)
            m.d.sync += count.eq(Mux(registers.control.clear_counters, 0, count + increment))
            m.d.comb += getattr(registers, name).count.eq(count)
        return m

    def _record_errors(self, m, registers, failed):
        """Keeps the first error and counts all. Of two in the same cycle the command's is the first."""
        record = self.done.record
        kept = Signal.like(record)
        count, total = Signal(32), Signal(33)
        # A clear forgets what was before, not what comes in the same cycle.
        clear = registers.control.clear_error
        m.d.comb += total.eq(Mux(clear, 0, count) + failed + self.barrier_error)
        m.d.sync += count.eq(Mux(total[32], 0xFFFF_FFFF, total))
        with m.If(clear):
            m.d.sync += kept.eq(0)
        with m.If(failed | self.barrier_error):
            with m.If(clear | (kept.code == Error.NONE)):
                m.d.sync += kept.eq(record)
                with m.If(~failed):
                    m.d.sync += [
                        kept.code.eq(Error.BARRIER_OPERATION),
                        kept.tag.eq(0),
                        kept.field.eq(0),
                        kept.value.eq(self.barrier_address),
                    ]
        m.d.comb += [
            registers.status.error.eq(kept.code != Error.NONE),
            registers.error.code.eq(kept.code),
            registers.error.field.eq(kept.field),
            registers.error.tag.eq(kept.tag),
            registers.error_value_lo.value.eq(kept.value[:32]),
            registers.error_value_hi.value.eq(kept.value[32:]),
            registers.error_count.count.eq(count),
        ]

    def _show_windows(self, m, registers):
        """Windows in pages and lines that exist: one that begins behind the memory holds nothing."""
        confine = registers.windows
        base = Cat(registers.global_base_lo.address, registers.global_base_hi.address)
        limit = Cat(registers.global_limit_lo.address, registers.global_limit_hi.address)
        first, last = self._units(base, limit, 12, self.params.addr_width)
        shared = (registers.shared_base.address, registers.shared_limit.address)
        shared_first, shared_last = self._units(*shared, 7, self.params.smem.addr_width)
        m.d.comb += [
            self.windows.confine_global.eq(confine.confine_global),
            self.windows.confine_shared.eq(confine.confine_shared),
            self.windows.global_first.eq(first),
            self.windows.global_last.eq(last),
            self.windows.shared_first.eq(shared_first),
            self.windows.shared_last.eq(shared_last),
        ]

    @staticmethod
    def _units(base, limit, low, high):
        """First and last unit of 2^``low`` bytes of a window in a memory of 2^``high`` bytes."""
        ones = (1 << high - low) - 1
        behind, through = base[high:].any(), limit[high:].any()
        return Mux(behind, ones, base[low:high]), Mux(behind, 0, Mux(through, ones, limit[low:high]))
