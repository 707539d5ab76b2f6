"""The command processor as a host sees it: program, status, error record, interrupt, counters, window."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out, flipped

from tilewright.golden.spec.core.registers import PROGRAM_REGISTERS, built_with

from ...bus.axi4_lite import AccessSignature
from ...bus.counters import widths_of
from ...bus.csr import RegisterFile
from ...bus.status import ErrorRecord, connect_status, show_parameters
from ...bus.windows import PAGE_LOG2, window_units
from ...lib.join import join
from .layouts import CauseLayout
from .ranges import WindowLayout

__all__ = ["ProgramControl", "ProgramEventsLayout"]


class ProgramEventsLayout(data.StructLayout):
    """What happens in a cycle, for the counters of ``golden.spec.core.registers``."""

    def __init__(self):
        super().__init__(dict.fromkeys(("word", "wait", "stall_engine", "stall_fetch", "beat"), 1))


class ProgramControl(wiring.Component):
    """Registers of ``golden.spec.core.registers``.

    Parameters
    ----------
    params : CoreParams

    Members
    -------
    accesses : In(AccessSignature)
        Registers, by byte offset; see ``RegisterFile``.
    start : Out(1)
        Strobe.
    stop : Out(1)
        Strobe.
    address : Out(64)
        Of the program.
    count : Out(32)
        Its words.
    watchdog : Out(32)
        Cycles that a word may take; 0 for ever.
    window : Out(WindowLayout(params.tmau.addr_width))
    busy : In(1)
        A program runs.
    ended : In(1)
        Strobe: a program is over.
    interrupt : In(1)
        With that: it came to an END that says so.
    cause : In(CauseLayout())
        With that: why it stopped, or code NONE.
    index : In(32)
        Of the word at hand.
    events : In(ProgramEventsLayout())
    irq : Out(1)
        Level: a status bit is set that is enabled.
    """

    def __init__(self, params):
        self._params = params
        super().__init__(
            {
                "accesses": In(AccessSignature()),
                "start": Out(1),
                "stop": Out(1),
                "address": Out(64),
                "count": Out(32),
                "watchdog": Out(32),
                "window": Out(WindowLayout(params.tmau.addr_width)),
                "busy": In(1),
                "ended": In(1),
                "interrupt": In(1),
                "cause": In(CauseLayout()),
                "index": In(32),
                "events": In(ProgramEventsLayout()),
                "irq": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        events = self.events
        counted = {
            "words": events.word,
            "busy_cycles": self.busy,
            "wait_cycles": events.wait,
            "stall_engine": events.stall_engine,
            "stall_fetch": events.stall_fetch,
            "beats": events.beat,
        }
        m.submodules.registers = registers = RegisterFile(PROGRAM_REGISTERS, widths_of(counted))
        m.submodules.errors = errors = ErrorRecord(CauseLayout())
        join(m, accesses=flipped(self.accesses), registers=registers.accesses)
        show_parameters(m, registers, built_with(self._params))
        failed = self.cause.code != 0
        m.d.comb += [
            self.start.eq(registers.control.start),
            self.stop.eq(registers.control.stop),
            self.address.eq(Cat(registers.program_lo.address, registers.program_hi.address)),
            self.count.eq(registers.program_words.count),
            self.watchdog.eq(registers.watchdog.cycles),
            registers.status.idle.eq(~self.busy),
            registers.irq_status_set.done.eq(self.ended & ~failed & self.interrupt),
            registers.word.index.eq(self.index),
            errors.errors.eq(self.ended & failed),
            errors.record.eq(self.cause),
            registers.error.code.eq(errors.kept.code),
            registers.error.engine.eq(errors.kept.engine),
            registers.error.tag.eq(errors.kept.tag),
            registers.error_word.index.eq(errors.kept.index),
        ]
        done = Signal()
        with m.If(self.busy):
            m.d.sync += done.eq(self.ended & ~failed)
        m.d.comb += registers.status.done.eq(done)
        self._show_window(m, registers)
        m.d.comb += self.irq.eq(connect_status(m, registers, errors, counted))
        return m

    def _show_window(self, m, registers):
        """In pages that exist, a cycle later."""
        base = Cat(registers.window_base_lo.address, registers.window_base_hi.address)
        limit = Cat(registers.window_limit_lo.address, registers.window_limit_hi.address)
        first, last = window_units(base, limit, PAGE_LOG2, self._params.tmau.addr_width)
        m.d.sync += [
            self.window.confine.eq(registers.windows.confine),
            self.window.first.eq(first),
            self.window.last.eq(last),
        ]
