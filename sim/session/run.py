"""The results of one run of a session."""

from dataclasses import dataclass

import numpy as np

from tilewright.golden import ProgramRecord
from tilewright.golden.arguments import integer, shown
from tilewright.golden.pe.machine import Fault
from tilewright.spec import BANKS, CHUNK_BYTES
from tilewright.spec.conv import ConvError
from tilewright.spec.core import PROGRAM_REGISTERS, Engine, Kind, ProgramError
from tilewright.spec.pe import PeError

from ..harness.axi_channels import Rule, Wait
from ..harness.records import READ_IDS
from .events import BarrierAnswer, CommandEnd, JobEnd, Trace, WordStamp, command_stamps, register_answers

__all__ = ["RECORD_ACCESSES", "ClusterRun", "CoreRun", "Run", "bus_fields", "program_record", "start_accesses"]

#: Reads that say how a program of the command processor has ended.
RECORD_ACCESSES = [("program", name) for name in ("status", "error", "error_word", "irq_status")]

_MOST = (1 << 64) - 1
_FORMATS = {register.name: register.format for register in PROGRAM_REGISTERS}


@dataclass(frozen=True, kw_only=True, repr=False)
class CoreRun:
    """What came out of one run of one core; empty what it has no engine for.

    Attributes
    ----------
    commands : list of CommandStamp
        In the order of issue. Commands of the pager and of programs are not among them.
    flips : list of (int, int)
        Cycle and barrier address of every phase that completed.
    barriers : list of BarrierAnswer
    registers : list of RegisterAnswer
    reads : ndarray
        Answers to reads of the consumer: uint8, reads × 8 lanes × 16 bytes.
    read_cycles : ndarray
        Cycle of each of these answers.
    faults : list of Fault
        Faults of instructions, in program order; numbers count from the last reset.
    issued, performed, halts : list of int
        Cycles in which instructions were accepted at the port, instructions ended, and HALTs were performed.
    queued : list of int
        Cycles in which jobs were accepted at the port.
    jobs : list of JobEnd
        In order.
    words : list of WordStamp
        Words of a program, in order.
    ends : list of CommandEnd
        Every command that ended, in the order of their ends.
    shared : ndarray or None
        The part of shared memory that was asked for, at the end: uint8.
    """

    commands: list
    flips: list
    barriers: list
    registers: list
    reads: np.ndarray
    read_cycles: np.ndarray
    faults: list
    issued: list
    performed: list
    halts: list
    queued: list
    jobs: list
    words: list
    ends: list
    shared: np.ndarray | None = None

    @classmethod
    def collect(cls, logs, commands, core="", **others):
        """Makes one from ``Logs``.

        Parameters
        ----------
        logs : Logs
        commands : list
            Rows of the script, whose tags are all different.
        core : int or str
            What the names of the logs end with: in a cluster the number of the core.
        **others
            Further attributes as they are.
        """
        kinds = {0: None} | {kind.value: kind for kind in Kind}
        faults = [
            fault for name in ("instructions", "inside") for fault in logs.stamped(f"{name}{core}", *Fault._fields)
        ]
        return cls(
            commands=command_stamps(logs, commands, core),
            flips=list(zip(logs.cycles(f"flips{core}").tolist(), logs.field(f"flips{core}").tolist(), strict=True)),
            barriers=[
                BarrierAnswer(bool(done), bool(error), cycle)
                for cycle, done, error in logs.stamped(f"barriers{core}", "done", "error")
            ],
            registers=register_answers(logs, f"registers{core}"),
            reads=np.ascontiguousarray(logs.field(f"reads{core}")).reshape(-1, BANKS, CHUNK_BYTES),
            read_cycles=logs.cycles(f"reads{core}"),
            faults=sorted(
                (Fault(PeError(code), *rest) for _, code, *rest in faults if code), key=lambda fault: fault.number
            ),
            issued=logs.cycles(f"issued{core}").tolist(),
            performed=logs.cycles(f"instructions{core}").tolist(),
            halts=logs.cycles(f"halts{core}").tolist(),
            queued=logs.cycles(f"queued{core}").tolist(),
            jobs=[
                JobEnd(cycle, ConvError(code), field, tag)
                for cycle, code, field, tag in logs.stamped(f"jobs{core}", "code", "field", "tag")
            ],
            words=[
                WordStamp(cycle, kinds.get(kind), index)
                for cycle, kind, index in logs.stamped(f"words{core}", "kind", "index")
            ],
            ends=[CommandEnd(*entry) for entry in logs.stamped(f"commands{core}", "tag", "error")],
            **others,
        )

    @property
    def span(self):
        """Cycles from the first command accepted to the last completion; without commands, from the first instruction
        accepted to the last HALT; 0 without either.
        """
        done = [stamp.done for stamp in self.commands if stamp.done is not None]
        if done:
            return max(done) - self.commands[0].accepted
        return self.halts[-1] - self.issued[0] if self.halts and self.issued else 0

    @property
    def error(self):
        """The first error of the commands, in the order of issue, or None."""
        return next((stamp.error for stamp in self.commands if stamp.error), None)


@dataclass(frozen=True, kw_only=True, repr=False)
class _BusRun:
    """What came out of one run of a core or of a cluster as a whole.

    Attributes
    ----------
    finished : bool
        Everything was complete before the limit.
    cycles : int
        From the first issue until everything was complete.
    irq : bool
        The interrupt, of any core, at the end.
    violations : tuple of Rule
        Rules of AXI that were broken so far in the session.
    late : tuple of Wait
        Waits that have lasted too long so far in the session.
    data_requests, data_beats, descriptor_requests, descriptor_beats, reducer_requests, reducer_beats : int
        Read bursts accepted and bus words received. Reads of a second-level cache are data.
    write_requests, write_beats : int
        Write bursts accepted and bus words written.
    memory : ndarray or None
        The part of global memory that was asked for, at the end: uint8.
    """

    finished: bool
    cycles: int
    irq: bool
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
    memory: np.ndarray | None = None

    def __repr__(self):
        end = "finished" if self.finished else "stopped"
        return f"{type(self).__name__}: {end} after {self.cycles} cycles; {'; '.join(self._facts())}"


def bus_fields(statuses):
    """Attributes of a run as a whole, from the statuses of its harness, as a dictionary; 0 without a bus."""
    counts = {name: statuses.get(name, 0) for kind in READ_IDS for name in (f"{kind}_requests", f"{kind}_beats")}
    return counts | {
        "finished": bool(statuses["finished"]),
        "cycles": statuses["cycles"],
        "irq": bool(statuses["irq"]),
        "violations": tuple(Rule.decode(statuses.get("violations", 0))),
        "late": tuple(Wait.decode(statuses.get("late", 0))),
        "write_requests": statuses.get("write_requests_count", 0),
        "write_beats": statuses.get("write_beats_count", 0),
    }


@dataclass(frozen=True, kw_only=True, repr=False)
class Run(_BusRun, CoreRun):
    """What came out of one run of a ``Session``: the attributes of ``CoreRun``, those of the bus, and these.

    Attributes
    ----------
    trace : Trace or None
        What passed on the bus, if it was asked for.
    product : ndarray or None
        The result of a golden ``Program``: int32, uint32 or float32.
    record : ProgramRecord or None
        Why a program of the command processor stopped; None if it came to its end, or was not finished.
    interrupt : bool
        Its END raised the interrupt.
    """

    trace: Trace | None = None
    product: np.ndarray | None = None
    record: ProgramRecord | None = None
    interrupt: bool = False

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
        if self.commands or self.data_requests or self.write_requests:
            yield f"{len(self.commands)} commands in {self.span} cycles"
            yield f"{self.data_beats} bus words read, {self.write_beats} written"
            if self.error:
                yield f"error {self.error.name}"
        if self.performed:
            yield f"{len(self.halts)} halts, {len(self.faults)} faults"
        if self.jobs:
            yield f"{len(self.jobs)} jobs, {sum(job.code != ConvError.NONE for job in self.jobs)} errors"
        if self.words:
            yield f"{len(self.words)} words, {self.record.code.name if self.record else 'no error'}"
        if self.product is not None:
            yield f"product of shape {self.product.shape} and {self.product.dtype}"


@dataclass(frozen=True, kw_only=True, repr=False)
class ClusterRun(_BusRun):
    """What came out of one run of a ``ClusterSession``: the attributes of the bus, and these.

    Attributes
    ----------
    cores : list of CoreRun
    cache : list of RegisterAnswer
        Answers of registers of the second-level cache.
    records : list of ProgramRecord or None
        Why the program of each core stopped; None if it came to its end, or there was none.
    """

    cores: list
    cache: list
    records: list = ()

    def _facts(self):
        yield f"{sum(len(core.commands) for core in self.cores)} commands on {len(self.cores)} cores"


def start_accesses(address, words, window, watchdog):
    """Accesses to registers that start a program of the command processor.

    Parameters
    ----------
    address, words : int
        Where it lies in global memory, and its words.
    window : (int, int) or None
        First and last byte that programs and instructions are confined to; None: they are not.
    watchdog : int
        Cycles that a word may take; 0: no limit.
    """
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
    return [("program", name, int(value)) for name, value in values.items()]


def program_record(answers):
    """The ``ProgramRecord`` or None, and whether END raised the interrupt, by answers of :data:`RECORD_ACCESSES`."""
    values = {
        name: _FORMATS[name].unpack(answer.data) for (_, name), answer in zip(RECORD_ACCESSES, answers, strict=True)
    }
    record = None
    if values["status"]["error"]:
        error, index = values["error"], values["error_word"]["index"]
        record = ProgramRecord(ProgramError(error["code"]), Engine(error["engine"]), error["tag"], index)
    return record, bool(values["irq_status"]["done"])
