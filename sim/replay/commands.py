"""Commands of replay cases: read strictly as to kinds and names, but free to break the rules.

Specification: docs/replay.md, "Commands".
"""

from dataclasses import dataclass, field

from tilewright.golden.spec import (
    BLOCK,
    COMMAND,
    DESCRIPTOR,
    GROUP,
    LANES,
    REPLACE,
    Element,
    LaneLayout,
    Mode,
    Opcode,
    Reduction,
    Space,
)
from tilewright.golden.spec.fields import spoken

from .fields import REQUIRED

__all__ = ["Command", "lane_fields", "read_command"]

_REDUCTIONS = {op.name.lower(): op for op in Reduction if op}
_LAYOUTS = {layout.name.lower(): layout for layout in LaneLayout}
_ELEMENTS = {spoken(element): element for element in Element}


@dataclass(frozen=True)
class Command:
    """One entry of ``commands``.

    Attributes
    ----------
    opcode : Opcode
    map : str
        Name of the descriptor; empty if there is none.
    fields : dict
        Of the command's format; opcode and descriptor apart.
    repeat, step : int
        How often it is issued, and bytes of shared memory from one issue to the next.
    wait : bool
        Whether it starts only after the one before is complete (not ``async``).
    multicast : int or None
    core : int
        The last one that it names.
    """

    opcode: Opcode
    map: str = ""
    fields: dict = field(default_factory=dict)
    repeat: int = 1
    step: int = 0
    wait: bool = True
    multicast: int | None = None
    core: int = 0

    @property
    def issues(self):
        """The fields of each issue."""
        if "smem" not in self.fields:
            return [self.fields] * self.repeat
        return [self.fields | {"smem": self.fields["smem"] + self.step * issue} for issue in range(self.repeat)]


def read_command(fields, maps, cores):
    """A :class:`Command` on one of ``maps``, a dictionary of ``MapSpec``, and on one of so many cores."""
    op = fields.choice("op", list(_READERS))
    command = _READERS[op](fields, Opcode[op.upper()], maps)
    fields.end()
    if command.core >= cores:
        raise fields.wrong("", f"must name one of the {cores} cores, not {command.core}")
    return command


def _read_tensor(fields, opcode, maps):
    name, tmap = _read_map(fields, maps)
    coords = fields.integers("coords", *COMMAND["coords"].range)
    if not tmap.rank <= len(coords) <= max(tmap.rank, 5):
        raise fields.wrong("coords", f"must have the {tmap.rank} entries of the map, not {len(coords)}")
    values = {"coords": coords}
    if tmap.mode == Mode.IM2COL:
        values["offsets"] = fields.integers("offsets", *COMMAND["offsets"].range, [])
        if len(values["offsets"]) > COMMAND["offsets"].count:
            raise fields.wrong("offsets", f"must have at most 3 entries, not {len(values['offsets'])}")
    if opcode == Opcode.REDUCE:
        values["reduction"] = _REDUCTIONS[fields.choice("reduce", list(_REDUCTIONS))]
    if opcode in (Opcode.STORE, Opcode.REDUCE):
        values["fill"] = int(fields.flag("fill", False))
    options = {"wait": _read_wait(fields), "multicast": fields.integer("multicast", 0, (1 << 16) - 1, None)}
    if opcode != Opcode.PREFETCH:
        options |= _read_destinations(fields, values)
    return Command(opcode, name, values, **options)


def _read_destinations(fields, values):
    """Puts the address in shared memory into ``values``; returns how it goes on from there."""
    first = fields.integer("smem", 0, (1 << 32) - 1, 0 if values.get("fill") else REQUIRED)
    repeat = fields.integer("repeat", 1, 1 << 20, 1)
    step = fields.integer("smem_step", 0, (1 << 32) - 1, 0)
    if first + (repeat - 1) * step >= 1 << 32:
        raise fields.wrong("smem_step", f"must keep addresses below 2^32, not {step} times {repeat - 1}")
    values["smem"] = first
    return {"repeat": repeat, "step": step}


def _read_block(fields, opcode, _maps):
    source, source_core = _read_place(fields, "src", "source")
    destination, destination_core = _read_place(fields, "dst", "destination")
    values = source | destination
    values["size"] = fields.integer("size", *BLOCK["size"].range)
    reduction = fields.choice("reduce", list(_REDUCTIONS), None)
    if reduction:
        values["reduction"] = _REDUCTIONS[reduction]
        values["element"] = _ELEMENTS[fields.choice("element", list(_ELEMENTS))]
    core = max(source_core, destination_core)
    return Command(opcode, fields=values, wait=_read_wait(fields), core=core)


def _read_prefetched_block(fields, opcode, _maps):
    values = {"source": fields.integer("src", *BLOCK["source"].range)}
    values["size"] = fields.integer("size", *BLOCK["size"].range)
    return Command(opcode, fields=values, wait=_read_wait(fields))


def _read_place(fields, name, field_name):
    """The fields of a place, ``["global", address]`` or ``["shared", address]`` with or without a core; and a core."""
    place = fields.listed(name)
    if len(place) not in (2, 3) or place[0] not in ("global", "shared"):
        raise fields.wrong(name, 'must be ["global", address] or ["shared", address] with or without a core')
    for index, entry in enumerate(place[1:], 1):
        fields.check_integer(f"{name}[{index}]", entry, *(BLOCK[field_name].range if index == 1 else (0, 15)))
    return {field_name: place[1], f"{field_name}_space": Space[place[0].upper()]}, (place[2] if len(place) == 3 else 0)


def _read_group(fields, opcode, _maps):
    values = {}
    if opcode == Opcode.WAIT:
        values = {"count": fields.integer("count", *GROUP["count"].range), "read": int(fields.flag("read", False))}
    return Command(opcode, fields=values, wait=_read_wait(fields))


def _read_invalidate(fields, opcode, maps):
    return Command(opcode, _read_map(fields, maps)[0], wait=_read_wait(fields))


def _read_replace(fields, opcode, maps):
    name, _ = _read_map(fields, maps)
    if maps[name].at is None:
        raise fields.wrong("map", f"must have a descriptor in gmem (at): {name} has none")
    values = {"field": DESCRIPTOR.index(fields.choice("field", [field.name for field in DESCRIPTOR.fields]))}
    values["index"] = fields.integer("index", *REPLACE["index"].range, 0)
    values["value"] = fields.integer("value", *REPLACE["value"].range)
    return Command(opcode, name, values, wait=_read_wait(fields))


def _read_lanes(fields, opcode, _maps):
    shape = fields.integers("shape", *LANES["shape"].range)
    if len(shape) != LANES["shape"].count:
        raise fields.wrong("shape", f"must have 4 entries, W H C N, not {len(shape)}")
    return Command(opcode, fields=lane_fields(fields, shape), wait=_read_wait(fields))


def lane_fields(fields, shape):
    """The fields of a LANES command on a tensor of ``shape``, W H C N."""
    values = {"shape": shape}
    values["element"] = _ELEMENTS[fields.choice("element", list(_ELEMENTS))]
    for name in ("lanes", "eu_bytes"):
        number = fields.integer(name, 1, 1 << 15)
        if number & number - 1:
            raise fields.wrong(name, f"must be a power of two, not {number}")
        values["lanes_log2" if name == "lanes" else "eu_log2"] = number.bit_length() - 1
    for name, side in (("src", "source"), ("dst", "destination")):
        inner = fields.inner(name)
        values[side] = inner.integer("address", *LANES[side].range)
        values[f"{side}_layout"] = _LAYOUTS[inner.choice("layout", list(_LAYOUTS))]
        values[f"{side}_lane"] = inner.integer("lane", *LANES[f"{side}_lane"].range, 0)
        inner.end()
    return values


def _read_map(fields, maps):
    name = fields.choice("map", list(maps))
    return name, maps[name].tmap


def _read_wait(fields):
    return not fields.flag("async", False)


_READERS = {
    **dict.fromkeys(("load", "store", "reduce", "prefetch"), _read_tensor),
    "copy_block": _read_block,
    "prefetch_block": _read_prefetched_block,
    **dict.fromkeys(("commit", "wait", "wait_all", "invalidate_all"), _read_group),
    "invalidate": _read_invalidate,
    "replace": _read_replace,
    "lanes": _read_lanes,
}
