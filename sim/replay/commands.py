"""Commands of replay cases (docs/replay.md, "Commands"), read and written; they may break rules of hardware."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from tilewright.golden import CommandError, TensorMap, limits
from tilewright.golden.tmau.descriptor import check_word
from tilewright.golden.tmau.tile import footprint
from tilewright.spec import (
    BARRIER,
    BLOCK,
    COMMAND,
    DESCRIPTOR,
    FORMATS,
    GROUP,
    LANES,
    REPLACE,
    TENSOR_OPCODES,
    Element,
    LaneLayout,
    Mode,
    Opcode,
    Space,
)
from tilewright.spec.fields import names, spoken
from tilewright.spec.tmau import REDUCTIONS
from tilewright.spec.tmau_registers import FEATURES, own_tag_bits

from .fields import REQUIRED

__all__ = ["CaseOp", "Command", "command_entry", "lane_fields", "needed_words", "read_command", "shared_reach"]


class CaseOp(IntEnum):
    """Operations of a case that are not commands of a TMAU; no ``Opcode`` has these numbers."""

    ARRIVE = 256  #: several cores arrive at a barrier of one core, each once


@dataclass(frozen=True)
class Command:
    """One entry of ``commands``.

    Attributes
    ----------
    opcode : Opcode or CaseOp
    map : str
        Name of the descriptor; empty if there is none.
    fields : dict
        Of the command's format, without opcode and descriptor; with a tag that names the processor, if there are
        several.
    repeat, step : int
        Number of issues, and bytes of shared memory between two issues.
    wait : bool
        Whether it starts only after the previous command is complete (not ``async``).
    core : int
        The core that issues it; of ARRIVE, the core of the barrier.
    receivers : int or None
        Mask of the cores that receive its data; None: the issuer.
    source_core : int or None
        The core whose shared memory it copies from; None: the issuer.
    """

    opcode: Opcode
    map: str = ""
    fields: dict = field(default_factory=dict)
    repeat: int = 1
    step: int = 0
    wait: bool = True
    core: int = 0
    receivers: int | None = None
    source_core: int | None = None

    @property
    def issues(self):
        """The fields of each issue."""
        if "smem" not in self.fields:
            return [self.fields] * self.repeat
        return [self.fields | {"smem": self.fields["smem"] + self.step * issue} for issue in range(self.repeat)]


def read_command(fields, maps, cores, processors=1):
    """A :class:`Command` on one of ``maps``, a dictionary of ``MapSpec``, from one of the cores and processors."""
    known = {opcode.name.lower(): opcode for opcode in _MEMBERS if opcode != CaseOp.ARRIVE or cores > 1}
    opcode = known[fields.choice("op", list(known))]
    options, tmap, values = {}, None, {}
    if opcode in _ON_MAPS:
        options["map"] = fields.choice("map", list(maps))
        spec = maps[options["map"]]
        tmap = spec.tmap
        if opcode == Opcode.REPLACE and spec.at is None:
            raise fields.wrong("map", f"must have a descriptor in gmem (at): {options['map']} has none")
    for member in _MEMBERS[opcode]:
        member.read(fields, values, tmap)
    if values.get("arriving", 0) >> cores:
        raise fields.wrong("from", f"must name some of the {cores} cores, not {values['arriving']:#x}")
    if "smem" in values:
        options |= _read_repetition(fields, values["smem"])
    options |= _read_cores(fields, opcode, values, cores)
    if processors > 1:
        values["tag"] = fields.integer("processor", 0, processors - 1, 0) << own_tag_bits(processors)
    command = Command(opcode, fields=values, wait=not fields.flag("async", False), **options)
    fields.end()
    return command


def _read_cores(fields, opcode, values, cores):
    """The issuer of a command, and cores whose shared memories it uses; a mask may name cores that do not exist."""
    issuer = fields.integer("core", 0, cores - 1, 0)
    source, destination = (values.pop(f"{side}_core", None) for side in ("source", "destination"))
    for core in (source, destination):
        if core is not None and core >= cores:
            raise fields.wrong("", f"must name one of the {cores} cores, not {core}")
    receivers = None
    if opcode in (Opcode.LOAD, Opcode.COPY_BLOCK):
        receivers = fields.integer("multicast", 0, (1 << 16) - 1, None)
    if destination is not None:
        if receivers is not None:
            raise fields.wrong("multicast", "must be omitted if dst names a core")
        receivers = None if destination == issuer else 1 << destination
    return {"core": issuer, "receivers": receivers, "source_core": None if source == issuer else source}


def command_entry(opcode, fields, tmap=None):
    """The entry of a command without ``map`` and the way it is issued; ValueError if a case cannot have it."""
    values = FORMATS[opcode].unpack(0) | fields
    entry = {"op": Opcode(opcode).name.lower()}
    for member in _MEMBERS[opcode]:
        entry |= member.write(values, tmap)
    return entry


def lane_fields(fields, shape):
    """The fields of a LANES command on a tensor of ``shape``, W H C N."""
    values = {"shape": shape}
    for member in _LANES:
        member.read(fields, values, None)
    return values


def _read_repetition(fields, first):
    repeat = fields.integer("repeat", 1, 1 << 20, 1)
    step = fields.integer("smem_step", 0, (1 << 32) - 1, 0)
    if first + (repeat - 1) * step >= 1 << 32:
        raise fields.wrong("smem_step", f"must keep addresses below 2^32, not {step} times {repeat - 1}")
    return {"repeat": repeat, "step": step}


class _Member(NamedTuple):
    """A member of an entry for one field: ``take`` reads its value, and ``give`` returns the JSON of a value."""

    name: str
    key: str
    take: Callable
    give: Callable = int

    def read(self, fields, values, tmap):
        values[self.name] = self.take(fields, self.key)

    def write(self, values, tmap):
        return {self.key: self.give(values[self.name])}


def _number(fmt, name, key=None, default=REQUIRED):
    return _Member(name, key or name, lambda fields, key: fields.integer(key, *fmt[name].range, default))


def _flag(name):
    return _Member(name, name, lambda fields, key: int(fields.flag(key, False)), bool)


def _choice(name, known, key=None):
    written = {value: spelling for spelling, value in known.items()}

    def give(value):
        if value not in written:
            raise ValueError(f"{name} {value} has no name")
        return written[value]

    return _Member(name, key or name, lambda fields, key: known[fields.choice(key, list(known))], give)


def _power_of_two(fields, key):
    number = fields.integer(key, 1, 1 << 15)
    if number & number - 1:
        raise fields.wrong(key, f"must be a power of two, not {number}")
    return number.bit_length() - 1


def _shape(fields, key):
    shape = fields.integers(key, *LANES[key].range)
    if len(shape) != LANES[key].count:
        raise fields.wrong(key, f"must have 4 entries, W H C N, not {len(shape)}")
    return shape


class _Coords:
    """Coordinates, and offsets if the map is of im2col mode."""

    def read(self, fields, values, tmap):
        values["coords"] = coords = fields.integers("coords", *COMMAND["coords"].range)
        if not tmap.rank <= len(coords) <= max(tmap.rank, 5):
            raise fields.wrong("coords", f"must have the {tmap.rank} entries of the map, not {len(coords)}")
        if tmap.mode == Mode.IM2COL:
            values["offsets"] = offsets = fields.integers("offsets", *COMMAND["offsets"].range, [])
            if len(offsets) > COMMAND["offsets"].count:
                raise fields.wrong("offsets", f"must have at most 3 entries, not {len(offsets)}")

    def write(self, values, tmap):
        entry = {"coords": list(values["coords"])}
        return entry | ({"offsets": list(values["offsets"])} if tmap.mode == Mode.IM2COL else {})


class _Shared:
    """The address in shared memory of a store, which may be omitted with ``fill``."""

    def read(self, fields, values, tmap):
        _number(COMMAND, "smem", default=0 if values["fill"] else REQUIRED).read(fields, values, tmap)

    def write(self, values, tmap):
        return {"smem": values["smem"]}


class _Place:
    """``["global", address]`` or ``["shared", address]``, with or without a core."""

    def __init__(self, key, side):
        self._key, self._side = key, side

    def read(self, fields, values, tmap):
        key, place = self._key, fields.listed(self._key)
        if len(place) not in (2, 3) or place[0] not in ("global", "shared"):
            raise fields.wrong(key, 'must be ["global", address] or ["shared", address] with or without a core')
        for index, entry in enumerate(place[1:], 1):
            fields.check_integer(f"{key}[{index}]", entry, *(BLOCK[self._side].range if index == 1 else (0, 15)))
        values |= {self._side: place[1], f"{self._side}_space": Space[place[0].upper()]}
        values |= {f"{self._side}_core": core for core in place[2:]}

    def write(self, values, tmap):
        return {self._key: [spoken(Space(values[f"{self._side}_space"])), values[self._side]]}


class _Reduced:
    """A reduction of a block and its element type, or neither."""

    def read(self, fields, values, tmap):
        if "reduce" in fields:
            _REDUCE.read(fields, values, tmap)
            _ELEMENT.read(fields, values, tmap)

    def write(self, values, tmap):
        return _REDUCE.write(values, tmap) | _ELEMENT.write(values, tmap) if values["reduction"] else {}


class _LaneSide:
    """An object with address, layout and lane."""

    def __init__(self, key, side):
        self._key = key
        self._members = (
            _number(LANES, side, "address"),
            _choice(f"{side}_layout", names(LaneLayout), "layout"),
            _number(LANES, f"{side}_lane", "lane", 0),
        )

    def read(self, fields, values, tmap):
        inner = fields.inner(self._key)
        for member in self._members:
            member.read(inner, values, tmap)
        inner.end()

    def write(self, values, tmap):
        entry = {}
        for member in self._members:
            entry |= member.write(values, tmap)
        return {self._key: entry}


_REDUCE = _choice("reduction", REDUCTIONS, "reduce")
_FIELD = _choice("field", {field.name: number for number, field in enumerate(DESCRIPTOR.fields)})
_ELEMENT = _choice("element", names(Element))
_LANES = (
    _ELEMENT,
    _Member("lanes_log2", "lanes", _power_of_two, lambda value: 1 << value),
    _Member("eu_log2", "eu_bytes", _power_of_two, lambda value: 1 << value),
    _LaneSide("src", "source"),
    _LaneSide("dst", "destination"),
)

_STORED = (_flag("fill"), _Shared())

#: Members of a command except the name of a map; each reads values from an entry and writes them.
_MEMBERS = {
    Opcode.LOAD: (_Coords(), _number(COMMAND, "smem")),
    Opcode.STORE: (_Coords(), *_STORED),
    Opcode.REDUCE: (_Coords(), _REDUCE, *_STORED),
    Opcode.PREFETCH: (_Coords(),),
    Opcode.COPY_BLOCK: (_Place("src", "source"), _Place("dst", "destination"), _number(BLOCK, "size"), _Reduced()),
    Opcode.PREFETCH_BLOCK: (_number(BLOCK, "source", "src"), _number(BLOCK, "size")),
    Opcode.COMMIT: (),
    Opcode.WAIT: (_number(GROUP, "count"), _flag("read")),
    Opcode.WAIT_ALL: (),
    Opcode.INVALIDATE_ALL: (),
    Opcode.INVALIDATE: (),
    Opcode.REPLACE: (_FIELD, _number(REPLACE, "index", default=0), _number(REPLACE, "value")),
    Opcode.LANES: (_Member("shape", "shape", _shape, list), *_LANES),
    CaseOp.ARRIVE: (
        _Member("arriving", "from", lambda fields, key: fields.integer(key, 1, (1 << 16) - 1)),
        _Member("expected", "expected", lambda fields, key: fields.integer(key, 1, BARRIER["expected"].range[1])),
        _Member("value", "value", lambda fields, key: fields.integer(key, 0, BARRIER["expected"].range[1])),
    ),
}
_ON_MAPS = (*TENSOR_OPCODES, Opcode.INVALIDATE, Opcode.REPLACE)


def needed_words(opcode, tmap, fields, bus_bytes, addr_width):
    """The pair of distinct bus words that a command must read and must write; none for a refused command.

    Parameters
    ----------
    opcode : Opcode
    tmap : TensorMap or None
        For a command on a tensor.
    fields : dict
        Of the command; omitted fields are zero.
    bus_bytes, addr_width : int
        Of the hardware.
    """
    if opcode in (Opcode.LOAD, Opcode.STORE, Opcode.REDUCE):
        offsets = fields.get("offsets", ())
        coords = fields["coords"][: tmap.rank]
        try:
            words = limits(tmap, coords, bus_bytes, fields.get("smem", 0), addr_width, offsets).words
        except CommandError:
            return 0, 0
        return words * (opcode != Opcode.STORE), words * (opcode != Opcode.LOAD)
    if opcode == Opcode.LANES:
        size = math.prod(fields["shape"]) * fields["element"].bytes
        return tuple(
            _words(fields[side], size, bus_bytes) * (fields[f"{side}_layout"] == LaneLayout.GLOBAL)
            for side in ("source", "destination")
        )
    if opcode == Opcode.COPY_BLOCK:
        reads, writes = (_span(fields, side, bus_bytes) for side in ("source", "destination"))
        return reads + writes * bool(fields.get("reduction")), writes
    return 0, 0


def _span(fields, side, bus_bytes):
    """Bus words of one side of a block, which are none in shared memory."""
    if fields[f"{side}_space"] == Space.SHARED or not fields["size"]:
        return 0
    return _words(fields[side], fields["size"], bus_bytes)


def _words(first, size, bus_bytes):
    return (first + size - 1) // bus_bytes - first // bus_bytes + 1


def shared_reach(case):
    """The end of the shared memory that the commands of a case use; infinite if they depend on its size."""
    reach, words = 0, {name: spec.word for name, spec in case.maps.items()}
    for command in case.commands:
        if command.opcode == Opcode.LANES:
            return math.inf
        for fields in command.issues:
            if command.opcode == Opcode.REPLACE:
                words[command.map] = _replaced(words[command.map], **fields)
            size = _footprint(words[command.map]) if "smem" in fields else None
            if size is not None:
                reach = max(reach, fields["smem"] + size)
            if command.opcode == Opcode.COPY_BLOCK:
                shared = [fields[side] for side in ("source", "destination") if fields[f"{side}_space"] == Space.SHARED]
                reach = max(reach, fields["size"] + max(shared, default=0))
    return reach


def _replaced(word, field, index, value, **_):
    """A descriptor, an int, with another value in a field; unchanged if the field does not exist."""
    if field >= len(DESCRIPTOR.fields) or index >= len(DESCRIPTOR.fields[field].lsbs):
        return word
    lsb, width = DESCRIPTOR.fields[field].lsbs[index], DESCRIPTOR.fields[field].width
    return word if value >> width else word & ~((1 << width) - 1 << lsb) | value << lsb


def _footprint(word):
    """Bytes of shared memory for a command on a descriptor; None if it is refused."""
    if word is None or check_word(word, tuple(FEATURES)):
        return None
    return footprint(TensorMap.unpack(word.to_bytes(DESCRIPTOR.bytes, "little")))
