"""Files of replay cases that tests write, and the sentences that refuse them."""

import json

import pytest

from tilewright.errors import UsageError
from tilewright.sim.replay.cases import read_cases

__all__ = ["read", "refusal", "write"]


def write(folder, *cases, **document):
    """A file of cases in ``folder``, with further members of the document; returns its path."""
    path = folder / "cases.json"
    path.write_text(json.dumps({"version": 1, "cases": list(cases)} | document))
    return path


def read(folder, *cases):
    """Cases as ``tilewright replay`` reads them."""
    return read_cases(write(folder, *cases))


def refusal(folder, case):
    """The sentence that refuses a case."""
    with pytest.raises(UsageError) as caught:
        read(folder, case)
    return str(caught.value)
