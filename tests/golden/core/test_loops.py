"""Loops: in which order words are carried out."""

import itertools

import pytest

from tilewright.golden.core.loops import Loops
from tilewright.golden.spec.core.errors import ProgramError


def order(words, loops, most=1000):
    """Indices of ``words`` words in the order in which they are carried out; then the error if there is one.

    ``loops`` has count and back of those that are loops.
    """
    state, index, came = Loops(), 0, []
    while index < words and len(came) < most:
        came.append(index)
        place = state.next(index, *loops[index]) if index in loops else index + 1
        if isinstance(place, ProgramError):
            return [*came, place]
        index = place
    return came


def test_one_loop():
    assert order(4, {2: (3, 2)}) == [0, 1, 2, 0, 1, 2, 0, 1, 2, 3]
    assert order(4, {2: (2, 1)}) == [0, 1, 2, 1, 2, 3]


def test_one_round():
    assert order(3, {1: (1, 1)}) == [0, 1, 2]


def test_loops_one_behind_the_other():
    assert order(5, {1: (2, 1), 3: (2, 1)}) == [0, 1, 0, 1, 2, 3, 2, 3, 4]


def test_a_loop_in_a_loop_begins_anew():
    assert order(4, {1: (2, 1), 2: (2, 2)}) == [0, 1, 0, 1, 2, 0, 1, 0, 1, 2, 3]


def test_a_loop_back_into_another_ones_body():
    """The body of the second begins within that of the first, which is then a loop in it."""
    assert order(5, {2: (2, 2), 3: (2, 2)}) == [0, 1, 2, 0, 1, 2, 3, 1, 2, 0, 1, 2, 3, 4]


def nest(depth, count=2):
    return {index: (count, index) for index in range(1, depth + 1)}


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_nested(depth):
    came = order(depth + 2, nest(depth))
    assert came.count(0) == 2**depth
    assert came[-1] == depth + 1


def test_five_nested_are_refused():
    came = order(7, nest(5))
    # When the innermost would go back again, after the outermost did.
    assert came[-1] == ProgramError.LOOP
    assert came[-2] == 1
    assert came.count(5) == 1


def test_one_round_does_not_count_as_nested():
    loops = {index: (2 if index != 1 else 1, index) for index in range(1, 6)}
    assert order(7, loops)[-1] == 6


@pytest.mark.parametrize(
    ("index", "count", "back", "error"),
    [
        (3, 0, 1, ProgramError.COUNT),
        (3, 0, 0, ProgramError.COUNT),
        (3, 1, 0, ProgramError.LOOP),
        (3, 2, 4, ProgramError.LOOP),
        (3, 1, 4, ProgramError.LOOP),
        (0, 2, 1, ProgramError.LOOP),
    ],
)
def test_what_is_refused(index, count, back, error):
    assert Loops().next(index, count, back) == error
    assert Loops().next(3, 2, 3) == 0


def test_all_small_programs_end():
    """Whatever loops there are: one never stays under way behind its word."""
    for backs in itertools.product(range(4), repeat=3):
        loops = {index + 1: (3, back) for index, back in enumerate(backs) if back}
        came = order(5, loops)
        assert came[-1] in (4, ProgramError.LOOP)
