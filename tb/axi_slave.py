"""AXI4 subordinates, one for reads and one for writes, that do all that the specification allows.

Each is a cycle model without a simulator in it, so that it can be tested by itself; :func:`serve` connects it to the
pins of a design in cocotb.
"""

import random
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from cocotb.triggers import RisingEdge

__all__ = ["Answer", "AxiReadSlave", "AxiSlave", "AxiWriteSlave", "Beat", "Faults", "Knobs", "Request", "Response",
           "WriteBeat", "serve"]  # fmt: skip


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
    stall : float
        Probability, in each cycle and on each channel, of READY being low, or of nothing new being shown; less than 1.
    data_first : bool
        AWREADY is low until the first data of the burst have been accepted.
    """

    reorder: bool = False
    interleave: bool = False
    ready_after_valid: bool = False
    latency: int = 0
    stall: float = 0.0
    data_first: bool = False


class Request(NamedTuple):
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

    @property
    def idle(self):
        """Nothing is in flight."""
        return self._shown is None and not self._bursts

    def _stalls(self):
        return self._random.random() < self.knobs.stall

    def _ready(self, waiting):
        """READY of a channel on which an item is ``waiting``."""
        return (waiting or not self.knobs.ready_after_valid) and not self._stalls()

    def _draw(self):
        """One of the bursts that may be answered now; None if there is none, or in a stall."""
        candidates = self._candidates()
        return None if not candidates or self._stalls() else self._random.choice(candidates)

    def _heads(self):
        """The oldest burst of each ID that has been asked for."""
        heads = {}
        for burst in self._bursts:
            if burst.request is not None:
                heads.setdefault(burst.request.id, burst)
        return list(heads.values())


def _request(pin, channel):
    """The request on the pins of an address channel; None if VALID is low."""
    if not pin(f"{channel}valid"):
        return None
    return Request(pin(f"{channel}id"), pin(f"{channel}addr"), pin(f"{channel}len") + 1)


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


class Beat(NamedTuple):
    """The R channel while RVALID is high."""

    id: int
    data: int
    response: Response
    last: bool


class WriteBeat(NamedTuple):
    """The W channel while WVALID is high."""

    data: int
    strobe: int
    last: bool


class Answer(NamedTuple):
    """The B channel while BVALID is high."""

    id: int
    response: Response


@dataclass(eq=False)
class _Burst:
    """A burst in flight.

    Attributes
    ----------
    request : Request or None
        None: data of a write have come before it.
    beats : list of WriteBeat
        Data of a write that have come.
    due : int
        The first cycle in which it may be answered; 0 until that is known.
    given : int
        Beats of a read that have been shown.
    """

    request: Request | None = None
    beats: list = field(default_factory=list)
    due: int = 0
    given: int = 0

    @property
    def ended(self):
        """The last data of a write have come."""
        return bool(self.beats) and self.beats[-1].last


class AxiReadSlave(AxiSlave):
    """Answers reads of ``memory``; call :meth:`tick` once for every rising clock edge.

    An address outside the memory is answered with DECERR and zeros. A beat is read when it is first shown. Answers to
    one ID are in the order of its requests.

    Attributes
    ----------
    arready : bool
        ARREADY in the coming cycle.
    beat : Beat or None
        The R channel in the coming cycle; None is RVALID low.

    and those of ``AxiSlave``.
    """

    INPUTS = ("arvalid", "arid", "araddr", "arlen", "rready")
    OUTPUTS = ("arready", "rvalid", "rid", "rdata", "rresp", "rlast")

    def reset(self):
        """Forgets what is in flight; the coming cycle is idle."""
        self._bursts, self._shown, self.arready = [], None, False

    @property
    def beat(self):
        return self._shown

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
            self._bursts.append(_Burst(request, due=self._cycle + self.knobs.latency))
        self.arready = self._ready(request is not None and not accepted)
        if self._shown is None or rready:
            self._shown = self._next_beat()

    def sample(self, pin):
        """Arguments of :meth:`tick`."""
        return _request(pin, "ar"), bool(pin("rready"))

    def outputs(self):
        """Values of pins."""
        shown = {} if self.beat is None else zip(("rid", "rdata", "rresp", "rlast"), map(int, self.beat), strict=True)
        return {"arready": int(self.arready), "rvalid": int(self.beat is not None)} | dict(shown)

    def _next_beat(self):
        burst = self._draw()
        if burst is None:
            return None
        request, address = burst.request, burst.request.address + burst.given * self._word_bytes
        data = bytes(self.memory[address : address + self._word_bytes])
        burst.given += 1
        last = burst.given == request.beats
        if last:
            self._bursts.remove(burst)
        return Beat(request.id, int.from_bytes(data, "little"), self.faults.response(address), last)

    def _candidates(self):
        """Bursts of which the next beat may come now."""
        choice = [burst for burst in self._heads() if burst.due <= self._cycle]
        if not self.knobs.reorder:
            # Interleaved, younger bursts may begin, but none ends before the oldest.
            unended = [burst for burst in choice if self.knobs.interleave and burst.given + 1 < burst.request.beats]
            choice = [burst for burst in choice if burst is self._bursts[0] or burst in unended]
        if not self.knobs.interleave:
            choice = [burst for burst in choice if burst.given] or choice
        return choice


class AxiWriteSlave(AxiSlave):
    """Takes writes into ``memory``; call :meth:`tick` once for every rising clock edge.

    Data may come before their request. A burst is written when its answer is first shown, as late as it may be; a beat
    that is answered with an error is not. Answers to one ID are in the order of its requests. Of the knobs,
    ``interleave`` means nothing here.

    Attributes
    ----------
    awready, wready : bool
        AWREADY and WREADY in the coming cycle.
    answer : Answer or None
        The B channel in the coming cycle; None is BVALID low.

    and those of ``AxiSlave``, whose memory is a bytearray.
    """

    INPUTS = ("awvalid", "awid", "awaddr", "awlen", "wvalid", "wdata", "wstrb", "wlast", "bready")
    OUTPUTS = ("awready", "wready", "bvalid", "bid", "bresp")

    def reset(self):
        """Forgets what is in flight, and does not write it; the coming cycle is idle."""
        self._bursts, self._shown, self.awready, self.wready = [], None, False, False

    @property
    def answer(self):
        return self._shown

    def tick(self, request, beat, bready):
        """A clock edge.

        Parameters
        ----------
        request : Request or None
            What the manager shows on the AW channel in the cycle that ends; None if AWVALID is low.
        beat : WriteBeat or None
            What it shows on the W channel; None if WVALID is low.
        bready : bool
            BREADY in the cycle that ends.
        """
        self._cycle += 1
        asked = request is not None and self.awready
        given = beat is not None and self.wready
        if asked:
            self.requests.append(request)
            self._first(lambda burst: burst.request is None).request = request
        if given:
            self._first(lambda burst: not burst.ended).beats.append(beat)
        for burst in self._bursts:
            if burst.request and burst.ended and not burst.due:
                count = len(burst.beats)
                assert count == burst.request.beats, f"{burst.request} came with {count} beats"
                burst.due = self._cycle + self.knobs.latency
        self.awready = self._ready(request is not None and not asked)
        self.wready = self._ready(beat is not None and not given)
        if self.knobs.data_first:
            # Only for data that are there: the manager must not wait for AWREADY before it shows them.
            self.awready = self.awready and any(burst.request is None for burst in self._bursts)
        if self._shown is None or bready:
            burst = self._draw()
            self._shown = burst and Answer(burst.request.id, self._write(burst))

    def sample(self, pin):
        """Arguments of :meth:`tick`."""
        beat = WriteBeat(pin("wdata"), pin("wstrb"), bool(pin("wlast"))) if pin("wvalid") else None
        return _request(pin, "aw"), beat, bool(pin("bready"))

    def outputs(self):
        """Values of pins."""
        shown = {} if self.answer is None else zip(("bid", "bresp"), map(int, self.answer), strict=True)
        readys = {"awready": int(self.awready), "wready": int(self.wready)}
        return readys | {"bvalid": int(self.answer is not None)} | dict(shown)

    def _first(self, wanted):
        """The oldest burst that is ``wanted``, or a new one."""
        found = next(filter(wanted, self._bursts), None)
        if found is None:
            found = _Burst()
            self._bursts.append(found)
        return found

    def _candidates(self):
        """Bursts that may be answered now."""
        ready = [burst for burst in self._heads() if burst.due and burst.due <= self._cycle]
        return ready if self.knobs.reorder else [burst for burst in ready if burst is self._bursts[0]]

    def _write(self, burst):
        """Writes what is not refused, and forgets the burst; returns the worst response."""
        self._bursts.remove(burst)
        worst = Response.OKAY
        for number, beat in enumerate(burst.beats):
            address = burst.request.address + number * self._word_bytes
            response = self.faults.response(address)
            worst = max(worst, response)
            if response == Response.OKAY:
                raw = beat.data.to_bytes(self._word_bytes, "little")
                for byte in range(self._word_bytes):
                    if beat.strobe >> byte & 1:
                        self.memory[address + byte] = raw[byte]
        return worst
