"""Replay cases of the kinds lanes and align: what commands they stand for, and the strides.

Specification: docs/replay.md, "Kinds lanes and align".
"""

from typing import NamedTuple

from tilewright.golden import align
from tilewright.golden.spec import LANES, Element, LaneLayout, Opcode
from tilewright.golden.spec.fields import names
from tilewright.golden.tmau.align import Operator, Padding
from tilewright.golden.tmau.strides import lane_strides

from ..usage import UsageError
from .commands import Command, lane_fields
from .maps import MapSpec

__all__ = ["LayoutCase", "read_align", "read_lanes"]

#: Most bytes of shared memory that a copy with padding takes at a time.
_BOX_BYTES = 16384


class LayoutCase(NamedTuple):
    """What a case of these kinds comes to: maps and commands of one of kind tmau, and strides for its result."""

    maps: dict
    commands: tuple
    strides: dict | list


def read_lanes(fields, smem_bytes):
    """One LANES command. Fields are those of the command ``lanes``, but ``shape`` is N, C, H, W as on the page.

    Strides of both sides, in bytes.
    """
    values = lane_fields(fields, _shape(fields)[::-1])
    sides = {}
    for side in ("source", "destination"):
        strides = lane_strides(
            values["shape"],
            Element(values["element"]).bytes,
            values[f"{side}_lane"],
            1 << values["lanes_log2"],
            1 << values["eu_log2"],
            LaneLayout(values[f"{side}_layout"]),
        )
        sides[side] = strides._asdict()
    return LayoutCase({}, (Command(Opcode.LANES, fields=values),), sides)


def read_align(fields, smem_bytes):
    """A load and a store for each box, there or ``back``. Strides of the padded tensor in bytes, outermost first."""
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
    return LayoutCase(maps, tuple(commands), list(alignment.strides))


def _shape(fields):
    shape = fields.integers("shape", *LANES["shape"].range)
    if len(shape) != LANES["shape"].count:
        raise fields.wrong("shape", f"must have 4 entries, N C H W, not {len(shape)}")
    return shape
