"""The kept vectors: every case meets its expectation on golden and on the RTL, which also equals golden."""

import json
import shutil
from pathlib import Path

import pytest

from tilewright.sim.cli import main
from tilewright.sim.results import record

_FOLDER = Path(__file__).parents[1] / "vectors"
VECTORS = [*sorted(_FOLDER.glob("*.json")), _FOLDER / "silicon" / "questions.json"]
#: Files that run in one way on the RTL.
ONCE = {
    "pe": "the processing engine has no bus; on Icarus Verilog random programs show it",
    "questions": "they ask what comes out, not how",
}
#: Files of what has no hardware yet.
GOLDEN_ALONE = {"conv_seed"}
NEEDS_ICARUS = pytest.mark.skipif(not shutil.which("iverilog"), reason="Icarus Verilog is not installed")
SEED_CASES = 47


@pytest.mark.parametrize(
    "where",
    [
        ("--on", "golden"),
        ("--on", "rtl"),
        ("--on", "rtl", "--latency", "7", "--stall", "0.4"),
        # The largest model of the slowest simulator: in each run, preset unit stands for it in random tests.
        pytest.param(("--on", "rtl", "--sim", "icarus", "--latency", "20"), marks=[NEEDS_ICARUS, pytest.mark.long]),
    ],
    ids=lambda where: " ".join(where),
)
@pytest.mark.parametrize("path", VECTORS, ids=lambda path: path.stem)
def test_kept_vectors(path, where, tmp_path, capsys):
    if path.stem in GOLDEN_ALONE and "rtl" in where:
        pytest.skip("there is no hardware of the convolution engine yet")
    if path.stem in ONCE and len(where) > len(("--on", "rtl")):
        pytest.skip(ONCE[path.stem])
    out = tmp_path / "results.json"
    assert main(["replay", str(path), *where, "--out", str(out)]) == 0, capsys.readouterr().out
    records = json.loads(out.read_text())["results"]
    cases = json.loads(path.read_text())["cases"]
    assert [each["name"] for each in records] == [case["name"] for case in cases]
    assert not any("skipped" in each for each in records)
    assert all(case["expect"] for case in cases)
    record("-".join(["vectors", path.stem, *(word.strip("-") for word in where)]), cases=len(records))


def test_all_seed_cases_are_there():
    (path,) = (path for path in VECTORS if path.stem == "tmau_seed")
    assert len(json.loads(path.read_text())["cases"]) == SEED_CASES
