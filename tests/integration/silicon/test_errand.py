"""From the archive to the kept vectors, as it goes on a machine with CUDA, Python and numpy and nothing else.

The archive is unpacked and run by a Python that finds only numpy. ``nvcc`` makes programs of which one is the stand-in,
and the other says times. Nothing here comes from a GPU, and nothing is left in the repository.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import numpy
import pytest

from tilewright.errors import UsageError
from tilewright.silicon import steps, take
from tilewright.silicon.archive import FOLDER
from tilewright.silicon.steps import ARCHIVE, NOTES, QUESTIONS, REPLIES
from tilewright.sim.replay.cases import read_cases, read_document
from tilewright.tools.cli.main import main

ROOT = Path(__file__).resolve().parents[3]
STAND_IN = ROOT / "tests/unit/silicon/stand_in.py"
#: Done by both, refused by both, refused by our own alone.
CHOSEN = ("start/load_u8", "driver/size_0", "shared/load_at_16")
#: Of the worked cases; the first is alone in its amount of global memory.
WORKED = "tests/vectors/tmau_seed.json"
FEW = ("seed_9_swizzle_128b", "tile_inside", "tf32_rounding", "copy_block")
ALONE = 12800
#: Cases of layouts, all of them beyond silicon.
LAYOUTS = 17
CASES = 24
#: Of several cores, beside them; and in the capture of clusters.
CLUSTERS, OF_KINDS = 2, 36
#: Makes what is asked for from nothing: a script that runs the file of the same name beside this one.
NVCC = """#!/bin/sh
[ "$1" != --version ] || exit 0
while [ "$1" != -o ]; do shift; done
name=$(basename "$2")
echo "#!/bin/sh" > "$2"
echo 'exec "{python}" "{here}/'$name'.py" $(cat "{here}/lies")' >> "$2"
chmod +x "$2"
"""
TIMING = """
import json, struct, sys
shapes, rounds, size = struct.unpack("<IIQ", sys.stdin.buffer.read(16))
sys.stdin.buffer.read()
gpu = {"gpu": "Stand-in", "driver": 13000, "runtime": 13000, "l2_bytes": 1, "processors": 1}
print(json.dumps(gpu | {"faults": [None] * (shapes + 6), "rounds": [[1.0] * (shapes + 8)] * rounds}))
"""


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    path = tmp_path_factory.mktemp("packed") / "silicon.tar.gz"
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        assert main(["silicon", "pack", "--out", str(path)]) == 0
        again = path.with_name("again.tar.gz")
        assert main(["silicon", "pack", "--out", str(again)]) == 0
    assert path.read_bytes() == again.read_bytes()
    return path


class Machine:
    """One with a GPU, or so it seems: the unpacked archive, shortened, and what is installed."""

    def __init__(self, folder, packed):
        with tarfile.open(packed) as archive:
            archive.extraction_filter = getattr(tarfile, "data_filter", None)  # Python 3.11.2 has none
            archive.extractall(folder)
        self.folder = folder / FOLDER
        self.installed = folder / "installed"
        self.installed.mkdir()
        packages = Path(numpy.__file__).parents[1]
        for name in ("numpy", "numpy.libs"):
            if (packages / name).exists():
                (self.installed / name).symlink_to(packages / name)
        (self.installed / "nvcc").write_text(NVCC.format(python=sys.executable, here=self.installed))
        (self.installed / "nvcc").chmod(0o755)
        shutil.copy(STAND_IN, self.installed / "replay.py")
        (self.installed / "timing.py").write_text(TIMING)
        shorten(self.folder)

    def start(self, *arguments, lies=""):
        """Python without the packages of this machine, and nothing of ours in its environment."""
        (self.installed / "lies").write_text(lies)
        environment = {"PATH": f"{self.installed}:/usr/bin:/bin", "PYTHONPATH": str(self.installed)}
        command = [sys._base_executable, "-S", "run.py", "--cases", str(CASES), *arguments]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen(command, cwd=self.folder, env=environment, start_new_session=True, **pipes)

    def run(self, *arguments, lies=""):
        process = self.start(*arguments, lies=lies)
        out, error = process.communicate()
        return process.returncode, out, error


def shorten(root):
    """Leaves a few questions, and a few of the worked cases."""
    for path, chosen in ((root / QUESTIONS, CHOSEN), (root / WORKED, FEW)):
        document = json.loads(path.read_text())
        document["cases"] = [case for case in document["cases"] if case["name"] in chosen]
        assert len(document["cases"]) == len(chosen)
        path.write_text(json.dumps(document))


@pytest.fixture
def machine(tmp_path, packed):
    return Machine(tmp_path, packed)


@pytest.fixture
def home(tmp_path, monkeypatch):
    """The repository as far as answers concern it, and the working directory."""
    root = tmp_path / "home"
    for path in ("docs/silicon.md", QUESTIONS, *steps.WORKED):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, root / path)
    shorten(root)
    monkeypatch.chdir(root)
    monkeypatch.setattr(take, "BUILD", Path("build"))
    return root


def test_everything_and_back(machine, home, capsys):
    status, out, error = machine.run("--out", "answers")
    assert status == 0, error
    assert [line[:8] for line in out.splitlines() if line.startswith("[")] == [f"[{n} of 6]" for n in range(1, 7)]
    assert main(["silicon", "take", str(machine.folder / "answers" / ARCHIVE)]) == 0
    printed = capsys.readouterr().out
    assert f"0 of {len(FEW) + LAYOUTS + CASES + CLUSTERS} cases have not been answered" in printed
    assert f"0 of {OF_KINDS} cases have not been answered" in printed
    assert "3 of 3 questions have been answered, 0 differently" in printed
    clusters = QUESTIONS.with_name("stand-in-clusters.json.xz")
    assert len(read_cases(clusters)) == OF_KINDS
    assert main(["replay", str(clusters), "--on", "golden"]) == 0
    captured = QUESTIONS.with_name("stand-in.json.xz")
    assert len(read_cases(captured)) == len(FEW) + CASES + CLUSTERS
    assert main(["replay", str(captured), "--on", "golden"]) == 0
    answers = json.loads(QUESTIONS.with_name("answers.json").read_text())
    assert {answer["name"] for answer in answers["answers"]} == set(CHOSEN)
    page, before = Path("docs/silicon.md").read_text(), (ROOT / "docs/silicon.md").read_text()
    assert [name for name in CHOSEN if f"\n| `{name}`: " not in page] == []
    assert "not captured |" not in page
    assert page.partition("### ")[0] == before.partition("### ")[0]
    assert page.rpartition("|\n")[2] == before.rpartition("|\n")[2]
    assert json.loads(Path("build/silicon_time.json").read_text())["gpu"] == "Stand-in"


def test_killed_in_the_middle_it_goes_on(machine, home, capsys):
    process = machine.start("--out", "answers", "worked", "ask", "capture", lies="--hang 32768")
    notes, replies = machine.folder / "answers" / NOTES, machine.folder / "answers" / REPLIES
    while "ask" not in (json.loads(notes.read_text())["steps"] if notes.exists() else {}):
        assert process.poll() is None, process.communicate()
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGKILL)  # with the stand-in, which would sleep on
    process.communicate()
    before = replies.read_bytes()
    # There is no archive, but the folder; in it is what had been asked.
    assert main(["silicon", "take", str(machine.folder / "answers")]) == 0
    printed = capsys.readouterr().out
    assert "3 of 3 questions have been answered" in printed
    unanswered = re.search(r"^(\d+) of 47 cases have not been answered$", printed, re.MULTILINE)
    assert 0 < int(unanswered[1]) <= CASES + CLUSTERS
    status, out, error = machine.run("--out", "answers")
    assert status == 0, error
    assert [line[:8] for line in out.splitlines() if line.startswith("[")] == [
        "[1 of 6]",
        "[4 of 6]",
        "[5 of 6]",
        "[6 of 6]",
    ]
    assert replies.read_bytes().startswith(before), "what was answered has not been asked again"
    assert main(["silicon", "take", str(machine.folder / "answers" / ARCHIVE)]) == 0
    assert "0 of 47 cases have not been answered" in capsys.readouterr().out


def test_a_broken_context_is_an_answer(machine, home, capsys):
    status, out, error = machine.run("--out", "answers", "worked", "ask", lies=f"--fail {ALONE} --miscount 16")
    assert status == 0, error
    assert f"DIFFERENT {FEW[0]}: error is failed: command 0: cudaErrorIllegalAddress" in out
    assert "3 questions to Stand-in: 2 times the same, 1 DIFFERENT" in out
    assert main(["silicon", "take", str(machine.folder / "answers" / ARCHIVE)]) == 1
    assert "26 of 47 cases have not been answered" in capsys.readouterr().out
    first = next(case for case in read_cases(QUESTIONS.with_name("stand-in.json.xz")) if case.name == FEW[0])
    assert first.expect == {"error": "failed: command 0: cudaErrorIllegalAddress"}
    assert "**different:** counts 80" in Path("docs/silicon.md").read_text()


def test_a_page_without_tables_is_refused():
    with pytest.raises(UsageError, match=r"^docs/silicon\.md has no tables below '## Questions'$"):
        take.shown("# Replay on silicon\n\n## Questions\nnone\n", [])


def test_nothing_captured_is_of_the_stand_in():
    kept = [*QUESTIONS.parent.glob("*.json.xz"), QUESTIONS.with_name("answers.json")]
    assert [path for path in kept if path.exists() and read_document(path)["silicon"]["gpu"] == "Stand-in"] == []


def test_what_is_no_archive_is_refused(home, capsys):
    Path("none.tar.gz").write_text("none")
    Path("empty").mkdir()
    for name, sentence in (
        ("none.tar.gz", "none.tar.gz is no archive of answers: file could not be opened successfully"),
        ("gone.tar.gz", "gone.tar.gz is no archive of answers: No such file or directory"),
        ("empty", f"empty has no {NOTES}, with which answers begin"),
    ):
        assert main(["silicon", "take", name]) == 2
        assert sentence in capsys.readouterr().err
