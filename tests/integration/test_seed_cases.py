"""The kept vectors: every case meets its expectation on golden and on the RTL, which also equals golden."""

import json
import shutil
from pathlib import Path

import pytest

from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.results import record
from tilewright.tools.cli.main import main

_FOLDER = Path(__file__).parents[1] / "vectors"
#: Cases without an expectation, which presets meet in ways of their own: test_replay_rtl.py compares them with golden.
_COMPARED = ("address_width", "bus_errors")
VECTORS = [path for path in sorted(_FOLDER.glob("*.json")) if path.stem not in _COMPARED]
VECTORS += [_FOLDER / "silicon" / "questions.json"]
#: Files that run in one way on the RTL.
ONCE = {
    "pe": "the processing engine has no bus; on Icarus Verilog random programs show it",
    "conv_seed": "the convolution engine has no bus; on Icarus Verilog random jobs show it",
    "questions": "they ask what comes out, not how",
}
#: Cases for which a model must be built that no other test needs.
MODEL_OF_THEIR_OWN = {"conv_seed": {"post_big_sums"}}
NEEDS_ICARUS = pytest.mark.skipif(not shutil.which("iverilog"), reason="Icarus Verilog is not installed")
SEED_CASES = {"tmau_seed": 47, "conv_seed": 38, "core": 36}


def each_run():
    """File, and where and how it runs."""
    for path in VECTORS:
        # On models that no other test needs, unless all tests run.
        on_rtl = [pytest.mark.long]
        for where, marks in (
            (("--on", "golden"), []),
            (("--on", "rtl"), on_rtl),
            (("--on", "rtl", "--latency", "7", "--stall", "0.4"), on_rtl),
            # The largest model of the slowest simulator: in each run, preset unit stands for it in random tests.
            (("--on", "rtl", "--sim", "icarus", "--latency", "20"), [NEEDS_ICARUS, pytest.mark.long]),
        ):
            yield pytest.param(path, where, marks=marks, id=f"{path.stem}-{' '.join(where)}")


@pytest.mark.parametrize(("path", "where"), list(each_run()))
def test_kept_vectors(path, where, tmp_path, capsys):
    if path.stem in ONCE and len(where) > len(("--on", "rtl")):
        pytest.skip(ONCE[path.stem])
    if path.stem in MODEL_OF_THEIR_OWN and "rtl" in where:
        cases = json.loads(path.read_text())["cases"]
        path = tmp_path / path.name
        some = [case for case in cases if case["name"] not in MODEL_OF_THEIR_OWN[path.stem]]
        path.write_text(json.dumps({"version": 1, "cases": some}))
    out = tmp_path / "results.json"
    assert main(["replay", str(path), *where, "--out", str(out)]) == 0, capsys.readouterr().out
    records = json.loads(out.read_text())["results"]
    cases = json.loads(path.read_text())["cases"]
    assert [each["name"] for each in records] == [case["name"] for case in cases]
    assert not any("skipped" in each for each in records)
    assert all(case["expect"] for case in cases)
    record("-".join(["vectors", path.stem, *(word.strip("-") for word in where)]), cases=len(records))


def test_questions_on_the_smallest_access_unit(tmp_path, capsys):
    """Those of one core for whose memories it is large enough; the vectors that are run in test_replay_rtl.py."""
    room = TMAU_PRESETS["unit"].smem.size_bytes
    cases = [case for case in _cases("questions") if case["smem"]["bytes"] <= room and "cores" not in case]
    assert len(cases) == 357
    path = tmp_path / "cases.json"
    path.write_text(json.dumps({"version": 1, "cases": cases}))
    assert main(["replay", str(path), "--on", "rtl", "--preset", "unit"]) == 0, capsys.readouterr().out
    record("vectors-questions-on-rtl-preset-unit", cases=len(cases))


@pytest.mark.long
def test_the_largest_convolution(tmp_path, capsys):
    """It needs a larger shared memory than any preset's of its engine."""
    case = next(case for case in _cases("conv_seed") if case["name"] == "post_big_sums")
    path = tmp_path / "cases.json"
    path.write_text(json.dumps({"version": 1, "cases": [case]}))
    assert main(["replay", str(path), "--on", "rtl"]) == 0, capsys.readouterr().out
    assert capsys.readouterr().out.startswith("met ")


def test_all_seed_cases_are_there():
    assert {stem: len(_cases(stem)) for stem in SEED_CASES} == SEED_CASES


def _cases(stem):
    (path,) = (path for path in VECTORS if path.stem == stem)
    return json.loads(path.read_text())["cases"]
