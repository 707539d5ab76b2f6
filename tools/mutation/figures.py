"""What became of mutants, by block, and why some are not noticed."""

import tomllib
from pathlib import Path

from .mutants import HARDWARE

__all__ = ["EQUAL", "reason", "summary", "table"]

#: Survivors that somebody has looked at, each with its file, source line, change and reason.
_REASONS = Path(__file__).with_name("reasons.toml")
#: A reason that begins like this says why no input can show the difference.
EQUAL = "equal: "


def reason(mutant):
    """Why nothing notices a mutant, or an empty string if nobody has looked."""
    line = (HARDWARE / mutant.path).read_text(encoding="utf-8").splitlines()[mutant.line - 1].strip()
    wanted = {"file": mutant.path, "line": line, "change": mutant.change}
    known = tomllib.loads(_REASONS.read_text(encoding="utf-8"))["mutant"]
    return next((one["reason"] for one in known if wanted.items() <= one.items()), "")


def summary(found):
    """Figures of judged mutants, as results have them.

    Parameters
    ----------
    found : dict of Mutant to dict
        Records of ``trial.py``.

    Returns
    -------
    dict
        ``mutants`` without those that are equal, ``killed``, ``equal``, ``refused``; ``rows``, the same by folder of
        ``hw/``; and ``survivors``, a line each.
    """
    rows, survivors = {}, []
    for mutant, one in sorted(found.items(), key=lambda item: (item[0].path, item[0].index)):
        block = Path(mutant.path).parent.as_posix()
        row = rows.setdefault(block, dict.fromkeys(("mutants", "killed", "by_proofs", "equal", "refused"), 0))
        verdict, why = one["verdict"], ""
        if verdict == "survived" and (why := reason(mutant)).startswith(EQUAL):
            verdict = "equal"
        if verdict in ("equal", "refused"):
            row[verdict] += 1
            continue
        row["mutants"] += 1
        row["killed"] += verdict != "survived"
        row["by_proofs"] += verdict != "survived" and one["judge"] == "proofs"
        if verdict == "survived":
            survivors.append(f"{mutant}: {why or 'nobody has looked'}")
    total = {name: sum(row[name] for row in rows.values()) for name in ("mutants", "killed", "equal", "refused")}
    return total | {"rows": rows, "survivors": survivors}


def table(rows):
    """Rows as lines of text, with their sum."""
    names = ("mutants", "killed", "by_proofs", "equal", "refused")
    total = {name: sum(row[name] for row in rows.values()) for name in names}
    lines = [f"{'block':18} {'mutants':>8} {'killed':>8} {'':>6} {'by proofs':>10} {'equal':>6} {'refused':>8}"]
    for block, row in [*rows.items(), ("all", total)]:
        share = f"{row['killed'] / row['mutants']:.0%}" if row["mutants"] else "–"
        first = f"{block:18} {row['mutants']:8} {row['killed']:8} {share:>6}"
        lines.append(f"{first} {row['by_proofs']:10} {row['equal']:6} {row['refused']:8}")
    return "\n".join(lines)
