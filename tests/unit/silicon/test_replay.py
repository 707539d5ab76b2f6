"""``tilewright replay --on gpu`` with a stand-in for the program: every kind of difference is noticed."""

import json
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.cases import write_cases
from tilewright.silicon import program
from tilewright.silicon import replay as replay_gpu
from tilewright.tools.cli.main import main

ROOT = Path(__file__).resolve().parents[3]
VECTORS = ROOT / "tests" / "vectors" / "tmau_seed.json"
STAND_IN = [sys.executable, str(Path(__file__).with_name("stand_in.py"))]

MAP = {"element": "u32", "address": 0, "size": [16, 8], "stride": [64], "box": [8, 4]}
LOAD = {"op": "load", "map": "x", "coords": [12, -1], "smem": 128}
CASE = {
    "name": "small",
    "kind": "tmau",
    "gmem": {"bytes": 4096},
    "smem": {"bytes": 1000},
    "maps": {"x": MAP},
    "commands": [LOAD, {"op": "store", "map": "x", "coords": [4, 6], "smem": 128}],
}
#: To core 1 from core 0, from there to core 2, and from there to global memory.
CLUSTER = CASE | {
    "name": "cluster",
    "cores": 3,
    "commands": [
        LOAD | {"multicast": 2},
        {"op": "copy_block", "src": ["shared", 128], "dst": ["shared", 256, 2], "size": 64, "core": 1},
        {"op": "copy_block", "src": ["shared", 256], "dst": ["global", 2048], "size": 64, "core": 2},
    ],
}
REFUSED = CASE | {"name": "refused", "maps": {"x": MAP | {"address": 8}}, "expect": {"error": "address"}}
NOT_ENCODED = REFUSED | {"name": "not encoded", "maps": {"x": MAP | {"size": [0, 8]}}, "expect": {"error": "size"}}


@pytest.fixture
def replay(tmp_path, monkeypatch, capsys):
    """Runs cases with the arguments of the stand-in; returns the status and the lines that were printed."""

    def run(cases, *arguments, on="gpu", options=()):
        @contextmanager
        def stand_in():
            with program.open_program([*STAND_IN, *map(str, arguments)]) as running:
                yield running

        monkeypatch.setattr(replay_gpu, "open_program", stand_in)
        path = write_cases(tmp_path / "cases.json", *cases)
        status = main(["replay", str(path), "--on", on, *map(str, options)])
        printed = capsys.readouterr()
        return status, (printed.out + printed.err).splitlines()

    return run


def test_seed_cases_are_met(replay):
    cases = json.loads(VECTORS.read_text())["cases"]
    status, lines = replay(cases)
    ran = len(cases) - 5  # starts inside 16 bytes, and interleaved boxes of a GPU's own rule
    assert lines[-1] == f"{ran} cases ran on gpu, 0 with a mismatch; 5 skipped"
    assert status == 0


def test_results_have_the_format_of_the_other_backends(replay, tmp_path):
    results = []
    for backend in ("gpu", "golden"):
        out = tmp_path / f"{backend}.json"
        replay([CASE, REFUSED], on=backend, options=["--out", out])
        results.append(json.loads(out.read_text()))
    assert results[0] == results[1]
    assert [record["tx_bytes"] for record in results[0]["results"]] == [[128, 128], [0, 0]]


def test_results_of_several_cores_have_the_format_of_the_other_backends(replay, tmp_path):
    results = []
    for backend in ("gpu", "golden"):
        out, dump = tmp_path / f"{backend}.json", tmp_path / backend
        status, _ = replay([CLUSTER], on=backend, options=["--out", out, "--dump", dump])
        assert status == 0
        names = [f"cluster.{memory}.bin" for memory in ("gmem", "smem0", "smem1", "smem2")]
        assert sorted(path.name for path in dump.iterdir()) == names
        results.append((json.loads(out.read_text()), [(dump / name).read_bytes() for name in names]))
    assert results[0] == results[1]
    assert results[0][0]["results"][0]["tx_bytes"] == [128, 64, 64]


def test_refusals_are_compared(replay):
    status, lines = replay([REFUSED, NOT_ENCODED])
    assert lines == ["met       refused", "met       not encoded",
                     "2 cases ran on gpu, 0 with a mismatch; 0 skipped"]  # fmt: skip
    assert status == 0


@pytest.mark.parametrize(
    ("arguments", "case", "difference"),
    [
        (["--flip-shared", 999], CASE, "smem differs from golden in 1 bytes, first at 0x3e7"),
        (["--flip-global", 5], CASE, "gmem differs from golden in 1 bytes, first at 0x5"),
        (["--miscount", -4], CASE, "tx_bytes is [124, 128], not [128, 128] as on golden"),
        (["--flip-shared", 5], CLUSTER, "smem2 differs from golden in 1 bytes, first at 0x5"),
        (["--miscount", 16, "--miscount-core", 0], CLUSTER, "error is counted unevenly, not None as on golden"),
        (["--miscount", 16, "--miscount-core", 1], CLUSTER, "error is counted unevenly, not None as on golden"),
        (["--no-such", 1], CLUSTER, "error is no such instruction, not None as on golden"),
        (["--fail", 4096], CLUSTER, "error is failed: command 0: cudaErrorIllegalAddress, not None as on golden"),
        (["--no-such", 1], CASE, "error is no such instruction, not None as on golden"),
        (["--refuse"], CASE, "error is refused by the driver, not None as on golden"),
        (["--accept"], REFUSED, "error is None, not address as on golden"),
        (["--fail", 4096], CASE, "error is failed: command 0: cudaErrorIllegalAddress, not None as on golden"),
        (["--die", 4096], CASE, "error is failed: the program ended with status 7, not None as on golden"),
    ],
)
def test_differences_are_noticed(replay, arguments, case, difference):
    status, lines = replay([case], *arguments)
    assert lines[0].startswith(f"MISMATCH  {case['name']}: ")
    assert difference in lines[0].split(": ", 1)[1].split("; ")
    assert lines[-1] == "1 cases ran on gpu, 1 with a mismatch; 0 skipped"
    assert status == 1


def test_a_load_that_is_never_done_is_noticed(replay):
    """Nothing of it counts, though it may have moved every byte."""
    _, lines = replay([CASE | {"commands": CASE["commands"][:1]}], "--unfinished", 0)
    differences = lines[0].split("; ")
    assert differences[0] == "MISMATCH  small: error is unfinished, not None as on golden"
    assert differences[1] == "tx_bytes is [0], not [128] as on golden"


def test_cases_after_a_failure_run(replay):
    broken = CASE | {"name": "broken", "gmem": {"bytes": 8192}}
    status, lines = replay([broken, CASE, broken | {"name": "again"}, CASE | {"name": "last"}], "--fail", 8192)
    assert [line.split(":")[0] for line in lines[:-1]] == [
        "MISMATCH  broken", "ran       small", "MISMATCH  again", "ran       last"
    ]  # fmt: skip
    assert lines[-1] == "4 cases ran on gpu, 2 with a mismatch; 0 skipped"
    assert status == 1


def test_what_silicon_does_not_have_is_skipped_by_name(replay, tmp_path):
    out = tmp_path / "results.json"
    beyond = CASE | {"name": "beyond", "maps": {"x": MAP | {"gather0": True}}}
    status, lines = replay([beyond, CASE], options=["--out", out])
    assert lines == ["skipped   beyond: the TMAU goes beyond silicon with gather0 (map x)", "ran       small",
                     "1 cases ran on gpu, 0 with a mismatch; 1 skipped"]  # fmt: skip
    assert status == 0
    first, _ = json.loads(out.read_text())["results"]
    assert first == {"name": "beyond", "skipped": "the TMAU goes beyond silicon with gather0 (map x)"}


def test_where_every_case_is_skipped_no_gpu_is_needed(replay):
    status, lines = replay([CASE | {"windows": {"shared": [0, 999]}}], "--no-gpu", "no device")
    assert lines[-1] == "0 cases ran on gpu, 0 with a mismatch; 1 skipped"
    assert status == 3, "no case ran"


def test_without_a_gpu(replay):
    status, lines = replay([CASE], "--no-gpu", "no device")
    assert lines == ["tilewright replay: there is no GPU to replay on: no device"]
    assert status == 2


def test_without_nvcc(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(program, "_CUDA", tmp_path)
    assert main(["replay", str(VECTORS), "--on", "gpu"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(
        "tilewright replay: nvcc, which builds the replay program, is neither in PATH nor in "
    )
    assert printed.err.count("\n") == 1


NUMPY_ONLY = """
import sys
from importlib import import_module

class Refuse:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top not in sys.stdlib_module_names and top not in ("numpy", "tilewright"):
            raise ModuleNotFoundError(f"{name} is not there")

sys.meta_path.insert(0, Refuse())
for name in ("golden", "sim.replay.cases", "tools.cli.replay", "sim.replay.golden", "silicon.replay",
             "verify.random.maps", "sim.replay.maps"):
    import_module(f"tilewright.{name}")
from tilewright.sim.replay.cases import read_cases
from tilewright.tools.cli.main import main
from tilewright.silicon.packing import pack

vectors = sys.argv[1]
print(len([pack(case) for case in read_cases(vectors)]), "packed")
sys.exit(main(["replay", vectors, "--on", "golden"]))
"""


def test_nothing_but_numpy_is_needed():
    done = subprocess.run(
        [sys.executable, "-c", NUMPY_ONLY, str(VECTORS)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert not done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "47 packed"
    assert lines[-1] == "47 cases ran on golden, 0 with a mismatch; 0 skipped"
    assert done.returncode == 0
