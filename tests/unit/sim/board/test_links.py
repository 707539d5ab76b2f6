"""A serial port, for which a pseudo terminal stands in. Simulated lines are tested with what is behind them."""

import os
import threading

import pytest

from tilewright.sim.board import links
from tilewright.sim.board.links import SerialLink
from tilewright.sim.usage import UsageError


@pytest.fixture
def terminal():
    """The board's end, and the name of the computer's."""
    board, computer = os.openpty()
    yield board, os.ttyname(computer)
    os.close(board)
    os.close(computer)


def test_bytes_pass_unchanged(terminal):
    board, name = terminal
    values = bytes(range(256)) * 8
    with SerialLink(name, 1_000_000) as link:
        found = []
        reader = threading.Thread(target=lambda: found.append(read_all(board, len(values))))
        reader.start()
        link.write(values)
        reader.join()
        assert found == [values]
        for start in range(0, len(values), 256):
            os.write(board, values[start : start + 256])
            assert link.read(256) == values[start : start + 256]


def read_all(file, count):
    found = b""
    while len(found) < count:
        found += os.read(file, count)
    return found


def test_nothing_comes(terminal, monkeypatch):
    monkeypatch.setattr(links, "_SECONDS", 0.05)
    board, name = terminal
    with SerialLink(name, 1_000_000) as link:
        os.write(board, b"abc")
        with pytest.raises(RuntimeError, match=r"^the board has answered with 3 bytes and not with 4$"):
            link.read(4)


def test_what_is_drained_is_gone(terminal, monkeypatch):
    monkeypatch.setattr(links, "_SECONDS", 0.2)
    board, name = terminal
    with SerialLink(name, 1_000_000) as link:
        os.write(board, b"left over")
        link.drain()
        os.write(board, b"new")
        assert link.read(3) == b"new"


def test_no_serial_port(tmp_path):
    path = tmp_path / "file"
    path.touch()
    with pytest.raises(UsageError, match=rf"^{path} is no serial port$"):
        SerialLink(str(path), 1_000_000)
    with pytest.raises(FileNotFoundError):
        SerialLink(str(tmp_path / "missing"), 1_000_000)


def test_a_speed_that_is_none(terminal):
    with pytest.raises(UsageError, match=r"^this computer knows no serial port of 12345 bits a second$"):
        SerialLink(terminal[1], 12345)
