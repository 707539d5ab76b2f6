"""Child processes: an interrupted command is one line, and leaves none behind."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event, main_thread

import pytest

from tilewright import processes
from tilewright.processes import Interrupted, end_with_signals, run_process

#: A command with two children, one of them a child of the other, and one in a thread; it says when they run.
FAKE = """
import sys
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from tilewright.tools.cli import main as cli
from tilewright.processes import run_process

def run(args):
    with ThreadPoolExecutor(1) as pool:
        try:
            for _ in range(3):
                pool.submit(run_process, ["sleep", "100"])
            run_process(["sh", "-c", "sleep 100 & sleep 100"])
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

cli.import_module = lambda name: SimpleNamespace(configure=lambda parser: None, run=run)
sys.exit(cli.main(["stages"]))
"""


def interrupted(command, mark, children, number=signal.SIGINT, **options):
    """Status and standard error of a command that gets a signal, it alone, when it has so many children."""
    process = subprocess.Popen(
        command, env=mark.environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, **options
    )
    with process, process.stderr as errors:
        while len(mark.lines()) <= children:
            assert process.poll() is None, errors.read()
            time.sleep(0.05)
        process.send_signal(number)
        return process.wait(), errors.read()


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_command_leaves_no_child(mark, number, status):
    ended, said = interrupted([sys.executable, "-c", FAKE], mark, 4, number)
    assert (ended, said) == (status, "tilewright stages: interrupted\n")
    assert mark.left() == []


def test_an_interrupted_area_leaves_no_yosys(tmp_path, mark):
    """Several threads, each with an elaboration and then a Yosys of its own."""
    command = [str(Path(sys.executable).with_name("tilewright")), "area", "--preset", "unit", "--engine", "pe"]
    ended, said = interrupted(command, mark, 1, cwd=tmp_path)
    *progress, last = said.splitlines()
    assert (ended, last) == (130, "tilewright area: interrupted")
    assert all(line.startswith("pe, unit: blocks") for line in progress), said
    assert mark.left() == []
    assert not (tmp_path / "build").exists()


def test_what_a_process_prints_and_returns():
    done = run_process(["sh", "-c", "cat; echo out; echo err >&2; exit 3"])
    assert (done.returncode, done.stdout, done.stderr) == (3, "out\n", "err\n")


def test_what_takes_too_long_is_ended(mark):
    with pytest.raises(subprocess.TimeoutExpired):
        run_process(["sh", "-c", "sleep 100 & sleep 100"], timeout=0.1, env=mark.environment)
    assert mark.left() == []


def test_handlers_are_those_of_before():
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with pytest.raises(Interrupted) as caught, end_with_signals():
        signal.raise_signal(signal.SIGTERM)
    assert caught.value.status == 143
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before
    assert run_process(["true"]).returncode == 0, "processes may be started again"


def test_an_interruption_that_became_another_exception():
    """As where compiled modules are being imported."""

    def broken_import():
        try:
            signal.raise_signal(signal.SIGINT)
        except Interrupted:
            raise ImportError("numpy._core.umath failed to import") from None

    with pytest.raises(Interrupted) as caught, end_with_signals():
        broken_import()
    assert caught.value.status == 130


def children_begun_with(monkeypatch, meanwhile):
    """Numbers of the children from now on; ``meanwhile`` is called when one runs and nobody has its number yet."""
    begun = []

    class Popen(subprocess.Popen):
        def __init__(self, *args, **options):
            super().__init__(*args, **options)
            begun.append(self.pid)
            meanwhile()

    monkeypatch.setattr(processes.subprocess, "Popen", Popen)
    return begun


def is_there(number):
    """Whether a child is there, at least to be waited for."""
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    return True


@contextmanager
def as_in_a_script():
    """Python's own answer to Ctrl-C; it is not there where a shell has started us in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(
    ("number", "handled", "raised"),
    [
        (signal.SIGINT, end_with_signals, Interrupted),
        (signal.SIGTERM, end_with_signals, Interrupted),
        (signal.SIGINT, as_in_a_script, KeyboardInterrupt),
    ],
    ids=["ctrl-c", "kill", "ctrl-c-in-python"],
)
def test_a_signal_while_a_child_is_started_ends_it(monkeypatch, number, handled, raised):
    begun = children_begun_with(monkeypatch, lambda: signal.raise_signal(number))
    with pytest.raises(raised), handled():
        run_process(["sleep", "100"])
    assert [is_there(child) for child in begun] == [False]
    assert not processes._groups


def test_a_signal_while_another_thread_starts_a_child_ends_it(monkeypatch):
    submitted = Event()  # a pool that is interrupted earlier may not have noted its thread

    def interrupt():
        submitted.wait()
        # Python does not see a signal that comes just before the thread begins to wait, until another one comes.
        signal.pthread_kill(main_thread().ident, signal.SIGTERM)
        while not processes._ending.wait(1):
            signal.pthread_kill(main_thread().ident, signal.SIGTERM)

    def wait_for_another():
        with ThreadPoolExecutor(1) as pool:
            future = pool.submit(run_process, ["sleep", "100"])
            submitted.set()
            future.result()

    begun = children_begun_with(monkeypatch, interrupt)
    with pytest.raises(Interrupted) as caught, end_with_signals():
        wait_for_another()
    assert caught.value.status == 143
    assert [is_there(child) for child in begun] == [False]


def test_a_signal_while_a_program_is_not_found_is_not_lost(monkeypatch):
    def popen(*args, **options):
        signal.raise_signal(signal.SIGINT)
        raise FileNotFoundError

    monkeypatch.setattr(processes.subprocess, "Popen", popen)
    with pytest.raises(Interrupted), end_with_signals():
        run_process(["nowhere"])
