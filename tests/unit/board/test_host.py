"""A serial port, for which a pseudo terminal stands in. Simulated lines are tested with what is behind them."""

import os
import threading

import pytest

from tilewright.board import host as links
from tilewright.board.host import BoardHost, SerialLink
from tilewright.board.top import BoardParams
from tilewright.errors import UsageError
from tilewright.spec.tmau_registers import TMAU_ID_VALUE


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


PARAMS = BoardParams()
ID = TMAU_ID_VALUE.to_bytes(4, "little")
#: What a board answers until a program may begin: its id, and that the errors are cleared.
WELCOME = ID + b"K" + b"K"


class Script:
    """Answers with these bytes, whatever it is asked."""

    def __init__(self, answers):
        self.written, self._answers = [], answers

    def write(self, values):
        self.written.append(bytes(values))

    def drain(self):
        pass

    def read(self, count):
        found, self._answers = self._answers[:count], self._answers[count:]
        return found


def test_frames():
    link = Script(WELCOME + b"K" + b"abcd" + b"K" + b"KK")
    host = BoardHost(link, PARAMS)
    host.write("memory", 0x10, b"12345678")
    assert host.read("shared", 0x20, 4) == b"abcd"
    host.write("memory", 0, bytes(1028))
    flush, identify, clear, *frames = link.written
    assert flush == bytes(6 + 1024)
    assert identify == b"R" + bytes(5)
    assert clear == b"W\x20\x00\x00\x00\x00" + b"\x05\x00\x00\x00"
    assert frames == [
        b"W\x10\x00\x02\x00\x01" + b"12345678",
        b"R\x20\x80\x00\x00\x00",
        b"W\x00\x00\x02\x00\xff" + bytes(1024),
        b"W\x00\x04\x02\x00\x00" + bytes(4),
    ]


def test_a_command_is_sixteen_words():
    link = Script(WELCOME + b"K")
    BoardHost(link, PARAMS).command(1 << 511 | 7)
    assert link.written[-1] == b"W\x00\x00\x01\x00\x0f" + b"\x07" + bytes(62) + b"\x80"


def test_it_waits_until_the_unit_is_idle():
    status = [b"\x00\x01\x00\x00K", b"\x00\x00\x00\x00K", b"\x01\x00\x00\x00K"]
    BoardHost(Script(WELCOME + b"".join(status) + bytes(4) + b"K"), PARAMS).wait()


def test_an_error_of_a_command():
    host = BoardHost(Script(WELCOME + b"\x03\x00\x00\x00K" + b"\x01\x00\x05\x00K"), PARAMS)
    with pytest.raises(RuntimeError, match=r"^a command ended with the error [A-Z_]+$"):
        host.wait()


def test_something_else_answers():
    with pytest.raises(RuntimeError, match=r"^what answers is no access unit: its id is 0x12345678$"):
        BoardHost(Script(b"\x78\x56\x34\x12K"), PARAMS)


def test_a_refused_access():
    host = BoardHost(Script(WELCOME + b"E"), PARAMS)
    with pytest.raises(RuntimeError, match=r"^the board has answered 0x45 to words of shared from 0x40 on$"):
        host.write("shared", 0x40, bytes(4))


@pytest.mark.parametrize(("address", "count"), [(2, 4), (4, 3)])
def test_bytes_are_whole_words(address, count):
    host = BoardHost(Script(WELCOME), PARAMS)
    sentence = f"^address and count must be multiples of 4, not {address} and {count}$"
    with pytest.raises(ValueError, match=sentence):
        host.read("memory", address, count)
    with pytest.raises(ValueError, match=sentence):
        host.write("memory", address, bytes(count))
