"""What the workers that build models say, and how it reaches whoever waits. Whole models are built by `make sim`."""

import io
from multiprocessing import Pipe

import pytest

from tilewright.sim.progress import Lines, report, shown, work
from tilewright.sim.session import PeSession
from tilewright.sim.workloads.builders import _pass_on, _Sender, build_side_by_side


def test_missing_tool_of_a_worker_is_an_error_here(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    jobs = {"pe": (PeSession, {"preset": "unit", "simulator": "icarus"})}
    with pytest.raises(RuntimeError, match=r"^the simulator icarus needs iverilog, which is not installed$"):
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
