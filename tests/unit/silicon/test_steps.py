"""Everything in one run, with a stand-in for the program: order, what ends it, what it refuses to go on with."""

import json
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from support.replay import write_cases
from tilewright.silicon import steps
from tilewright.silicon.program import open_program
from tilewright.silicon.steps import ARCHIVE, NOTES, QUESTIONS, REPLIES, STEPS, TEST, TIME
from tilewright.tools.cli.main import main

STAND_IN = [sys.executable, str(Path(__file__).with_name("stand_in.py"))]
FEW = ("start/load_u8", "driver/size_0")


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A root with two questions, no worked cases, a test that holds, and times without a program."""
    questions = [case for case in json.loads(QUESTIONS.read_text())["cases"] if case["name"] in FEW]
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)  # by which what is printed would come in order anyhow
    QUESTIONS.parent.mkdir(parents=True)
    write_cases(QUESTIONS, *questions)
    Path("test_it.py").write_text("import unittest\nclass T(unittest.TestCase):\n    def test(self): print('here')\n")
    monkeypatch.setattr(steps, "WORKED", ())
    monkeypatch.setattr(steps, "GPU_TEST", Path("test_it.py"))
    monkeypatch.setattr(steps, "measured", lambda: {"gpu": "Stand-in", "date": "", "rounds": 9, "blocks_of_copy": 1,
                                                    "shapes": [], "clusters": []})  # fmt: skip
    return tmp_path


def run(monkeypatch, *arguments, lies=()):
    monkeypatch.setattr(steps, "open_program", lambda: open_program([*STAND_IN, *lies]))
    return main(["silicon", "all", "--out", "answers", "--cases", "3", *arguments])


def notes():
    return json.loads(Path("answers", NOTES).read_text())


def test_all_steps_in_order(place, monkeypatch, capsys):
    assert run(monkeypatch) == 0
    out = capsys.readouterr().out
    headings = [line for line in out.splitlines() if line.startswith("[")]
    assert headings == [f"[{n} of 6] {name}: {what}" for n, (name, what) in enumerate(STEPS.items(), 1)]
    assert "3 cases ran on Stand-in: 3 equal to golden, 0 different; 0 skipped" in out
    said = notes()
    assert said["steps"] == {
        "test": "OK",
        "worked": "0 cases, 0 different",
        "ask": "2 questions, 0 different",
        "capture": "3 cases, 0 different",
        "clusters": "4 cases, 0 different",
        "time": "0 shapes",
    }
    assert (said["silicon"]["gpu"], said["cases"], said["seed"]) == ("Stand-in", 3, 1)
    assert "here" in Path("answers", TEST).read_text()
    with tarfile.open(Path("answers", ARCHIVE)) as archive:
        assert archive.getnames() == [NOTES, REPLIES, TEST, TIME]
    assert run(monkeypatch) == 0, "nothing is left"
    assert "[" not in capsys.readouterr().out
    assert run(monkeypatch, "time", "ask") == 0, "but can be done again"
    assert [line[:8] for line in capsys.readouterr().out.splitlines() if line.startswith("[")] == [
        "[3 of 6]",
        "[6 of 6]",
    ]


def test_a_test_that_fails_ends_the_run(place, monkeypatch, capsys):
    Path("test_it.py").write_text("import unittest\nclass T(unittest.TestCase):\n    def test(self): self.fail('oh')\n")
    assert run(monkeypatch) == 1
    out = capsys.readouterr().out
    assert "AssertionError: oh" in out
    assert out.endswith("name the steps to run all the same: worked ask capture clusters time\n")
    assert notes()["steps"] == {}
    assert "AssertionError: oh" in Path("answers", TEST).read_text()
    assert run(monkeypatch, "worked", "ask") == 0
    assert set(notes()["steps"]) == {"worked", "ask"}


def test_what_differs_does_not_end_it(place, monkeypatch):
    assert run(monkeypatch, lies=["--miscount", "1"]) == 0
    said = notes()["steps"]
    assert said["ask"] == "2 questions, 1 different"
    assert said["capture"].endswith(" cases, 2 different")  # the third is a store


def test_going_on_with_other_things_is_refused(place, monkeypatch, capsys):
    assert run(monkeypatch, "worked") == 0
    for lies, arguments, sentence in (
        (["--shared-bytes", "4096"], [], "shared_bytes 232432, not 4096"),
        ([], ["--seed", "2"], "seed 1, not 2"),
    ):
        assert run(monkeypatch, *arguments, lies=lies) == 2
        error = capsys.readouterr().err
        assert error == f"tilewright silicon: answers has answers for {sentence}: --out must name another\n"
    monkeypatch.setattr(steps, "source_key", lambda name: "another")
    assert run(monkeypatch, "ask") == 0
    assert "The program is another one than before" in capsys.readouterr().out
    assert set(notes()["steps"]) == {"ask"}


def test_mistakes_are_one_sentence(place, monkeypatch, capsys):
    assert run(monkeypatch, lies=["--no-gpu", "no device"]) == 2
    assert capsys.readouterr().err == "tilewright silicon: there is no GPU to replay on: no device\n"
    assert not Path("answers", NOTES).exists()
    with pytest.raises(SystemExit):
        run(monkeypatch, "tests")
    assert capsys.readouterr().err == (
        f"tilewright silicon all: argument STEP: must be one of {', '.join(STEPS)}, not 'tests'\n"
    )
    QUESTIONS.unlink()
    assert run(monkeypatch) == 2
    assert capsys.readouterr().err.endswith("questions.json: cannot be read: No such file or directory\n")


def test_given_up_answers_are_packed_too(place, monkeypatch):
    def interrupted(*args):
        raise subprocess.SubprocessError

    monkeypatch.setattr(steps, "capture", interrupted)
    with pytest.raises(subprocess.SubprocessError):
        run(monkeypatch, "ask", "capture")
    with tarfile.open(Path("answers", ARCHIVE)) as archive:
        assert archive.getnames() == [NOTES, REPLIES]
    assert list(notes()["steps"]) == ["ask"]
