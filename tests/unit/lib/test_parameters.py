"""Sizes out of range are refused in one sentence."""

from types import SimpleNamespace

import pytest

from tilewright.hw.lib.parameters import check_sizes

RANGES = {"depth": (2, 16), "width": (1, 7)}


def check(**sizes):
    check_sizes(SimpleNamespace(**{"depth": 4, "width": 3} | sizes), RANGES, {"depth"})


def test_accepted_sizes():
    check()
    check(depth=16, width=7)


@pytest.mark.parametrize(
    ("sizes", "error", "sentence"),
    [
        ({"depth": 4.0}, TypeError, r"^depth must be an int, not 4\.0$"),
        ({"width": True}, TypeError, "^width must be an int, not True$"),
        ({"depth": 1}, ValueError, "^depth must be 2 to 16, not 1$"),
        ({"width": 8}, ValueError, "^width must be 1 to 7, not 8$"),
        ({"depth": 12}, ValueError, "^depth must be a power of two, not 12$"),
    ],
)
def test_refused_sizes(sizes, error, sentence):
    with pytest.raises(error, match=sentence):
        check(**sizes)
