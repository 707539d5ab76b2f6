"""Serial lines: bytes to a board and back, or to a simulation of one."""

import os
import select
import time

import numpy as np

from ..harness.serial_bench import SerialBench
from ..hdl.designs import cached_design
from ..hdl.simulation import Simulation
from ..hdl.testbench import make_design
from ..usage import UsageError

__all__ = ["SerialLink", "SimulatedLink"]

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
