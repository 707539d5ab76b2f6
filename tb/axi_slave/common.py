"""What our two AXI4 subordinates share, one for reads and one for writes, as nasty as the specification allows.

Each is a cycle model without a simulator in it, so that it can be tested by itself; :func:`serve` connects it to the
pins of a design in cocotb.
"""

import random
from dataclasses import dataclass
from enum import IntEnum

from cocotb.triggers import RisingEdge

__all__ = ["AxiSlave", "Faults", "Knobs", "Request", "Response", "serve"]


class Response(IntEnum):
    """RRESP of a beat, or BRESP of a burst: the larger, the worse."""

    OKAY = 0
    SLVERR = 2
    DECERR = 3


@dataclass(frozen=True)
class Knobs:
    """How a slave behaves, within what AXI4 allows.

    Attributes
    ----------
    reorder : bool
        Bursts of different IDs may overtake each other.
    interleave : bool
        Beats of different IDs may alternate.
    ready_after_valid : bool
        READY of a channel is low until its VALID has been seen, every time.
    latency : int
        Cycles that a read waits at least for its first beat, and a complete write for its answer.
    ar_stall, r_stall, aw_stall, w_stall, b_stall : float
        Probability, in each cycle, of READY being low, or of nothing new being shown; less than 1.
    data_first : bool
        AWREADY is low until the first data of the burst have been accepted.
    """

    reorder: bool = False
    interleave: bool = False
    ready_after_valid: bool = False
    latency: int = 0
    ar_stall: float = 0.0
    r_stall: float = 0.0
    aw_stall: float = 0.0
    w_stall: float = 0.0
    b_stall: float = 0.0
    data_first: bool = False


@dataclass(frozen=True)
class Request:
    """An INCR burst of whole bus words: ID, byte address of the first, number of beats."""

    id: int
    address: int
    beats: int


class Faults:
    """Which bus words answer with an error: those that a test has named, and those behind the memory.

    Parameters
    ----------
    size : int
        Bytes of the memory.
    word_bytes : int
        Bytes of a bus word.
    """

    def __init__(self, size, word_bytes):
        self._size = size
        self._word_bytes = word_bytes
        self._failing = []

    def fail(self, address, size, response=Response.SLVERR):
        """From now on words with a byte in ``address … address + size − 1`` get ``response``; the latest call wins."""
        self._failing.insert(0, (address, address + size, response))

    def forgive(self):
        """Takes back every :meth:`fail`."""
        self._failing.clear()

    def response(self, address):
        """What the bus word at ``address`` answers."""
        for start, end, response in self._failing:
            if start < address + self._word_bytes and address < end:
                return response
        return Response.OKAY if 0 <= address <= self._size - self._word_bytes else Response.DECERR


class AxiSlave:
    """What both have: a memory, its errors, and what is random.

    A subclass has ``tick(…)``, to be called once for every rising clock edge with what the manager shows in the cycle
    that ends; ``reset()``; and for :func:`serve` the names of the pins that it reads and drives, ``INPUTS`` and
    ``OUTPUTS``, ``sample(pin)``, which makes the arguments of ``tick`` of the values of pins by name, and
    ``outputs()``, the values to drive by name.

    Parameters
    ----------
    memory : bytes-like
        Contents from address 0 on; what lies behind them answers DECERR.
    word_bytes : int
        Bytes of a bus word.
    knobs : Knobs
        May be replaced between any two cycles by assigning to the attribute.
    seed : int
        Of everything random.

    Attributes
    ----------
    requests : list of Request
        Every request accepted so far, in order.
    faults : Faults
        Where answers are errors.
    """

    def __init__(self, memory, *, word_bytes, knobs=Knobs(), seed):
        self.memory = memory
        self.knobs = knobs
        self.requests = []
        self.faults = Faults(len(memory), word_bytes)
        self._word_bytes = word_bytes
        self._random = random.Random(seed)
        self._cycle = 0
        self.reset()

    def _chance(self, probability):
        return self._random.random() < probability


async def serve(slave, port, clock, reset):
    """Connects ``slave`` to pins in cocotb; never returns. Start it before the first clock edge.

    Parameters
    ----------
    slave : AxiSlave
    port : callable
        Handle of a pin by its AXI4 name: ``port("arvalid")``.
    clock, reset : handles
        While ``reset`` is high at a clock edge, the slave is reset.
    """
    inputs = {name: port(name) for name in slave.INPUTS}
    outputs = {name: port(name) for name in slave.OUTPUTS}
    shown = {}

    def drive(values):
        for name, value in values.items():
            if shown.get(name) != value:
                shown[name] = outputs[name].value = value

    drive(dict.fromkeys(outputs, 0))
    while True:
        drive(slave.outputs())
        await RisingEdge(clock)
        if int(reset.value):
            slave.reset()
        else:
            slave.tick(*slave.sample(lambda name: int(inputs[name].value)))
