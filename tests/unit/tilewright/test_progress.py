"""What long work says, and where it is shown."""

import io
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from tilewright import progress
from tilewright.progress import Bars, Lines, counted, report, shown, work, working


class Terminal(io.StringIO):
    """A standard error that is a terminal."""

    def isatty(self):
        return True


def test_a_line_for_each_stage_and_one_every_few_seconds(monkeypatch):
    seconds = iter([0.0, 1.0, 4.9, 5.1, 6.0, 7.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(seconds))
    stream = io.StringIO()
    with shown(Lines(stream)):
        with work("tmau"):
            for done in range(5):
                report("compilation", done, 1700)
            report("end")
    assert stream.getvalue() == "tmau: compilation, 0 of 1,700\ntmau: compilation, 3 of 1,700, 48 min left\ntmau: end\n"


def test_silence_ends_with_a_line(monkeypatch):
    """Of what has been silent for a quarter of a minute, and not of what has ended."""
    seconds = iter([0.0, 0.0, 10.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(seconds))
    stream = io.StringIO()
    lines = Lines(stream)
    lines.update("core", "Yosys", 0, None)
    lines.update("pe", "Yosys", 0, None)
    lines.update("tmau", "Yosys", 0, None)
    lines.end("pe")
    lines.remind(14.9)
    assert "s\n" not in stream.getvalue().replace("Yosys\n", "")
    lines.remind(20.0)
    lines.remind(26.0)
    lines.remind(36.0)
    lines.close()
    assert stream.getvalue().splitlines()[3:] == [
        "core: Yosys, 20 s", "tmau: Yosys, 16 s", "core: Yosys, 36 s",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("done", "rest", "seconds", "left"),
    [(0, 10, 9.0, ""), (9, 0, 9.0, ""), (3, 3, 14.0, ""), (3, 3, 15.0, ", 15 s left"), (1, 2, 60.0, ", 2 min left"),
     (1, 200, 60.0, ", 3 h left")],
)  # fmt: skip
def test_how_long_the_rest_takes(done, rest, seconds, left):
    assert progress._left(done, rest, seconds) == left


def test_a_command_says_it_on_standard_error_even_without_the_package_of_bars(monkeypatch, capsys):
    monkeypatch.setattr(progress.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with working("mutants"):
        assert list(counted("done", "ab")) == ["a", "b"]
        report("end")
    assert capsys.readouterr().err == "mutants: done, 0 of 2\nmutants: end\n"


@pytest.mark.parametrize("stream", [io.StringIO(), Terminal()])
def test_a_script_shows_bars_on_a_terminal_and_nothing_elsewhere(monkeypatch, stream):
    monkeypatch.setattr(sys, "stderr", stream)
    with work("tmau"):
        report("elaboration")
        report("compilation", 3, 17)
    written = re.sub(r"\x1b\[[^A-Za-z]*[A-Za-z]", "", stream.getvalue())
    assert ("tmau: compilation" in written and "3 of 17" in written) == stream.isatty()
    assert bool(written) == stream.isatty()
    report("no work", 1, 2)


def test_nothing_to_say_leaves_no_trace(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    with work("tmau"):
        pass
    assert re.sub(r"\x1b\[[^A-Za-z]*[A-Za-z]", "", sys.stderr.getvalue()).strip() == ""


def test_work_in_a_command_is_shown_by_the_display_of_the_command(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    stream = io.StringIO()
    with shown(Lines(stream)), work("pe"):
        report("Verilog")
    assert stream.getvalue() == "pe: Verilog\n"
    assert sys.stderr.getvalue() == ""


def test_bars_end_with_their_work(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    bars = Bars()
    with shown(bars):
        with work("pe"):
            report("Verilog")
            assert [task.description for task in bars._bars.tasks] == ["pe: Verilog"]
        assert bars._bars.tasks == []


def test_threads_each_have_their_own_work():
    stream, both = io.StringIO(), Barrier(2)

    def play(name):
        with work(name):
            both.wait(10)
            report(f"{name} goes on")
            both.wait(10)

    with shown(Lines(stream)), ThreadPoolExecutor(2) as threads:
        list(threads.map(play, ("photo", "gemm")))
    assert sorted(stream.getvalue().splitlines()) == ["gemm: gemm goes on", "photo: photo goes on"]
