"""The read channels of all cores become one pair."""

from amaranth.hdl import Module, Signal, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect
from amaranth.utils import ceil_log2

from ...bus.axi4 import Axi4ReadSignature, forward_channels
from ...lib.stream import SkidBuffer
from .core_reads import CoreReads
from .fair import FairArbiter
from .layouts import CORE_ID_WIDTH, PAGE_LOG2, ReadBeatLayout, RequestLayout, give, merged

__all__ = ["ReadSide"]


class ReadSide(wiring.Component):
    """Requests are shared out fairly by their beats; a beat goes to the buffer of its core, which has space for it.

    Of all cores together, no more beats are under way outside than one may have: so requests wait here, where they are
    shared out, and not in a memory that takes whatever comes.

    Three registers from AR to AR, two from R to R; one request and one beat a cycle. Every beat is taken at once.

    Parameters
    ----------
    cores : int
        2 to 16.
    addr_width, data_width : int
        Of the bus.
    max_burst : int
        Beats of a burst at most, a power of two.
    words : int
        As of :class:`CoreReads`.
    reductions : bool
        As of :class:`CoreReads`.

    Members
    -------
    ports : In(array of cores Axi4ReadSignature(addr_width, data_width, 2))
    axi : Out(Axi4ReadSignature(addr_width, data_width, 2 + ceil_log2(cores)))
        The number of the core lies above its ID.
    pages : Out(array of cores stream of unsigned(addr_width - 12))
        As of :class:`CoreReads`.
    granted : In(cores)
    failed : Out(cores)
    """

    def __init__(self, cores, addr_width, data_width, *, max_burst, words, reductions=True):
        self._id_width = CORE_ID_WIDTH + ceil_log2(cores)
        self.cores = [CoreReads(addr_width, data_width, words, reductions=reductions) for _ in range(cores)]
        self.arbiter = FairArbiter(RequestLayout(addr_width), cores, max_burst)
        self.requests = SkidBuffer(RequestLayout(addr_width, self._id_width))
        # A grant shows two cycles later, in which another one may come.
        self._most = words - 2 * max_burst
        self.under_way = Signal(range(words + 1))  # beats that have been granted and have not come
        self.room = Signal(init=1)  # for the beats of any two bursts, a cycle ago
        super().__init__(
            {
                "ports": In(Axi4ReadSignature(addr_width, data_width, CORE_ID_WIDTH)).array(cores),
                "axi": Out(Axi4ReadSignature(addr_width, data_width, self._id_width)),
                "pages": Out(stream.Signature(unsigned(addr_width - PAGE_LOG2))).array(cores),
                "granted": In(cores),
                "failed": Out(cores),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.arbiter = arbiter = self.arbiter
        m.submodules.requests = requests = self.requests
        m.d.comb += [
            merged(requests.i.payload, arbiter),
            requests.i.valid.eq(arbiter.o.valid & self.room),
            arbiter.o.ready.eq(requests.i.ready & self.room),
        ]
        give(m, requests.o, self.axi, "ar")
        came, beat = self._beat(m)
        self._limit(m, came)
        for number, core in enumerate(self.cores):
            m.submodules[f"core{number}"] = core
            forward_channels(m, self.ports[number], core.axi)
            connect(m, requests=core.requests, arbiter=arbiter.i[number])
            connect(m, pages=core.pages, out=wiring.flipped(self.pages[number]))
            m.d.comb += [
                core.granted.eq(self.granted[number]),
                self.failed[number].eq(core.failed),
                core.beats.valid.eq(came & (beat.id[CORE_ID_WIDTH:] == number)),
                core.beats.payload.id.eq(beat.id),
                core.beats.payload.data.eq(beat.data),
                core.beats.payload.resp.eq(beat.resp),
                core.beats.payload.last.eq(beat.last),
            ]
        return m

    def _limit(self, m, came):
        burst, beats = self.arbiter.o, Signal(9)
        with m.If(burst.valid & burst.ready):
            m.d.comb += beats.eq(burst.payload.len + 1)
        m.d.sync += [
            self.under_way.eq(self.under_way + beats - came),
            self.room.eq(self.under_way <= self._most),
        ]

    def _beat(self, m):
        """Whether a beat has come, and it."""
        axi = self.axi
        came, beat = Signal(), Signal(ReadBeatLayout(len(axi.rdata), self._id_width))
        m.d.comb += axi.rready.eq(1)
        m.d.sync += [
            came.eq(axi.rvalid),
            beat.id.eq(axi.rid),
            beat.data.eq(axi.rdata),
            beat.resp.eq(axi.rresp),
            beat.last.eq(axi.rlast),
        ]
        return came, beat
