"""Recorded figures."""

import json
from pathlib import Path

import pytest

from tilewright import results
from tilewright.results import load, record


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # Not those of this test run, wherever TILEWRIGHT_BUILD says that they lie.
    monkeypatch.setattr(results, "FOLDER", Path("build/results"))


def test_figures_come_back():
    record("random-icarus", cases=3, seed=7)
    record("random-verilator", cases=5, seed=8)
    record("reset", cases=1)
    assert [figures["cases"] for figures in load("random-*")] == [3, 5]


def test_a_second_record_replaces_the_first():
    record("reset", cases=1)
    record("reset", cases=2)
    assert [figures["cases"] for figures in load("reset")] == [2]


@pytest.mark.parametrize("name", ["of two words"])
def test_commit_and_date_are_added(name):
    record("reset", cases=1)
    (figures,) = load("reset")
    assert set(figures) == {"cases", "command", "commit", "date"}
    test = f"tests/unit/tilewright/test_results.py::test_commit_and_date_are_added[{name}]"
    assert figures["command"] == f"pytest {test}"
    assert figures["commit"]


def test_nothing_half_written_is_left(tmp_path):
    record("reset", cases=1)
    with pytest.raises(TypeError):
        record("reset", cases=object())
    (file,) = (tmp_path / "build/results").iterdir()
    assert json.loads(file.read_text())["cases"] == 1


@pytest.mark.parametrize("name", ["", "Reset", "a/b", "-a", "a b"])
def test_wrong_name(name):
    with pytest.raises(ValueError, match=rf"^a result's name is lower-case words joined by hyphens, not {name!r}$"):
        record(name, cases=1)
