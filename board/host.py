"""Serial lines: bytes to a board and back, or to a simulation of one."""

import os
import select
import time

import numpy as np

from tilewright.errors import UsageError
from tilewright.sim.hdl.simulation import Simulation
from tilewright.sim.hdl.testbench import cached_design, make_design
from tilewright.spec import COMMAND, Error
from tilewright.spec.tmau_registers import TMAU_ID_VALUE, TMAU_REGISTERS

from .serial import REPLY_OKAY, Op
from .serial_bench import SerialBench
from .top import board_regions

__all__ = ["BoardHost", "SerialLink", "SimulatedLink"]

_DEPTH = 4096  # bytes of either direction in one go
_BYTE_BITS = 10
_PATIENCE = 20_000  # cycles for what an answer takes beside its bytes
_SECONDS = 2.0  # without a byte
_CHUNK = 65536


class SimulatedLink:
    """A board in a simulator; a context manager.

    Parameters
    ----------
    params : BoardParams
    simulator : str
        ``"verilator"`` or ``"icarus"``.

    Attributes
    ----------
    simulation : Simulation
    """

    def __init__(self, params, simulator="verilator"):
        def make():
            bench = SerialBench(params, depth=_DEPTH)
            return make_design(bench, bench.arrays())

        self._cycles_per_byte = params.cycles_per_bit * _BYTE_BITS
        self.simulation = Simulation(cached_design(make, "board", params, _DEPTH), simulator=simulator)
        self.simulation.exchange(reset=True)
        self._unsent = b""

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.simulation.close()

    def write(self, values):
        """Sends bytes, with the next that are read."""
        self._unsent += bytes(values)

    def read(self, count):
        """``count`` bytes that come back; RuntimeError if they do not."""
        found = self._exchange(count)
        if len(found) < count:
            raise RuntimeError(f"the board has answered with {len(found)} bytes and not with {count}")
        return found

    def drain(self):
        """Waits until nothing comes any more, and forgets it."""
        self._exchange(_DEPTH)

    def _exchange(self, wanted):
        unsent, self._unsent = np.frombuffer(self._unsent, np.uint8), b""
        self.simulation.load("sent", 0, unsent)
        self.simulation.controls |= {"send_count": len(unsent), "wanted": wanted}
        limit = (len(unsent) + wanted) * self._cycles_per_byte + _PATIENCE
        statuses, _ = self.simulation.exchange(start=True, limit=limit)
        count = statuses["received_count"]
        _, arrays = self.simulation.exchange(dump={"received": (0, count)} if count else {})
        return arrays["received"].tobytes() if count else b""


class SerialLink:
    """The serial port of this computer that a board is at; a context manager. On Linux only.

    Parameters
    ----------
    port : str
        Its file.
    baud : int
        Bits a second.

    Raises
    ------
    UsageError
        If it is no serial port, or one without that speed.
    """

    def __init__(self, port, baud):
        try:
            import termios
        except ImportError:
            raise UsageError(f"{port} cannot be opened: serial ports are known on Linux only") from None
        speed = getattr(termios, f"B{baud}", None)
        if speed is None:
            raise UsageError(f"this computer knows no serial port of {baud} bits a second")
        self._file = os.open(port, os.O_RDWR | os.O_NOCTTY)
        try:
            # Raw: eight bits, no parity, one stop bit, nothing echoed, changed or waited for.
            nothing = [0] * len(termios.tcgetattr(self._file)[-1])
            control = termios.CS8 | termios.CREAD | termios.CLOCAL
            termios.tcsetattr(self._file, termios.TCSAFLUSH, [0, 0, control, 0, speed, speed, nothing])
        except termios.error:
            os.close(self._file)
            raise UsageError(f"{port} is no serial port") from None

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        os.close(self._file)

    def write(self, values):
        """Sends bytes."""
        left = bytes(values)
        while left:
            left = left[os.write(self._file, left) :]

    def read(self, count):
        """``count`` bytes that come back; RuntimeError if none comes for two seconds."""
        found = b""
        while len(found) < count:
            part = self._some(count - len(found), _SECONDS)
            if not part:
                raise RuntimeError(f"the board has answered with {len(found)} bytes and not with {count}")
            found += part
        return found

    def drain(self):
        """Waits until nothing comes any more, and forgets it."""
        until = time.monotonic() + _SECONDS
        while self._some(_CHUNK, _SECONDS / 10) and time.monotonic() < until:
            pass

    def _some(self, most, seconds):
        ready, _, _ = select.select([self._file], [], [], seconds)
        return os.read(self._file, most) if ready else b""


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
        """The word of a register of ``spec.tmau_registers``."""
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
    """Addresses and numbers of words of the frames that transfer ``count`` bytes."""
    if address % _WORD_BYTES or count % _WORD_BYTES:
        raise ValueError(f"address and count must be multiples of {_WORD_BYTES}, not {address} and {count}")
    for start in range(0, count, _MOST * _WORD_BYTES):
        yield address + start, min(_MOST, (count - start) // _WORD_BYTES)
