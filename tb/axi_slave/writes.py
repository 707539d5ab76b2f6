"""An AXI4 write subordinate of our own."""

from dataclasses import dataclass, field

from .common import AxiSlave, Request, Response

__all__ = ["Answer", "AxiWriteSlave", "WriteBeat"]


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
