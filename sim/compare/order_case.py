"""The orders of a mixed batch as a replay case."""

from tilewright.golden import Windows
from tilewright.golden.spec import DESCRIPTOR, FORMATS
from tilewright.golden.spec.tmau.processors import processor_of

from ..random.mixed import GLOBAL_BYTES
from ..replay.commands import command_entry
from ..replay.writer import case_of, map_fields
from .mixed_golden import BATCH_BYTES, GMEM_SEED, SMEM_SEED, batch_windows, processor_windows, spread_tag

__all__ = ["order_case"]


def order_case(name, why, batch, params):
    """A file of one case, as a string; or why there is none.

    The batch lies at address 0, and its commands signal no barriers.
    """
    maps = {}
    try:
        entries = [
            _entry(order, maps) | {"async": not batch.wait} | _issuer(number, batch, params)
            for number, order in enumerate(batch.orders)
        ]
    except ValueError as error:
        return f"no replay case: {error}"
    memories = {
        "gmem": {"bytes": BATCH_BYTES, "init": {"mix": GMEM_SEED}},
        "smem": {"bytes": params.smem.size_bytes, "init": {"mix": SMEM_SEED}},
    }
    windows = batch_windows(batch, params.smem.size_bytes, base=0)
    if windows != Windows():
        memories["windows"] = _limits(windows)
    if params.confines_apart:
        memories["processors"] = [_limits(own) for own in processor_windows(params, base=0)]
    placed = {
        name: map_fields(tmap) | {"at": GLOBAL_BYTES + DESCRIPTOR.bytes * number}
        for number, (tmap, name) in enumerate(maps.items())
    }
    return case_of(name, why, placed, entries, **memories)


def _limits(windows):
    """Windows as a case has them."""
    return {name: list(pair) for name, pair in (("global", windows.global_), ("shared", windows.shared)) if pair}


def _issuer(number, batch, params):
    """Whose command is an order of that number, as a case says it."""
    if params.processors == 1:
        return {}
    return {"processor": processor_of(spread_tag(number + batch.seed), params.processors)}


def _entry(order, maps):
    """A command as a case names it; ValueError if it cannot. ``maps`` gives names to maps, and takes new ones."""
    if order.fields["opcode"] not in FORMATS or order.skew or order.raw is not None:
        raise ValueError(f"no case can say {order}")
    entry = command_entry(order.fields["opcode"], order.fields, order.tmap)
    return entry if order.tmap is None else entry | {"map": maps.setdefault(order.tmap, f"m{len(maps)}")}
