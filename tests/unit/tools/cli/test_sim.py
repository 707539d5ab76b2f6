"""Which workloads run at the same time, and in which order they are told, with workloads that only wait."""

import io
from contextlib import ExitStack
from threading import Event

import pytest

from tilewright.progress import Lines, shown
from tilewright.tools.cli import sim as command
from tilewright.tools.cli.main import main

#: Sessions by workload: two machines.
SESSIONS = {"photo": "tmau", "convolution": "tmau", "gemm": "pe"}


def play_all(monkeypatch, play):
    """Yields what ``play(name)`` returns for each workload."""
    monkeypatch.setattr(command, "play", lambda name, *rest: play(name))
    with ExitStack() as players:
        yield from command.play_all(SESSIONS, (), False, players)


def test_machines_work_at_the_same_time_and_are_told_in_order(monkeypatch):
    """The first workload waits for the last one, and each machine does one after the other."""
    ended = {name: Event() for name in SESSIONS}

    def play(name):
        assert name != "photo" or ended["gemm"].wait(10)
        assert name != "convolution" or ended["photo"].is_set()
        ended[name].set()
        return name

    stream = io.StringIO()
    with shown(Lines(stream)):
        assert list(play_all(monkeypatch, play)) == list(SESSIONS)
    lines = [f"workload {number} of 3: {name}" for number, name in enumerate(SESSIONS, 1)]
    assert sorted(stream.getvalue().splitlines()) == lines


def test_what_one_raises_is_raised_here(monkeypatch):
    def play(name):
        if name == "photo":
            raise RuntimeError("the simulation ended by itself")
        return name

    with pytest.raises(RuntimeError, match=r"^the simulation ended by itself$"):
        list(play_all(monkeypatch, play))


@pytest.mark.parametrize(
    ("options", "complaint"),
    [(["--preset", "default"], "takes no --preset"), (["--set", "tmau.max_burst=8"], "takes no --set"),
     (["--layers", "2"], "takes no --layers"), (["--waves"], "writes no waveforms")],
)  # fmt: skip
def test_the_system_has_a_core_of_its_own(options, complaint, capsys):
    assert main(["sim", "--workload", "system", *options]) == 2
    assert complaint in capsys.readouterr().err
