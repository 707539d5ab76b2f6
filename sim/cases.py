"""Replay cases (replay.md): a JSON file, read strictly and as a whole before anything runs."""

import json
from dataclasses import dataclass
from pathlib import Path

from tilewright.golden.patterns import fill_pattern, mix_pattern
from tilewright.golden.spec import Error, Mode
from tilewright.golden.tmau.descriptor import unsupported

from .case_maps import read_map
from .fields import Fields
from .images import MemoryImage, read_image
from .usage import UsageError

__all__ = ["Case", "Command", "read_cases"]

_ERRORS = [error.name.lower() for error in Error if error]
_REDUCTIONS = ("add", "min", "max", "inc", "dec", "and", "or", "xor")
#: Kinds that cannot run yet: required and optional fields. None where the format leaves them open.
_OTHER_KINDS = {
    "gemm": (("type", "m", "n", "k", "a", "b"), ("t", "ka", "kb")),
    "conv": (("type", "x", "k", "stride", "pad", "dilation", "x_init", "k_init"), ("post",)),
    "program": (("program",), ("segments", "registers", "gmem", "smem")),
    "lanes": None,
    "align": None,
}


@dataclass(frozen=True)
class Command:
    """One entry of ``commands``. For operations that cannot run yet, only ``op`` is meaningful.

    Attributes
    ----------
    op, map : str
    coords : tuple of int
        As many as the rank of the map, or more.
    addresses : tuple of int
        Destination of each issue: one, or ``repeat`` of them.
    wait : bool
        Whether it starts only after the one before is complete (not ``async``).
    multicast : int or None
    """

    op: str
    map: str = ""
    coords: tuple = ()
    addresses: tuple = ()
    wait: bool = True
    multicast: int | None = None


@dataclass(frozen=True)
class Case:
    """One case. ``skip`` is the reason why it cannot run yet, or None; memories, maps and commands are of kind tmau."""

    name: str
    kind: str
    expect: dict
    skip: str | None
    gmem: MemoryImage | None = None
    smem: MemoryImage | None = None
    maps: dict | None = None
    commands: tuple = ()


def read_cases(path):
    """All cases of a file, as a list of :class:`Case`; UsageError if anything in it is not valid."""
    path = Path(path)
    try:
        document = json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=_without_repetition)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: is not JSON: {error}") from None
    fields = Fields(document, f"{path.name}")
    fields.integer("version", 1, 1)
    entries = fields.listed("cases")
    fields.end()
    cases = [_read_case(entry, index, path.parent) for index, entry in enumerate(entries)]
    names = set()
    for case in cases:
        if case.name in names:
            raise UsageError(f"case {case.name!r}: name must be used once in a file")
        names.add(case.name)
    return cases


def _without_repetition(pairs):
    document = dict(pairs)
    if len(document) != len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{repeated!r} is given twice")
    return document


def _read_case(entry, index, folder):
    fields = Fields(entry, f"case {index}")
    name = fields.text("name")
    fields.case = f"case {name!r}"
    fields.text("why", "")
    kind = fields.choice("kind", ["tmau", *_OTHER_KINDS])
    expect = _read_expect(fields.inner("expect", None))
    if kind != "tmau":
        _check_other_kind(fields, kind)
        return Case(name, kind, expect, f"kind {kind} is not supported yet")
    gmem = read_image(fields.inner("gmem"), 1 << 32, (mix_pattern, 0), folder)
    smem = read_image(fields.inner("smem"), 1 << 20, (fill_pattern, 205), folder)
    cores = fields.integer("cores", 1, 16, 1)
    listed = fields.inner("maps")
    maps = {map_name: read_map(listed.inner(map_name)) for map_name in listed.rest()}
    commands = []
    for position, command in enumerate(fields.listed("commands")):
        commands.append(_read_command(Fields(command, fields.case, f"commands[{position}]"), maps))
    fields.end()
    return Case(name, kind, expect, _why_skipped(cores, maps, commands), gmem, smem, maps, tuple(commands))


def _check_other_kind(fields, kind):
    if _OTHER_KINDS[kind] is None:
        return
    required, optional = _OTHER_KINDS[kind]
    for field in required:
        fields.raw(field)
    for field in optional:
        fields.raw(field, None)
    fields.end()


def _read_command(fields, maps):
    op = fields.choice("op", ["load", "store", "reduce", "prefetch", "copy_block"])
    command = _read_copy(fields) if op == "copy_block" else _read_tensor_command(fields, op, maps)
    fields.end()
    return command


def _read_tensor_command(fields, op, maps):
    map_name = fields.choice("map", list(maps))
    tmap = maps[map_name].tmap
    coords = fields.integers("coords", -(1 << 31), (1 << 31) - 1)
    if not tmap.rank <= len(coords) <= max(tmap.rank, 5):
        raise fields.wrong("coords", f"must have the {tmap.rank} entries of the map, not {len(coords)}")
    if tmap.mode == Mode.IM2COL:
        fields.integers("offsets", 0, (1 << 16) - 1, [])
    if op == "reduce":
        fields.choice("reduce", _REDUCTIONS)
    wait = not fields.flag("async", False)
    multicast = fields.integer("multicast", 0, (1 << 16) - 1, None)
    if op == "prefetch":
        return Command(op, map_name, tuple(coords), (), wait, multicast)
    first = fields.integer("smem", 0, (1 << 32) - 1)
    repeat = fields.integer("repeat", 1, 1 << 20, 1)
    step = fields.integer("smem_step", 0, (1 << 32) - 1, 0)
    if first + (repeat - 1) * step >= 1 << 32:
        raise fields.wrong("smem_step", f"must keep addresses below 2^32, not {step} times {repeat - 1}")
    addresses = tuple(first + step * issue for issue in range(repeat))
    return Command(op, map_name, tuple(coords), addresses, wait, multicast)


def _read_copy(fields):
    for side in ("src", "dst"):
        place = fields.listed(side)
        if len(place) not in (2, 3) or place[0] not in ("global", "shared"):
            raise fields.wrong(side, 'must be ["global", address] or ["shared", address] with or without a core')
        for index, entry in enumerate(place[1:], 1):
            fields.check_integer(f"{side}[{index}]", entry, 0, (1 << 64) - 1)
    fields.integer("size", 0, (1 << 32) - 1)
    fields.choice("reduce", _REDUCTIONS, None)
    return Command("copy_block", wait=not fields.flag("async", False))


def _why_skipped(cores, maps, commands):
    """Why a valid case cannot run yet, as a sentence, or None."""
    if cores > 1:
        return "a case of several cores is not supported yet"
    for command in commands:
        if command.op != "load":
            return f"op {command.op} is not supported yet"
        if command.multicast is not None:
            return "multicast is not supported yet"
        for violation in unsupported(maps[command.map].tmap):
            return violation.sentence
    return None


def _read_expect(fields):
    """What must come out, in the form of a result record; only what is expected."""
    if fields is None:
        return {}
    expect = {}
    if "error" in fields:
        expect["error"] = fields.choice("error", [None, *_ERRORS])
    if "tx_bytes" in fields:
        expect["tx_bytes"] = fields.integers("tx_bytes", 0, 1 << 32)
    if "smem" in fields:
        listed = fields.raw("smem")
        cores = listed if isinstance(listed, list) else [listed]
        expect["smem_sha256"] = [_read_sha256(Fields(core, fields.case, fields.name("smem"))) for core in cores]
    for memory in ("gmem", "output"):
        if memory in fields:
            expect[f"{memory}_sha256"] = _read_sha256(fields.inner(memory))
    fields.end()
    return expect


def _read_sha256(fields):
    digest = fields.text("sha256")
    if len(digest) != 64 or set(digest) - set("0123456789abcdef"):
        raise fields.wrong("sha256", f"must be 64 lower-case hex digits, not {digest!r}")
    fields.end()
    return digest
