"""Error records of hardware against those of golden: any word of the stretch of a write error, and no other."""

import pytest

from tilewright.golden import ErrorRecord
from tilewright.spec import Error
from tilewright.verify.compare.differences import record_differences, smallest

READ, WRITE = (
    ErrorRecord(Error.READ, 7, 0, 0x2_0000_0400),
    ErrorRecord(Error.WRITE, 7, 0, 0x2_0000_0400, range(0x2_0000_0200, 0x2_0000_0400, 64)),
)


def words(address, code=Error.WRITE, tag=7, field=0):
    return code | field << 8 | tag << 16, address & 0xFFFF_FFFF, address >> 32


@pytest.mark.parametrize("offset", range(0x200, 0x401, 64))
def test_any_word_of_a_stretch_is_right(offset):
    assert record_differences(words(0x2_0000_0000 + offset), [WRITE]) == []


@pytest.mark.parametrize(
    ("record", "seen"),
    [
        (WRITE, words(0x2_0000_0200 - 64)),
        (WRITE, words(0x2_0000_0400 + 64)),
        (WRITE, words(0x2_0000_0210)),
        (WRITE, words(0x2_0000_0200, code=Error.READ)),
        (WRITE, words(0x2_0000_0200, tag=8)),
        (WRITE, words(0x2_0000_0200, field=1)),
        (READ, words(0x2_0000_0400 - 64, code=Error.READ)),
        (READ, words(0x2_0000_0400 + 64, code=Error.READ)),
        (READ, (0, 0, 0)),
    ],
    ids=["before", "behind", "no word", "code", "tag", "field", "before a read", "behind a read", "none"],
)
def test_others_are_not(record, seen):
    (sentence,) = record_differences(seen, [record])
    assert sentence.startswith(f"the error record is {ErrorRecord.of_registers(*seen)}, not one of [{record}]")


def test_no_record():
    assert record_differences((0, 0, 0), []) == []
    assert len(record_differences(words(64), [])) == 1
    assert len(record_differences((0, 64, 0), [])) == 1


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
