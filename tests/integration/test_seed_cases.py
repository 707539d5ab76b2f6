"""The kept vectors on both models: every case that can run meets its expectation, and the RTL equals golden."""

import json
import shutil
from pathlib import Path

import pytest

from tilewright.sim.cli import main

VECTORS = sorted((Path(__file__).parents[1] / "vectors").glob("*.json"))
NEEDS_ICARUS = pytest.mark.skipif(not shutil.which("iverilog"), reason="Icarus Verilog is not installed")


def is_tile_load(case):
    """Whether a case needs nothing but tile-mode loads without interleave."""
    if case["kind"] != "tmau":
        return False
    maps = case["maps"].values()
    return {command["op"] for command in case["commands"]} == {"load"} and not any(
        tmap.get("mode", "tile") != "tile" or tmap.get("interleave", "none") != "none" for tmap in maps
    )


@pytest.mark.parametrize(
    "where",
    [
        ("--on", "golden"),
        ("--on", "rtl"),
        ("--on", "rtl", "--latency", "7", "--stall", "0.4"),
        pytest.param(("--on", "rtl", "--sim", "icarus", "--latency", "20"), marks=NEEDS_ICARUS),
    ],
    ids=lambda where: " ".join(where),
)
@pytest.mark.parametrize("path", VECTORS, ids=lambda path: path.stem)
def test_kept_vectors(path, where, tmp_path, capsys):
    out = tmp_path / "results.json"
    assert main(["replay", str(path), *where, "--out", str(out)]) == 0, capsys.readouterr().out
    records = json.loads(out.read_text())["results"]
    ran = [record["name"] for record in records if "skipped" not in record]
    cases = json.loads(path.read_text())["cases"]
    assert ran == [case["name"] for case in cases if is_tile_load(case)]
    assert all(case["expect"] for case in cases)
