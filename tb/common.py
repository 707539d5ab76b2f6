"""Stream drivers and start-up for cocotb testbenches."""

import random
import warnings

from cocotb.clock import Clock
from cocotb.queue import Queue
from cocotb.triggers import RisingEdge, with_timeout

__all__ = ["PERIOD", "Sink", "Source", "allow_only_cocotbext_warnings", "reset", "start_clock"]

#: Of the clock, in simulator steps: the generated Verilog has no time scale.
PERIOD = 10


def allow_only_cocotbext_warnings():
    """Warnings become errors, except that cocotbext-axi may use what cocotb 2 deprecates."""
    warnings.simplefilter("error")
    warnings.filterwarnings("ignore", category=DeprecationWarning, module=r"cocotbext\.axi|cocotb_bus")


def start_clock(dut):
    """Starts ``clk`` low, as Icarus Verilog needs it."""
    Clock(dut.clk, PERIOD, "step").start(start_high=False)


async def reset(dut, cycles=2):
    """Holds ``rst`` for some cycles; returns in the first cycle after it."""
    dut.rst.value = 1
    for _ in range(cycles):
        await RisingEdge(dut.clk)
    dut.rst.value = 0


class Source:
    """Drives an input stream, one item at a time.

    Parameters
    ----------
    dut, name : handle, str
        The stream's pins are ``name_payload``, ``name_valid`` and ``name_ready``.
    shape : amaranth Layout
        Of the payload; items are what its ``const`` takes, or an int with all bits.
    """

    def __init__(self, dut, name, shape):
        self._clock = dut.clk
        self._payload, self._valid, self._ready = (
            getattr(dut, f"{name}_{pin}") for pin in ("payload", "valid", "ready")
        )
        self._shape = shape
        self._payload.value = 0
        self._valid.value = 0

    def withdraw(self):
        """Takes back an item that was not accepted: only right in a reset."""
        self._valid.value = 0

    async def send(self, item):
        """Returns in the cycle after the item was accepted."""
        self._payload.value = item if isinstance(item, int) else self._shape.const(item).as_bits()
        self._valid.value = 1
        while True:
            await RisingEdge(self._clock)
            if int(self._ready.value):
                break
        self._valid.value = 0


class Sink:
    """Takes the items of an output stream as they come, with random pauses.

    Parameters
    ----------
    dut, name, shape
        As of :class:`Source`.
    seed : int
        Of the pauses.

    Attributes
    ----------
    stall : float
        Probability of a pause in each cycle; 1 takes nothing.
    """

    def __init__(self, dut, name, shape, *, seed):
        self.stall = 0.0
        self._dut = dut
        self._payload, self._valid, self._ready = (
            getattr(dut, f"{name}_{pin}") for pin in ("payload", "valid", "ready")
        )
        self._shape = shape
        self._random = random.Random(seed)
        self._items = Queue()
        self._ready.value = 0

    async def run(self):
        """Never returns."""
        ready = False
        while True:
            await RisingEdge(self._dut.clk)
            if ready and int(self._valid.value) and not int(self._dut.rst.value):
                self._items.put_nowait(self._shape.from_bits(int(self._payload.value)))
            ready = self._random.random() >= self.stall
            self._ready.value = ready

    async def get(self, cycles=10_000):
        """The next item; raises if none comes within ``cycles``."""
        return await with_timeout(self._items.get(), cycles * PERIOD, "step")

    def clear(self):
        """Forgets items that have come and were not taken with :meth:`get`."""
        while not self._items.empty():
            self._items.get_nowait()
