"""Figures that tests and benches leave behind, for reports that are made from them.

A suite calls :func:`record` once it knows its figures; each call leaves one small file in ``build/results/``, and the
next run of the same suite replaces it. ``tilewright stages`` and ``tilewright figures`` read them.
"""

import json
import os
import re
import subprocess
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path

from .files import BUILD, write_atomically

__all__ = ["FOLDER", "commit", "load", "record", "today"]

#: Where the files lie.
FOLDER = BUILD / "results"

_ROOT = Path(__file__).parents[1]


def record(name, **figures):
    """Leaves ``figures`` as the result called ``name``, in place of an earlier one.

    Parameters
    ----------
    name : str
        Lower-case words joined by hyphens, the suite first: ``random-verilator``, ``reset-unit``.
        ``tools/docs/stages.py`` lists the names and figures that it looks for.
    **figures : int, float, str, bool, or a list or dictionary of these
        What was measured. ``commit`` and ``date`` are added, and in a test ``command``, which runs that test. ``rows``
        may be a dictionary of dictionaries of numbers, by name: the lines of a table. Pages cite these figures
        (``tilewright figures``).
    """
    if not re.fullmatch(r"[a-z0-9]+([-_.][a-z0-9]+)*", name):
        raise ValueError(f"a result's name is lower-case words joined by hyphens, not {name!r}")
    if test := os.environ.get("PYTEST_CURRENT_TEST"):
        figures["command"] = f"pytest {test.rpartition(' ')[0]}"
    figures |= {"commit": commit(), "date": today()}
    write_atomically(FOLDER / f"{name}.json", json.dumps(figures, indent=1) + "\n")


def load(pattern):
    """The figures, as dictionaries, of all results whose name matches the shell ``pattern``, in the order of names."""
    return [json.loads(path.read_text()) for path in sorted(FOLDER.glob(f"{pattern}.json"))]


def today():
    """The date, in UTC."""
    return datetime.now(UTC).date().isoformat()


@cache
def commit():
    """Short name of the commit that is checked out, with a ``+`` if the sources differ from it; or the version."""
    installed = f"version {version('tilewright')}"
    if not (_ROOT / ".git").exists():  # installed from a wheel, perhaps below a repository that is not ours
        return installed
    command = ["git", "describe", "--always", "--dirty=+", "--exclude=*"]
    try:
        run = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=False)
    except FileNotFoundError:  # there is no git
        return installed
    return run.stdout.strip() if run.returncode == 0 else installed
