"""What hardware a case runs on, and that golden judges it by the parameters of that hardware."""

import json
from argparse import Namespace
from pathlib import Path

import pytest

from tilewright.hw.pe.params import PE_PRESETS
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.sim.cli import main
from tilewright.sim.replay import golden, rtl
from tilewright.sim.replay.cases import cases_of, read_cases
from tilewright.sim.replay.golden import run_case
from tilewright.sim.replay.hardware import hardware_of, why_no_hardware

VECTORS = Path(__file__).resolve().parents[3] / "vectors"
MEMORIES = {"gmem": {"bytes": 4096}, "smem": {"bytes": 4096}}
COPY = {"op": "copy_block", "src": ["global", 0], "dst": ["shared", 0], "size": 64}
TMAU = {"name": "c", "kind": "tmau", "maps": {}, "commands": [COPY]} | MEMORIES
CORE = {"name": "c", "kind": "core", "at": 0, "program": "end", "pe": {"preset": "ecp5"}} | MEMORIES
PROGRAM = {"name": "c", "kind": "program", "pe": {"preset": "unit"}, "smem": {"bytes": 4096}, "program": "halt"}


def read(case):
    return cases_of({"version": 1, "cases": [case]}, "cases.json", Path())[0]


def errors(preset):
    """The error of each case of addresses and features, by its name."""
    cases = [case for case in read_cases(VECTORS / "address_width.json") if not why_no_hardware(case, preset)]
    return {case.name: run_case(case, hardware_of(case, preset)).record["error"] for case in cases}


def test_golden_stands_for_a_preset():
    """The same commands: 32 bits wrap, more do not reach memory, and lean refuses what it is built without.

    The first rows of ``across_4g`` lie below 2^32, where there is no memory.
    """
    unit, default, lean, full = map(errors, ("unit", "default", "lean", "full"))
    far = ("above_4g", "store_above_4g", "across_4g", "lanes_above_4g")
    assert [unit[name] for name in far] == [None, None, "read", None]
    assert [default[name] for name in far] == ["read", "write", "read", "read"] == [full[name] for name in far]
    assert (unit["window"], unit["overlap"], unit["near_overlap"]) == ("window", "overlap", None)
    assert (default["window"], default["overlap"], default["near_overlap"]) == (None, "write", "write")
    assert (unit["prefetched_above_4g"], default["prefetched_above_4g"]) == ("window", None)
    names = ("im2col", "reduction", "float_sum", "lanes_above_4g")
    assert [unit[name] for name in names[:3]] == [None] * 3
    assert [lean[name] for name in names] == ["unsupported"] * 4
    assert errors("ecp5")["float_sum"] == "unsupported"
    assert (unit["ragged_end"], default["ragged_end"]) == ("read", None), "memory ends with a whole bus word"
    assert "confined" not in lean


@pytest.mark.parametrize("preset", TMAU_PRESETS)
def test_hardware_of_every_kind(preset):
    params = TMAU_PRESETS[preset]
    assert hardware_of(read(TMAU), preset) == params
    assert hardware_of(read(TMAU | {"processors": [{}, {}]}), preset) == params.replace(processors=2)
    cluster = hardware_of(read(TMAU | {"cores": 3}), preset)
    assert (cluster.cores, cluster.tmau.features, cluster.smem.size_bytes) == (3, params.features, 4096)
    core = hardware_of(read(CORE), preset)
    assert (core.tmau.addr_width, core.tmau.features) == (params.addr_width, params.features)
    assert core.pe.threads == PE_PRESETS["ecp5"].threads and core.smem.size_bytes == 4096
    program = read(PROGRAM)
    assert hardware_of(program, preset) is program.program.params


@pytest.mark.parametrize("case", [TMAU, TMAU | {"cores": 2}, CORE], ids=["tmau", "cluster", "core"])
def test_a_preset_without_windows(case):
    confined = read(case | {"windows": {"global": [0, 4095]}})
    assert why_no_hardware(confined, "unit") is None
    assert why_no_hardware(confined, "lean") == "there is no hardware for it: preset lean has no windows"
    assert why_no_hardware(read(case), "lean") is None


def test_a_preset_without_windows_for_processors():
    own = read(TMAU | {"processors": [{}, {"shared": [0, 127]}]})
    assert why_no_hardware(own, "lean") == "there is no hardware for it: preset lean has no windows"


def test_both_backends_say_the_same_of_a_preset():
    case, args = read(TMAU), Namespace(preset="lean")
    assert golden.hardware(case, args) == rtl.hardware(case, args) == TMAU_PRESETS["lean"]
    assert golden.hardware(case, Namespace(preset=None)) is None


def test_golden_with_a_preset_on_the_command_line(tmp_path, capsys):
    path = tmp_path / "cases.json"
    path.write_text(json.dumps({"version": 1, "cases": [TMAU | {"commands": [COPY | {"src": ["global", 1 << 32]}]}]}))
    for options, error in (([], "read"), (["--preset", "default"], "read"), (["--preset", "unit"], None)):
        out = tmp_path / "out.json"
        assert main(["replay", str(path), "--on", "golden", "--out", str(out), *options]) == 0
        assert json.loads(out.read_text())["results"][0]["error"] == error
    path.write_text(json.dumps({"version": 1, "cases": [TMAU | {"windows": {"shared": [0, 127]}}]}))
    assert main(["replay", str(path), "--on", "golden", "--preset", "lean"]) == 3
    assert "skipped   c: there is no hardware for it: preset lean has no windows" in capsys.readouterr().out
