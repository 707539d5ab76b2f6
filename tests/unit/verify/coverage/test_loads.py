"""The features of loads whose place is known."""

import pytest

from tilewright.golden import TensorMap
from tilewright.verify.coverage.loads import BOXES, CROSSES, EXCLUSIONS, FEATURES, PLACES, features, load_coverage
from tilewright.verify.coverage.table import reasons

#: 32-byte rows, one page apart, that begin 16 bytes before the end of a page.
TMAP = TensorMap(
    element="f16", address=0x1FF0, size=(16, 4), stride=(4096,), box=(16, 3), traversal=(1, 2), swizzle="32B",
    fill="nan"
)  # fmt: skip


def found(tmap=TMAP, coords=(0, 0), smem=0x380, signal=True, **options):
    return features(tmap, coords, smem, signal, **options)


def test_features_of_a_load():
    seen = found()
    assert seen["rank"] == {2}
    assert seen["element bytes"] == {2}
    assert seen["element"] == {"f16"}
    assert seen["element kind"] == {"float"}
    assert seen["swizzle"] == {"32B"}
    assert seen["fill"] == {"nan"}
    assert seen["traversal"] == {"2"}
    assert seen["alignment"] == {"chunk"}
    assert seen["row bytes"] == {32}
    assert seen["line in 1 KiB"] == {7}
    assert seen["stride"] == {"4 KiB or more", "power of two", "padded"}
    assert seen["base in page"] == {"4080"}
    assert seen["page edges"] == {"crosses one"}
    assert seen["barrier"] == {"signals"}
    assert seen[BOXES[0]] == {"16"}
    assert seen[BOXES[1]] == {"2-15"}
    assert seen[BOXES[2]] == set()
    assert set(seen) == set(FEATURES)


@pytest.mark.parametrize(
    ("coord", "place"),
    [(0, "inside"), (1, "inside"), (2, "high part"), (3, "high part"), (4, "above"), (-1, "low part"), (-3, "below")],
)
def test_place_in_a_dimension_counts_steps(coord, place):
    """Two indices are taken, two apart, of four that there are."""
    seen = found(coords=(0, coord))
    assert seen[PLACES[1]] == {place}
    assert seen["out of bounds"] == {"inside", place}


def test_both_ends():
    seen = found(TensorMap(element="u8", size=(8,), box=(16,)), (-4,), signal=False)
    assert seen["out of bounds"] == {"both ends"}
    assert seen["barrier"] == {"silent"}


def test_a_box_without_data():
    seen = found(coords=(16, 0))
    assert seen["alignment"] == {"no data"}
    assert seen["page edges"] == set()
    assert seen["barrier"] == {"signals without data"}


@pytest.mark.parametrize(
    ("address", "coord", "alignment"), [(64, 0, "bus word"), (48, 0, "chunk"), (64, 1, "element"), (64, 16, "chunk")]
)
def test_alignment_of_the_first_byte(address, coord, alignment):
    tmap = TensorMap(element="u8", address=address, size=(64,), box=(16,))
    assert found(tmap, (coord,))["alignment"] == {alignment}


@pytest.mark.parametrize(
    ("address", "row", "rows", "edges"),
    [
        (0x1000, 16, 8, "none"),
        (0x1F80, 16, 8, "ends on one"),
        (0x1F90, 16, 8, "crosses one"),
        (0x1FF0, 32, 256, "crosses more"),
    ],
)
def test_page_edges_of_adjoining_rows(address, row, rows, edges):
    """Rows that adjoin are one piece."""
    tmap = TensorMap(element="u8", address=address, size=(row, rows), stride=(row,), box=(row, rows))
    assert found(tmap)["page edges"] == {edges}


@pytest.mark.parametrize(
    ("stride", "names"),
    [
        (64, {"packed", "power of two"}),
        (80, {"padded"}),
        (48, {"overlapping"}),
        (0, {"zero"}),
        (1 << 32, {"4 GiB or more", "power of two", "padded"}),
    ],
)
def test_strides(stride, names):
    tmap = TensorMap(element="u8", size=(64, 1), stride=(stride,), box=(16, 1))
    assert found(tmap)["stride"] == names


def excluded(bin_):
    return reasons(EXCLUSIONS, bin_)


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
    assert excluded(bin_) == [text for text, *_ in EXCLUSIONS if reason in text]


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
