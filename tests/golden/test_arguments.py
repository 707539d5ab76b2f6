"""Arguments of the golden model and of sessions: what is taken, and the sentence where it is not."""

import numpy as np
import pytest

from tilewright.golden.arguments import array, integer, integers, member, shown
from tilewright.golden.spec import Reduction, Swizzle


def test_integers_of_every_kind_are_taken():
    assert integer("n", np.uint8(3), 0, 3) == 3
    assert integers("n", np.array([1, -2], np.int16)) == (1, -2)
    assert integers("n", [np.int64(4), 5]) == (4, 5)


@pytest.mark.parametrize("value", ["128B", "128b", Swizzle.B128, 3, np.int64(3)])
def test_members_by_name_in_any_case_by_number_and_as_they_are(value):
    assert member("swizzle", Swizzle, value) is Swizzle.B128


@pytest.mark.parametrize(
    ("kind", "call", "sentence"),
    [
        (TypeError, lambda: integer("n", 1.0), "n must be an integer, not 1.0"),
        (TypeError, lambda: integer("n", True), "n must be an integer, not True"),
        (ValueError, lambda: integer("n", -1, 0), "n must be 0 or more, not -1"),
        (ValueError, lambda: integer("n", 5, 1, 4), "n must be 1 to 4, not 5"),
        (TypeError, lambda: integers("n", 3), "n must be a list or tuple, not 3"),
        (
            TypeError,
            lambda: integers("n", np.array(3)),
            "n must be a list or tuple, not an array of shape () and int64",
        ),
        (TypeError, lambda: integers("n", (1, "x")), "n must be made of integers, not 'x'"),
        (ValueError, lambda: member("op", Swizzle, "16B"), "op must be one of none, 32B, 64B, 128B, not '16B'"),
        (ValueError, lambda: member("op", Swizzle, 4), "op must be one of none, 32B, 64B, 128B, not 4"),
        (
            TypeError,
            lambda: member("op", Reduction, None),
            "op must be one of none, add, min, max, inc, dec, and, or, xor, not None; did you mean 'none'?",
        ),
        (TypeError, lambda: array("a", [1]), "a must be a numpy array, not [1]"),
        (ValueError, lambda: array("a", np.zeros((0, 4))), "a must not be empty, with shape (0, 4)"),
    ],
)
def test_what_is_wrong_is_one_sentence(kind, call, sentence):
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value) == sentence


def test_long_values_are_cut():
    assert shown("x" * 100) == "'" + "x" * 58 + "…"
    assert shown(np.zeros((2, 3), np.uint8)) == "an array of shape (2, 3) and uint8"
