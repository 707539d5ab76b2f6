"""What is timed on a GPU, and the ratios that come of it; a script stands in for the program, and there is no GPU."""

import json
import re
import shutil
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import pytest

import tilewright.sim.silicon
from tilewright.sim.silicon import timing
from tilewright.sim.silicon.boxes import SHAPE, shapes
from tilewright.sim.silicon.timing import measure, report
from tilewright.sim.usage import UsageError

SIZE = 1 << 24
#: Reads as the program does, by struct, and takes a millisecond for the copy, 2 for blocks and 1, 2, 3 … for shapes.
FAKE = """
import json, struct, sys
shapes, rounds, size = struct.unpack("<IIQ", sys.stdin.buffer.read(16))
records = [sys.stdin.buffer.read(272) for _ in range(shapes)]
assert all(len(record) == 272 for record in records) and not sys.stdin.buffer.read()
times = [[1.0 * (n + 1), 2.0, *(float(i + 1) for i in range(shapes))] for n in (-0.5, 0, 0.5)]
gpu = {"gpu": "Fake", "driver": 13000, "runtime": 13000, "l2_bytes": 1, "processors": 1}
print(json.dumps(gpu | {"faults": [None] * shapes, "rounds": times}))
"""


@pytest.fixture
def timed():
    return shapes(SIZE)


def test_records_are_those_of_the_header():
    """Names and order; the header itself asserts the sizes, and here they are the same."""
    text = Path(tilewright.sim.silicon.__file__).with_name("cuda").joinpath("timing.h").read_text()
    for name, dtype in (("Timing", timing._TIMING), ("Shape", SHAPE)):
        body = re.search(rf"struct {name} {{(.*?)}};", text, re.DOTALL)[1]
        members = re.findall(r"(\w+)(?:\[5\])?[,;]", re.sub(r"//.*", "", body))
        assert tuple(members) == dtype.names
        assert f"sizeof({name}) == {dtype.itemsize}" in text


def test_ratios(timed):
    result = report(timed, measure([sys.executable, "-c", FAKE], timed, SIZE), SIZE, {"halo_c8": "99.1%"})
    assert (result["gpu"], result["rounds"]) == ("Fake", 3)
    assert result["blocks_of_copy"] == pytest.approx(0.25), "half as many bytes in twice the time"
    for number, (boxes, line) in enumerate(zip(timed, result["shapes"], strict=True), 1):
        assert line["name"] == boxes.name
        assert line["of_copy"] == pytest.approx(boxes.bytes / number / (2 * SIZE))
        assert line["of_blocks"] == pytest.approx(boxes.bytes / number / (SIZE / 2))
        assert line["sectors_of_blocks"] == pytest.approx(boxes.sector_bytes / number / (SIZE / 2))
        assert line["spread"] == 0
        assert line["tilewright"] == ("99.1%" if boxes.name == "halo_c8" else None)


def test_a_fault_stands_in_place_of_ratios(timed):
    measured = measure([sys.executable, "-c", FAKE], timed, SIZE)
    measured["faults"][0] = "the driver refuses its map"
    for times in measured["rounds"]:
        times[2] = 0
    result = report(timed, measured, SIZE, {})
    faulty, good = result["shapes"][:2]
    assert faulty == {"name": timed[0].name, "tilewright": None, "fault": "the driver refuses its map"}
    assert good["fault"] is None
    rows = [line for line in timing.table(result) if line.startswith("| 2-D")]
    assert rows[0] == "| 2-D, rows of 16 bytes | the driver refuses its map | - | - | - |"
    assert rows[1].count("|") == rows[0].count("|")


def test_command_prints_ratios_beside_our_own(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(timing, "BUILD", Path("build"))
    monkeypatch.setattr(timing, "build", lambda name: Path(sys.executable))
    monkeypatch.setattr(timing, "measure", lambda command, *rest: measure([*command, "-c", FAKE], *rest))
    args = Namespace(out=tmp_path / "build" / "time.json")
    assert timing.run(args) == 0
    assert "make bench" in capsys.readouterr().out
    line = {"name": "halo_c64", "preset": "default", "latency": 100, "figure": "98.7%"}
    others = [line | {"preset": "ecp5", "figure": "1%"}, line | {"latency": 10, "figure": "2%"}]
    Path("build/bench.json").write_text(json.dumps({"lines": [line, *others]}))
    assert timing.run(args) == 0
    printed = capsys.readouterr().out
    assert re.search(r"^\| halo_c64 \|( [\d.]+ \|){3} 98\.7% \|$", printed, re.MULTILINE)
    assert re.search(r"^\| halo_c8 \|( [\d.]+ \|){3} - \|$", printed, re.MULTILINE)
    assert "make bench" not in printed


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        ("import sys; sys.exit('there is no CUDA driver')", r"nothing could be timed: there is no CUDA driver$"),
        ("import sys; sys.exit(3)", r"nothing could be timed: it ended with status 3$"),
    ],
)
def test_without_a_gpu(timed, script, sentence):
    with pytest.raises(UsageError, match=sentence):
        measure([sys.executable, "-c", script], timed, SIZE)


def test_a_program_that_hangs_is_given_up(timed, monkeypatch):
    monkeypatch.setattr(timing, "_LIMIT", 0.2)
    with pytest.raises(UsageError, match=r"took more than 0\.2 seconds"):
        measure([sys.executable, "-c", "import time; time.sleep(9)"], timed, SIZE)


def test_program_compiles_without_a_warning_and_says_that_there_is_no_gpu(tmp_path, timed):
    nvcc = shutil.which("nvcc")
    if not nvcc:
        pytest.skip("there is no nvcc in PATH")
    source = Path(tilewright.sim.silicon.__file__).with_name("cuda") / "timing.cu"
    options = ["-arch=sm_90", "-std=c++17", "-O2", "-Xcompiler", "-Wall,-Wextra"]
    command = [nvcc, *options, "-o", str(tmp_path / "timing"), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout + done.stderr == ""
    if Path("/dev/nvidiactl").exists():
        pytest.skip("there is a GPU")
    with pytest.raises(UsageError, match=r"^nothing could be timed: \w[^\n]*$"):
        measure([str(tmp_path / "timing")], timed, SIZE)
