"""Error records of hardware against those of golden: any word of the stretch of a write error, and no other."""

import pytest

from tilewright.golden import ErrorRecord
from tilewright.golden.spec import Error
from tilewright.sim.compare.differences import record_differences

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
