"""Features of cases: what is said of one load, one reduction and one block."""

import itertools
import json
from collections import Counter

import numpy as np
import pytest

from support.replay import read_case
from tilewright.silicon.cases import BLOCK_REDUCTIONS, TENSOR_REDUCTIONS, case_features, random_cases, special_values
from tilewright.silicon.replay import why_not
from tilewright.sim.replay.golden import run_case
from tilewright.spec import Element, Interleave, L2Promotion, Space, Swizzle
from tilewright.spec.fields import spoken

MAP = {"element": "f16", "address": 0, "size": [16, 8], "stride": [32], "box": [8, 4], "traversal": [1, 2],
       "swizzle": "32B", "fill": "nan"}  # fmt: skip


def features(*commands, **changes):
    case = {"name": "x", "kind": "tmau", "gmem": {"bytes": 4096}, "smem": {"bytes": 4096}, "maps": {"m": MAP | changes}}
    return case_features(read_case(case | {"commands": list(commands)}))


def test_a_load():
    load = {"op": "load", "map": "m", "coords": [-4, 0], "smem": 0}
    assert features(load) == {
        "load tile of rank 2", "load tile with interleave none", "load with swizzle 32B", "load of f16",
        "load with L2 promotion none", "load tile with traversal", "load with gaps between rows",
        "load from a negative coordinate", "load tile partly outside", "load partly outside, fill nan of f16",
    }  # fmt: skip
    assert "load wholly outside, fill nan of f16" in features(load | {"coords": [0, 8]})
    inside = features(load | {"coords": [0, 0]}, traversal=[8, 1], box=[16, 1])
    assert not any("outside" in feature or "traversal" in feature or "gaps" in feature for feature in inside)


def test_an_im2col_load():
    shape = {"mode": "im2col", "size": [16, 4, 4], "stride": [32, 128], "traversal": [1, 1, 1], "swizzle": "none",
             "box": [], "lower": [-1], "upper": [0], "channels": 16, "pixels": 2}  # fmt: skip
    load = {"op": "load", "map": "m", "coords": [0, -1, 0], "offsets": [1], "smem": 0}
    found = features(load, **shape)
    assert {"load im2col of rank 3", "load with offsets"} <= found
    assert not any("outside" in feature or "negative" in feature for feature in found)


def test_a_reduction_and_blocks():
    reduction = {"op": "reduce", "reduce": "add", "map": "m", "coords": [0, 0], "smem": 0}
    block = {"op": "copy_block", "src": ["shared", 0], "dst": ["global", 0], "size": 16}
    found = features(reduction, block, block | {"reduce": "max", "element": "u32"},
                     {"op": "prefetch_block", "src": 0, "size": 16})  # fmt: skip
    assert {"several commands", "reduce add of f16", "block from shared to global",
            "block max of u32 from shared to global", "prefetch_block"} <= found  # fmt: skip
    assert "reduce of f16" not in found


def numbers_of(element):
    """As float64, which holds them all exactly."""
    bits = special_values(element)
    if element == Element.F16:
        numbers = np.array(bits, np.uint16).view(np.float16)
    else:
        numbers = np.array([bit << 16 for bit in bits] if element == Element.BF16 else bits, np.uint32).view(np.float32)
    with np.errstate(invalid="ignore"):  # there are signalling NaNs
        return numbers.astype(np.float64)


@pytest.mark.parametrize("element", [Element.F16, Element.BF16, Element.F32, Element.TF32])
def test_every_kind_of_float_is_there(element):
    numbers = numbers_of(element)
    smallest = {Element.F16: 2.0**-14}.get(element, 2.0**-126)
    for sign in (1, -1):
        signed = numbers[np.signbit(numbers) == (sign < 0)]
        sizes = np.abs(signed)
        assert (sizes == 0).any() and np.isinf(sizes).any() and (sizes == 1).any()
        assert ((sizes > 0) & (sizes < smallest)).sum() >= 2 and (sizes == smallest).any()
        assert np.isnan(sizes).any()


@pytest.mark.parametrize(("element", "places"), [(Element.F16, 10), (Element.BF16, 7), (Element.F32, 23)])
def test_sums_tie(element, places):
    """One and half of its last place, and the same above an odd one."""
    numbers = set(numbers_of(element).tolist())
    assert {2.0 ** -(places + 1), 1.0, 1 + 2.0**-places} <= numbers


@pytest.mark.parametrize("element", [Element.U32, Element.S32, Element.U64, Element.S64])
def test_limits_of_integers(element):
    values, top = special_values(element), 1 << 8 * element.bytes - 1
    assert {0, 1, top - 1, top, 2 * top - 1} <= set(values)
    assert len(set(values)) == len(values)


def test_ties_of_tf32():
    dropped = [value & 0x1FFF for value in special_values(Element.TF32) if value >> 23 == 127]
    kept = [value >> 13 & 1 for value in special_values(Element.TF32) if value & 0x1FFF == 0x1000]
    assert {0x0FFF, 0x1000, 0x1001} <= set(dropped)
    assert set(kept) == {0, 1}


SEED, CASES = 3, 1000
MODES = {"tile": range(1, 6), "im2col": range(3, 6)}
MOVES = ("load", "store", "reduce")


@pytest.fixture(scope="module")
def entries():
    return list(random_cases(SEED, CASES))


@pytest.fixture(scope="module")
def cases(entries):
    return list(map(read_case, entries))


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
