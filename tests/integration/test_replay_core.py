"""Cases of kind core on hardware; the simulator is that of core/test_program.py."""

import json
from pathlib import Path

import pytest

from support.selection import cases
from tilewright.hw.conv.params import CONV_UNIT_PRESETS
from tilewright.hw.core import CORE_PRESETS, ProgramParams
from tilewright.sim.replay import rtl
from tilewright.sim.replay.cases import read_cases
from tilewright.sim.replay.hardware import hardware_of
from tilewright.tools.cli.main import main

VECTORS = Path("tests/vectors/core.json")
PARAMS = CORE_PRESETS["unit"].replace(conv=CONV_UNIT_PRESETS["unit"], program=ProgramParams())
ENGINES = {"pe": {"preset": "unit"}, "conv": {"preset": "unit"}, "smem": {"bytes": PARAMS.smem.size_bytes}}


def write(folder, cases):
    path = folder / "cases.json"
    path.write_text(json.dumps({"version": 1, "cases": cases}))
    return path


@cases("stall", [0], [0.4])
def test_vectors(tmp_path, capsys, stall):
    """With the shared memory of the preset. Both memories and the record must be golden's."""
    cases = [case | ENGINES | {"expect": {}} for case in json.loads(VECTORS.read_text())["cases"]]
    path = write(tmp_path, cases)
    assert {hardware_of(case, "unit") for case in read_cases(path)} == {PARAMS}
    assert main(["replay", str(path), "--on", "rtl", "--stall", str(stall), "--latency", "20"]) == 0
    assert f"{len(cases)} cases ran on rtl, 0 with a mismatch" in capsys.readouterr().out


class AskedError(Exception):
    """What a session was to be made of."""


def test_sessions_have_the_memory_of_the_case(tmp_path, monkeypatch):
    def ask(*, params, memory_bytes, **options):
        raise AskedError(params == PARAMS, memory_bytes)

    monkeypatch.setattr(rtl, "Session", ask)
    case = {"name": "end", "kind": "core", "at": 0, "program": "end", **ENGINES}
    for size, memory in ((4096, 16 << 20), (16 << 20, 16 << 20), ((16 << 20) + 1, 32 << 20)):
        with pytest.raises(AskedError) as asked:
            main(["replay", str(write(tmp_path, [case | {"gmem": {"bytes": size}}])), "--on", "rtl"])
        assert asked.value.args == (True, memory)


def test_more_memory_than_simulators_have_is_refused(tmp_path, capsys):
    case = {"name": "end", "kind": "core", "at": 0, "program": "end", **ENGINES, "gmem": {"bytes": (1 << 28) + 1}}
    assert main(["replay", str(write(tmp_path, [case])), "--on", "rtl"]) == 2
    assert "gmem.bytes" in capsys.readouterr().err


def test_a_convolution_engine_reads_eight_chunks_whatever_the_other_engine_does(tmp_path):
    """The preset ecp5 of the processing engine reads four."""
    case = json.loads(VECTORS.read_text())["cases"][0]
    (with_conv,) = read_cases(write(tmp_path, [case | ENGINES | {"pe": {"preset": "ecp5"}}]))
    params = hardware_of(with_conv, "ecp5")
    assert params.smem == params.conv.smem
    assert params.smem.chunks_a_cycle == 8
