"""Hardware for replay cases: reach of commands in shared memory, parameters, and presets."""

import json
from argparse import Namespace
from math import inf
from pathlib import Path

import pytest

from tilewright.hw.core.params import CoreParams
from tilewright.hw.pe.params import PE_PRESETS
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.sim.replay import golden, rtl
from tilewright.sim.replay.cases import cases_of, read_cases
from tilewright.sim.replay.commands import shared_reach
from tilewright.sim.replay.golden import run_case
from tilewright.sim.replay.hardware import hardware_bytes, hardware_of, why_no_hardware
from tilewright.spec import DESCRIPTOR
from tilewright.tools.cli.main import main

MAPS = {
    "x": {"element": "u8", "address": 0, "size": [64, 8], "stride": [64], "box": [32, 4], "swizzle": "64B"},
    "refused": {"element": "u8", "address": 8, "size": [64], "box": [32]},
}
MAPS["placed"] = MAPS["x"] | {"at": 2048}
#: The second entry of the box.
REPLACE = {"op": "replace", "map": "placed", "field": "box", "index": 1, "value": DESCRIPTOR["box"].encode(8)}
LOAD = {"op": "load", "map": "x", "coords": [0, 0], "smem": 128}
COPY = {"op": "copy_block", "size": 64}
LANES = {"op": "lanes", "element": "f16", "shape": [1, 1, 1, 1], "lanes": 4, "eu_bytes": 16,
         "src": {"layout": "global", "address": 0}, "dst": {"layout": "compact", "address": 0}}  # fmt: skip


@pytest.mark.parametrize(
    ("commands", "reach"),
    [
        ([], 0),
        ([LOAD], 128 + 4 * 64),
        ([LOAD | {"op": "store"}, LOAD | {"smem": 0}], 128 + 4 * 64),
        ([LOAD | {"repeat": 3, "smem_step": 512}], 128 + 2 * 512 + 4 * 64),
        ([{"op": "prefetch", "map": "x", "coords": [0, 0]}], 0),
        ([LOAD | {"map": "refused", "coords": [0]}], 0),
        ([COPY | {"src": ["global", 1024], "dst": ["shared", 32]}], 96),
        ([COPY | {"src": ["shared", 512], "dst": ["shared", 32]}], 576),
        ([LANES], inf),
        ([REPLACE, LOAD | {"map": "placed"}], 128 + 8 * 64),
        ([LOAD | {"map": "placed"}, REPLACE], 128 + 4 * 64),
        ([REPLACE | {"field": "version", "index": 0, "value": 7}, LOAD | {"map": "placed"}], 0),
        ([REPLACE | {"index": 7}, LOAD | {"map": "placed"}], 128 + 4 * 64),
    ],
)
def test_reach(tmp_path, commands, reach):
    assert shared_reach(read(tmp_path, 4096, commands)) == reach


@pytest.mark.parametrize(
    ("size", "commands", "hardware"),
    [
        (4096, [LOAD], 4096),
        (3000, [LOAD], 4096),
        (384, [LOAD], 1024),
        (383, [LOAD], 383),  # a command can tell: such a case is refused
        (3000, [LANES], 3000),
    ],
)
def test_hardware(tmp_path, size, commands, hardware):
    assert hardware_bytes(read(tmp_path, size, commands)) == hardware


def test_hardware_of_several_cores(tmp_path):
    params = hardware_of(read(tmp_path, 3000, [LOAD], cores=2))
    assert (params.cores, params.core.smem.size_bytes) == (2, 4096)


def read(tmp_path, size, commands, **more):
    """A case of ``size`` bytes of shared memory."""
    case = {"name": "asked", "kind": "tmau", "gmem": {"bytes": 4096}, "smem": {"bytes": size}, "maps": MAPS} | more
    path = tmp_path / "cases.json"
    path.write_text(json.dumps({"version": 1, "cases": [case | {"commands": commands}]}))
    return read_cases(path)[0]


VECTORS = Path(__file__).resolve().parents[3] / "vectors"
MEMORIES = {"gmem": {"bytes": 4096}, "smem": {"bytes": 4096}}
HARDWARE_COPY = {"op": "copy_block", "src": ["global", 0], "dst": ["shared", 0], "size": 64}
TMAU = {"name": "c", "kind": "tmau", "maps": {}, "commands": [HARDWARE_COPY]} | MEMORIES
CORE = {"name": "c", "kind": "core", "at": 0, "program": "end", "pe": {"preset": "ecp5"}} | MEMORIES
PROGRAM = {"name": "c", "kind": "program", "pe": {"preset": "unit"}, "smem": {"bytes": 4096}, "program": "halt"}


def hardware_read(case):
    return cases_of({"version": 1, "cases": [case]}, "cases.json", Path())[0]


def errors(preset):
    """The error of each case of addresses and features, by its name."""
    cases = [case for case in read_cases(VECTORS / "address_width.json") if not why_no_hardware(case, preset)]
    return {case.name: run_case(case, hardware_of(case, preset)).record["error"] for case in cases}


def test_golden_stands_for_a_preset():
    """The same commands: addresses wrap at 32 bits, reach beyond memory with more, and lean refuses missing features.

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
    assert hardware_of(hardware_read(TMAU), preset) == CoreParams(params)
    assert hardware_of(hardware_read(TMAU | {"processors": [{}, {}]}), preset).tmau == params.replace(processors=2)
    cluster = hardware_of(hardware_read(TMAU | {"cores": 3}), preset)
    assert (cluster.cores, cluster.tmau.features, cluster.smem.size_bytes) == (3, params.features, 4096)
    core = hardware_of(hardware_read(CORE), preset)
    assert (core.tmau.addr_width, core.tmau.features) == (params.addr_width, params.features)
    assert core.pe.threads == PE_PRESETS["ecp5"].threads and core.smem.size_bytes == 4096
    program = hardware_read(PROGRAM)
    assert hardware_of(program, preset) == CoreParams(pe=program.program.params)


@pytest.mark.parametrize("case", [TMAU, TMAU | {"cores": 2}, CORE], ids=["tmau", "cluster", "core"])
def test_a_preset_without_windows(case):
    confined = hardware_read(case | {"windows": {"global": [0, 4095]}})
    assert why_no_hardware(confined, "unit") is None
    assert why_no_hardware(confined, "lean") == "there is no hardware for it: preset lean has no windows"
    assert why_no_hardware(hardware_read(case), "lean") is None


def test_a_preset_without_windows_for_processors():
    own = hardware_read(TMAU | {"processors": [{}, {"shared": [0, 127]}]})
    assert why_no_hardware(own, "lean") == "there is no hardware for it: preset lean has no windows"


def test_both_backends_agree_on_a_preset():
    case, args = hardware_read(TMAU), Namespace(preset="lean")
    assert golden.hardware(case, args) == rtl.hardware(case, args) == CoreParams(TMAU_PRESETS["lean"])
    assert golden.hardware(case, Namespace(preset=None)) is None


def test_golden_with_a_preset_on_the_command_line(tmp_path, capsys):
    path = tmp_path / "cases.json"
    path.write_text(
        json.dumps({"version": 1, "cases": [TMAU | {"commands": [HARDWARE_COPY | {"src": ["global", 1 << 32]}]}]})
    )
    for options, error in (([], "read"), (["--preset", "default"], "read"), (["--preset", "unit"], None)):
        out = tmp_path / "out.json"
        assert main(["replay", str(path), "--on", "golden", "--out", str(out), *options]) == 0
        assert json.loads(out.read_text())["results"][0]["error"] == error
    path.write_text(json.dumps({"version": 1, "cases": [TMAU | {"windows": {"shared": [0, 127]}}]}))
    assert main(["replay", str(path), "--on", "golden", "--preset", "lean"]) == 3
    assert "skipped   c: there is no hardware for it: preset lean has no windows" in capsys.readouterr().out
