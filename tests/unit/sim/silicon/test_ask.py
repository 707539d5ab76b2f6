"""The questions hold on the golden model, and asking them: with a stand-in for the program, and no GPU."""

import json
import sys
from argparse import ArgumentParser
from dataclasses import replace
from pathlib import Path

import pytest

from tilewright.golden.spec import Error
from tilewright.sim.replay.cases import read_cases
from tilewright.sim.replay.expectations import mismatches
from tilewright.sim.replay.golden import run_case
from tilewright.sim.silicon import ask as module
from tilewright.sim.silicon.answers import Side, tables
from tilewright.sim.silicon.ask import ask
from tilewright.sim.silicon.packing import pack
from tilewright.sim.silicon.program import open_program
from tilewright.sim.silicon.support import no_counterpart
from tilewright.sim.usage import UsageError

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
    path = tmp_path / "few.json"
    path.write_text(json.dumps({"version": 1, "cases": cases}))
    return path


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
    path.write_text(json.dumps({"version": 1, "cases": [case | {"commands": [load]}]}))
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
