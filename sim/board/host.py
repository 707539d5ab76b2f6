"""What a board's design is asked for: words of its registers and memories, and commands."""

import numpy as np

from tilewright.golden.spec import COMMAND, Error
from tilewright.golden.spec.tmau.registers import TMAU_ID_VALUE, TMAU_REGISTERS
from tilewright.hw.board.host import REPLY_OKAY, Op
from tilewright.hw.board.top import board_regions

__all__ = ["BoardHost"]

_WORD_BYTES = 4
_MOST = 256  # words of a frame
_HEADER_BYTES = 6
_REGISTERS = {register.name: register for register in TMAU_REGISTERS}


class BoardHost:
    """Talks to a board's design over a link.

    What another program may have left of a frame is ended first, and the record of errors is cleared.

    Parameters
    ----------
    link : SimulatedLink or SerialLink
    params : BoardParams

    Raises
    ------
    RuntimeError
        If something else answers, or nothing; so do all methods. One sentence.
    """

    def __init__(self, link, params):
        self._link = link
        engine, board = board_regions(params)
        self._bases = {"registers": engine["tmau"].base, "shared": engine["smem"].base}
        self._bases |= {"commands": board["commands"].base, "memory": board["memory"].base}
        link.write(bytes(_HEADER_BYTES + _MOST * _WORD_BYTES))  # no operation is 0
        link.drain()
        found = self.register("id")
        if found != TMAU_ID_VALUE:
            raise RuntimeError(f"what answers is no access unit: its id is {found:#x}")
        self.write("registers", _REGISTERS["control"].offset, self._control("clear_error", "clear_counters"))

    def register(self, name):
        """The word of a register of ``golden.spec.tmau.registers``."""
        return int.from_bytes(self.read("registers", _REGISTERS[name].offset, _WORD_BYTES), "little")

    def read(self, place, address, count):
        """``count`` bytes from an address on: of ``registers``, ``shared`` or ``memory``. All multiples of 4."""
        found = b""
        for first, words in _frames(address, count):
            self._link.write(self._header(Op.READ, place, first, words))
            found += self._link.read(words * _WORD_BYTES)
            self._check(place, first)
        return found

    def write(self, place, address, values):
        """Writes bytes from an address on: of ``registers``, ``shared``, ``memory`` or ``commands``."""
        values = bytes(values)
        for first, words in _frames(address, len(values)):
            start = first - address
            self._link.write(self._header(Op.WRITE, place, first, words) + values[start : start + words * _WORD_BYTES])
            self._check(place, first)

    def command(self, word):
        """Issues a packed command; returns when the queue has taken it."""
        self.write("commands", 0, int(word).to_bytes(COMMAND.bits // 8, "little"))

    def wait(self):
        """Waits until all commands have ended; RuntimeError if one of them ended with an error."""
        while not self.register("status") & 1:
            pass
        code = _REGISTERS["error"].format.unpack(self.register("error"))["code"]
        if code:
            raise RuntimeError(f"a command ended with the error {Error(code).name}")

    def _header(self, op, place, address, words):
        return bytes([op.value]) + (self._bases[place] + address).to_bytes(4, "little") + bytes([words - 1])

    def _check(self, place, address):
        if (reply := self._link.read(1)[0]) != REPLY_OKAY:
            raise RuntimeError(f"the board has answered {reply:#x} to words of {place} from {address:#x} on")

    def _control(self, *names):
        word = _REGISTERS["control"].format.pack(**dict.fromkeys(names, 1))
        return np.uint32(word).tobytes()


def _frames(address, count):
    """Addresses and words of the frames for so many bytes."""
    if address % _WORD_BYTES or count % _WORD_BYTES:
        raise ValueError(f"address and count must be multiples of {_WORD_BYTES}, not {address} and {count}")
    for start in range(0, count, _MOST * _WORD_BYTES):
        yield address + start, min(_MOST, (count - start) // _WORD_BYTES)
