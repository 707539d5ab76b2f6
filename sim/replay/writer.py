"""Files of replay cases from maps and commands, such as those of a failed random run."""

import json
from pathlib import Path

from tilewright.spec import Fill, Mode
from tilewright.spec.fields import spoken

from .cases import cases_of
from .golden import run_case

__all__ = ["case_of", "case_text", "map_fields"]


def case_text(name, why, commands, *, gmem, smem):
    """The text of a file with one case, whose expectation is golden's result.

    Parameters
    ----------
    name, why : str
    commands : sequence of (TensorMap, coords, smem) or (TensorMap, coords, smem, dict)
        Loads; the dictionary has more or other members of the command, such as ``op``.
    gmem, smem : dict
        Memories as in the file.
    """
    maps, entries = {}, []
    for tmap, coords, address, *more in commands:
        number = next((name for name, known in maps.items() if known == tmap), f"m{len(maps)}")
        maps[number] = tmap
        entry = {"op": "load", "map": number, "coords": list(coords), "smem": address, "async": True}
        entries.append(entry | dict(*more))
    return case_of(
        name, why, {number: map_fields(tmap) for number, tmap in maps.items()}, entries, gmem=gmem, smem=smem
    )


def case_of(name, why, maps, entries, **memories):
    """The same from maps and commands as in a file; ``memories`` are gmem, smem, and windows if any."""
    case = {"name": name, "why": why, "kind": "tmau", **memories, "maps": maps, "commands": entries}
    record = _golden_record(case)
    case["expect"] = {
        "error": record["error"],
        "tx_bytes": record["tx_bytes"],
        "smem": {"sha256": record["smem_sha256"][0]},
        "gmem": {"sha256": record["gmem_sha256"]},
    }
    return json.dumps({"version": 1, "cases": [case]})


def map_fields(tmap):
    """A map as in a file, without defaults."""
    im2col = ("lower", "upper", "channels", "pixels") if tmap.mode == Mode.IM2COL else ("box",)
    fields = {name: _plain(getattr(tmap, name)) for name in ("address", "size", "stride", "traversal", *im2col)}
    fields["element"] = spoken(tmap.element)
    for name in ("mode", "swizzle", "interleave", "l2_promotion"):
        if getattr(tmap, name):
            fields[name] = spoken(getattr(tmap, name))
    for name in ("unaligned", "gather0"):
        if getattr(tmap, name):
            fields[name] = True
    if tmap.fill:
        fields["fill"] = {"constant": tmap.fill_constant} if tmap.fill == Fill.CONSTANT else spoken(tmap.fill)
    return fields


def _plain(value):
    """A tuple as the list that JSON makes of it."""
    return list(value) if isinstance(value, tuple) else value


def _golden_record(case):
    """The result record of a case, which is read from its JSON."""
    document = json.loads(json.dumps({"version": 1, "cases": [case]}))
    (parsed,) = cases_of(document, "case", Path())
    return run_case(parsed).record
