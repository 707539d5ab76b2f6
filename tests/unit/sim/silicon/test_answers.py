"""Answers: what changed, when two are the same, and how they are written."""

import numpy as np
import pytest

from tilewright.sim.replay.cases import cases_of
from tilewright.sim.silicon.answers import Answer, Side, golden_side, silicon_side, tables
from tilewright.sim.silicon.records import Ending, Status
from tilewright.sim.silicon.replies import Reply

TILE = {"element": "u8", "address": 0, "size": [64, 4], "stride": [64], "box": [16, 2]}
DONE = Side(None, [32], [[0, "0011"]], [])


def case_with(commands, cores=1, **changed):
    entry = {"name": "topic/one", "why": "What?", "kind": "tmau", "gmem": {"bytes": 256, "init": {"fill": 7}}}
    entry |= {"smem": {"bytes": 512, "init": {"fill": 205}}, "maps": {"x": TILE | changed}, "commands": commands}
    entry |= {"cores": cores}
    return cases_of({"version": 1, "cases": [entry]}, "test", None)[0]


@pytest.fixture
def case():
    return case_with([{"op": "load", "map": "x", "coords": [0, 0], "smem": 128}])


def reply_to(case, **changed):
    """Of a GPU on which nothing moves and the driver takes every map."""
    fields = {"maps": {"x": 0}, "endings": (Ending.DONE,), "counted": (0,)}
    fields |= {"gmem": case.global_contents(), "smems": [case.smem.contents()]}
    return Reply(Status.OK, **fields | changed)


def test_golden_counts_only_what_silicon_counts(case):
    assert golden_side(case) == Side(None, [32], [[128, "07" * 32]], [])
    store = case_with([{"op": "store", "map": "x", "coords": [48, 3], "smem": 0}])
    assert golden_side(store) == Side(None, [None], [], [[240, "cd" * 16]])
    blocks = [{"op": "copy_block", "src": [space, 0], "dst": [other, 128], "size": 16}
              for space, other in (("global", "shared"), ("shared", "global"), ("shared", "shared"))]  # fmt: skip
    assert golden_side(case_with(blocks)).bytes == [16, None, 16]
    refused = case_with([{"op": "load", "map": "x", "coords": [0, 0], "smem": 16}])
    assert golden_side(refused).refusal == "smem_alignment"


def test_changes_less_than_sixteen_bytes_apart_are_one(case):
    smem = case.smem.contents()
    for address in (0, 16, 40, 57):
        smem[address] = 1
    side = silicon_side(case, reply_to(case, smems=[smem]))
    assert side.smem == [[0, "01" + "cd" * 15 + "01"], [40, "01"], [57, "01"]]
    assert side.gmem == []


@pytest.mark.parametrize(
    ("changed", "refusal"),
    [
        ({"maps": {"x": 1}, "endings": (Ending.REFUSED,)}, "by the driver: CUDA_ERROR_INVALID_VALUE"),
        ({"maps": {"x": 801}, "endings": (Ending.REFUSED,)}, "by the driver: CUresult 801"),
        ({"endings": (Ending.NO_SUCH,)}, "there is no such instruction"),
    ],
)
def test_refusals_of_silicon(case, changed, refusal):
    side = silicon_side(case, reply_to(case, counted=(None,), **changed))
    assert side == Side(refusal, [], [], [])
    assert side.text() == f"refused: {refusal}"


def test_a_broken_context_is_a_refusal_and_a_copy_without_end_is_not(case):
    side = silicon_side(case, Reply(Status.FAILED, message="cudaErrorMisalignedAddress"))
    assert side.refusal == "by the GPU: cudaErrorMisalignedAddress"
    side = silicon_side(case, reply_to(case, endings=(Ending.UNFINISHED,), counted=(None,)))
    assert (side.refusal, side.bytes) == (None, ["never ends"])
    assert not Answer("a", "?", Side("coords", [], [], []), side).same


@pytest.mark.parametrize(
    ("golden", "silicon", "same"),
    [
        (DONE, DONE, True),
        (DONE, Side(None, [48], DONE.smem, []), False),
        (DONE, Side(None, [32], [[0, "0012"]], []), False),
        (DONE, Side(None, [32], DONE.smem, [[0, "00"]]), False),
        (DONE, Side("by the driver: x", [], [], []), False),
        (Side("box", [0], [], []), Side("by the driver: x", [], [], []), True),
        (Side("box", [0], [], []), Side(None, [0], [], []), False),
    ],
)
def test_same(golden, silicon, same):
    answer = Answer("a", "?", golden, silicon)
    assert answer.same == same
    assert answer.record()["same"] == same


@pytest.fixture
def cluster():
    return case_with([{"op": "load", "map": "x", "coords": [0, 0], "smem": 128, "multicast": 6}], cores=3)


def test_several_cores(cluster):
    golden = golden_side(cluster)
    assert golden == Side(None, [32], [[128, "07" * 32, [1, 2]]], [])
    assert golden.text() == f"counts 32; shared 0x80 of cores 1, 2: {'07' * 32}"
    smems = [cluster.smem.contents() for _ in range(3)]
    for smem in smems[1:]:
        smem[128:160] = 7
    assert Answer("a", "?", golden, silicon_side(cluster, reply_to(cluster, smems=smems, counted=(32,)))).same
    uneven = silicon_side(cluster, reply_to(cluster, smems=smems, counted=((0, 32, 16),)))
    assert not Answer("a", "?", golden, uneven).same
    assert uneven.text().startswith("counts 0, 32, 16 in cores 0 to 2; shared")
    smems[0][128:160], smems[2][3] = 7, 1
    wrong = silicon_side(cluster, reply_to(cluster, smems=smems, counted=(32,)))
    assert wrong.smem == [[128, "07" * 32, [0, 1, 2]], [3, "01", [2]]]
    assert wrong.text().endswith("; shared 0x3 of core 2: 01")


def test_text():
    assert DONE.text() == "counts 32; shared 0x0: 0011"
    assert Side(None, [None], [], []).text() == "nothing changes"
    long = Side(None, [1, 2], [[16, "ab" * 48], [128, "ab" * 49]], [[n, "00"] for n in (0, 64)])
    assert long.text() == (
        f"counts 1, 2; shared 0x10: {'ab' * 48}; shared 0x80: {'ab' * 16}… (49 bytes); 2 more changes"
    )


def test_tables_have_a_heading_for_each_topic():
    other = Side(None, [33], [], [])
    answers = [Answer("first_one/a", "A?", DONE, None), Answer("first_one/b", "B?", DONE, DONE)]
    text = tables([*answers, Answer("second/a", "C?", DONE, other)])
    head = "| question | golden model | silicon |\n| --- | --- | --- |\n"
    assert text == (
        f"### first one\n\n{head}"
        f"| `first_one/a`: A? | {DONE.text()} | not captured |\n"
        f"| `first_one/b`: B? | {DONE.text()} | {DONE.text()} |\n"
        f"\n### second\n\n{head}"
        f"| `second/a`: C? | {DONE.text()} | **different:** {other.text()} |\n"
    )


def test_an_unasked_answer_has_no_verdict():
    assert Answer("a", "?", DONE, None).record() == {
        "name": "a",
        "question": "?",
        "golden": {"refusal": None, "bytes": [32], "smem": [[0, "0011"]], "gmem": []},
        "silicon": None,
    }


def test_memory_is_compared_as_a_whole(case):
    """A byte that silicon writes with what was there before cannot be seen; any other can."""
    smem = case.smem.contents()
    smem[128:160] = 7
    golden = golden_side(case)
    assert Answer("a", "?", golden, silicon_side(case, reply_to(case, smems=[smem], counted=(32,)))).same
    for address in np.random.default_rng(1).integers(0, 512, 20):
        wrong = smem.copy()
        wrong[address] ^= 1
        assert not Answer("a", "?", golden, silicon_side(case, reply_to(case, smems=[wrong], counted=(32,)))).same
