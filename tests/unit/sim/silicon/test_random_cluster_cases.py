"""Random cases of several cores: legal by golden, with a counterpart on silicon, and of all that a cluster has."""

from collections import Counter
from pathlib import Path

import pytest

from tilewright.sim.replay.cases import cases_of
from tilewright.sim.replay.golden import run_case
from tilewright.sim.silicon.case_features import case_features
from tilewright.sim.silicon.random_cluster_cases import random_cluster_cases
from tilewright.sim.silicon.support import why_not

SEED, CASES = 3, 500
#: What must occur, and how often at least.
FEATURES = {
    **{f"load {mode} to several cores": 10 for mode in ("tile", "im2col")},
    **{f"load {mode} to other cores": 5 for mode in ("tile", "im2col")},
    **{f"block from global to shared to {who} cores": 1 for who in ("several", "other")},
    "block from shared to shared to other cores": 3,
    "block add of u32 from shared to shared to other cores": 1,
}


@pytest.fixture(scope="module")
def entries():
    return list(random_cluster_cases(SEED, CASES))


@pytest.fixture(scope="module")
def cases(entries):
    return cases_of({"version": 1, "cases": entries}, "random", Path())


def test_a_function_of_the_seed(entries):
    assert list(random_cluster_cases(SEED, 50)) == entries[:50]
    assert list(random_cluster_cases(SEED + 1, 50)) != entries[:50]


def test_silicon_and_golden_take_all_of_them(cases):
    assert {why_not(case) for case in cases} == {None}
    assert {run_case(case).record["error"] for case in cases} == {None}


def test_everything_occurs(cases):
    counts = Counter(feature for case in cases for feature in case_features(case))
    assert {feature: counts[feature] for feature, least in FEATURES.items() if counts[feature] < least} == {}
    assert {case.cores for case in cases} == {2, 4, 8}
    issuers = Counter((command.opcode, command.core > 0) for case in cases for command in case.commands)
    assert all(issuers[opcode, True] for opcode, _ in issuers)
