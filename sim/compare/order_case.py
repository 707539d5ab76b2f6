"""The orders of a mixed batch as a replay case."""

from tilewright.golden.spec import (
    DESCRIPTOR,
    FORMATS,
    TENSOR_OPCODES,
    Element,
    LaneLayout,
    Mode,
    Opcode,
    Reduction,
    Space,
)
from tilewright.golden.spec.fields import spoken

from ..random.mixed import GLOBAL_BYTES
from ..replay.writer import case_of, map_fields
from .mixed_golden import BATCH_BYTES, GMEM_SEED, SMEM_SEED, batch_windows

__all__ = ["order_case"]


def order_case(name, why, batch, params):
    """A file of one case, as a string; or why there is none.

    The batch lies at address 0, and its commands signal no barriers.
    """
    maps = {}
    try:
        entries = [_entry(order, maps) | {"async": not batch.wait} for order in batch.orders]
    except ValueError as error:
        return f"no replay case: {error}"
    memories = {
        "gmem": {"bytes": BATCH_BYTES, "init": {"mix": GMEM_SEED}},
        "smem": {"bytes": params.smem.size_bytes, "init": {"mix": SMEM_SEED}},
    }
    windows = batch_windows(batch, params.smem.size_bytes, base=0)
    limits = {name: list(pair) for name, pair in (("global", windows.global_), ("shared", windows.shared)) if pair}
    if limits:
        memories["windows"] = limits
    placed = {
        name: map_fields(tmap) | {"at": GLOBAL_BYTES + DESCRIPTOR.bytes * number}
        for number, (tmap, name) in enumerate(maps.items())
    }
    return case_of(name, why, placed, entries, **memories)


def _entry(order, maps):
    """A command as a case names it; ValueError if it cannot. ``maps`` gives names to maps, and takes new ones."""
    opcode = order.fields["opcode"]
    if opcode not in FORMATS or order.skew or order.raw is not None:
        raise ValueError(f"no case can say {order}")
    entry = {"op": Opcode(opcode).name.lower()}
    if order.tmap is not None:
        entry["map"] = maps.setdefault(order.tmap, f"m{len(maps)}")
    writer = _tensor if opcode in TENSOR_OPCODES else _OTHERS.get(opcode, lambda order: {})
    return entry | writer(order)


def _tensor(order):
    fields, opcode = order.fields, order.fields["opcode"]
    entry = {"coords": list(fields["coords"])}
    if opcode != Opcode.PREFETCH:
        entry["smem"] = fields["smem"]
    if order.tmap.mode == Mode.IM2COL:
        entry["offsets"] = list(fields.get("offsets", ()))
    if opcode in (Opcode.STORE, Opcode.REDUCE):
        entry["fill"] = bool(fields.get("fill"))
    if opcode == Opcode.REDUCE:
        entry["reduce"] = Reduction(fields["reduction"]).name.lower()
    return entry


def _copy(order):
    fields = order.fields
    entry = {
        name: [Space(fields[f"{side}_space"]).name.lower(), fields[side]]
        for name, side in (("src", "source"), ("dst", "destination"))
    }
    entry["size"] = fields["size"]
    if fields.get("reduction"):
        entry["reduce"] = Reduction(fields["reduction"]).name.lower()
        entry["element"] = spoken(Element(fields.get("element", 0)))
    return entry


def _prefetched_block(order):
    return {"src": order.fields["source"], "size": order.fields["size"]}


def _wait(order):
    return {"count": order.fields["count"], "read": bool(order.fields["read"])}


def _replace(order):
    fields = order.fields
    if fields["field"] >= len(DESCRIPTOR.fields):
        raise ValueError(f"no case can say {order}")
    return {"field": DESCRIPTOR.fields[fields["field"]].name, "index": fields["index"], "value": fields["value"]}


def _lanes(order):
    fields = order.fields
    entry = {
        "element": spoken(Element(fields["element"])),
        "shape": list(fields["shape"]),
        "lanes": 1 << fields["lanes_log2"],
        "eu_bytes": 1 << fields["eu_log2"],
    }
    for name, side in (("src", "source"), ("dst", "destination")):
        layout = LaneLayout(fields[f"{side}_layout"]).name.lower()
        entry[name] = {"layout": layout, "address": fields[side], "lane": fields.get(f"{side}_lane", 0)}
    return entry


_OTHERS = {
    Opcode.COPY_BLOCK: _copy,
    Opcode.PREFETCH_BLOCK: _prefetched_block,
    Opcode.WAIT: _wait,
    Opcode.REPLACE: _replace,
    Opcode.LANES: _lanes,
}
