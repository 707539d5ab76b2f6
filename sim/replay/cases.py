"""Files of replay cases, and cases of the kinds tmau, lanes and align (docs/replay.md)."""

import json
import lzma
import re
import reprlib
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from tilewright.errors import UsageError
from tilewright.golden import Windows, align
from tilewright.golden.memory import fill_pattern, mix_pattern
from tilewright.golden.tmau.align import Operator, Padding
from tilewright.golden.tmau.lanes import lane_strides
from tilewright.spec import BARRIER, LANES, Element, Error, LaneLayout, Opcode
from tilewright.spec.fields import names

from .commands import CaseOp, Command, lane_fields, read_command
from .conv_cases import read_conv_case
from .fields import Fields, MemoryImage, read_image
from .maps import MapSpec, read_placed_map, read_processors, read_windows, with_maps
from .outcome import read_expectation

__all__ = ["ENGINE_KINDS", "PE_KINDS", "Case", "cases_of", "read_cases", "read_document"]

#: Kinds of the processing engine. Their module and the module of kind core need more than numpy and are imported for
#: such cases.
PE_KINDS = ("program", "kernel", "gemm")
#: Kinds of cases without commands of the TMAU.
ENGINE_KINDS = (*PE_KINDS, "conv", "core")
#: Most bytes of shared memory for a part of a copy with padding.
_BOX_BYTES = 16384
#: Control characters and surrogates: names are printed, and are parts of file names.
_UNFIT = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")


@dataclass(frozen=True)
class Case:
    """A case of kind tmau, or the commands of one of kind lanes or align.

    ``processors`` are the windows of each processor, if several share the unit. ``strides`` is part of the result of
    the kinds lanes and align, and otherwise None. ``why`` is the description of a case of kind tmau.
    """

    name: str
    kind: str
    expect: dict
    gmem: MemoryImage
    smem: MemoryImage
    maps: dict
    commands: tuple
    windows: Windows
    strides: dict | list | None = None
    why: str = ""
    cores: int = 1
    processors: tuple[Windows, ...] = ()

    def global_contents(self):
        """Global memory at the start with its descriptors, a new uint8 array."""
        return with_maps(self.gmem.contents(), self.maps)

    def issues(self):
        """Every issue in order: command, its MapSpec or None, fields, and the error with which software refuses it."""
        for command in self.commands:
            spec = self.maps.get(command.map)
            refused = spec.refused if spec and spec.word is None else None
            yield from ((command, spec, fields, refused) for fields in command.issues)


def read_cases(path):
    """All cases of a file, each a :class:`Case` or a case of another engine; UsageError if one is invalid."""
    path = Path(path)
    return cases_of(read_document(path), path.name, path.parent)


def read_document(path):
    """The contents of a file of JSON, or of JSON compressed by xz; UsageError for others."""
    try:
        raw = path.read_bytes()
        text = lzma.decompress(raw) if path.suffix == ".xz" else raw
        return json.loads(text.decode("utf-8"), object_pairs_hook=_without_repetition)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    except lzma.LZMAError as error:
        raise UsageError(f"{path}: is not compressed by xz: {error}") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: is not JSON: {error}") from None


def cases_of(document, name, folder):
    """The cases of a document from the file ``name`` in ``folder``."""
    fields = Fields(document, name)
    fields.integer("version", 1, 1)
    _check_silicon(fields.inner("silicon", None))
    entries = fields.listed("cases")
    fields.end()
    cases = [_read_case(entry, index, folder) for index, entry in enumerate(entries)]
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


def _check_silicon(fields):
    """Checks the member ``silicon`` of a capture: where and when its expectations were measured."""
    if fields is not None:
        for name in ("gpu", "driver", "cuda", "date"):
            fields.text(name)
        fields.end()


def _read_case(entry, index, folder):
    fields = Fields(entry, f"case {index}")
    name = fields.text("name")
    if _UNFIT.search(name):
        raise fields.wrong("name", f"must be text without control characters, not {reprlib.repr(name)}")
    fields.case = f"case {name!r}"
    why = fields.text("why", "")
    kind = fields.choice("kind", ["tmau", *_LAYOUT_KINDS, *ENGINE_KINDS])
    expect = fields.inner("expect", None)
    if kind == "conv":
        return read_conv_case(fields, name, expect, folder)
    if kind == "core":
        return import_module("tilewright.sim.replay.core_cases").read_core_case(fields, name, expect, folder)
    if kind in PE_KINDS:
        read_pe_case = import_module("tilewright.sim.replay.pe_cases").read_pe_case
        return read_pe_case(fields, name, kind, expect, folder)
    gmem = read_image(fields.inner("gmem"), 1 << 32, (mix_pattern, 0), folder)
    smem = read_image(fields.inner("smem"), 1 << 20, (fill_pattern, 205), folder)
    expect = read_expectation(expect, Error, {"gmem": gmem.size, "smem": smem.size})
    if kind in _LAYOUT_KINDS:
        layout = _LAYOUT_KINDS[kind](fields, smem.size)
        fields.end()
        return Case(name, kind, expect, gmem, smem, layout.maps, layout.commands, Windows(), layout.strides)
    cores = fields.integer("cores", 1, 16, 1)
    windows = read_windows(fields.inner("windows", None))
    processors = read_processors(fields)
    listed = fields.inner("maps")
    maps = {
        map_name: read_placed_map(listed.inner(map_name), gmem.size, windows, *processors)
        for map_name in listed.remaining()
    }
    commands = [
        read_command(Fields(command, fields.case, f"commands[{position}]"), maps, cores, len(processors))
        for position, command in enumerate(fields.listed("commands"))
    ]
    fields.end()
    if smem.size < BARRIER.bytes and any(command.opcode == CaseOp.ARRIVE for command in commands):
        raise fields.wrong("smem.bytes", f"must be at least {BARRIER.bytes} for a barrier, not {smem.size}")
    return Case(
        name, kind, expect, gmem, smem, maps, tuple(commands), windows, why=why, cores=cores, processors=processors
    )


class _Layout(NamedTuple):
    """Maps and commands for a case of kind lanes or align, and strides for its result."""

    maps: dict
    commands: tuple
    strides: dict | list


def _read_lanes(fields, smem_bytes):
    """One LANES command, and the strides of both sides in bytes.

    Fields are those of the command ``lanes``, but ``shape`` is N, C, H, W as on the page.
    """
    values = lane_fields(fields, _shape(fields)[::-1])
    sides = {}
    for side in ("source", "destination"):
        strides = lane_strides(
            values["shape"], Element(values["element"]).bytes, values[f"{side}_lane"], 1 << values["lanes_log2"],
            1 << values["eu_log2"], LaneLayout(values[f"{side}_layout"]),
        )  # fmt: skip
        sides[side] = strides._asdict()
    return _Layout({}, (Command(Opcode.LANES, fields=values),), sides)


def _read_align(fields, smem_bytes):
    """A load and a store for each box, in either direction; strides of the padded tensor in bytes, outermost first."""
    values = {"shape": tuple(_shape(fields)), "element": fields.choice("element", list(names(Element)))}
    values["operator"] = fields.choice("operator", [operator.value for operator in Operator])
    values["granularity"] = fields.integer("granularity", 1, 4096)
    values["padding"] = fields.choice("padding", [padding.value for padding in Padding], Padding.ZERO.value)
    for name in ("source", "target"):
        values[name] = fields.integer(name, 0, (1 << 32) - 1)
    back = fields.flag("back", False)
    try:
        alignment = align(**values, box_bytes=min(_BOX_BYTES, smem_bytes))
    except ValueError as error:
        raise UsageError(f"{fields.case}: {error}") from None
    maps = {
        name: MapSpec(tmap, int.from_bytes(tmap.pack(), "little"), None, None)
        for name, tmap in (("source", alignment.source), ("target", alignment.target))
    }
    ends = ("target", "source") if back else ("source", "target")
    commands = [
        Command(opcode, name, {"coords": list(start), "smem": 0})
        for start in alignment.starts
        for opcode, name in zip((Opcode.LOAD, Opcode.STORE), ends, strict=True)
    ]
    return _Layout(maps, tuple(commands), list(alignment.strides))


def _shape(fields):
    shape = fields.integers("shape", *LANES["shape"].range)
    if len(shape) != LANES["shape"].count:
        raise fields.wrong("shape", f"must have 4 entries, N C H W, not {len(shape)}")
    return shape


#: Kinds that stand for commands of a TMAU.
_LAYOUT_KINDS = {"lanes": _read_lanes, "align": _read_align}
