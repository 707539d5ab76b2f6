"""Runs of programs: what a session writes to the command processor's registers, and what it reads from them."""

from dataclasses import dataclass, replace
from typing import NamedTuple

from tilewright.golden import ProgramRecord
from tilewright.golden.arguments import integer, listed, shown
from tilewright.golden.spec.core.errors import ProgramError
from tilewright.golden.spec.core.registers import PROGRAM_REGISTERS
from tilewright.golden.spec.core.word import Engine, Kind

from .run import CoreRun

__all__ = [
    "RECORD_REGISTERS",
    "CommandEnd",
    "ProgramRun",
    "WordStamp",
    "carried_out",
    "program_record",
    "program_rows",
    "read_record",
]

_MOST = (1 << 64) - 1
_FORMATS = {register.name: register.format for register in PROGRAM_REGISTERS}
#: Registers that are read at the end.
RECORD_REGISTERS = ("status", "error", "error_word", "irq_status")


class WordStamp(NamedTuple):
    """When a word was carried out: handed over, or its wait over. Of a job's three words it is the last one."""

    cycle: int
    kind: Kind
    index: int


class CommandEnd(NamedTuple):
    """When a command of the TMAU ended, its tag, and its error."""

    cycle: int
    tag: int
    error: int


@dataclass(frozen=True, kw_only=True, repr=False)
class ProgramRun(CoreRun):
    """What came out of a program.

    Attributes
    ----------
    record : ProgramRecord or None
        Why it stopped; None if it came to its end, or was not finished.
    interrupt : bool
        Its END raised the interrupt.
    words : list of WordStamp
        In order.
    ends : list of CommandEnd
        In the order in which commands ended, those of the TMAU.
    performed : list of int
        Cycles in which instructions of the processing engine ended, in their order.

    and those of a ``CoreRun``.
    """

    record: ProgramRecord | None = None
    interrupt: bool = False
    words: list = ()
    ends: list = ()
    performed: list = ()

    @classmethod
    def collect(cls, statuses, logs, commands, **others):
        """The same, without the record."""
        return super().collect(statuses, logs, commands, **carried_out(logs), **others)

    def _facts(self):
        yield from super()._facts()
        yield f"{len(self.words)} words, {self.record.code.name if self.record else 'no error'}"


def carried_out(logs, core=""):
    """``words``, ``ends`` and ``performed`` of a program, as of a ``ProgramRun``; of that core of a cluster."""
    kinds = {0: None} | {kind.value: kind for kind in Kind}
    stamps = logs.stamped(f"words{core}", "kind", "index")
    return {
        "words": [WordStamp(cycle, kinds.get(kind), index) for cycle, kind, index in stamps],
        "ends": [CommandEnd(*entry) for entry in logs.stamped(f"commands{core}", "tag", "error")],
        "performed": logs.cycles(f"instructions{core}").tolist(),
    }


def program_rows(address, words, window, watchdog, extra):
    """Accesses that start a program, and those that follow."""
    extra = listed("registers", extra)
    integer("address", address, 0, _MOST)
    integer("words", words, 0, (1 << 32) - 1)
    integer("watchdog", watchdog, 0, (1 << 32) - 1)
    if window is not None and (not isinstance(window, list | tuple) or len(window) != 2):
        raise TypeError(f"window must be a first and a last address, not {shown(window)}")
    base, limit = (integer("window", address, 0, _MOST) for address in window or (0, 0))
    values = {"windows": window is not None, "program_words": words, "watchdog": watchdog}
    for name, value in (("window_base", base), ("window_limit", limit), ("program", address)):
        values |= {f"{name}_lo": value & 0xFFFFFFFF, f"{name}_hi": value >> 32}
    control = _FORMATS["control"].pack(clear_counters=1, clear_error=1, start=1)
    values |= {"irq_status": _FORMATS["irq_status"].pack(error=1, done=1), "control": control}
    return [*(("program", name, int(value)) for name, value in values.items()), *extra]


def read_record(session, run):
    """The run with what the registers say of it."""
    if not run.finished:
        return run
    answers = session.run(registers=[("program", name) for name in RECORD_REGISTERS]).registers
    record, interrupt = program_record(answer.data for answer in answers)
    return replace(run, record=record, interrupt=interrupt)


def program_record(words):
    """The ``ProgramRecord`` or None, and whether END raised the interrupt, from words of :data:`RECORD_REGISTERS`."""
    values = {name: _FORMATS[name].unpack(word) for name, word in zip(RECORD_REGISTERS, words, strict=True)}
    record = None
    if values["status"]["error"]:
        error, index = values["error"], values["error_word"]["index"]
        record = ProgramRecord(ProgramError(error["code"]), Engine(error["engine"]), error["tag"], index)
    return record, bool(values["irq_status"]["done"])
