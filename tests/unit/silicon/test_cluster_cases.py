"""Random cases of several cores: silicon and golden take all of them, and every feature occurs."""

from collections import Counter

import numpy as np
import pytest

from support.replay import read_case
from tilewright.silicon.cases import case_features
from tilewright.silicon.cluster_cases import KINDS, random_cases_of_kinds, random_cluster_cases
from tilewright.silicon.replay import why_not
from tilewright.sim.replay.commands import CaseOp
from tilewright.sim.replay.golden import run_case

SEED = 3
#: Generators, number of cases, and their number in all.
GENERATORS = {random_cluster_cases: (500, 500), random_cases_of_kinds: (125, 500)}
#: What must occur among the cases of each generator, and how often at least.
FEATURES = {
    random_cluster_cases: {
        **{f"load {mode} to several cores": 10 for mode in ("tile", "im2col")},
        **{f"load {mode} to other cores": 5 for mode in ("tile", "im2col")},
        **{f"block from global to shared to {who} cores": 1 for who in ("several", "other")},
        "block from shared to shared to other cores": 3,
        "block add of u32 from shared to shared to other cores": 1,
    },
    random_cases_of_kinds: {
        **{f"load {mode} to {who} cores": 10 for mode in ("tile", "im2col") for who in ("several", "other")},
        **{f"block from global to shared to {who} cores": 5 for who in ("several", "other")},
        "block from shared to shared to other cores": 80,
        "block add of u32 from shared to shared to other cores": 1,
        "arrive": 100,
        "prefetch_block": 20,
        "prefetch tile with interleave none": 10,
        "prefetch im2col with interleave none": 10,
    },
}
each_generator = pytest.mark.parametrize("made", GENERATORS, indirect=True, ids=lambda generator: generator.__name__)


@pytest.fixture(scope="module")
def made(request):
    """A generator and its cases, as a file has them and as read."""
    entries = list(request.param(SEED, GENERATORS[request.param][0]))
    return request.param, entries, list(map(read_case, entries))


@each_generator
def test_silicon_and_golden_take_all_of_them(made):
    generator, entries, cases = made
    assert len(cases) == GENERATORS[generator][1]
    assert list(generator(SEED, 20)) == entries[: len(list(generator(SEED, 20)))]
    assert list(generator(SEED + 1, 20)) != list(generator(SEED, 20))
    assert {why_not(case) for case in cases} == {None}
    assert {run_case(case).record["error"] for case in cases} == {None}


@each_generator
def test_every_feature_occurs(made):
    generator, _, cases = made
    counts = Counter(feature for case in cases for feature in case_features(case))
    rare = {feature: counts[feature] for feature, least in FEATURES[generator].items() if counts[feature] < least}
    assert rare == {}
    assert {case.cores for case in cases} == {2, 4, 8}
    issuers = Counter((command.opcode, command.core > 0) for case in cases for command in case.commands)
    assert all(issuers[opcode, True] for opcode, _ in issuers)


@pytest.fixture(scope="module")
def of_kinds():
    cases = list(map(read_case, random_cases_of_kinds(SEED, 125)))
    return {kind: [case for case in cases if case.name.startswith(kind)] for kind in KINDS}


def test_every_multicast_has_another_receiver(of_kinds):
    masks = [(command.receivers, command.core) for case in of_kinds["multicast"] for command in case.commands]
    assert all(mask & ~(1 << core) for mask, core in masks)


def test_a_copy_from_another_core_would_be_noticed(of_kinds):
    """The bytes that are copied are not those in the same place of the receiver."""
    for case in of_kinds["remote_copy"]:
        first, copy = case.commands[:2]
        fields, before = copy.fields, case.smem.contents()
        landed, source = fields["source"] - first.fields["destination"], first.fields["source"]
        copied = case.global_contents()[source + landed :][: fields["size"]]
        assert 0 <= landed <= landed + fields["size"] <= first.fields["size"]
        assert copy.core == first.core and not copy.receivers >> copy.core & 1
        assert not np.array_equal(copied, before[fields["source"] :][: fields["size"]])


def test_arrivals_end_phases_and_do_not(of_kinds):
    found = Counter()
    for case in of_kinds["arrival"]:
        for command in case.commands:
            assert command.opcode == CaseOp.ARRIVE
            arriving, expected, value = (command.fields[name] for name in ("arriving", "expected", "value"))
            found[min(arriving.bit_count() * value // expected, 2)] += 1
            found["own" if arriving >> command.core & 1 else "remote alone"] += 1
    assert all(found[key] > 20 for key in (0, 1, 2, "own", "remote alone"))
