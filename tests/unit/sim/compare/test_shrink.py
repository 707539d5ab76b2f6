"""The smallest failing part: one alone, several that need each other, or none."""

from tilewright.sim.compare.shrink import smallest

ITEMS = tuple(range(37))


def test_one_that_fails_alone():
    assert smallest(ITEMS, lambda part: 23 in part) == (23,)


def test_several_that_need_each_other():
    assert smallest(ITEMS, lambda part: {3, 4, 30} <= set(part)) == (3, 4, 30)


def test_nothing_can_be_left_out_of_what_remains():
    part = smallest(ITEMS, lambda part: list(part) == sorted(part) and sum(part) >= 70)
    assert sum(part) >= 70
    assert all(sum(part) - item < 70 for item in part)


def test_what_does_not_fail():
    assert smallest(ITEMS, lambda part: False) is None
    assert smallest((), bool) is None
