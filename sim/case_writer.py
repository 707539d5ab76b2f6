"""Replay cases from maps and loads: how a failure that a random run found becomes a vector that is kept."""

import json
import tempfile
from pathlib import Path

from tilewright.golden.spec import Fill
from tilewright.golden.tmau.descriptor import spoken

from .cases import read_cases
from .replay_golden import run_case

__all__ = ["case_text", "map_fields"]


def case_text(name, why, loads, *, gmem, smem):
    """A file of one case with what golden makes of it as expectation, as a string.

    Parameters
    ----------
    name, why : str
    loads : sequence of (TensorMap, coords, smem)
    gmem, smem : dict
        Memories, as in the file.
    """
    maps, commands = {}, []
    for tmap, coords, address in loads:
        number = next((name for name, known in maps.items() if known == tmap), f"m{len(maps)}")
        maps[number] = tmap
        commands.append({"op": "load", "map": number, "coords": list(coords), "smem": address, "async": True})
    case = {
        "name": name,
        "why": why,
        "kind": "tmau",
        "gmem": gmem,
        "smem": smem,
        "maps": {number: map_fields(tmap) for number, tmap in maps.items()},
        "commands": commands,
    }
    record = _golden_record(case)
    case["expect"] = {
        "error": record["error"],
        "tx_bytes": record["tx_bytes"],
        "smem": {"sha256": record["smem_sha256"][0]},
    }
    return json.dumps({"version": 1, "cases": [case]})


def map_fields(tmap):
    """A tile-mode map as a case file names it; defaults are left out."""
    fields = {name: getattr(tmap, name) for name in ("address", "size", "stride", "box", "traversal")}
    fields["element"] = spoken(tmap.element)
    for name in ("swizzle", "interleave", "l2_promotion"):
        if getattr(tmap, name):
            fields[name] = spoken(getattr(tmap, name))
    for name in ("unaligned", "gather0"):
        if getattr(tmap, name):
            fields[name] = True
    if tmap.fill:
        fields["fill"] = {"constant": tmap.fill_constant} if tmap.fill == Fill.CONSTANT else spoken(tmap.fill)
    return fields


def _golden_record(case):
    """The result record of a case, read back as a user's file would be."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "case.json"
        path.write_text(json.dumps({"version": 1, "cases": [case]}))
        (read,) = read_cases(path)
    return run_case(read).record
