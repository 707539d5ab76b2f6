"""What every testbench begins with: ports, which a wrapper may have renamed, clock, reset and how often to pause."""

import os
import random
import warnings
from dataclasses import dataclass

import cocotb
import numpy as np
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge

__all__ = [
    "COUNT",
    "PAUSES",
    "PERIOD",
    "Pauses",
    "Ports",
    "allow_only_cocotbext_warnings",
    "check_bytes",
    "random_numbers",
    "reset",
    "start_clock",
]

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
