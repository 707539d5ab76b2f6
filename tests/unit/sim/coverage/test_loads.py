"""Bins of the coverage of tile loads, and why some combinations are none."""

import pytest

from tilewright.sim.coverage.load_features import BOXES, FEATURES, PLACES
from tilewright.sim.coverage.loads import CROSSES, EXCLUSIONS, load_coverage


def excluded(bin_):
    return [reason for reason, predicate in EXCLUSIONS if predicate(bin_)]


def test_every_value_is_a_bin_and_nothing_else():
    coverage = load_coverage()
    assert tuple(coverage.hits) == CROSSES
    for cross, hits in coverage.hits.items():
        assert hits
        for values in hits:
            assert all(value in FEATURES[name] for name, value in zip(cross, values, strict=True))


@pytest.mark.parametrize(
    ("bin_", "reason"),
    [
        ({"swizzle": "32B", "row bytes": 64}, "span"),
        ({"swizzle": "32B", "row bytes": "other"}, "span"),
        ({"fill": "nan", "element kind": "integer"}, "NaN"),
        ({"rank": 1, "traversal": "2"}, "rank 1"),
        ({"out of bounds": "above", "alignment": "chunk"}, "no data"),
        ({"rank": 2, PLACES[2]: "inside"}, "no place"),
        ({BOXES[0]: "1"}, "at least 16"),
        ({BOXES[0]: "2-15", "element bytes": 1}, "at least 16"),
    ],
)
def test_exclusions_have_their_reason(bin_, reason):
    assert excluded(bin_) == [text for text, _ in EXCLUSIONS if reason in text]


@pytest.mark.parametrize(
    "bin_",
    [
        {"swizzle": "64B", "row bytes": "other"},
        {"swizzle": "none", "row bytes": 256},
        {"fill": "nan", "element kind": "tf32"},
        {"rank": 1, "traversal": "1"},
        {"rank": 5, PLACES[4]: "above"},
        {BOXES[0]: "2-15", "element bytes": 2},
    ],
)
def test_what_a_load_can_have_is_not_excluded(bin_):
    assert not excluded(bin_)
