"""The replay program as a child process, with a stand-in for it; and how it is built, with a stand-in for nvcc."""

import sys
from pathlib import Path

import pytest

from support.cases import read_case
from tilewright.errors import UsageError
from tilewright.silicon import program
from tilewright.silicon.packing import SHARED_BYTES, Ending, Status
from tilewright.silicon.program import build, open_program
from tilewright.sim.replay.golden import run_case

STAND_IN = [sys.executable, str(Path(__file__).with_name("stand_in.py"))]
SMALL, LARGE = 4096, 4 << 20  # bytes of global memory; much more than a pipe holds


@pytest.fixture
def case():
    """Makes cases of one load and one store, with so much global and shared memory."""

    def make(gmem=SMALL, smem=1000):
        tile = {"element": "u8", "address": 0, "size": [64, 8], "stride": [64], "box": [32, 4]}
        commands = [{"op": op, "map": "x", "coords": [16, at], "smem": 128} for op, at in (("load", 0), ("store", 4))]
        entry = {"name": "asked", "kind": "tmau", "gmem": {"bytes": gmem}, "smem": {"bytes": smem}}
        return read_case(entry | {"maps": {"x": tile}, "commands": commands})

    return make


def check_good(case, reply):
    memories = run_case(case).memories
    assert reply.status == Status.OK
    assert reply.maps == {"x": 0}
    assert reply.endings == (Ending.DONE, Ending.DONE)
    assert reply.counted == (128, None)
    assert (reply.gmem == memories["gmem"]).all()
    assert (reply.smems[0] == memories["smem"]).all()


def test_hello():
    with open_program(STAND_IN) as running:
        assert running.hello._asdict() == {
            "status": Status.OK, "major": 9, "minor": 0, "driver": 13000, "runtime": 13000,
            "shared_bytes": SHARED_BYTES, "gpu": "Stand-in", "message": "",
        }  # fmt: skip


def test_jobs_of_every_size(case):
    with open_program(STAND_IN) as running:
        for gmem, smem in ((SMALL, 1000), (LARGE, 1 << 20), (SMALL, 256)):
            check_good(case(gmem, smem), running.run(case(gmem, smem)))


def test_smaller_shared_memory_of_the_gpu(case):
    """The rest of the case's is left as it was."""
    with open_program([*STAND_IN, "--shared-bytes", "300"]) as running:
        check_good(case(), running.run(case()))
    with open_program([*STAND_IN, "--shared-bytes", "240"]) as running:
        with pytest.raises(UsageError, match=r"^case 'asked' uses 256 bytes of shared memory, and Stand-in has 240$"):
            running.run(case())


@pytest.mark.parametrize(
    ("fault", "message"),
    [("--fail", "command 0: cudaErrorIllegalAddress"), ("--die", "the program ended with status 7")],
)
def test_failure_ends_one_job_only(case, fault, message):
    with open_program([*STAND_IN, fault, str(LARGE)]) as running:
        for _ in range(2):
            reply = running.run(case(LARGE))
            assert (reply.status, reply.message) == (Status.FAILED, message)
            check_good(case(), running.run(case()))


def test_a_job_that_takes_for_ever_is_given_up(case, monkeypatch):
    monkeypatch.setattr(program, "_LIMIT", 0.3)
    with open_program([*STAND_IN, "--hang", str(LARGE)]) as running:
        assert running.run(case(LARGE)).message == "the program ended with status -9"
        check_good(case(), running.run(case()))


def test_the_process_ends_with_the_program():
    processes = []

    def fail(running):
        processes.append(running._process)
        raise KeyError

    with pytest.raises(KeyError), open_program(STAND_IN) as running:
        fail(running)
    assert processes[0].poll() is not None


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--no-gpu", "no device"], "there is no GPU to replay on: no device"),
        (["--end-at-once", "4"], "the replay program ended at once, with status 4"),
    ],
)
def test_without_a_gpu(arguments, sentence):
    with pytest.raises(UsageError) as caught, open_program([*STAND_IN, *arguments]):
        pass
    assert str(caught.value) == sentence


def test_something_else_than_the_program():
    with pytest.raises(ValueError, match=r"^the replay program must begin with 0x32475754, not 0x20202020$"):
        with open_program([sys.executable, "-c", "print(' ' * 288)"]):
            pass


@pytest.mark.skipif(Path("/dev/nvidiactl").exists(), reason="there is a GPU")
def test_the_program_itself_without_a_gpu():
    with pytest.raises(UsageError, match=r"^(there is no GPU to replay on: |nvcc, which builds .*, is neither in ).*$"):
        with open_program():
            pass


@pytest.mark.skipif(not Path("/dev/nvidiactl").exists(), reason="there is no GPU")
def test_the_program_itself(case):
    with open_program() as running:
        check_good(case(), running.run(case()))


NVCC = """#!/bin/sh
if [ "$1" = --version ]; then echo "$VERSION"; exit; fi
echo "$*" >> calls
while [ "$1" != -o ]; do shift; done
[ -z "$REFUSE" ] || { echo "replay.cu(3): error: nothing" >&2; exit 1; }
echo "#!/bin/sh" > "$2"
"""


@pytest.fixture
def workplace(tmp_path, monkeypatch):
    """A folder to build in, with nothing in PATH and no CUDA where it usually is."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setenv("VERSION", "release 1")
    monkeypatch.setenv("REFUSE", "")
    monkeypatch.setattr(program, "_CUDA", tmp_path / "local")
    monkeypatch.setattr(program, "CACHE", Path("build/silicon"))
    return tmp_path


def install(path):
    path.parent.mkdir(parents=True)
    path.write_text(NVCC)
    path.chmod(0o755)


def test_without_nvcc(workplace):
    with pytest.raises(UsageError) as caught, open_program():
        pass
    assert str(caught.value) == "nvcc, which builds the replay program, is neither in PATH nor in /usr/local/cuda/bin"


def test_it_is_built_once_for_each_content(workplace, monkeypatch):
    install(workplace / "empty/nvcc")
    first = build("replay")
    assert first.parent.parent == workplace / "build/silicon"
    assert first.read_text() == "#!/bin/sh\n"
    assert build("replay") == first
    (call,) = (workplace / "calls").read_text().splitlines()
    assert call.startswith("-arch=sm_90 -std=c++17 -O2 -o ")
    assert call.endswith("silicon/cuda/replay.cu")
    monkeypatch.setenv("VERSION", "release 2")
    assert build("replay") != first
    assert len((workplace / "calls").read_text().splitlines()) == 2


def test_cuda_need_not_be_in_path(workplace):
    install(workplace / "local/cuda-13.0/bin/nvcc")
    assert build("replay").exists()


def test_what_nvcc_refuses_leaves_nothing(workplace, monkeypatch):
    install(workplace / "local/cuda/bin/nvcc")
    monkeypatch.setenv("REFUSE", "yes")
    with pytest.raises(UsageError) as caught:
        build("replay")
    assert str(caught.value) == "nvcc could not build replay.cu: replay.cu(3): error: nothing"
    assert not [path for path in (workplace / "build/silicon").iterdir() if path.is_dir()]
    monkeypatch.setenv("REFUSE", "")
    assert build("replay").exists()
