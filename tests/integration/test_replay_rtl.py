"""``tilewright replay --on rtl``: cases that are small enough for the smallest configuration."""

import json
from pathlib import Path

import pytest

from tilewright.sim.cli import main

VECTORS = Path(__file__).resolve().parent.parent / "vectors" / "tmau_seed.json"
SMEM_BYTES = 4096  # of preset unit


def _file(tmp_path, cases):
    path = tmp_path / "cases.json"
    path.write_text(json.dumps({"version": 1, "cases": cases}))
    return str(path)


@pytest.fixture(scope="module")
def small_cases():
    cases = json.loads(VECTORS.read_text())["cases"]
    return [
        case
        for case in cases
        if case.get("kind") == "tmau"
        and case["smem"]["bytes"] <= SMEM_BYTES
        and all(command["op"] == "load" for command in case["commands"])
    ]


def _replay(*arguments):
    return main(["replay", *map(str, arguments), "--on", "rtl", "--preset", "unit"])


@pytest.mark.parametrize("stall", [0, 0.4])
def test_small_vectors(tmp_path, small_cases, stall):
    out = tmp_path / "results.json"
    assert _replay(_file(tmp_path, small_cases), "--stall", stall, "--latency", 30, "--out", out) == 0
    records = [record for record in json.loads(out.read_text())["results"] if "skipped" not in record]
    assert len(records) >= 5
    for record in records:
        assert record["read_words"] >= record["limit_words"]
        assert record["cycles"] > 30


def test_repeated_commands_follow_each_other(tmp_path, small_cases):
    case = next(case for case in small_cases if case["name"] == "tile_inside")
    command = case["commands"][0] | {"smem": 0, "repeat": 4, "smem_step": 256}
    out = tmp_path / "results.json"
    assert _replay(_file(tmp_path, [case | {"commands": [command], "expect": {}}]), "--out", out) == 0
    record = json.loads(out.read_text())["results"][0]
    assert len(record["tx_bytes"]) == 4


def test_errors_are_those_of_golden(tmp_path, small_cases):
    case = next(case for case in small_cases if case["name"] == "tile_inside")
    far = case | {"name": "range", "commands": [case["commands"][0] | {"smem": SMEM_BYTES}], "expect": {}}
    odd = case | {"name": "alignment", "commands": [case["commands"][0] | {"smem": 16}], "expect": {}}
    assert _replay(_file(tmp_path, [odd])) == 0
    out = tmp_path / "results.json"
    assert _replay(_file(tmp_path, [far | {"smem": {"bytes": SMEM_BYTES}}]), "--out", out) == 0
    assert json.loads(out.read_text())["results"][0]["error"] == "smem_range"


def test_mismatch_is_status_1(tmp_path, small_cases):
    case = next(case for case in small_cases if case["name"] == "tile_inside")
    assert _replay(_file(tmp_path, [case | {"expect": {"tx_bytes": [1]}}])) == 1


@pytest.mark.parametrize("option", [("--latency", "1"), ("--stall", "1"), ("--stall", "x"), ("--sim", "other")])
def test_wrong_options_are_status_2(capsys, option):
    with pytest.raises(SystemExit) as end:
        _replay("cases.json", *option)
    assert end.value.code == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
