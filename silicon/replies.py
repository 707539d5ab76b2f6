"""Whose answers are kept: GPU, driver, CUDA and date."""

import subprocess
from datetime import UTC, datetime
from typing import NamedTuple

import numpy as np

from .packing import MAGIC, RECORDS, SHARED_BYTES, Ending, Status, issues, job_shared_bytes

__all__ = ["Hello", "Reply", "provenance", "read_hello", "read_reply"]

_ASK_DRIVER = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]


def provenance(gpu, driver, runtime):
    """What a file of answers says of the GPU that gave them; today's date, UTC.

    Versions of driver and runtime come as CUDA has them.
    """
    return {
        "gpu": gpu,
        "driver": _driver() or f"for CUDA {_version(driver)}",
        "cuda": _version(runtime),
        "date": datetime.now(UTC).date().isoformat(),
    }


def _driver():
    """The driver's own version, which CUDA does not tell; None if it cannot be found."""
    try:
        lines = subprocess.run(_ASK_DRIVER, capture_output=True, text=True, check=True).stdout.splitlines()
    except (OSError, subprocess.CalledProcessError):
        return None
    return lines[0].strip() if lines else None


def _version(number):
    """13000 is 13.0."""
    return f"{number // 1000}.{number % 1000 // 10}"


class Hello(NamedTuple):
    """What the program says about its GPU; versions as CUDA gives them: 13000 is 13.0."""

    status: Status
    major: int
    minor: int
    driver: int
    runtime: int
    shared_bytes: int
    gpu: str
    message: str

    def provenance(self):
        """What a file says of the GPU that its answers are from."""
        return provenance(self.gpu, self.driver, self.runtime)


class Reply(NamedTuple):
    """What became of a job.

    Attributes
    ----------
    status : Status
        FAILED: nothing but ``message`` says anything.
    message : str
        FAILED: at which command, and what CUDA calls it.
    maps : dict of str to int
        Result of the driver's function for each map of the case: 0, or its error.
    endings : tuple of Ending
        Of each issue.
    counted : tuple of int, tuple or None
        Bytes that arrived at the barrier of each core in which they land; None where none counted. Of several cores
        that counted differently, or of which another one counted something, the numbers of all.
    gmem : uint8 array or None
        As large as that of the case.
    smems : list of uint8 array
        Of each core, likewise.
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

    ValueError if it is something else.
    """
    record = _header(read, "Hello")
    values = {name: int(record[name]) for name in ("major", "minor", "driver", "runtime", "shared_bytes")}
    texts = {name: _text(record[name]) for name in ("gpu", "message")}
    return Hello(status=Status(int(record["status"])), **values, **texts)


def read_reply(read, case, shared_bytes=SHARED_BYTES):
    """The :class:`Reply` to the job of ``case``; other arguments as of :func:`.packing.pack` and above."""
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
        held = min(len(smem), len(moved))  # what the GPU has no room for, no command of the case touches
        smem[:held] = np.frombuffer(moved, np.uint8)[:held]
    # What one core knows of a command is worse than that others have nothing to say.
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
    """What the cores counted of a command, one record each; one number where they did so as they should."""
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
    """Characters up to the first zero."""
    return bytes(raw).partition(b"\0")[0].decode(errors="replace")
