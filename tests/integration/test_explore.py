"""Explorations with real processes, some of which die: the table is that of an undisturbed run."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from pyarrow import parquet

from support.cluster_processes import dask_processes, wait_until
from support.selection import cases
from tilewright.tools.explore.point import build, measure
from tilewright.tools.explore.space import read_space
from tilewright.tools.explore.table import rows_of
from tilewright.verify.random.networks import draw_network

ROOT = Path(__file__).parents[2]
TILEWRIGHT = Path(sys.executable).with_name("tilewright")
#: Hardware whose model other tests build too.
RUNS = """
preset = "unit"
latency = [10, 200]
workload = ["tile: 2-D, rows of 32 bytes", "tile: 2-D, rows of 256 bytes", "tile: halo_c64"]
"""
#: Hardware of which this is the only test.
BUILDS = """
preset = "unit"
set.tmau.queue_depth = [4, 3]
workload = ["tile: 2-D, rows of 32 bytes", "tile: 2-D, rows of 64 bytes"]
"""


class Explorer:
    """Runs ``tilewright explore`` as a process, in a folder of its own."""

    def __init__(self, folder, text, build=None):
        self.folder, self.build = folder, build
        self.space = folder / "space.toml"
        self.space.write_text(text)

    def start(self, name, *options):
        """With its results in the folder of that name."""
        command = [TILEWRIGHT, "explore", self.space, "--out", self.folder / name, *options]
        environment = os.environ | ({"TILEWRIGHT_BUILD": str(self.build)} if self.build else {})
        environment["DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT"] = "20s"
        return subprocess.Popen(list(map(str, command)), cwd=ROOT, env=environment, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)  # fmt: skip

    def run(self, name, *options):
        """To its end; returns status, and what it has printed."""
        process = self.start(name, *options)
        out, err = process.communicate()
        return process.returncode, out, err

    def points(self, name):
        """Files of points that are done."""
        return list((self.folder / name / "points").glob("[!.]*.json"))

    def table(self, name):
        """Rows without times."""
        return parquet.read_table(self.folder / name / "space.parquet").drop_columns(["seconds"]).to_pylist()


def test_two_workers_by_address_one_of_which_is_killed(tmp_path):
    """The other one does its work; the same points without Dask are the same rows.

    That a command starts its own worker is shown by tests/unit/tilewright/test_workers.py, and here with ``LONG=1``.
    """
    explorer = Explorer(tmp_path, RUNS)
    with dask_processes(tmp_path) as processes:
        process = explorer.start("disturbed", "--scheduler", processes.address)
        wait_until(lambda: explorer.points("disturbed"))
        processes.kill(processes.workers[0])
        out, err = process.communicate()
    assert process.returncode == 0, err
    assert out.startswith("6 points, 0 failed; ")
    space = read_space(explorer.space)
    rows = rows_of(space, {}, {point: measure(point, {}) | {"seconds": 0.0} for point in space.points})
    assert explorer.table("disturbed") == [{name: row[name] for name in row if name != "seconds"} for row in rows]
    assert all(row["cycles"] >= row["limit"] > 0 for row in rows)


@pytest.mark.long
def test_a_scheduler_that_goes_away(tmp_path):
    explorer = Explorer(tmp_path, RUNS)
    with dask_processes(tmp_path) as processes:
        process = explorer.start("out", "--scheduler", processes.address)
        wait_until(lambda: explorer.points("out"))
        processes.kill(processes.scheduler)
        _, err = process.communicate()
    assert process.returncode == 2
    sentence = err.splitlines()[-1]
    assert sentence.startswith(f"tilewright explore: the scheduler at {processes.address} is gone: ")
    assert sentence.endswith(f"are in {tmp_path}/out/points, and the same command goes on from there")
    assert 0 < len(explorer.points("out")) < 6
    assert [explorer.run(name, "--workers", "1")[0] for name in ("out", "undisturbed")] == [0, 0]
    assert explorer.table("out") == explorer.table("undisturbed")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    explorer = Explorer(tmp_path_factory.mktemp("undisturbed"), BUILDS)
    status, out, err = explorer.run("out")
    # A point without hardware is a row with its reason.
    assert status == 1, err
    assert "queue_depth must be a power of two, not 3" in out
    return explorer.table("out")


@pytest.mark.long
def test_a_worker_that_is_killed_while_it_builds(tmp_path, undisturbed):
    explorer = Explorer(tmp_path, BUILDS, tmp_path / "build")
    with dask_processes(tmp_path, TILEWRIGHT_BUILD=str(tmp_path / "build")) as processes:
        process = explorer.start("out", "--scheduler", processes.address)
        for compiled in ("*.unfinished/verilated.o", "*.unfinished/Vtop*.o"):
            found = wait_until(lambda compiled=compiled: list((tmp_path / "build/sim").glob(compiled)))
        assert found
        # Of two idle workers either may have it: the one that builds is the parent of make.
        builder = _parent_of("make", processes.workers)
        processes.kill(builder)
        process.communicate()
        assert process.returncode == 1
    assert explorer.table("out") == undisturbed
    assert not list((tmp_path / "build/sim").glob("*.unfinished"))


def _parent_of(name, processes):
    listed = subprocess.run(["ps", "-eo", "ppid=,comm="], capture_output=True, text=True, check=True).stdout
    parents = {int(line.split()[0]) for line in listed.splitlines() if line.split()[1] == name}
    return next(process for process in processes if process.pid in parents)


@pytest.mark.long
def test_two_explorers_on_one_cache(tmp_path, undisturbed):
    both = [Explorer(tmp_path, BUILDS, tmp_path / "build") for _ in range(2)]
    processes = [explorer.start(f"out{number}", "--workers", "1") for number, explorer in enumerate(both)]
    said = [process.communicate() for process in processes]
    assert [process.returncode for process in processes] == [1, 1], said
    assert both[0].table("out0") == both[1].table("out1") == undisturbed
    designs = list((tmp_path / "build/sim").glob("[0-9a-f]" * 24))  # not the texts of designs
    assert len(designs) == 1 and not list((tmp_path / "build/sim").glob("*.unfinished"))


_MOUNTED = """\
mount -t tmpfs -o size={small} tmpfs "$1" && cd "$2" && export TILEWRIGHT_BUILD="$1"
{tilewright} explore "$3" --out "$4" --workers 1; echo "status $?"
mount -o remount,size=500m "$1"
{tilewright} explore "$3" --out "$4" --workers 1; echo "status $?"
"""


@pytest.mark.long
@pytest.mark.skipif(not shutil.which("unshare"), reason="a small disk needs unshare")
@pytest.mark.parametrize("small", ["1m", "16m"])
def test_a_disk_that_is_full(tmp_path, undisturbed, small):
    """Of a megabyte, and of some more: the Verilog fits, or not even that."""
    explorer = Explorer(tmp_path, BUILDS)
    (tmp_path / "disk").mkdir()
    script = _MOUNTED.format(small=small, tilewright=TILEWRIGHT)
    arguments = [tmp_path / "disk", ROOT, explorer.space, tmp_path / "out"]
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "status" not in done.stdout:
        pytest.skip(f"this machine mounts no small disk: {done.stderr.strip()}")
    assert [line for line in done.stdout.splitlines() if line.startswith("status")] == ["status 2", "status 1"]
    sentence = next(line for line in done.stderr.splitlines() if line.startswith("tilewright explore: "))
    full = f"tilewright explore: nothing can be built in {tmp_path}/disk/sim"
    assert sentence.startswith(full) and "No space left on device" in sentence
    assert sentence.endswith("/out/points, and the same command goes on from there")
    assert explorer.table("out") == undisturbed


CASE = {
    "name": "a tile", "kind": "tmau",
    "gmem": {"bytes": 65536, "init": {"mix": 1}}, "smem": {"bytes": 4096},
    "maps": {"t": {"element": "u8", "size": [256, 64], "stride": [256], "box": [64, 8], "address": 0}},
    "commands": [{"op": "load", "map": "t", "coords": [0, 0], "smem": 0}],
}  # fmt: skip
QUICK = ["plan: tiny.onnx", "product: mm8, 4 x 4 x 32, t0", "replay: case.json"]
SLOW = ["layer: ResNet-50, 1x1/1 64>64 56x56", "network: tiny.onnx"]


@cases("workload", QUICK, SLOW)
def test_every_kind_of_workload(tmp_path, workload):
    (tmp_path / "case.json").write_text(json.dumps({"version": 1, "cases": [CASE]}))
    (tmp_path / "tiny.onnx").write_bytes(draw_network(np.random.default_rng(1)).SerializeToString())
    (tmp_path / "space.toml").write_text(f'preset = "unit"\nworkload = "{workload}"\n')
    (point,) = read_space(tmp_path / "space.toml").points
    assert not point.hardware or build(point.hardware) == {}
    record = measure(point, {})
    assert "failure" not in record, record
    assert record["cycles"] >= record["limit"] > 0
    assert record["utilisation"] == round(100 * record["limit"] / record["cycles"], 2)
