"""Captures of silicon, replayed with no GPU: golden and RTL give every hash and byte that silicon gave.

A capture that a stand-in for the GPU makes shows the whole path, from random cases to a byte that is noticed.
"""

import hashlib
import json
import lzma
import sys
from argparse import Namespace
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.results import record
from tilewright.silicon import capture
from tilewright.sim.replay import rtl as replay_rtl
from tilewright.sim.replay.cases import read_cases, read_document
from tilewright.sim.replay.commands import shared_reach
from tilewright.sim.replay.fields import MemoryImage
from tilewright.sim.replay.golden import run_case
from tilewright.sim.replay.outcome import Outcome, mismatches
from tilewright.tools.cli.main import main

TESTS = Path(__file__).resolve().parents[2]
WORKED = [str(path) for path in sorted((TESTS / "vectors").glob("*.json"))]
CAPTURES = sorted((TESTS / "vectors" / "silicon").glob("*.json.xz"))
STAND_IN = TESTS / "unit" / "silicon" / "stand_in.py"
#: Preset default runs all cases, and preset unit every third of those that reach no further than its shared memory.
on_rtl = pytest.mark.parametrize("preset", ["unit", pytest.param("default", marks=pytest.mark.long)])


def each_capture(paths=CAPTURES):
    nothing = pytest.param(
        None, marks=pytest.mark.skip(reason="nothing has been captured yet: no GPU has been at hand")
    )
    captures = [pytest.param(path, id=path.name.removesuffix(".json.xz")) for path in paths]
    return pytest.mark.parametrize("path", captures or [nothing])


def unmet(run, cases):
    return {case.name: wrong for case in cases if (wrong := mismatches(case.expect, run(case)))}


@each_capture()
def test_golden_meets_every_capture(path):
    cases = read_cases(path)
    assert unmet(run_case, cases) == {}
    record(f"silicon-golden-{path.name.removesuffix('.json.xz')}", cases=len(cases), mismatches=0)


def unmet_on_rtl(preset, cases):
    args = Namespace(preset=preset, sim="verilator", latency=100, stall=0.0)
    with replay_rtl.open_backend(args) as run:
        return unmet(run, cases)


def for_preset(preset, cases, each=1):
    """Cases of one core, each with no more shared memory than the preset has; and those as the capture has them."""
    room = TMAU_PRESETS[preset].smem.size_bytes
    whole = [case for case in cases if case.cores == 1 and min(case.smem.size, shared_reach(case)) <= room][::each]
    return [replace(case, smem=start(case.smem, room)) for case in whole], whole


def start(image, room):
    contents = image.contents()[:room]
    return MemoryImage(len(contents), (lambda memory: memory.__setitem__(slice(None), contents),))


def unmet_of_whole(preset, fitting, whole):
    """As `unmet_on_rtl`, where shared memory behind what the RTL has is as it was."""
    wholes = {case.name: case for case in whole}

    def completed(run, case):
        outcome = run(case)
        smem = wholes[case.name].smem.contents()
        smem[: case.smem.size] = outcome.memories["smem"]
        digest = hashlib.sha256(smem).hexdigest()
        return Outcome(outcome.record | {"smem_sha256": [digest]}, outcome.memories | {"smem": smem})

    args = Namespace(preset=preset, sim="verilator", latency=100, stall=0.0)
    with replay_rtl.open_backend(args) as run:
        return {case.name: wrong for case in fitting if (wrong := mismatches(case.expect, completed(run, case)))}


@each_capture([path for path in CAPTURES if not path.name.endswith("-clusters.json.xz")])
@on_rtl
def test_rtl_meets_every_capture(path, preset):
    cases, whole = for_preset(preset, read_cases(path), 3 if preset == "unit" else 1)
    assert len(cases) > 300
    assert unmet_of_whole(preset, cases, whole) == {}
    record(f"silicon-rtl-{path.name.removesuffix('.json.xz')}", cases=len(cases), mismatches=0)


@pytest.mark.long
@each_capture()
def test_rtl_meets_what_every_capture_has_of_two_cores(path):
    """More cores are more of the same hardware, whose model takes minutes."""
    cases = [case for case in read_cases(path) if case.cores == 2]
    assert unmet_on_rtl("unit", cases) == {}
    record(f"silicon-rtl-cluster-{path.name.removesuffix('.json.xz')}", cases=len(cases), mismatches=0)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A capture that no silicon made, in a folder of its own."""
    folder = tmp_path_factory.mktemp("capture")
    program = partial(capture.open_program, [sys.executable, str(STAND_IN)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(capture, "open_program", program)
        assert main(["silicon", "capture", *WORKED, "--cases", "40", "--out", str(folder)]) == 0
    return folder / "stand-in.json.xz"


def test_golden_meets_what_a_stand_in_gave(made):
    cases = read_cases(made)
    assert len(cases) > 40
    assert sum(case.cores > 1 for case in cases) == 4
    assert any("bytes" in case.expect for case in cases)
    assert unmet(run_case, cases) == {}


@on_rtl
def test_rtl_meets_what_a_stand_in_gave(made, preset):
    cases, whole = for_preset(preset, read_cases(made))
    assert len(cases) == {"unit": 52, "default": 85}[preset]
    assert unmet_of_whole(preset, cases, whole) == {}


def flipped(made, path, change):
    """A copy of the capture with one load changed; returns its name."""
    document = read_document(made)
    case = next(case for case in document["cases"] if "bytes" in case["expect"]["smem"])
    change(case["expect"]["smem"])
    path.write_bytes(lzma.compress(json.dumps(document).encode()))
    return case["name"], case["expect"]["smem"]


def flip_hash(smem):
    smem["sha256"] = f"{int(smem['sha256'][0], 16) ^ 1:x}{smem['sha256'][1:]}"


def flip_byte(smem):
    address, digits = smem["bytes"][-1]
    smem["bytes"][-1] = [address, f"{digits[:-2]}{int(digits[-2:], 16) ^ 1:02x}"]


def test_one_wrong_hash_is_noticed(made, tmp_path, capsys):
    name, smem = flipped(made, tmp_path / "hash.json.xz", flip_hash)
    assert main(["replay", str(tmp_path / "hash.json.xz"), "--on", "golden"]) == 1
    wrong = [line for line in capsys.readouterr().out.splitlines() if line.startswith("MISMATCH")]
    assert len(wrong) == 1
    assert wrong[0].startswith(f"MISMATCH  {name}: smem_sha256 is ")
    assert wrong[0].endswith(f"not ['{smem['sha256']}'] as expected")


def test_one_wrong_byte_is_noticed(made, tmp_path, capsys):
    name, smem = flipped(made, tmp_path / "byte.json.xz", flip_byte)
    first, digits = smem["bytes"][-1]
    value = int(digits[-2:], 16)
    address = first + len(digits) // 2 - 1
    assert main(["replay", str(tmp_path / "byte.json.xz"), "--on", "golden"]) == 1
    wrong = [line for line in capsys.readouterr().out.splitlines() if line.startswith("MISMATCH")]
    assert wrong == [f"MISMATCH  {name}: smem at {address:#x} is {value ^ 1:#04x}, not {value:#04x} as expected"]
