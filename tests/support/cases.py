"""Replay cases (docs/replay.md) as tests make them: written to a file, or read at once."""

import json
from pathlib import Path

from tilewright.sim.replay.cases import cases_of

__all__ = ["read_case", "write_cases"]


def read_case(case):
    """A case from its entry of a file, a dictionary."""
    return cases_of({"version": 1, "cases": [case]}, "cases.json", Path())[0]


def write_cases(path, *cases):
    """Writes a file of cases; returns its path."""
    path.write_text(json.dumps({"version": 1, "cases": cases}))
    return path
