"""An AXI4 read subordinate of our own."""

from dataclasses import dataclass

from .common import AxiSlave, Request, Response

__all__ = ["AxiReadSlave", "Beat"]


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
