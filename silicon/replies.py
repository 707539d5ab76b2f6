"""Replies of the replay program, and the GPU, driver, CUDA version and date that they come from."""

import subprocess
from datetime import UTC, datetime
from typing import NamedTuple

import numpy as np

from .packing import MAGIC, RECORDS, SHARED_BYTES, Ending, Status, issues, job_shared_bytes

__all__ = ["Hello", "Reply", "provenance", "read_hello", "read_reply"]

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
