"""The registers of the command processor, and the record of why a program stopped."""

from amaranth.hdl import Cat, Module, Signal, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from tilewright.spec.core import PROGRAM_REGISTERS, Engine, ProgramError, built_with

from ...bus.axi4_lite import AccessSignature
from ...bus.registers import (
    PAGE_LOG2,
    ErrorRecord,
    RegisterFile,
    connect_status,
    show_parameters,
    widths_of,
    window_units,
)
from .checks import WindowLayout
from .layouts import CauseLayout

__all__ = ["ProgramControl", "ProgramEventsLayout", "StopCause"]

_ENGINES = tuple(engine for engine in Engine if engine != Engine.NONE)


class StopCause(wiring.Component):
    """Keeps the first cause since ``begin``; the lowest code of several in one cycle, and the first engine."""

    def __init__(self):
        super().__init__(
            {
                # Strobe: a program begins; what was before is forgotten.
                "begin": In(1),
                # A program runs; causes count only then.
                "runs": In(1),
                # Strobe: ``code`` stops it.
                "failed": In(1),
                # ProgramError of the current word.
                "code": In(8),
                # Tag of the current word.
                "tag": In(16),
                # Index of the current word.
                "index": In(32),
                # Engines whose record holds an error, in the order of spec.core.Engine.
                "engines": In(len(_ENGINES)),
                # Tags of these records.
                "engine_tags": In(unsigned(16)).array(len(_ENGINES)),
                # Strobe: the current word, or an instruction of it, is done: the watchdog starts again.
                "advances": In(1),
                # Cycles that a word may take; 0: no limit.
                "watchdog": In(32),
                # The host stops the program.
                "stop": In(1),
                # Registered.
                "cause": Out(CauseLayout()),
                # There is a cause.
                "stops": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        cause = self.cause
        left, expired = Signal(32), Signal()
        with m.If(self.begin | self.advances | ~self.runs):
            m.d.sync += [left.eq(self.watchdog), expired.eq(0)]
        with m.Else():
            m.d.sync += [left.eq(left - 1), expired.eq((left == 1) | expired)]

        happened = Signal(CauseLayout())
        m.d.comb += [happened.tag.eq(self.tag), happened.index.eq(self.index), self.stops.eq(cause.code != 0)]
        with m.If(self.failed):
            m.d.comb += happened.code.eq(self.code)
        with m.Elif(self.engines.any()):
            m.d.comb += happened.code.eq(ProgramError.ENGINE)
            for number, engine in reversed(list(enumerate(_ENGINES))):
                with m.If(self.engines[number]):
                    m.d.comb += [happened.engine.eq(engine), happened.tag.eq(self.engine_tags[number])]
        with m.Elif(expired):
            m.d.comb += happened.code.eq(ProgramError.WATCHDOG)
        with m.Elif(self.stop):
            m.d.comb += happened.code.eq(ProgramError.STOPPED)
        with m.If(self.begin):
            m.d.sync += cause.eq(0)
        with m.Elif(self.runs & ~self.stops & (happened.code != 0)):
            m.d.sync += cause.eq(happened)
        return m


class ProgramEventsLayout(data.StructLayout):
    """What happens in a cycle, for the counters of ``spec.core.registers``."""

    def __init__(self):
        super().__init__(dict.fromkeys(("word", "wait", "stall_engine", "stall_fetch", "beat"), 1))


class ProgramControl(wiring.Component):
    """Registers of ``spec.core.registers``.

    Parameters
    ----------
    params : CoreParams
    """

    def __init__(self, params):
        self._params = params
        super().__init__(
            {
                # Registers, by byte offset; see ``RegisterFile``.
                "accesses": In(AccessSignature()),
                # Strobe.
                "start": Out(1),
                # Strobe.
                "stop": Out(1),
                # Of the program.
                "address": Out(64),
                # Its words.
                "count": Out(32),
                # Cycles that a word may take; 0: no limit.
                "watchdog": Out(32),
                "window": Out(WindowLayout(params.tmau.addr_width)),
                # A program runs.
                "busy": In(1),
                # Strobe: a program is over.
                "ended": In(1),
                # With ``ended``: it came to an END that says so.
                "interrupt": In(1),
                # With ``ended``: why it stopped, or code NONE.
                "cause": In(CauseLayout()),
                # Index of the current word.
                "index": In(32),
                "events": In(ProgramEventsLayout()),
                # Level: a status bit is set that is enabled.
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
        connect(m, accesses=flipped(self.accesses), registers=registers.accesses)
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
            registers.error.code.eq(errors.first.code),
            registers.error.engine.eq(errors.first.engine),
            registers.error.tag.eq(errors.first.tag),
            registers.error_word.index.eq(errors.first.index),
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
