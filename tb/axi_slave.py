"""An AXI4 read subordinate of our own, as nasty as the specification allows, and what the one for writes shares.

:class:`AxiReadSlave` is a cycle model without a simulator in it, so that it can be tested by itself; :func:`serve`
connects it to the pins of a design in cocotb.
"""

import random
from dataclasses import dataclass
from enum import IntEnum

from cocotb.triggers import RisingEdge

__all__ = ["AxiReadSlave", "Beat", "Faults", "Knobs", "Request", "Response", "serve"]


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


@dataclass(frozen=True)
class Beat:
    """What the slave drives on the R channel while RVALID is high."""

    id: int
    data: int
    response: Response
    last: bool


class Faults:
    """Which bus words answer with an error: those that somebody has asked for, and those behind the memory.

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


@dataclass(eq=False)
class _Burst:
    """A burst in flight: where its next beat comes from, and the first cycle in which it may come."""

    id: int
    address: int
    beats: int
    due: int
    started: bool = False


class AxiReadSlave:
    """Answers reads of ``memory``; call :meth:`tick` once for every rising clock edge.

    An address outside the memory is answered with DECERR and zeros. Answers to one ID are in the order of its requests.

    Parameters
    ----------
    memory : bytes-like
        Contents from address 0 on; read when a beat is first shown.
    word_bytes : int
        Bytes of a bus word.
    knobs : Knobs
        May be replaced between any two cycles by assigning to the attribute.
    seed : int
        Of everything random.

    Attributes
    ----------
    arready : bool
        ARREADY in the coming cycle.
    beat : Beat or None
        The R channel in the coming cycle; None is RVALID low.
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

    def reset(self):
        """Forgets what is in flight; the coming cycle is idle."""
        self._bursts = []
        self.arready = False
        self.beat = None

    @property
    def idle(self):
        """Nothing is in flight."""
        return self.beat is None and not self._bursts

    def tick(self, request, rready):
        """A clock edge.

        Parameters
        ----------
        request : Request or None
            What the manager shows on the AR channel in the cycle that ends; None if ARVALID is low.
        rready : bool
            RREADY in the cycle that ends.
        """
        self._cycle += 1
        accepted = request is not None and self.arready
        if accepted:
            self.requests.append(request)
            due = self._cycle + self.knobs.latency
            self._bursts.append(_Burst(request.id, request.address, request.beats, due))
        seen = request is not None and not accepted
        self.arready = (seen or not self.knobs.ready_after_valid) and not self._chance(self.knobs.ar_stall)
        if self.beat is None or rready:
            self.beat = self._next_beat()

    def _chance(self, probability):
        return self._random.random() < probability

    def _next_beat(self):
        candidates = self._candidates()
        if not candidates or self._chance(self.knobs.r_stall):
            return None
        burst = self._random.choice(candidates)
        response = self.faults.response(burst.address)
        data = bytes(self.memory[burst.address : burst.address + self._word_bytes])
        beat = Beat(burst.id, int.from_bytes(data, "little"), response, last=burst.beats == 1)
        burst.started = True
        burst.address += self._word_bytes
        burst.beats -= 1
        if not burst.beats:
            self._bursts.remove(burst)
        return beat

    def _candidates(self):
        """Bursts of which the next beat may come now."""
        heads = {}
        for burst in self._bursts:
            heads.setdefault(burst.id, burst)
        choice = [burst for burst in heads.values() if burst.due <= self._cycle]
        if not self.knobs.reorder:
            # Interleaved, younger bursts may begin, but none ends before the oldest.
            oldest = self._bursts[0] if self._bursts else None
            choice = [burst for burst in choice if burst is oldest or (self.knobs.interleave and burst.beats > 1)]
        if not self.knobs.interleave:
            choice = [burst for burst in choice if burst.started] or choice
        return choice


async def serve(slave, port, clock, reset):
    """Connects ``slave`` to pins in cocotb; never returns. Start it before the first clock edge.

    Parameters
    ----------
    port : callable
        Handle of a pin by its AXI4 name: ``port("arvalid")``. It may return None for ``arid`` and ``rid``.
    clock, reset : handles
        While ``reset`` is high at a clock edge, the slave is reset.
    """
    ar = {name: port(name) for name in ("arvalid", "arready", "arid", "araddr", "arlen")}
    r = {name: port(name) for name in ("rvalid", "rready", "rid", "rdata", "rresp", "rlast")}
    shown = None

    def drive(beat):
        r["rvalid"].value = beat is not None
        if beat is not None:
            r["rdata"].value = beat.data
            r["rresp"].value = int(beat.response)
            r["rlast"].value = beat.last
            if r["rid"] is not None:
                r["rid"].value = beat.id

    drive(Beat(0, 0, Response.OKAY, False))
    drive(None)
    ar["arready"].value = 0
    while True:
        await RisingEdge(clock)
        if int(reset.value):
            slave.reset()
        else:
            request = None
            if int(ar["arvalid"].value):
                number = int(ar["arid"].value) if ar["arid"] is not None else 0
                request = Request(number, int(ar["araddr"].value), int(ar["arlen"].value) + 1)
            slave.tick(request, bool(int(r["rready"].value)))
        ar["arready"].value = slave.arready
        if slave.beat is not shown:
            shown = slave.beat
            drive(shown)
