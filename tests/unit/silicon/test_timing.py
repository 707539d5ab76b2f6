"""Which tiles are timed on a GPU, and where their boxes lie."""

import json
import math
import re
import shutil
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest

import tilewright.silicon
from tilewright.errors import UsageError
from tilewright.golden.tmau.tile import counts, extent
from tilewright.silicon import sharing, timing
from tilewright.silicon.timing import SHAPE, measure, report, shapes
from tilewright.spec import Element, Swizzle

SIZE = 1 << 24
NAMED = ("halo_c64", "halo_c8", "rows_4d", "2-D, rows of 64 bytes", "2-D, rows of 128 bytes")


@pytest.fixture(scope="module")
def timed():
    return shapes(SIZE)


def test_named_tiles_and_most_others_are_timed(timed):
    names = [boxes.name for boxes in timed]
    assert set(NAMED) < set(names)
    assert len(names) > 20
    assert not any("unaligned" in name or "outside" in name or name[-11:] == "from byte 1" for name in names)
    assert "rows of 128 bytes from byte 16" in names


def test_boxes_lie_side_by_side_in_the_tensor_and_fill_it(timed):
    for boxes in timed:
        tmap = boxes.tmap
        assert tmap.address + extent(tmap) <= SIZE, boxes.name
        assert extent(tmap) > 0.95 * SIZE, boxes.name
        assert boxes.step == counts(tmap)
        last = boxes.coords(math.prod(boxes.count) - 1)
        assert boxes.coords(0) == list(boxes.first)
        for first, coord, step, size in zip(boxes.first, last, boxes.step, tmap.size, strict=True):
            assert 0 <= first <= coord <= size - step, boxes.name
        assert last[-1] > tmap.size[-1] - 2 * boxes.step[-1], boxes.name


def test_dimension_0_of_box_numbers_counts_fastest(timed):
    (rows,) = (boxes for boxes in timed if boxes.name == "rows_4d")
    assert rows.count[:3] == (8, 4, 2)
    assert [rows.coords(n) for n in (1, 8, 32, 64)] == [[8, 0, 0, 0], [0, 4, 0, 0], [0, 0, 8, 0], [0, 0, 0, 8]]


def test_bytes_and_sectors(timed):
    halo, adjoining, rows = (next(b for b in timed if b.name == name) for name in ("halo_c64", "halo_c8", NAMED[3]))
    assert halo.bytes == math.prod(halo.count) * 100 * 16
    assert halo.sector_bytes == 2 * halo.bytes, "half of each sector"
    assert adjoining.sector_bytes == adjoining.bytes
    assert rows.sector_bytes == rows.bytes == math.prod(rows.count) * 2048


def test_record(timed):
    (boxes,) = (boxes for boxes in timed if boxes.name == "swizzle 128B, rows of 64 bytes")
    record = np.frombuffer(boxes.record(), SHAPE)[0]
    assert record["map"]["rank"] == 2
    assert record["map"]["swizzle"] == Swizzle.B128
    assert record["first"].tolist() == [0] * 5
    assert record["count"].tolist() == [*boxes.count, 1, 1, 1]
    assert record["step"].tolist() == [64, 32, 0, 0, 0]
    assert record["extent"].tolist() == [64, 32, 1, 1, 1]
    assert (record["unit_bytes"], record["stage_bytes"]) == (1, 32 * 128)


def test_nothing_beyond_silicon_is_timed(timed):
    for boxes in timed:
        assert not (boxes.tmap.unaligned or boxes.tmap.gather0)
        assert boxes.tmap.element in (Element.U8, Element.F16)


#: Reads as the program does, by struct, and takes a millisecond for the copy, 2 for blocks, 1, 2, 3 … for shapes, and
#: for pairs of separate loads and multicasts 8 and 4 (2 blocks), 16 and 4, 32 and 4.
FAKE = """
import json, struct, sys
shapes, rounds, size = struct.unpack("<IIQ", sys.stdin.buffer.read(16))
records = [sys.stdin.buffer.read(272) for _ in range(shapes + 1)]
assert records[-1] in records[:-1]
shared = [8.0, 4.0, 16.0, 4.0, 32.0, 4.0]
assert all(len(record) == 272 for record in records) and not sys.stdin.buffer.read()
times = [[1.0 * (n + 1), 2.0, *(float(i + 1) for i in range(shapes)), *shared] for n in (-0.5, 0, 0.5)]
gpu = {"gpu": "Fake", "driver": 13000, "runtime": 13000, "l2_bytes": 1, "processors": 1}
print(json.dumps(gpu | {"faults": [None] * (shapes + 6), "rounds": times}))
"""


@pytest.fixture
def timing_timed():
    return shapes(SIZE)


def test_records_are_those_of_the_header():
    """Names and order; the header itself asserts the sizes, and here they are the same."""
    text = Path(tilewright.silicon.__file__).with_name("cuda").joinpath("load_all.h").read_text()
    for name, dtype in (("Timing", timing._TIMING), ("Shape", SHAPE)):
        body = re.search(rf"struct {name} {{(.*?)}};", text, re.DOTALL)[1]
        members = re.findall(r"(\w+)(?:\[5\])?[,;]", re.sub(r"//.*", "", body))
        assert tuple(members) == dtype.names
        assert f"sizeof({name}) == {dtype.itemsize}" in text


def test_ratios(timing_timed):
    result = report(timing_timed, measure([sys.executable, "-c", FAKE], timing_timed, SIZE), SIZE, {"halo_c8": "99.1%"})
    assert (result["gpu"], result["rounds"]) == ("Fake", 3)
    assert result["blocks_of_copy"] == pytest.approx(0.25), "half as many bytes in twice the time"
    for number, (boxes, line) in enumerate(zip(timing_timed, result["shapes"], strict=True), 1):
        assert line["name"] == boxes.name
        assert line["of_copy"] == pytest.approx(boxes.bytes / number / (2 * SIZE))
        assert line["of_blocks"] == pytest.approx(boxes.bytes / number / (SIZE / 2))
        assert line["sectors_of_blocks"] == pytest.approx(boxes.sector_bytes / number / (SIZE / 2))
        assert line["spread"] == 0
        assert line["tilewright"] == ("99.1%" if boxes.name == "halo_c8" else None)


def test_what_multicast_saves(timing_timed, tmp_path, monkeypatch):
    measured = measure([sys.executable, "-c", FAKE], timing_timed, SIZE)
    measured["faults"][-1] = "no cluster fits"
    result = report(timing_timed, measured, SIZE, {})
    boxes = next(boxes for boxes in timing_timed if boxes.name == sharing.SHARED)
    two, four, eight = result["clusters"]
    assert (two["cores"], two["times_as_fast"], four["times_as_fast"]) == (2, 2, 4)
    assert four["separate_of_copy"] == pytest.approx(4 * boxes.bytes / 16 / (2 * SIZE))
    assert four["multicast_of_copy"] == pytest.approx(4 * boxes.bytes / 4 / (2 * SIZE))
    assert eight == {"cores": 8, "fault": "no cluster fits"}
    monkeypatch.setattr(sharing, "BUILD", tmp_path)
    lines = [{"name": name.format(4), "preset": "default", "measured": cycles}
             for name, cycles in zip(sharing.OURS, (100, 390), strict=True)]  # fmt: skip
    (tmp_path / "bench.json").write_text(json.dumps({"lines": [*lines, lines[0] | {"preset": "unit", "measured": 1}]}))
    rows = list(sharing.sharing_table(result["clusters"]))[2:]
    assert [row.split("|")[-2].strip() for row in rows] == ["-", "3.90", "-"]
    assert rows[2] == "| 8 | no cluster fits | - | - | - |"


def test_a_fault_stands_in_place_of_ratios(timing_timed):
    measured = measure([sys.executable, "-c", FAKE], timing_timed, SIZE)
    measured["faults"][0] = "the driver refuses its map"
    for times in measured["rounds"]:
        times[2] = 0
    result = report(timing_timed, measured, SIZE, {})
    faulty, good = result["shapes"][:2]
    assert faulty == {"name": timing_timed[0].name, "tilewright": None, "fault": "the driver refuses its map"}
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
def test_without_a_gpu(timing_timed, script, sentence):
    with pytest.raises(UsageError, match=sentence):
        measure([sys.executable, "-c", script], timing_timed, SIZE)


def test_a_program_that_hangs_is_given_up(timing_timed, monkeypatch):
    monkeypatch.setattr(timing, "_LIMIT", 0.2)
    with pytest.raises(UsageError, match=r"took more than 0\.2 seconds"):
        measure([sys.executable, "-c", "import time; time.sleep(9)"], timing_timed, SIZE)


def test_program_compiles_without_a_warning_and_says_that_there_is_no_gpu(tmp_path, timing_timed):
    nvcc = shutil.which("nvcc")
    if not nvcc:
        pytest.skip("there is no nvcc in PATH")
    source = Path(tilewright.silicon.__file__).with_name("cuda") / "timing.cu"
    options = ["-arch=sm_90", "-std=c++17", "-O2", "-Xcompiler", "-Wall,-Wextra"]
    command = [nvcc, *options, "-o", str(tmp_path / "timing"), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    said = (done.stdout + done.stderr).splitlines()
    assert [line for line in said if ".multicast::cluster' modifier" not in line] == []  # advice for later GPUs
    if Path("/dev/nvidiactl").exists():
        pytest.skip("there is a GPU")
    with pytest.raises(UsageError, match=r"^nothing could be timed: \w[^\n]*$"):
        measure([str(tmp_path / "timing")], timing_timed, SIZE)
