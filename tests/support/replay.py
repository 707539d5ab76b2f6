"""Files of replay cases that tests write, and the sentences that refuse them."""

import json
from pathlib import Path

import pytest

from tilewright.errors import UsageError
from tilewright.sim.replay.cases import cases_of, read_cases

__all__ = ["read", "read_case", "refusal", "write", "write_cases"]


def read_case(case):
    """A case from its entry of a file, a dictionary."""
    return cases_of({"version": 1, "cases": [case]}, "cases.json", Path())[0]


def write_cases(path, *cases, **document):
    """Writes a file of cases, with further members of the document; returns its path."""
    path.write_text(json.dumps({"version": 1, "cases": list(cases)} | document))
    return path


def write(folder, *cases, **document):
    """A file of cases in ``folder``, with further members of the document; returns its path."""
    return write_cases(folder / "cases.json", *cases, **document)


def read(folder, *cases):
    """Cases as ``tilewright replay`` reads them."""
    return read_cases(write(folder, *cases))


def refusal(folder, case):
    """The sentence that refuses a case."""
    with pytest.raises(UsageError) as caught:
        read(folder, case)
    return str(caught.value)
