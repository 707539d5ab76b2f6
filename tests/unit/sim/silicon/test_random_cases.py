"""Random cases for silicon: legal by golden and by what silicon has, and of everything that there is."""

import itertools
import json
from collections import Counter
from pathlib import Path

import pytest

from tilewright.golden.spec import Element, Interleave, L2Promotion, Space, Swizzle
from tilewright.golden.spec.fields import spoken
from tilewright.sim.replay.cases import cases_of
from tilewright.sim.replay.golden import run_case
from tilewright.sim.silicon.case_features import case_features
from tilewright.sim.silicon.random_cases import BLOCK_REDUCTIONS, TENSOR_REDUCTIONS, random_cases
from tilewright.sim.silicon.special_values import special_values
from tilewright.sim.silicon.support import why_not

SEED, CASES = 3, 1000
MODES = {"tile": range(1, 6), "im2col": range(3, 6)}
MOVES = ("load", "store", "reduce")


@pytest.fixture(scope="module")
def entries():
    return list(random_cases(SEED, CASES))


@pytest.fixture(scope="module")
def cases(entries):
    return cases_of({"version": 1, "cases": entries}, "random", Path())


def test_a_function_of_the_seed(entries):
    assert list(random_cases(SEED, 50)) == entries[:50]
    assert list(random_cases(SEED + 1, 50)) != entries[:50]
    assert json.loads(json.dumps(entries)) == entries


def test_nothing_is_refused(cases):
    assert {why_not(case) for case in cases} == {None}
    assert {run_case(case).record["error"] for case in cases} == {None}


def expected_features():
    """What must occur, and how often at least."""
    for op, mode in itertools.product(MOVES, MODES):
        yield from ((f"{op} {mode} of rank {rank}", 3) for rank in MODES[mode])
        yield from ((f"{op} {mode} with interleave {spoken(interleave)}", 1) for interleave in Interleave)
        yield from ((f"{op} {mode} {place}", 1) for place in ("with traversal", "partly outside", "wholly outside"))
    for op in MOVES:
        yield from ((f"{op} with swizzle {spoken(swizzle)}", 5) for swizzle in Swizzle)
        yield from ((f"{op} with L2 promotion {spoken(promotion)}", 5) for promotion in L2Promotion)
        yield f"{op} with gaps between rows", 5
    yield from ((f"{op} of {spoken(element)}", 2) for op in ("load", "store") for element in Element)
    for element in Element:
        yield f"load outside, fill zero of {spoken(element)}", 2
    for element in (Element.F16, Element.BF16, Element.F32, Element.F64, Element.TF32):
        yield f"load outside, fill nan of {spoken(element)}", 1
    yield from ((f"reduce {spoken(op)} of {spoken(element)}", 2) for op, element in TENSOR_REDUCTIONS)
    for memory, op, element in BLOCK_REDUCTIONS:
        yield f"block {spoken(op)} of {spoken(element)} from shared to {memory}", 1
    for places in (("global", "shared"), ("shared", "global"), ("shared", "shared")):
        yield f"block from {places[0]} to {places[1]}", 5
    for feature in ("load with offsets", "load from a negative coordinate", "several commands"):
        yield feature, 10
    yield from (("prefetch_block", 1), *((f"prefetch {mode} with interleave none", 1) for mode in MODES))


def test_everything_occurs(cases):
    counts = Counter(itertools.chain.from_iterable(map(case_features, cases)))
    for place, feature in itertools.product(("partly ", "wholly "), list(counts)):
        if place in feature and "fill" in feature:
            counts[feature.replace(place, "")] += counts[feature]
    rare = {feature: counts[feature] for feature, least in expected_features() if counts[feature] < least}
    assert not rare
    assert not [feature for feature in counts if feature.startswith("store from a negative")]


def test_memories_that_are_not_written_are_few(cases):
    """So that their hashes, of which a capture has thousands, repeat."""
    loads = [case for case in cases if case.name.startswith("load_")]
    usual = Counter(run_case(case).record["gmem_sha256"] for case in loads)
    assert len(usual) < len(loads) / 4


def operands(case, element):
    """What a reduction of a block finds, destination first, as raw bits."""
    (command,) = case.commands
    memories = {Space.GLOBAL: case.global_contents(), Space.SHARED: case.smem.contents()}
    for side in ("destination", "source"):
        first = command.fields[side]
        data = memories[command.fields[f"{side}_space"]][first : first + command.fields["size"]]
        yield data.view(f"<u{element.bytes}").tolist()


@pytest.mark.parametrize("element", [Element.F16, Element.BF16, Element.S64])
def test_all_pairs_of_numbers_that_matter_meet_in_a_block(cases, element):
    pairs = set(itertools.product(special_values(element), repeat=2))
    blocks = [case for case in cases if case.name.startswith("copy_reduce")]
    of_element = [case for case in blocks if case.commands[0].fields["element"] == element]
    assert any(pairs <= set(zip(*operands(case, element), strict=True)) for case in of_element)
