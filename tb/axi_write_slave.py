"""An AXI4 write subordinate of our own, beside the one for reads in ``axi_slave.py``, and as nasty.

:class:`AxiWriteSlave` is a cycle model without a simulator in it; :func:`serve_writes` connects it to pins in cocotb.
"""

import random
from dataclasses import dataclass, field

from cocotb.triggers import RisingEdge

from .axi_slave import Faults, Knobs, Request, Response

__all__ = ["Answer", "AxiWriteSlave", "WriteBeat", "serve_writes"]

_PLAIN = Knobs()


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
class _Burst:
    """A write: its request and its data, whichever came first, and the first cycle in which its answer may come."""

    request: Request | None = None
    beats: list = field(default_factory=list)
    due: int = 0

    @property
    def complete(self):
        return self.request is not None and bool(self.beats) and self.beats[-1].last


class AxiWriteSlave:
    """Takes writes into ``memory``; call :meth:`tick` once for every rising clock edge.

    Data may come before their request. A burst is written when its answer is first shown, as late as it may be; a beat
    that is answered with an error is not. Answers to one ID are in the order of its requests. Of the knobs,
    ``interleave`` means nothing here.

    Parameters
    ----------
    memory : bytearray
        Contents from address 0 on; what lies behind them answers DECERR.
    word_bytes : int
        Bytes of a bus word.
    knobs : Knobs
        May be replaced between any two cycles by assigning to the attribute.
    seed : int
        Of everything random.

    Attributes
    ----------
    awready, wready : bool
        AWREADY and WREADY in the coming cycle.
    answer : Answer or None
        The B channel in the coming cycle; None is BVALID low.
    requests : list of Request
        Every request accepted so far, in order.
    faults : Faults
        Where answers are errors.
    """

    def __init__(self, memory, *, word_bytes, knobs=_PLAIN, seed):
        self.memory = memory
        self.knobs = knobs
        self.requests = []
        self.faults = Faults(len(memory), word_bytes)
        self._word_bytes = word_bytes
        self._random = random.Random(seed)
        self._cycle = 0
        self.reset()

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

    def _next(self, wanted):
        """The oldest burst that is ``wanted``, or a new one."""
        for burst in self._bursts:
            if wanted(burst):
                return burst
        self._bursts.append(_Burst())
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

    def _chance(self, probability):
        return self._random.random() < probability

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


async def serve_writes(slave, port, clock, reset):
    """Connects ``slave`` to pins in cocotb; never returns. Start it before the first clock edge.

    Parameters
    ----------
    port : callable
        Handle of a pin by its AXI4 name: ``port("awvalid")``.
    clock, reset : handles
        While ``reset`` is high at a clock edge, the slave is reset.
    """
    names = ("awvalid", "awready", "awid", "awaddr", "awlen", "wvalid", "wready", "wdata", "wstrb", "wlast")
    pins = {name: port(name) for name in (*names, "bvalid", "bready", "bid", "bresp")}

    def number(name):
        return int(pins[name].value)

    def drive():
        pins["awready"].value = slave.awready
        pins["wready"].value = slave.wready
        pins["bvalid"].value = slave.answer is not None
        if slave.answer is not None:
            pins["bid"].value = slave.answer.id
            pins["bresp"].value = int(slave.answer.response)

    pins["bid"].value = 0
    pins["bresp"].value = 0
    drive()
    while True:
        await RisingEdge(clock)
        if int(reset.value):
            slave.reset()
        else:
            request = beat = None
            if number("awvalid"):
                request = Request(number("awid"), number("awaddr"), number("awlen") + 1)
            if number("wvalid"):
                beat = WriteBeat(number("wdata"), number("wstrb"), bool(number("wlast")))
            slave.tick(request, beat, bool(number("bready")))
        drive()
