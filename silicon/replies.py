"""Replies of the replay program, the GPU that they come from, and a journal of them: an interrupted run can continue.

The key of a reply in the journal is a hash of the whole job, and of the sources of the program that ran it. Only
changes of memories are kept.
"""

import hashlib
import json
import subprocess
import zlib
from datetime import UTC, datetime
from typing import NamedTuple

import numpy as np

from tilewright.sim.replay.outcome import shared_names

from .packing import MAGIC, RECORDS, SHARED_BYTES, Ending, Status, issues, job_shared_bytes, pack

__all__ = ["Hello", "Journal", "Kept", "Reply", "provenance", "read_hello", "read_reply", "spots"]

_GAP = 16  # unchanged bytes between two changed ones that are kept with them
_LENGTH = 4  # bytes of the length before each record
#: A failure counts when it has occurred this often: the first one may mean that the program was killed.
_FAILURES = 2

_ASK_DRIVER = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]


def provenance(gpu, driver, runtime):
    """The description of the GPU in a file of its answers, with today's date in UTC.

    Versions of driver and runtime are in the form of CUDA.
    """
    return {
        "gpu": gpu,
        "driver": _driver() or f"for CUDA {_version(driver)}",
        "cuda": _version(runtime),
        "date": datetime.now(UTC).date().isoformat(),
    }


def _driver():
    """The driver's own version, which CUDA does not report; None if it cannot be found."""
    try:
        lines = subprocess.run(_ASK_DRIVER, capture_output=True, text=True, check=True).stdout.splitlines()
    except (OSError, subprocess.CalledProcessError):
        return None
    return lines[0].strip() if lines else None


def _version(number):
    """13000 is 13.0."""
    return f"{number // 1000}.{number % 1000 // 10}"


class Hello(NamedTuple):
    """The program's description of its GPU; versions in the form of CUDA: 13000 is 13.0."""

    status: Status
    major: int
    minor: int
    driver: int
    runtime: int
    shared_bytes: int
    gpu: str
    message: str

    def provenance(self):
        """The description of the GPU for a file of its answers."""
        return provenance(self.gpu, self.driver, self.runtime)


class Reply(NamedTuple):
    """The result of a job.

    Attributes
    ----------
    status : Status
        FAILED: only ``message`` is defined.
    message : str
        FAILED: the command, and the name of the error in CUDA.
    maps : dict of str to int
        Result of the driver's function for each map of the case: 0, or an error.
    endings : tuple of Ending
        The ending of each issue.
    counted : tuple of int, tuple or None
        Bytes that the barrier of each receiving core counted, for each issue; None if no barrier counted. If cores
        counted differently, or if another core counted bytes, the numbers of all cores.
    gmem : uint8 array or None
        Global memory, as large as the case's.
    smems : list of uint8 array
        Shared memory of each core, as large as the case's.
    """

    status: Status
    message: str = ""
    maps: dict | None = None
    endings: tuple = ()
    counted: tuple = ()
    gmem: np.ndarray | None = None
    smems: list = ()


def read_hello(read):
    """The :class:`Hello` of a program that has just started; ``read(n)`` gives its next ``n`` bytes.

    ValueError if they are not a hello.
    """
    record = _header(read, "Hello")
    values = {name: int(record[name]) for name in ("major", "minor", "driver", "runtime", "shared_bytes")}
    texts = {name: _text(record[name]) for name in ("gpu", "message")}
    return Hello(status=Status(int(record["status"])), **values, **texts)


def read_reply(read, case, shared_bytes=SHARED_BYTES):
    """The :class:`Reply` to the job of ``case``; other arguments: see :func:`.packing.pack` and above."""
    header = _header(read, "ReplyHeader")
    results = _records(read, "MapReply", len(case.maps))["result"].tolist()
    asked = issues(case)
    commands = _records(read, "CommandReply", len(asked) * case.cores).reshape(len(asked), case.cores)
    if header["status"] != Status.OK:
        return Reply(Status.FAILED, f"command {header['command']}: {_text(header['message'])}")
    gmem = np.frombuffer(read(case.gmem.size), np.uint8).copy()
    smems = [case.smem.contents() for _ in range(case.cores)]
    for smem in smems:
        moved = read(job_shared_bytes(case, shared_bytes))
        held = min(len(smem), len(moved))  # no command of the case accesses memory beyond the GPU's
        smem[:held] = np.frombuffer(moved, np.uint8)[:held]
    # A problem that one core reports takes precedence over cores without a report.
    endings = tuple(Ending(int(outcome)) for outcome in commands["outcome"].max(axis=1, initial=Ending.DONE))
    return Reply(
        Status.OK,
        maps=dict(zip(case.maps, results, strict=True)),
        endings=endings,
        counted=tuple(map(_counted, asked, endings, commands)),
        gmem=gmem,
        smems=smems,
    )


def _counted(issue, ending, records):
    """The bytes that the cores counted for a command, from a record of each; one number if all counts are right."""
    if ending != Ending.DONE or not records["counted"].all():
        return None
    numbers = records["bytes"].tolist()
    there = {number for core, number in enumerate(numbers) if issue.lands_in(core)}
    others = {number for core, number in enumerate(numbers) if not issue.lands_in(core)}
    return there.pop() if len(there) == 1 and others <= {0} else tuple(numbers)


def _header(read, name):
    (record,) = _records(read, name, 1)
    if record["magic"] != MAGIC[name]:
        raise ValueError(f"the replay program must begin with {MAGIC[name]:#x}, not {record['magic']:#x}")
    return record


def _records(read, name, count):
    dtype = RECORDS[name]
    return np.frombuffer(read(count * dtype.itemsize), dtype)


def _text(raw):
    """The text up to the first zero byte."""
    return bytes(raw).partition(b"\0")[0].decode(errors="replace")


def spots(before, after):
    """The changes of a memory, as pairs of an address and hex digits."""
    changed = np.flatnonzero(before != after)
    if not len(changed):
        return []
    parts = np.split(changed, np.flatnonzero(np.diff(changed) > _GAP) + 1)
    return [[int(part[0]), after[part[0] : part[-1] + 1].tobytes().hex()] for part in parts]


class Journal:
    """A file of replies that grows by one reply at a time.

    Parameters
    ----------
    path : Path
        Made with the first reply. An incomplete record at its end, from an interruption, is dropped.
    """

    def __init__(self, path):
        self._path = path
        self._replies = {}
        self._failures = {}
        data = path.read_bytes() if path.exists() else b""
        whole = 0
        for start, end in _framed(data):
            self._note(json.loads(zlib.decompress(data[start:end])))
            whole = end
        if whole < len(data):
            path.write_bytes(data[:whole])

    def get(self, key, case):
        """The stored :class:`Reply` to ``case`` with ``key``, or None."""
        record = self._replies.get(key)
        return None if record is None else _reply(record, case)

    def keep(self, key, case, reply):
        """Adds the reply to ``case``, and writes it to disk."""
        record = _record(key, case, reply)
        data = zlib.compress(json.dumps(record).encode())
        with self._path.open("ab") as file:
            file.write(len(data).to_bytes(_LENGTH, "little") + data)
        self._note(record)

    def _note(self, record):
        key = record["job"]
        if record["status"] != Status.OK:
            self._failures[key] = self._failures.get(key, 0) + 1
            if self._failures[key] < _FAILURES:
                return
        self._replies[key] = record


class Kept:
    """The replay program with a journal: cases in the journal do not run again. Without the program, only the journal.

    Parameters
    ----------
    journal : Journal
    hello : Hello
        The GPU.
    sources : str
        Name of the sources of the program.
    program : Program or None
    """

    def __init__(self, journal, hello, sources, program=None):
        self.hello = hello
        self._journal, self._sources, self._program = journal, sources, program

    def knows(self, case):
        """Whether the journal has the reply to a case."""
        return self._journal.get(self._key(case), case) is not None

    def run(self, case):
        """The :class:`Reply` to a case, from the journal or new; without a program only from the journal."""
        key = self._key(case)
        while (reply := self._journal.get(key, case)) is None:
            self._journal.keep(key, case, self._program.run(case))
        return reply

    def _key(self, case):
        return hashlib.sha256(self._sources.encode() + pack(case, self.hello.shared_bytes)).hexdigest()[:32]


def _framed(data):
    """Yields start and end of each complete record in the contents of the file."""
    start = _LENGTH
    while start <= len(data):
        end = start + int.from_bytes(data[start - _LENGTH : start], "little")
        if end > len(data):
            return
        yield start, end
        start = end + _LENGTH


def _record(key, case, reply):
    if reply.status != Status.OK:
        return {"job": key, "status": int(reply.status), "message": reply.message}
    names = shared_names(case.cores)
    return {
        "job": key,
        "status": int(reply.status),
        "maps": list(reply.maps.values()),
        "endings": [int(ending) for ending in reply.endings],
        "counted": list(reply.counted),
        "gmem": spots(case.global_contents(), reply.gmem),
        **{name: spots(case.smem.contents(), smem) for name, smem in zip(names, reply.smems, strict=True)},
    }


def _reply(record, case):
    if record["status"] != Status.OK:
        return Reply(Status(record["status"]), record["message"])
    return Reply(
        Status.OK,
        maps=dict(zip(case.maps, record["maps"], strict=True)),
        endings=tuple(map(Ending, record["endings"])),
        counted=tuple(tuple(count) if isinstance(count, list) else count for count in record["counted"]),
        gmem=_changed(case.global_contents(), record["gmem"]),
        smems=[_changed(case.smem.contents(), record[name]) for name in shared_names(case.cores)],
    )


def _changed(memory, changes):
    for address, digits in changes:
        memory[address : address + len(digits) // 2] = np.frombuffer(bytes.fromhex(digits), np.uint8)
    return memory
