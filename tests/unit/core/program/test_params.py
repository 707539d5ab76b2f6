"""Sizes of a command processor."""

import re

import pytest

from tilewright.hw.core import ProgramParams


def test_replace():
    assert ProgramParams().replace(words=8) == ProgramParams(words=8)


def test_bursts():
    """A line of 64 bytes is one burst, or several where bursts are shorter."""
    params = ProgramParams(words=16, instruction_lines=4)
    assert [params.bursts(*sizes) for sizes in ((64, 1), (16, 4), (16, 2), (16, 16))] == [20, 20, 40, 20]


@pytest.mark.parametrize(
    ("sizes", "error", "sentence"),
    [
        ({"words": 3}, ValueError, "words must be a power of two, not 3"),
        ({"words": 1}, ValueError, "words must be 2 to 32, not 1"),
        ({"instruction_lines": 64}, ValueError, "instruction_lines must be 2 to 32, not 64"),
        ({"words": "4"}, TypeError, "words must be an int, not '4'"),
    ],
)
def test_mistakes(sizes, error, sentence):
    with pytest.raises(error, match=f"^{re.escape(sentence)}$"):
        ProgramParams(**sizes)
