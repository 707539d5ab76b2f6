"""What our two AXI4 subordinates share, one for reads and one for writes, as nasty as the specification allows.

Each is a cycle model without a simulator in it, so that it can be tested by itself; :func:`serve` connects it to the
pins of a design in cocotb.
"""

import random
from dataclasses import dataclass, field
from enum import IntEnum

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


@dataclass(frozen=True)
class Beat:
    """What the slave drives on the R channel while RVALID is high."""

    id: int
    data: int
    response: Response
    last: bool


@dataclass(eq=False)
class _Burst:
    """A burst in flight: where its next beat comes from, and the first cycle in which it may come."""

    id: int
    address: int
    beats: int
    due: int
    started: bool = False


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

    def sample(self, pin):
        """Arguments of :meth:`tick`."""
        request = Request(pin("arid"), pin("araddr"), pin("arlen") + 1) if pin("arvalid") else None
        return request, bool(pin("rready"))

    def outputs(self):
        """Values of pins."""
        values = {"arready": int(self.arready), "rvalid": int(self.beat is not None)}
        if self.beat is not None:
            beat = self.beat
            values |= {"rid": beat.id, "rdata": beat.data, "rresp": int(beat.response), "rlast": int(beat.last)}
        return values

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


@dataclass(frozen=True)
class WriteBeat:
    """What the manager shows on the W channel."""

    data: int
    strobe: int
    last: bool


@dataclass(frozen=True)
class Answer:
    """What the slave drives on the B channel while BVALID is high."""

    id: int
    response: Response


@dataclass(eq=False)
class _WritesBurst:
    """A write: its request and its data, whichever came first, and the first cycle in which its answer may come."""

    request: Request | None = None
    beats: list = field(default_factory=list)
    due: int = 0

    @property
    def complete(self):
        return self.request is not None and bool(self.beats) and self.beats[-1].last


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
        self._bursts = []
        self.awready = False
        self.wready = False
        self.answer = None

    @property
    def idle(self):
        """Nothing is in flight."""
        return self.answer is None and not self._bursts

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
            self._next(lambda burst: burst.request is None).request = request
        if given:
            self._next(lambda burst: not burst.beats or not burst.beats[-1].last).beats.append(beat)
        if asked or given:
            for burst in self._bursts:
                if burst.complete and not burst.due:
                    self._check(burst)
                    burst.due = self._cycle + self.knobs.latency
        self._set_readys(request is not None and not asked, beat is not None and not given)
        if self.answer is None or bready:
            self.answer = self._next_answer()

    def sample(self, pin):
        """Arguments of :meth:`tick`."""
        request = Request(pin("awid"), pin("awaddr"), pin("awlen") + 1) if pin("awvalid") else None
        beat = WriteBeat(pin("wdata"), pin("wstrb"), bool(pin("wlast"))) if pin("wvalid") else None
        return request, beat, bool(pin("bready"))

    def outputs(self):
        """Values of pins."""
        values = {"awready": int(self.awready), "wready": int(self.wready), "bvalid": int(self.answer is not None)}
        if self.answer is not None:
            values |= {"bid": self.answer.id, "bresp": int(self.answer.response)}
        return values

    def _next(self, wanted):
        """The oldest burst that is ``wanted``, or a new one."""
        for burst in self._bursts:
            if wanted(burst):
                return burst
        self._bursts.append(_WritesBurst())
        return self._bursts[-1]

    def _check(self, burst):
        count = len(burst.beats)
        assert count == burst.request.beats, f"{burst.request} came with {count} beats"

    def _set_readys(self, asking, giving):
        late = self.knobs.ready_after_valid
        self.awready = (asking or not late) and not self._chance(self.knobs.aw_stall)
        self.wready = (giving or not late) and not self._chance(self.knobs.w_stall)
        if self.knobs.data_first:
            # Only for data that are there: the manager must not wait for AWREADY before it shows them.
            self.awready = self.awready and any(burst.request is None for burst in self._bursts)

    def _next_answer(self):
        candidates = self._candidates()
        if not candidates or self._chance(self.knobs.b_stall):
            return None
        burst = self._random.choice(candidates)
        self._bursts.remove(burst)
        return Answer(burst.request.id, self._write(burst))

    def _candidates(self):
        """Bursts that may be answered now."""
        heads = {}
        for burst in self._bursts:
            if burst.request is not None:
                heads.setdefault(burst.request.id, burst)
        ready = [burst for burst in heads.values() if burst.complete and burst.due <= self._cycle]
        return ready if self.knobs.reorder else [burst for burst in ready if burst is self._bursts[0]]

    def _write(self, burst):
        """Writes what is not refused; returns the worst response."""
        responses = []
        for number, beat in enumerate(burst.beats):
            address = burst.request.address + number * self._word_bytes
            responses.append(self.faults.response(address))
            if responses[-1] == Response.OKAY:
                raw = beat.data.to_bytes(self._word_bytes, "little")
                for byte in range(self._word_bytes):
                    if beat.strobe >> byte & 1:
                        self.memory[address + byte] = raw[byte]
        return max(responses)
