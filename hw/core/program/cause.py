"""Why a program stops: the first cause is kept."""

from amaranth.hdl import Module, Signal, unsigned
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from tilewright.golden.spec.core.errors import ProgramError
from tilewright.golden.spec.core.word import Engine

from .layouts import CauseLayout

__all__ = ["StopCause"]

_ENGINES = tuple(engine for engine in Engine if engine != Engine.NONE)


class StopCause(wiring.Component):
    """Keeps the first cause since ``begin``. Of several in one cycle the lowest code counts, and of engines the first.

    Members
    -------
    begin : In(1)
        Strobe: a program begins; what was before is forgotten.
    runs : In(1)
        A program runs. Only then there are causes.
    failed : In(1)
        Strobe: ``code`` stops it.
    code : In(8)
        ProgramError of the word at hand.
    tag : In(16)
        Of the word at hand.
    index : In(32)
        Of the word at hand.
    engines : In(3)
        Engines whose record holds an error, in the order of golden.spec.core.Engine.
    engine_tags : In(array of 3 unsigned(16))
        Of their records.
    advances : In(1)
        Strobe: the word at hand, or an instruction of it, is done: the watchdog begins anew.
    watchdog : In(32)
        Cycles that a word may take; 0 for ever.
    stop : In(1)
        The host stops the program.
    cause : Out(CauseLayout())
        Registered.
    stops : Out(1)
        There is a cause.
    """

    def __init__(self):
        super().__init__(
            {
                "begin": In(1),
                "runs": In(1),
                "failed": In(1),
                "code": In(8),
                "tag": In(16),
                "index": In(32),
                "engines": In(len(_ENGINES)),
                "engine_tags": In(unsigned(16)).array(len(_ENGINES)),
                "advances": In(1),
                "watchdog": In(32),
                "stop": In(1),
                "cause": Out(CauseLayout()),
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
