"""What a harness has logged, as columns."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from tilewright.golden import ProgramRecord
from tilewright.golden.arguments import integer, listed, shown
from tilewright.golden.pe.machine import Fault
from tilewright.spec import BANKS, CHUNK_BYTES, COMMAND, Error
from tilewright.spec.cluster import ClusterError
from tilewright.spec.conv import ConvError
from tilewright.spec.core import PROGRAM_REGISTERS, Engine, Kind, ProgramError
from tilewright.spec.pe import PeError

from ..harness.axi_channels import Rule, Wait
from ..harness.drivers import LogRowLayout
from ..harness.records import READ_IDS
from ..hdl.packing import row_bytes, unpack_column

__all__ = [
    "ERRORS",
    "RECORD_REGISTERS",
    "BarrierAnswer",
    "CommandEnd",
    "CommandStamp",
    "ConvRun",
    "CoreRun",
    "JobEnd",
    "Logs",
    "PeRun",
    "ProgramRun",
    "RegisterAnswer",
    "TmauRun",
    "Trace",
    "WordStamp",
    "carried_out",
    "command_stamps",
    "job_ends",
    "pe_faults",
    "program_record",
    "program_rows",
    "read_record",
]  # fmt: skip


class Logs:
    """Dumped logs as columns.

    Parameters
    ----------
    entries : dict of str to shape
        Of each log.
    arrays : dict of str to uint8 array
        Rows of those that are not empty, by the name of the array, ``…_log``.
    """

    def __init__(self, entries, arrays):
        self._rows = {name: LogRowLayout(shape) for name, shape in entries.items()}
        self._arrays = arrays

    def __contains__(self, name):
        """Whether there is such a log."""
        return name in self._rows

    def cycles(self, name):
        """When each entry was made."""
        return self._column(name, "cycle")

    def field(self, name, *path):
        """One field of each entry, or all of it."""
        return self._column(name, "entry", *path)

    def stamped(self, name, *fields):
        """Each entry's cycle and fields, as tuples of int."""
        columns = [self.cycles(name), *(self.field(name, field) for field in fields)]
        return list(zip(*(column.tolist() for column in columns), strict=True))

    def _column(self, name, *path):
        row = self._rows[name]
        rows = self._arrays.get(f"{name}_log", np.zeros((0, row_bytes(row)), np.uint8))
        return unpack_column(row, rows, *path)


#: Every error that a command may end with, by its code.
ERRORS = {error.value: error for error in (*Error, *ClusterError)}


class CommandStamp(NamedTuple):
    """One command. Cycles count from the start of the run; None where it did not come to that."""

    tag: int
    accepted: int | None
    done: int | None
    error: Error | ClusterError | None


class BarrierAnswer(NamedTuple):
    """Final answer to one barrier operation."""

    done: bool
    error: bool
    cycle: int


class RegisterAnswer(NamedTuple):
    """Answer to one register access; ``response`` is RRESP or BRESP."""

    data: int
    response: int
    cycle: int


class Trace(NamedTuple):
    """What passed on the bus: of each channel, arrays in order. IDs of reads are those of ``READ_IDS``."""

    request_cycle: np.ndarray
    request_id: np.ndarray
    request_address: np.ndarray
    request_beats: np.ndarray
    beat_cycle: np.ndarray
    beat_id: np.ndarray
    beat_last: np.ndarray
    write_request_cycle: np.ndarray
    write_request_id: np.ndarray
    write_request_address: np.ndarray
    write_request_beats: np.ndarray
    write_beat_cycle: np.ndarray
    write_beat_last: np.ndarray


@dataclass(frozen=True, kw_only=True, repr=False)
class _Run:
    """What came out of one run, of any session.

    Attributes
    ----------
    finished : bool
        Everything was complete before the limit.
    cycles : int
        From the first issue until everything was complete.
    barriers : list of BarrierAnswer
    registers : list of RegisterAnswer
    irq : bool
        At the end.
    """

    finished: bool
    cycles: int
    barriers: list
    registers: list
    irq: bool

    @classmethod
    def collect(cls, statuses, logs, **others):
        """Makes one from the statuses of the harness and its ``Logs``; ``others`` are attributes as they stand."""
        return cls(
            finished=bool(statuses["finished"]),
            cycles=statuses["cycles"],
            barriers=[
                BarrierAnswer(bool(done), bool(error), cycle)
                for cycle, done, error in logs.stamped("barriers", "done", "error")
            ],
            registers=[
                RegisterAnswer(word, response, cycle)
                for cycle, word, response in logs.stamped("registers", "data", "response")
            ],
            irq=bool(statuses["irq"]),
            **others,
        )

    def __repr__(self):
        end = "finished" if self.finished else "stopped"
        return f"{type(self).__name__}: {end} after {self.cycles} cycles; {'; '.join(self._facts())}"


@dataclass(frozen=True, kw_only=True, repr=False)
class _MemoryRun(_Run):
    """What came out of one run of a session with a TMAU.

    Attributes
    ----------
    commands : list of CommandStamp
        In the order of issue.
    flips : list of (int, int)
        Cycle and barrier address of every phase that completed.
    violations : tuple of Rule
        Rules of AXI that were broken so far in the session.
    late : tuple of Wait
        Waits that have lasted too long so far in the session.
    data_requests, data_beats, descriptor_requests, descriptor_beats, reducer_requests, reducer_beats : int
        Read bursts accepted and bus words received.
    write_requests, write_beats : int
        Write bursts accepted and bus words written.
    shared : ndarray or None
        The part of shared memory that was asked for, at the end: uint8.
    memory : ndarray or None
        The part of global memory that was asked for, at the end: uint8.
    trace : Trace or None

    and those of every run.
    """

    commands: list
    flips: list
    violations: tuple
    late: tuple
    data_requests: int
    data_beats: int
    descriptor_requests: int
    descriptor_beats: int
    reducer_requests: int
    reducer_beats: int
    write_requests: int
    write_beats: int
    shared: np.ndarray | None
    memory: np.ndarray | None
    trace: Trace | None

    @classmethod
    def collect(cls, statuses, logs, commands, *, shared, memory, trace, **others):
        """The same; ``commands`` are the rows of the script, whose tags are all different.

        ``shared`` and ``memory`` are attributes, ``trace`` is whether there is one.
        """
        return super().collect(
            statuses,
            logs,
            commands=command_stamps(logs, commands),
            flips=list(zip(logs.cycles("flips").tolist(), logs.field("flips").tolist(), strict=True)),
            violations=tuple(Rule.decode(statuses["violations"])),
            late=tuple(Wait.decode(statuses["late"])),
            **{name: statuses[name] for kind in READ_IDS for name in (f"{kind}_requests", f"{kind}_beats")},
            write_requests=statuses["write_requests_count"],
            write_beats=statuses["write_beats_count"],
            shared=shared,
            memory=memory,
            trace=_trace(logs) if trace else None,
            **others,
        )

    @property
    def span(self):
        """Cycles from the first command accepted to the last completion; 0 without commands."""
        done = [stamp.done for stamp in self.commands if stamp.done is not None]
        return max(done) - self.commands[0].accepted if done else 0

    @property
    def error(self):
        """The first error of the commands, in the order of issue, or None."""
        return next((stamp.error for stamp in self.commands if stamp.error), None)

    def first_request(self, index=0):
        """Cycles from the acceptance of a command to the first data address after it; None if none came.

        It is the command's own only if nothing else was under way. ValueError without the trace.
        """
        trace = self.traced()
        return self._first(index, trace.request_cycle[trace.request_id == READ_IDS["data"]])

    def first_write(self, index=0):
        """The same for the first write address."""
        return self._first(index, self.traced().write_request_cycle)

    def traced(self):
        """The trace; ValueError if the run has none."""
        if self.trace is None:
            raise ValueError("the run must have a trace: make it with trace=True")
        return self.trace

    def _first(self, index, cycles):
        accepted = self.commands[index].accepted
        later = cycles[cycles >= accepted]
        return int(later[0]) - accepted if len(later) else None

    def _facts(self):
        yield f"{len(self.commands)} commands in {self.span} cycles"
        yield f"{self.data_beats} bus words read, {self.write_beats} written"
        if self.error:
            yield f"error {self.error.name}"


@dataclass(frozen=True, kw_only=True, repr=False)
class TmauRun(_MemoryRun):
    """What came out of one run of a ``TmauSession``.

    Attributes
    ----------
    reads : ndarray
        Consumer reads that were answered: uint8, reads × 8 lanes × 16 bytes.
    read_cycles : ndarray
        Cycle of each answer.

    and those of every run of a session with a TMAU: ``finished``, ``cycles``, ``commands``, ``shared`` and so on.
    """

    reads: np.ndarray
    read_cycles: np.ndarray

    @classmethod
    def collect(cls, statuses, logs, commands, **others):
        """The same."""
        reads = np.ascontiguousarray(logs.field("reads")).reshape(-1, BANKS, CHUNK_BYTES)
        return super().collect(statuses, logs, commands, reads=reads, read_cycles=logs.cycles("reads"), **others)


@dataclass(frozen=True, kw_only=True, repr=False)
class PeRun(_Run):
    """What came out of one run of a ``PeSession``.

    Attributes
    ----------
    finished, cycles, barriers, registers, irq
        As of every run.
    span : int
        From the first instruction accepted to the last halt; 0 without one.
    faults : list of Fault
        Of the instructions that had one, in program order; numbers count from the last reset.
    halts : int
        HALT instructions that were performed.
    product : ndarray or None
        The result of a golden ``Program``: int32, uint32 or float32.
    """

    span: int
    faults: list
    halts: int
    product: np.ndarray | None = None

    @classmethod
    def collect(cls, statuses, logs):
        """The same, without product."""
        issued, halted = logs.cycles("issued"), logs.cycles("halts")
        span = int(halted[-1] - issued[0]) if len(halted) else 0
        return super().collect(statuses, logs, span=span, faults=pe_faults(logs), halts=len(halted))

    def _facts(self):
        yield f"{self.halts} halts, {len(self.faults)} faults"
        if self.product is not None:
            yield f"product of shape {self.product.shape} and {self.product.dtype}"


class JobEnd(NamedTuple):
    """How a job of the convolution engine ended: cycle, error, number of the field, tag."""

    cycle: int
    code: ConvError
    field: int
    tag: int


@dataclass(frozen=True, kw_only=True, repr=False)
class ConvRun(_Run):
    """What came out of one run of a ``ConvSession``.

    Attributes
    ----------
    finished, cycles, barriers, registers, irq
        As of every run.
    jobs : list of JobEnd
        In order.
    accepted : list of int
        In which cycle each job was taken into the queue.
    """

    jobs: list
    accepted: list

    @classmethod
    def collect(cls, statuses, logs):
        """The same."""
        return super().collect(statuses, logs, jobs=job_ends(logs), accepted=logs.cycles("queued").tolist())

    def _facts(self):
        yield f"{len(self.jobs)} jobs, {sum(job.code != ConvError.NONE for job in self.jobs)} errors"


@dataclass(frozen=True, kw_only=True, repr=False)
class CoreRun(_MemoryRun):
    """What came out of one run of a ``CoreSession``. Commands of the pager are not among its commands.

    Attributes
    ----------
    faults : list of Fault
        As of a ``PeRun``.
    halts : list of int
        Cycles in which HALT instructions were performed.
    jobs : list of JobEnd
        As of a ``ConvRun``.

    and those of every run of a session with a TMAU: ``finished``, ``cycles``, ``commands``, ``shared`` and so on.
    """

    faults: list
    halts: list
    jobs: list

    @classmethod
    def collect(cls, statuses, logs, commands, **others):
        """The same."""
        others |= {"faults": pe_faults(logs), "halts": logs.cycles("halts").tolist()}
        return super().collect(statuses, logs, commands, jobs=job_ends(logs) if "jobs" in logs else [], **others)

    def _facts(self):
        yield from super()._facts()
        yield f"{len(self.halts)} halts, {len(self.faults)} faults"


def command_stamps(logs, rows, core=""):
    """A :class:`CommandStamp` for each command of ``rows``, in the order of issue; of that core of a cluster."""
    tags = [COMMAND.unpack(row["item"])["tag"] for row in rows]
    accepted = logs.cycles(f"accepted{core}").tolist()
    ends = logs.stamped(f"commands{core}", "error")
    ended = dict(zip(logs.field(f"commands{core}", "tag").tolist(), ends, strict=True))
    stamps = []
    for index, tag in enumerate(tags):
        done, code = ended.get(tag, (None, None))
        begun = accepted[index] if index < len(accepted) else None
        stamps.append(CommandStamp(tag, begun, done, None if code is None else ERRORS[code]))
    return stamps


def job_ends(logs, core=""):
    """A :class:`JobEnd` for each job that has ended, in order; of that core of a cluster."""
    return [
        JobEnd(cycle, ConvError(code), field, tag)
        for cycle, code, field, tag in logs.stamped(f"jobs{core}", "code", "field", "tag")
    ]


def pe_faults(logs, core=""):
    """Every ``Fault`` that instructions have reported, in program order; of that core of a cluster."""
    fields = logs.stamped(f"instructions{core}", *Fault._fields)
    return sorted((Fault(PeError(code), *rest) for _, code, *rest in fields if code), key=lambda fault: fault.number)


def _trace(logs):
    return Trace(
        request_cycle=logs.cycles("requests"),
        request_id=logs.field("requests", "id"),
        request_address=logs.field("requests", "address"),
        request_beats=logs.field("requests", "length") + 1,
        beat_cycle=logs.cycles("beats"),
        beat_id=logs.field("beats", "id"),
        beat_last=logs.field("beats", "last"),
        write_request_cycle=logs.cycles("write_requests"),
        write_request_id=logs.field("write_requests", "id"),
        write_request_address=logs.field("write_requests", "address"),
        write_request_beats=logs.field("write_requests", "length") + 1,
        write_beat_cycle=logs.cycles("write_beats"),
        write_beat_last=logs.field("write_beats"),
    )


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
