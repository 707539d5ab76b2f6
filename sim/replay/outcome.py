"""Outcomes of replay cases on any backend, expectations, and comparisons (docs/replay.md, "Results")."""

import hashlib
from itertools import zip_longest
from types import MappingProxyType
from typing import NamedTuple

from tilewright.spec import Error
from tilewright.spec.cluster import ClusterError
from tilewright.spec.core import Engine, ProgramError
from tilewright.spec.fields import names
from tilewright.spec.pe import PeError

from .fields import Fields, read_spots

__all__ = ["Judgement", "Outcome", "differences", "mismatches", "read_expectation", "settled", "shared_names"]


#: Errors of silicon that hardware of ours does not have (``silicon/replay.py``), and the beginning of the others.
_OF_SILICON = ("refused by the driver", "no such instruction", "unfinished", "counted unevenly")
_FAILED = "failed: "
#: Numbers in error records.
_RECORDS = {PeError: ("instruction", "first", "last", "register"), ProgramError: ("tag",)}


class Outcome(NamedTuple):
    """The outcome of a case: its result record, and memories by name as uint8 arrays."""

    record: dict
    memories: dict

    @classmethod
    def of(cls, record, memories, **figures):
        """An outcome whose record goes on with the hashes of its memories and with ``figures``."""
        return cls(record | _hashes(memories) | figures, memories)


class Judgement(NamedTuple):
    """The outcome of a case on the golden model, and the parts that the specification leaves open.

    Attributes
    ----------
    outcome : Outcome
    open_bytes : dict of str to OpenBytes
        By the names of memories; other memories have no open byte.
    undecided : str or None
        A sentence on why other parts of the outcome depend on open bytes.
    """

    outcome: Outcome
    open_bytes: dict = MappingProxyType({})
    undecided: str | None = None

    @classmethod
    def of(cls, outcome, open_bytes):
        """A judgement with the reason of the first memory that has one."""
        return cls(outcome, open_bytes, next(filter(None, (memory.undecided for memory in open_bytes.values())), None))


def shared_names(cores):
    """Names of the shared memories of ``cores`` cores."""
    return [f"smem{core}" for core in range(cores)] if cores > 1 else ["smem"]


def read_expectation(fields, errors, sizes=None):
    """Reads the expected members of the result record of a case.

    The entry ``bytes`` has, for names of memories, a list of addresses and the bytes (uint8) there.

    Parameters
    ----------
    fields : Fields or None
        The member ``expect``.
    errors : enum
        ``Error``, ``PeError``, ``ConvError`` or ``ProgramError``.
    sizes : dict or None
        Sizes of the memories with expected bytes, for a case with one core.
    """
    if fields is None:
        return {}
    expect = {}
    if "error" in fields:
        expect["error"] = _read_error(fields, errors)
    if errors in _RECORDS and "record" in fields:
        expect["record"] = _read_record(fields, errors)
    if errors is ProgramError and "interrupt" in fields:
        expect["interrupt"] = fields.flag("interrupt")
    if "tx_bytes" in fields:
        expect["tx_bytes"] = fields.integers("tx_bytes", 0, 1 << 32)
    if "strides" in fields:
        expect["strides"] = fields.raw("strides")
    expect |= _read_memories(fields, sizes or {})
    fields.end()
    return expect


def mismatches(expect, outcome):
    """A sentence for each field, and for the first byte of each memory, that is not as expected."""
    sentences = [
        f"{field} is {outcome.record.get(field)}, not {value} as expected"
        for field, value in expect.items()
        if field != "bytes" and not _as_expected(field, outcome.record.get(field), value)
    ]
    for memory, spots in expect.get("bytes", {}).items():
        difference = _first_difference(outcome.memories[memory], spots)
        if difference:
            address, actual, value = difference
            sentences.append(f"{memory} at {address:#x} is {actual:#04x}, not {value:#04x} as expected")
    return sentences


def _as_expected(field, value, expected):
    """Whether a field of a record has the expected value; of hashes only the first digits may be expected."""
    if not field.endswith("sha256"):
        return value == expected
    pairs = list(zip_longest(*([listed] if isinstance(listed, str) else listed for listed in (value, expected))))
    return all(digest and first and digest.startswith(first) for digest, first in pairs)


def differences(outcome, golden, open_bytes=MappingProxyType({})):
    """A sentence for each field and each memory in which an outcome differs from golden's.

    ``open_bytes``, an OpenBytes for names of memories, may differ.
    """
    compared = [field for field in golden.record if not field.endswith("sha256")]
    fields = [field for field in compared if outcome.record[field] != golden.record[field]]
    sentences = [f"{field} is {outcome.record[field]}, not {golden.record[field]} as on golden" for field in fields]
    for memory, data in golden.memories.items():
        actual, allowed = outcome.memories[memory], open_bytes.get(memory)
        differing = (allowed.wrong(actual) if allowed else actual != data).nonzero()[0]
        if len(differing):
            sentences.append(f"{memory} differs from golden in {len(differing)} bytes, first at {differing[0]:#x}")
    return sentences


def settled(outcome, open_bytes):
    """The outcome with golden's values in all open bytes, and hashes of that."""
    memories = {name: marked.settled(outcome.memories[name]) for name, marked in open_bytes.items() if marked}
    if not memories:
        return outcome
    memories = outcome.memories | memories
    return Outcome(outcome.record | _hashes(memories), memories)


def _hashes(memories):
    """Members of a result record: a list for shared memories, and one for each other memory."""
    digests = {name: hashlib.sha256(memory).hexdigest() for name, memory in memories.items()}
    hashes = {"smem_sha256": [digest for name, digest in digests.items() if name.startswith("smem")]}
    return hashes | {f"{name}_sha256": digest for name, digest in digests.items() if not name.startswith("smem")}


def _first_difference(memory, spots):
    """Address, actual byte and expected byte of the first difference from ``spots``, or None."""
    for start, data in spots:
        differing = (memory[start : start + len(data)] != data).nonzero()[0]
        if len(differing):
            first = int(differing[0])
            return start + first, memory[start + first], data[first]
    return None


def _read_error(fields, errors):
    names = [error.name.lower() for error in errors if error]
    if errors is Error:
        names += [*(error.name.lower() for error in ClusterError), *_OF_SILICON]
        if str(fields.peek("error")).startswith(_FAILED):
            return fields.text("error")
    return fields.choice("error", [None, *names])


def _read_memories(fields, sizes):
    """Hashes of memories, of shared memory one for each core; and single bytes, for a case with one core."""
    expect, spots = {}, {}
    if "smem" in fields:
        entries = fields.raw("smem")
        entries = entries if isinstance(entries, list) else [entries]
        cores = [Fields(core, fields.case, fields.name("smem")) for core in entries]
        hashes = [_read_sha256(core) for core in cores]
        # A single core may omit the hash.
        expect |= {"smem_sha256": hashes} if hashes != [None] else {}
        spots["smem"] = _read_bytes(cores[0], sizes.get("smem")) if len(cores) == 1 else []
        for core in cores:
            core.end()
    for memory in ("gmem", "output"):
        if memory in fields:
            inner = fields.inner(memory)
            digest = _read_sha256(inner)
            expect |= {f"{memory}_sha256": digest} if digest else {}
            spots[memory] = _read_bytes(inner, sizes.get(memory))
            inner.end()
    spots = {memory: listed for memory, listed in spots.items() if listed}
    return expect | ({"bytes": spots} if spots else {})


def _read_sha256(fields):
    """The hash, or None if there are single bytes instead."""
    digest = fields.text("sha256", None) if fields.peek("bytes") else fields.text("sha256")
    if digest is None:
        return None
    if not 16 <= len(digest) <= 64 or set(digest) - set("0123456789abcdef"):
        raise fields.wrong("sha256", f"must be 16 to 64 lower-case hex digits, not {digest!r}")
    return digest


def _read_bytes(fields, size):
    """Addresses and bytes of a memory of ``size`` bytes; none if ``size`` is None."""
    return [] if size is None or "bytes" not in fields else read_spots(fields, "bytes", size)


def _read_record(fields, errors):
    """The error record of the processing engine or of a program, or None."""
    if fields.peek("record") is None:
        return fields.raw("record")
    inner = fields.inner("record")
    record = {name: inner.integer(name, 0, (1 << 32) - 1) for name in _RECORDS[errors]}
    if errors is ProgramError:
        record["engine"] = inner.choice("engine", [None, *list(names(Engine))[1:]])
        # null: hardware decides at which word an engine's error stops a program.
        record["word"] = inner.raw("word") if inner.peek("word") is None else inner.integer("word", 0, (1 << 32) - 1)
    inner.end()
    return record
