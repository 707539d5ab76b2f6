"""Expectations: single bytes of memories, and errors; others are tested in tests/golden/replay."""

import numpy as np
import pytest

from tilewright.errors import UsageError
from tilewright.sim.replay.fields import Fields
from tilewright.sim.replay.outcome import Outcome, mismatches, read_expectation
from tilewright.spec import Error
from tilewright.spec.pe import PeError

HASH = "0" * 64
SIZES = {"gmem": 256, "smem": 64}


def read(expect, errors=Error, sizes=SIZES):
    return read_expectation(Fields(expect, "case 'x'", "expect"), errors, sizes)


def outcome(**memories):
    return Outcome({"smem_sha256": [HASH], "gmem_sha256": HASH}, {name: np.uint8(m) for name, m in memories.items()})


def test_bytes_that_are_expected_are_met():
    expect = read({"smem": {"sha256": HASH, "bytes": [[2, "0203"], [60, "3c3d3e3f"]]}, "gmem": {"sha256": HASH}})
    assert mismatches(expect, outcome(smem=range(64))) == []


def test_the_first_differing_byte_of_each_memory_is_named():
    expect = read({
        "smem": {"sha256": HASH, "bytes": [[2, "0203"], [16, "10ff12ff"], [60, "ff"]]},
        "gmem": {"sha256": HASH, "bytes": [[255, "fe"]]},
    })  # fmt: skip
    assert mismatches(expect, outcome(smem=range(64), gmem=range(256))) == [
        "smem at 0x11 is 0x11, not 0xff as expected",
        "gmem at 0xff is 0xff, not 0xfe as expected",
    ]


def test_bytes_may_replace_a_hash():
    expect = read({"smem": {"bytes": [[2, "0203"]]}, "gmem": {"bytes": [[255, "fe"]]}})
    assert list(expect) == ["bytes"]
    assert mismatches(expect, outcome(smem=range(64), gmem=range(256))) == [
        "gmem at 0xff is 0xff, not 0xfe as expected"
    ]


@pytest.mark.parametrize(
    ("expect", "sentence"),
    [
        ({"smem": {"bytes": []}}, "expect.smem.sha256 is missing"),
        ({"smem": {"sha256": HASH, "bytes": 7}}, "expect.smem.bytes must be a list, not 7"),
        ({"smem": {"sha256": HASH, "bytes": [[0]]}},
         "expect.smem.bytes[0] must be a pair of an address and hex digits"),
        ({"smem": {"sha256": HASH, "bytes": [[63, "0102"]]}},
         "expect.smem.bytes[0][1] must be at most 1 bytes, not 2"),
        ({"gmem": {"sha256": HASH, "bytes": [[0, "0"]]}}, "expect.gmem.bytes[0][1] must be pairs of hex digits"),
        ({"smem": [{"sha256": HASH}, {"sha256": HASH, "bytes": []}]}, "expect.smem.bytes is not a known field"),
        ({"output": {"sha256": HASH, "bytes": []}}, "expect.output.bytes is not a known field"),
        ({"smem": [{"bytes": [[0, "00"]]}, {"sha256": HASH}]}, "expect.smem.bytes is not a known field"),
    ],
)  # fmt: skip
def test_bytes_are_read_strictly(expect, sentence):
    with pytest.raises(UsageError) as caught:
        read(expect)
    assert str(caught.value) == f"case 'x': {sentence}"


@pytest.mark.parametrize(
    "error", ["refused by the driver", "no such instruction", "unfinished", "failed: command 0: CUDA_ERROR_X"]
)
def test_only_cases_of_the_tmau_may_have_an_error_of_silicon(error):
    assert read({"error": error}) == {"error": error}
    with pytest.raises(UsageError, match="must be one of None, "):
        read({"error": error}, PeError)
