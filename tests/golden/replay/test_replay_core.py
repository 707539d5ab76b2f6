"""Replay cases of the command processor on the golden model, and refusals."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from support.replay import read, refusal
from tilewright.golden.memory import mix_pattern
from tilewright.sim.replay.cases import read_cases
from tilewright.sim.replay.golden import run_case
from tilewright.spec.core import ProgramError
from tilewright.tools.cli.main import main

CASES = Path(__file__).parents[2] / "vectors" / "core.json"

CASE = {
    "name": "small", "kind": "core", "gmem": {"bytes": 8192}, "smem": {"bytes": 4096}, "at": 4096,
    "program": "tmau copy_block.shared,global 0x80 0x100 2\nwait_all\ntmau copy_block.global,shared 0x200 0x80 1\nend",
}  # fmt: skip


def result(folder, **changes):
    (case,) = read(folder, CASE | changes)
    return run_case(case)


def test_every_kept_case_meets_its_expectation(capsys):
    assert main(["replay", str(CASES), "--on", "golden"]) == 0
    assert all(line.startswith("met ") for line in capsys.readouterr().out.splitlines()[:-1])
    cases = read_cases(CASES)
    assert {case.expect["error"] for case in cases} == {
        None, *(error.name.lower() for error in ProgramError if error not in (ProgramError.NONE, ProgramError.STOPPED))
    }  # fmt: skip


def test_sums_of_loops_in_kept_cases():
    """By hand: the first contents, and a multiple of the added numbers."""
    source, start = (mix_pattern(8192, 1)[place : place + 16].view("<u4") for place in (0x100, 0x200))
    rounds = {"a_loop": 7, "four_nested_loops": 48, "a_loop_over_phases": 5}
    for case in read_cases(CASES):
        if case.name in rounds:
            total = run_case(case).memories["gmem"][0x200:0x210].view("<u4")
            assert (total == start + source * np.uint32(rounds[case.name])).all()


def test_result_record(tmp_path):
    (case,) = read(tmp_path, CASE)
    record, memories = run_case(case)
    gmem = mix_pattern(8192, 0)
    assert (memories["smem"][128:160] == gmem[256:288]).all()
    assert (memories["gmem"][512:528] == gmem[256:272]).all()
    assert record == {
        "name": "small", "error": None, "record": None, "interrupt": False,
        "smem_sha256": [hashlib.sha256(memories["smem"]).hexdigest()],
        "gmem_sha256": hashlib.sha256(memories["gmem"]).hexdigest(),
    }  # fmt: skip
    # A case is not changed by running it.
    assert run_case(case).record == record


def test_maps_and_windows(tmp_path):
    tensor = {"element": "u8", "address": 0, "size": [16, 16], "stride": [16], "box": [16, 2], "at": 1024}
    load = "tmau copy_tensor.tiles.2d.shared,global 0x400 (0,3) 0x80 tag=5"
    record, memories = result(tmp_path, maps={"x": tensor}, program=[load, "end.interrupt"])
    assert (record["error"], record["interrupt"]) == (None, True)
    assert (memories["smem"][128:160] == mix_pattern(8192, 0)[48:80]).all()
    windows = {"global": [4096, 8191]}
    record, _ = result(tmp_path, maps={"x": tensor}, program=[load, "end.interrupt"], windows=windows)
    assert record["error"] == "engine"
    assert record["record"] == {"tag": 5, "engine": "tmau", "word": None}
    record, _ = result(tmp_path, windows={"program": [0, 4095]})
    assert (record["error"], record["record"]) == ("window", {"tag": 0, "engine": None, "word": 0})


def test_instructions(tmp_path):
    code = [{"at": 6144, "text": ["mov r1, 0x5", "fence"]}, {"at": 6208, "text": "bar.wait 0x8, 0"}]
    program = ["pe 0x1800 2", "barrier.init 0x8 1", "barrier.arrive 0x8 1", "pe 0x1840 1", "end"]
    record, memories = result(tmp_path, instructions=code, program=program, pe={"preset": "unit"})
    assert record["error"] is None
    assert memories["gmem"][6144:6176].view("<u8")[2] == 8  # the fence's opcode


def test_number_of_words(tmp_path):
    assert result(tmp_path, words=4).record["error"] is None
    assert result(tmp_path, words=3).record["record"] == {"tag": 0, "engine": None, "word": 3}


def test_convolution_engine(tmp_path):
    job = ("conv max_pool.u8u8.element x=0x80 y=0x100 tag=3 channels=16 width=2 out_channels=16 granularity=4 "
           "kernel=(2,1) x_pitch=(16,32,64) y_pitch=(16,16,16)")  # fmt: skip
    program = ["tmau copy_block.shared,global 0x80 0x0 2", "wait_all", job, "end"]
    _, memories = result(tmp_path, program=program, conv={"preset": "default"})
    pixels = mix_pattern(32, 0).reshape(2, 16)
    assert (memories["smem"][256:272] == pixels.max(axis=0)).all()
    assert result(tmp_path, program=program).record["record"] == {"tag": 3, "engine": None, "word": 2}


def test_a_program_that_waits_for_ever(tmp_path, capsys):
    program = ["barrier.init 0x8 1", "barrier.wait 0x8 0 tag=2", "end"]
    record = result(tmp_path, program=program, watchdog=1000).record
    assert (record["error"], record["record"]) == ("watchdog", {"tag": 2, "engine": None, "word": 1})
    read(tmp_path, CASE | {"program": program})
    assert main(["replay", str(tmp_path / "cases.json"), "--on", "golden"]) == 2
    assert capsys.readouterr().err == (
        "tilewright replay: case 'small': word 1 waits for ever: nothing completes the phase of parity 0 of the "
        "barrier at 0x8\n"
    )


def test_expectations(tmp_path, capsys):
    stopped = {"error": "engine", "record": {"tag": 0, "engine": "tmau", "word": None}, "interrupt": False,
               "gmem": {"bytes": [[0, "00"]]}}  # fmt: skip
    read(tmp_path, CASE | {"program": ["tmau word 0", "end"], "expect": stopped},
         CASE | {"name": "other", "expect": {"error": None, "record": None, "interrupt": True}})  # fmt: skip
    assert main(["replay", str(tmp_path / "cases.json"), "--on", "golden"]) == 1
    first, second, _ = capsys.readouterr().out.splitlines()
    byte = mix_pattern(1, 0)[0]
    assert first == f"MISMATCH  small: gmem at 0x0 is {byte:#04x}, not 0x00 as expected"
    assert second == "MISMATCH  other: interrupt is False, not True as expected"


def test_results_and_memories_are_written(tmp_path):
    read(tmp_path, CASE)
    out, dump = tmp_path / "out.json", tmp_path / "dump"
    assert main(["replay", str(tmp_path / "cases.json"), "--on", "golden", "--out", str(out), "--dump", str(dump)]) == 0
    (record,) = json.loads(out.read_text())["results"]
    assert hashlib.sha256((dump / "small.gmem.bin").read_bytes()).hexdigest() == record["gmem_sha256"]
    assert len(np.fromfile(dump / "small.smem.bin", np.uint8)) == 4096


REFUSED = [
    ({"program": 3}, "program must be a string, or a list of strings"),
    ({"program": ["end", "go"]}, "program line 2: 'go' is not an operation"),
    ({"at": 8193}, "at must be an integer from 0 to 8192, not 8193"),
    ({"at": 8000}, "at must keep 256 bytes in the 8192 bytes of gmem, not 8000"),
    ({"words": -1}, "words must be an integer from 0 to 4294967295, not -1"),
    ({"watchdog": True}, "watchdog must be an integer from 0 to 4294967295, not True"),
    ({"smem": {"bytes": 3000}}, "pe cannot be: size_bytes must be a power of two from 1024 to 1048576, not 3000"),
    ({"conv": {"preset": "big"}}, "conv.preset must be one of unit, ecp5, default, full, not 'big'"),
    ({"maps": {"x": {"element": "u8", "address": 0, "size": [16], "box": [16]}}}, "maps.x.at is missing"),
    ({"instructions": [{"at": 0, "text": "jump"}]}, "instructions[0].text line 1: 'jump' is not an operation"),
    ({"instructions": [{"at": 8190, "text": "halt"}]},
     "instructions[0].at must keep 16 bytes in the 8192 bytes of gmem, not 8190"),
    ({"instructions": [{"at": 0, "text": "halt", "x": 1}]}, "instructions[0].x is not a known field"),
    ({"windows": {"program": [0]}}, "windows.program must be first and last byte, not 1 numbers"),
    ({"commands": []}, "commands is not a known field"),
    ({"expect": {"error": "opcode"}},
     "expect.error must be one of None, kind, reserved, missing, count, address, window, loop, register, barrier, bus, "
     "no_end, engine, watchdog, stopped, not 'opcode'"),
    ({"expect": {"record": {"tag": 0, "word": 1, "engine": "gpu"}}},
     "expect.record.engine must be one of None, tmau, pe, conv, not 'gpu'"),
    ({"expect": {"record": {"tag": 0, "engine": None}}}, "expect.record.word is missing"),
    ({"expect": {"interrupt": 1}}, "expect.interrupt must be true or false, not 1"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "sentence"), REFUSED, ids=[row[1][:60] for row in REFUSED])
def test_refused_files(tmp_path, changes, sentence):
    assert refusal(tmp_path, CASE | changes) == f"case 'small': {sentence}"
