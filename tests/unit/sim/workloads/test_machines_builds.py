"""What the workers that build models say, and how it reaches whoever waits. Whole models are built by `make sim`."""

import io
import os
import signal
import subprocess
import sys
import time
from multiprocessing import Pipe

import pytest

from tilewright.errors import HostError
from tilewright.progress import Lines, report, shown, work
from tilewright.sim.session import Session
from tilewright.sim.workloads.machines import _pass_on, _Sender, build_side_by_side


def test_missing_tool_of_a_worker_is_an_error_here(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    jobs = {"pe": (Session, {"preset": "unit", "engines": ["pe"], "simulator": "icarus"})}
    with pytest.raises(HostError, match=r"^the simulator icarus needs iverilog, which is not installed$"):
        build_side_by_side(jobs, Lines(io.StringIO()))


def test_what_a_worker_reports_is_shown_under_the_name_of_its_job():
    receiver, sender = Pipe(duplex=False)
    with shown(_Sender(sender)), work("pe"):
        report("compilation", 3, 17)
    sender.close()
    stream, names = io.StringIO(), {receiver: "pe of 64 threads"}
    while names:
        _pass_on(receiver, names, Lines(stream))
    assert stream.getvalue() == "pe of 64 threads: compilation, 3 of 17\n"


#: A command that builds two things, each by a program that takes long, and leaves a file where nobody ends it; it is
#: imported by its workers too.
FAKE = """
import io
import sys
from pathlib import Path
from types import SimpleNamespace
from tilewright.tools.cli import main as cli
from tilewright.processes import run_process
from tilewright.progress import Lines
from tilewright.sim.workloads.machines import build_side_by_side

def session():
    run_process(["sh", "-c", 'sleep 20; echo > "$0"', Path(__file__).with_name("left behind")])

def run(args):
    build_side_by_side({"a": (session, {}), "b": (session, {})}, Lines(io.StringIO()))

if __name__ == "__main__":
    cli.import_module = lambda name: SimpleNamespace(configure=lambda parser: None, run=run)
    sys.exit(cli.main(["stages"]))
"""


@pytest.mark.parametrize(
    "begun", [pytest.param(b"spawn_main", marks=pytest.mark.long), b"sleep\0"], ids=["importing", "building"]
)
@pytest.mark.parametrize(
    ("number", "whole", "status", "said"),
    [
        (signal.SIGINT, True, 130, "tilewright stages: interrupted\n"),
        pytest.param(signal.SIGTERM, False, 143, "tilewright stages: interrupted\n", marks=pytest.mark.long),
        pytest.param(signal.SIGKILL, False, -9, "", marks=pytest.mark.long),
    ],
    ids=["ctrl-c", "kill", "kill-9"],
)
def test_a_signal_ends_all_and_is_one_line(tmp_path, mark, begun, number, whole, status, said):
    """Ctrl-C goes to the whole group, as the terminal sends it, and ``kill`` to the one that waits."""
    script = tmp_path / "fake.py"
    script.write_text(FAKE)
    process = subprocess.Popen(
        [sys.executable, str(script)], env=mark.environment | {"TMPDIR": str(tmp_path)},
        stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    with process, process.stderr as errors:
        while sum(begun in line for line in mark.lines()) < 2:
            assert process.poll() is None, errors.read()
            time.sleep(0.05)
        (os.killpg if whole else os.kill)(process.pid, number)
        # Read until the last of the children has closed it.
        text = errors.read()
        assert process.wait() == status
        # Python itself may complain in a worker whose parent was killed before it had told what to do.
        assert text == said or (number, begun) == (signal.SIGKILL, b"spawn_main")
    while mark.lines():
        time.sleep(0.05)
    assert list(tmp_path.iterdir()) == [script]
