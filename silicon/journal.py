"""A journal of the replies of silicon on disk, so that an interrupted run can continue.

The key of a reply is a hash of the whole job, and of the sources of the program that ran it. Only changes of memories
are kept.
"""

import hashlib
import json
import zlib

import numpy as np

from tilewright.sim.replay.outcome import shared_names

from .capture import spots
from .packing import Ending, Status, pack
from .replies import Reply

__all__ = ["Journal", "Kept"]

_LENGTH = 4  # bytes of the length before each record
#: A failure counts when it has occurred this often: the first one may mean that the program was killed.
_FAILURES = 2


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
