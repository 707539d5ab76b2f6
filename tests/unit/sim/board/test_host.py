"""What the program asks of a board, and what it makes of wrong answers; the board is played by bytes."""

import pytest

from tilewright.golden.spec.tmau.registers import TMAU_ID_VALUE
from tilewright.hw.board.params import BoardParams
from tilewright.sim.board.host import BoardHost

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
