"""Answers: what changed, when two are the same, and how they are written."""

import json
import sys
from argparse import ArgumentParser
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from support.cases import read_case, write_cases
from tilewright.errors import UsageError
from tilewright.silicon import ask as module
from tilewright.silicon.ask import Answer, Side, ask, golden_side, silicon_side, tables
from tilewright.silicon.packing import Ending, Status, pack
from tilewright.silicon.program import open_program
from tilewright.silicon.replay import no_counterpart
from tilewright.silicon.replies import Reply
from tilewright.sim.replay.cases import read_cases
from tilewright.sim.replay.golden import run_case
from tilewright.sim.replay.outcome import mismatches
from tilewright.spec import Error

TILE = {"element": "u8", "address": 0, "size": [64, 4], "stride": [64], "box": [16, 2]}
DONE = Side(None, [32], [[0, "0011"]], [])


def case_with(commands, cores=1, **changed):
    entry = {"name": "topic/one", "why": "What?", "kind": "tmau", "gmem": {"bytes": 256, "init": {"fill": 7}}}
    entry |= {"smem": {"bytes": 512, "init": {"fill": 205}}, "maps": {"x": TILE | changed}, "commands": commands}
    entry |= {"cores": cores}
    return read_case(entry)


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


STAND_IN = [sys.executable, str(Path(__file__).with_name("stand_in.py"))]
#: Of each kind one: done by both, refused by both maps, refused by us alone, and a store.
CHOSEN = ("start/load_u8", "driver/size_0", "shared/load_at_16", "start/store_f32")
PAGE = Path("docs/silicon.md")
QUESTIONS = Path("tests/vectors/silicon/questions.json")
#: Answers of silicon, once there are any.
KEPT = QUESTIONS.with_name("answers.json")


@pytest.fixture(scope="module")
def questions():
    return {case.name: case for case in read_cases(QUESTIONS)}


def run(monkeypatch, *arguments, lies=()):
    """The command on a stand-in."""
    monkeypatch.setattr(module, "open_program", lambda: open_program([*STAND_IN, *lies]))
    parser = ArgumentParser()
    module.configure(parser)
    return module.run(parser.parse_args([str(argument) for argument in arguments]))


@pytest.fixture
def chosen(tmp_path):
    """A file of a few of the questions."""
    cases = [case for case in json.loads(QUESTIONS.read_text())["cases"] if case["name"] in CHOSEN]
    return write_cases(tmp_path / "few.json", *cases)


def test_golden_answers_as_the_file_expects(questions):
    for case in questions.values():
        assert set(case.expect) == {"error", "tx_bytes", "smem_sha256", "gmem_sha256"}
        assert mismatches(case.expect, run_case(case)) == [], case.name


def test_each_is_a_question_of_a_topic_that_silicon_can_be_asked(questions):
    for case in questions.values():
        topic, _, rest = case.name.partition("/")
        assert topic and rest
        assert case.why.endswith("?") and case.why[0].isupper() and "\n" not in case.why and "|" not in case.why
        assert no_counterpart(case) is None
        assert pack(case)


def test_every_rule_of_a_descriptor_is_put_to_the_driver(questions):
    """All that a case can break: the other codes are of words that the driver makes itself."""
    asked = {case.expect["error"] for case in questions.values() if case.name.startswith("driver/")}
    rules = ("RANK", "FILL", "ADDRESS", "SIZE", "STRIDE", "BOX", "TRAVERSAL", "SWIZZLE", "CORNER", "CHANNELS", "PIXELS")
    assert {Error[rule].name.lower() for rule in rules} <= asked


def test_answers_are_printed_and_written(chosen, tmp_path, monkeypatch, capsys):
    out = tmp_path / "new" / "answers.json"
    assert run(monkeypatch, chosen, "--out", out) == 0
    printed = capsys.readouterr().out
    document = json.loads(out.read_text())
    answers = {answer["name"]: answer for answer in document["answers"]}
    assert set(answers) == set(CHOSEN)
    said = document["silicon"]
    assert (said["gpu"], said["cuda"]) == ("Stand-in", "13.0") and said["driver"] and said["date"]
    for name in ("start/load_u8", "driver/size_0", "start/store_f32"):
        assert answers[name]["same"]
        assert f"same      {name}: " in printed
    assert answers["driver/size_0"]["silicon"]["refusal"] == "by the driver: CUDA_ERROR_INVALID_VALUE"
    # The stand-in gives up what golden refuses at run time; after that it is started again.
    assert "by the GPU: the program ended with status 1" in answers["shared/load_at_16"]["silicon"]["refusal"]
    assert "4 questions to Stand-in: 4 times the same, 0 DIFFERENT" in printed
    assert out.with_suffix(".md").read_text().count("\n| `") == 4


@pytest.mark.parametrize(
    ("lies", "different"),
    [
        (("--miscount", "16"), {"start/load_u8"}),
        (("--flip-shared", "3"), {"start/load_u8", "start/store_f32"}),
        (("--flip-global", "9"), {"start/load_u8", "start/store_f32"}),
        (("--refuse",), {"start/load_u8", "start/store_f32"}),
        (("--accept",), {"driver/size_0"}),
        (("--unfinished", "0"), {"start/load_u8", "start/store_f32", "shared/load_at_16"}),
        (("--no-such", "0"), {"start/load_u8", "start/store_f32"}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_differences_are_found(chosen, tmp_path, monkeypatch, capsys, lies, different):
    out = tmp_path / "answers.json"
    assert run(monkeypatch, chosen, "--out", out, lies=lies) == 0
    answers = json.loads(out.read_text())["answers"]
    found = {answer["name"] for answer in answers if not answer["same"]}
    assert found == different
    assert "DIFFERENT" in capsys.readouterr().out


def test_what_was_answered_is_kept(chosen, tmp_path, monkeypatch):
    """Also if the GPU is gone in the middle."""
    out, asked = tmp_path / "answers.json", []

    def failing(case, program):
        if asked:
            raise UsageError("there is no GPU to replay on: gone")
        asked.append(case)
        return ask(case, program)

    monkeypatch.setattr(module, "ask", failing)
    with pytest.raises(UsageError, match="gone"):
        run(monkeypatch, chosen, "--out", out)
    assert len(json.loads(out.read_text())["answers"]) == 1


def test_mistakes_are_one_sentence(tmp_path, monkeypatch, capsys):
    with pytest.raises(UsageError, match=r"nowhere\.json: cannot be read: No such file"):
        run(monkeypatch, tmp_path / "nowhere.json")
    with pytest.raises(SystemExit):
        run(monkeypatch, QUESTIONS, "--out", tmp_path)
    assert f"argument --out: must name a file, not the folder {tmp_path}\n" in capsys.readouterr().err
    path = tmp_path / "beyond.json"
    tile = {"element": "u8", "address": 0, "size": [64], "box": [16], "unaligned": True}
    load = {"op": "load", "map": "x", "coords": [0], "smem": 0}
    case = {"name": "a", "kind": "tmau", "gmem": {"bytes": 64}, "smem": {"bytes": 64}, "maps": {"x": tile}}
    write_cases(path, case | {"commands": [load]})
    with pytest.raises(UsageError, match=r"^case 'a': silicon cannot be asked: .*unaligned"):
        run(monkeypatch, path)


def test_page_shows_every_question_with_what_golden_says_today(questions):
    """And what silicon said, where answers have been kept."""
    said = {}
    if KEPT.exists():
        said = {answer["name"]: Side(**answer["silicon"]) for answer in json.loads(KEPT.read_text())["answers"]}
    answers = [replace(ask(case), silicon=said.get(case.name)) for case in questions.values()]
    assert tables(answers) in PAGE.read_text(encoding="utf-8")


def test_page_says_it_as_long_as_nothing_has_been_captured():
    captured = KEPT.exists() or any(KEPT.parent.glob("*.json.xz"))
    first = PAGE.read_text(encoding="utf-8").splitlines()[2]
    assert ("Nothing has been captured yet" in first) == (not captured)
