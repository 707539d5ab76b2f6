"""What comes out of a replay case, wherever it ran."""

import hashlib
from types import MappingProxyType
from typing import NamedTuple

from tilewright.spec import Error
from tilewright.spec.cluster import ClusterError
from tilewright.spec.core import Engine, ProgramError
from tilewright.spec.fields import names
from tilewright.spec.pe import PeError

from .contents import read_spots
from .fields import Fields

__all__ = ["Judgement", "Outcome", "differences", "mismatches", "read_expectation", "settled", "shared_names"]


class Outcome(NamedTuple):
    """What came out of a case: its result record (docs/replay.md, "Results"), and memories by name as uint8 arrays."""

    record: dict
    memories: dict


class Judgement(NamedTuple):
    """What golden makes of a case, and what the specification leaves open of that.

    Attributes
    ----------
    outcome : Outcome
    open_bytes : dict of str to OpenBytes
        By the names of memories; of those that are not there, no byte is open.
    undecided : str or None
        Why what comes out depends on open bytes in another way, as a sentence.
    """

    outcome: Outcome
    open_bytes: dict = MappingProxyType({})
    undecided: str | None = None

    @classmethod
    def of(cls, outcome, open_bytes):
        """With the reason that the first of the memories has, if one has."""
        return cls(outcome, open_bytes, next(filter(None, (held.undecided for held in open_bytes.values())), None))


def shared_names(cores):
    """Names of the shared memories of so many cores."""
    return [f"smem{core}" for core in range(cores)] if cores > 1 else ["smem"]


#: Errors of silicon that are none of ours (``silicon/replay.py``), and how the rest of them begins.
_OF_SILICON = ("refused by the driver", "no such instruction", "unfinished", "counted unevenly")
_FAILED = "failed: "

#: Numbers in error records, of those kinds that have one.
_RECORDS = {PeError: ("instruction", "first", "last", "register"), ProgramError: ("tag",)}


def read_expectation(fields, errors, sizes=None):
    """What must come out of a case, in the form of a result record; only what is expected.

    A further entry, ``bytes``, has by the name of a memory a list of addresses and the bytes (uint8) from there on.

    Parameters
    ----------
    fields : Fields or None
        The member ``expect``.
    errors : enum
        Errors that there are: of the TMAU, ``PeError``, ``ConvError`` or ``ProgramError``.
    sizes : dict or None
        Bytes of the memories of which single bytes may be expected, of a case of one core.
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
    """Sentences on every field in which an outcome is not what was expected, and on the first byte of each memory."""
    sentences = [
        f"{field} is {outcome.record.get(field)}, not {value} as expected"
        for field, value in expect.items()
        if field != "bytes" and outcome.record.get(field) != value
    ]
    for memory, spots in expect.get("bytes", {}).items():
        wrong = _first_difference(outcome.memories[memory], spots)
        if wrong:
            address, found, value = wrong
            sentences.append(f"{memory} at {address:#x} is {found:#04x}, not {value:#04x} as expected")
    return sentences


def differences(outcome, golden, open_bytes=MappingProxyType({})):
    """Sentences on how an outcome differs from golden's, with the first differing address of each memory.

    ``open_bytes`` are an OpenBytes by the name of a memory: what the specification leaves open may differ.
    """
    compared = [field for field in golden.record if not field.endswith("sha256")]
    fields = [field for field in compared if outcome.record[field] != golden.record[field]]
    sentences = [f"{field} is {outcome.record[field]}, not {golden.record[field]} as on golden" for field in fields]
    for memory, data in golden.memories.items():
        seen, held = outcome.memories[memory], open_bytes.get(memory)
        differing = (held.wrong(seen) if held else seen != data).nonzero()[0]
        if len(differing):
            sentences.append(f"{memory} differs from golden in {len(differing)} bytes, first at {differing[0]:#x}")
    return sentences


def settled(outcome, open_bytes):
    """An outcome in which bytes that the specification leaves open are as on golden, so that its hashes are too."""
    memories = {name: held.settled(outcome.memories[name]) for name, held in open_bytes.items() if held}
    record = dict(outcome.record)
    for name, memory in memories.items():
        digest = hashlib.sha256(memory).hexdigest()
        if name == "gmem":
            record["gmem_sha256"] = digest
        else:
            hashes = list(record["smem_sha256"])
            hashes[int(name.removeprefix("smem") or 0)] = digest
            record["smem_sha256"] = hashes
    return outcome._replace(record=record, memories={**outcome.memories, **memories})


def _first_difference(memory, spots):
    """Address, byte found and byte expected of the first spot that differs; None if none does."""
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
    """Hashes of memories, of shared memory one a core; and single bytes, of a case of one core."""
    expect, kept = {}, {}
    if "smem" in fields:
        listed = fields.raw("smem")
        cores = [Fields(core, fields.case, fields.name("smem")) for core in _as_list(listed)]
        hashes = [_read_sha256(core) for core in cores]
        # Of one core the hash may be left out.
        expect |= {"smem_sha256": hashes} if hashes != [None] else {}
        kept["smem"] = _read_bytes(cores[0], sizes.get("smem")) if len(cores) == 1 else []
        for core in cores:
            core.end()
    for memory in ("gmem", "output"):
        if memory in fields:
            inner = fields.inner(memory)
            digest = _read_sha256(inner)
            expect |= {f"{memory}_sha256": digest} if digest else {}
            kept[memory] = _read_bytes(inner, sizes.get(memory))
            inner.end()
    kept = {memory: spots for memory, spots in kept.items() if spots}
    return expect | ({"bytes": kept} if kept else {})


def _as_list(value):
    return value if isinstance(value, list) else [value]


def _read_sha256(fields):
    """The hash, or None where single bytes stand in its place."""
    digest = fields.text("sha256", None) if fields.peek("bytes") else fields.text("sha256")
    if digest is None:
        return None
    if len(digest) != 64 or set(digest) - set("0123456789abcdef"):
        raise fields.wrong("sha256", f"must be 64 lower-case hex digits, not {digest!r}")
    return digest


def _read_bytes(fields, size):
    """Spots of a memory of ``size`` bytes; none where nothing is known of its size."""
    return [] if size is None or "bytes" not in fields else read_spots(fields, "bytes", size)


def _read_record(fields, errors):
    """An error record of the processing engine, or of a program; or None."""
    if fields.peek("record") is None:
        return fields.raw("record")
    inner = fields.inner("record")
    record = {name: inner.integer(name, 0, (1 << 32) - 1) for name in _RECORDS[errors]}
    if errors is ProgramError:
        record["engine"] = inner.choice("engine", [None, *list(names(Engine))[1:]])
        # Where a program stops for an engine's error is hardware's.
        record["word"] = inner.raw("word") if inner.peek("word") is None else inner.integer("word", 0, (1 << 32) - 1)
    inner.end()
    return record
