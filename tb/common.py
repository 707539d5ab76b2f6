"""What every testbench uses: ports, which a wrapper may have renamed, clock, reset, pauses and drivers of streams."""

import os
import random
import warnings
from dataclasses import dataclass

import cocotb
import numpy as np
from cocotb.clock import Clock
from cocotb.queue import Queue
from cocotb.triggers import RisingEdge, with_timeout

__all__ = [
    "COUNT",
    "PAUSES",
    "PERIOD",
    "Acceptor",
    "Pauses",
    "Ports",
    "Sink",
    "Source",
    "allow_only_cocotbext_warnings",
    "check_bytes",
    "has_stream",
    "pins",
    "random_numbers",
    "reset",
    "start_clock",
]  # fmt: skip

#: Of the clock, in simulator steps: the generated Verilog has no time scale.
PERIOD = 10

#: Transfers or products of a test: the environment variable ``TILEWRIGHT_COUNT``.
COUNT = int(os.environ.get("TILEWRIGHT_COUNT", "4"))


@dataclass(frozen=True)
class Pauses:
    """Probabilities of a pause in each cycle, less than 1.

    Attributes
    ----------
    bus : float
        Of each channel of AXI4 and AXI4-Lite, valid or ready, whichever the testbench drives.
    streams : float
        Of each stream and of each port of shared memory.
    """

    bus: float = 0.0
    streams: float = 0.0


#: Pauses by name, for ``cocotb.parametrize``.
PAUSES = {
    "none": Pauses(),
    "bus": Pauses(bus=0.4),
    "streams": Pauses(streams=0.6),
    "both": Pauses(bus=0.7, streams=0.7),
}


class Ports:
    """Handles of the ports of the design by our names: ``ports["commands_valid"]``.

    Parameters
    ----------
    dut : handle
    names : str or None
        What a wrapper calls them: ``our=theirs`` separated by spaces, where ``our`` is a port or what several begin
        with: ``"clk=aclk rst=!aresetn m_axi=ddr"``. A reset that begins with ``!`` is active low. None: the environment
        variable ``TILEWRIGHT_PORTS``, or else our names.

    Attributes
    ----------
    dut : handle
    reset_level : int
        Of the reset when it is active.
    """

    def __init__(self, dut, names=None):
        self.dut = dut
        words = (os.environ.get("TILEWRIGHT_PORTS", "") if names is None else names).split()
        self._names = dict(word.split("=", 1) for word in words)
        reset_name = self._names.get("rst", "")
        self.reset_level = int(not reset_name.startswith("!"))
        if reset_name:
            self._names["rst"] = reset_name.removeprefix("!")

    def name(self, port):
        """What the design calls ``port``, or the ports that begin with it."""
        parts = port.split("_")
        for count in range(len(parts), 0, -1):
            ours = "_".join(parts[:count])
            if ours in self._names:
                return "_".join([self._names[ours], *parts[count:]])
        return port

    def __getitem__(self, port):
        return getattr(self.dut, self.name(port))

    @property
    def in_reset(self):
        """Whether the reset is active in this cycle."""
        return int(self["rst"].value) == self.reset_level


def has_stream(name):
    """Whether the design of this simulation has a stream; for decorators of tests, which see no design."""
    return cocotb.top is not None and hasattr(cocotb.top, Ports(cocotb.top).name(f"{name}_valid"))


def allow_only_cocotbext_warnings():
    """Warnings become errors, except that cocotbext-axi may use what cocotb 2 deprecates."""
    warnings.simplefilter("error")
    warnings.filterwarnings("ignore", category=DeprecationWarning, module=r"cocotbext\.axi|cocotb_bus")


def random_numbers(*names):
    """Random numbers that depend on cocotb's seed and on ``names`` alone."""
    return random.Random(f"{cocotb.RANDOM_SEED} {names}")


def start_clock(ports):
    """Starts ``clk`` low, as Icarus Verilog needs it."""
    Clock(ports["clk"], PERIOD, "step").start(start_high=False)


async def reset(ports, cycles=2):
    """Makes ``rst`` active for some cycles; returns in the first cycle after it."""
    ports["rst"].value = ports.reset_level
    for _ in range(cycles):
        await RisingEdge(ports["clk"])
    ports["rst"].value = 1 - ports.reset_level


def check_bytes(what, seen, expected):
    """Raises AssertionError unless two uint8 arrays are equal; ``what`` holds the bytes."""
    wrong = np.flatnonzero(seen != expected)
    if len(wrong):
        first = wrong[0]
        values = f"{seen[first]:#04x}, not {expected[first]:#04x}"
        raise AssertionError(f"{len(wrong)} bytes of {what} differ, the first at {first:#x}: {values}")


def pins(ports, name, fmt):
    """Handles of ``name_payload``, ``name_valid`` and ``name_ready``; the payload must have the bits of ``fmt``."""
    payload, valid, ready = (ports[f"{name}_{pin}"] for pin in ("payload", "valid", "ready"))
    assert len(payload) == fmt.bits, f"{name}_payload has {len(payload)} bits, and {fmt.name} {fmt.bits}"
    return payload, valid, ready


class Source:
    """Drives an input stream, one item at a time.

    Parameters
    ----------
    ports : Ports
    name : str
        The stream's pins are ``name_payload``, ``name_valid`` and ``name_ready``.
    fmt : Format
        Of the payload; items are its values by name, or an int with all bits.
    rng : random.Random
        Of the pauses.
    pause : float
        Probability, in each cycle before an item, of a pause.
    """

    def __init__(self, ports, name, fmt, rng, pause=0.0):
        self.pause = pause
        self._clock, self._format, self._rng = ports["clk"], fmt, rng
        self._payload, self._valid, self._ready = pins(ports, name, fmt)
        self._payload.value = 0
        self._valid.value = 0

    def withdraw(self):
        """Takes back an item that was not accepted: only right in a reset."""
        self._valid.value = 0

    async def send(self, item):
        """Returns in the cycle after the item was accepted."""
        while self._rng.random() < self.pause:
            await RisingEdge(self._clock)
        self._payload.value = item if isinstance(item, int) else self._format.pack(**item)
        self._valid.value = 1
        while True:
            await RisingEdge(self._clock)
            if int(self._ready.value):
                break
        self._valid.value = 0


class Sink:
    """Takes the items of an output stream as they come.

    Parameters
    ----------
    ports, name, fmt, rng
        As of :class:`Source`.
    pause : float
        Probability, in each cycle, of ready being low; may be changed at any time.
    """

    def __init__(self, ports, name, fmt, rng, pause=0.0):
        self.pause = pause
        self._ports, self._format, self._rng = ports, fmt, rng
        self._payload, self._valid, self._ready = pins(ports, name, fmt)
        self._items = Queue()
        self._ready.value = 0
        cocotb.start_soon(self._run())

    async def get(self, cycles=10_000):
        """The next item, its values by name; raises if none comes within ``cycles``."""
        word = await with_timeout(self._items.get(), cycles * PERIOD, "step")
        return self._format.unpack(word)

    def clear(self):
        """Forgets items that have come and were not taken with :meth:`get`."""
        while not self._items.empty():
            self._items.get_nowait()

    async def _run(self):
        ready = False
        while True:
            await RisingEdge(self._ports["clk"])
            if ready and int(self._valid.value) and not self._ports.in_reset:
                self._items.put_nowait(int(self._payload.value))
            ready = self._rng.random() >= self.pause
            self._ready.value = ready


class Acceptor:
    """Takes items of several output streams in step, for a model that runs once a cycle.

    Parameters
    ----------
    ports, rng, pause
        As of :class:`Sink`.
    formats : dict of str to Format
        Of the payloads, by the names of the streams behind ``prefix``.
    prefix : str
    """

    def __init__(self, ports, formats, rng, pause, prefix):
        self._ports, self._formats, self._rng, self._pause = ports, formats, rng, pause
        self._pins = {name: pins(ports, f"{prefix}{name}", fmt) for name, fmt in formats.items()}
        self._was_ready = dict.fromkeys(formats, False)
        for _, _, ready in self._pins.values():
            ready.value = 0

    async def cycle(self):
        """Waits for the next clock edge; returns what was taken there by name, and chooses who is ready next."""
        await RisingEdge(self._ports["clk"])
        taken = {
            name: self._formats[name].unpack(int(payload.value))
            for name, (payload, valid, _) in self._pins.items()
            if self._was_ready[name] and int(valid.value) and not self._ports.in_reset
        }
        for name, (_, _, ready) in self._pins.items():
            self._was_ready[name] = self._rng.random() >= self._pause
            ready.value = int(self._was_ready[name])
        return taken
