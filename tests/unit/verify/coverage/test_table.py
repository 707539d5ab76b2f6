"""Bins, exclusions, counts and the table of functional coverage."""

from tilewright.verify.coverage.table import Coverage, telling

FEATURES = {"rank": (1, 2, 3), "kind": ("plain", "odd"), "colour": ("red", "green")}
CROSSES = (("rank",), ("kind",), ("rank", "kind"), ("kind", "colour"))
EXCLUSIONS = (("rank 1 is plain", {"rank": 1, "kind": "odd"}),)


def found(rank=1, kind=("plain",), colour=()):
    return {"rank": {rank}, "kind": set(kind), "colour": set(colour)}


def test_every_combination_is_a_bin_unless_it_is_excluded():
    coverage = Coverage(FEATURES, CROSSES, EXCLUSIONS)
    assert coverage.bins == 3 + 2 + 5 + 4
    assert len(coverage.empty) == coverage.bins
    assert (1, "odd") not in coverage.hits["rank", "kind"]
    assert Coverage(FEATURES, CROSSES).bins == coverage.bins + 1


def test_a_sample_hits_the_combinations_of_its_values():
    coverage = Coverage(FEATURES, CROSSES, EXCLUSIONS)
    assert coverage.sample(found(2, ("plain", "odd")))
    assert coverage.sample(found(1, ("odd",)))
    assert not coverage.sample(found(2, ("odd",)))
    assert coverage.hits["rank",] == {(1,): 1, (2,): 2, (3,): 0}
    assert coverage.hits["rank", "kind"] == {(1, "plain"): 0, (2, "plain"): 1, (2, "odd"): 2, (3, "plain"): 0,
                                             (3, "odd"): 0}  # fmt: skip
    # A feature that a command does not have hits nothing.
    assert not sum(coverage.hits["kind", "colour"].values())
    assert "rank 2" not in coverage.empty
    assert "rank 3 × kind odd" in coverage.empty


def test_cases_that_tell_something_new_are_kept():
    coverage = Coverage(FEATURES, CROSSES, EXCLUSIONS)
    cases = [1, 1, 1, 2, 1, 2, 3, 3]
    assert list(telling(cases, 2, lambda rank: coverage.sample(found(rank)))) == [1, 1, 2, 3]
    assert coverage.hits["rank",] == {(1,): 4, (2,): 2, (3,): 2}


def test_table_names_empty_bins():
    coverage = Coverage(FEATURES, CROSSES, EXCLUSIONS)
    coverage.sample(found(2, colour=("red",)))
    table = coverage.table()
    assert "1: 0, 2: 1, 3: 0" in table
    assert table.endswith("; ".join(coverage.empty))
    assert f"{coverage.bins - len(coverage.empty)} of {coverage.bins} bins hit" in table
