"""Reads of lines of 64 bytes, for those who know that they have a place for each line that they ask for."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from ...bus.axi4 import MODIFIABLE, UNPRIVILEGED_NON_SECURE, Axi4ReadSignature, Burst
from ...lib.arbiter import StreamArbiter
from ...lib.stream import Queue
from .layouts import LINE_LOG2, LineLayout

__all__ = ["READER_ID", "LineReader"]

#: ARID of all reads.
READER_ID = 3
#: Users of the reader.
_USERS = 2


class LineReader(wiring.Component):
    """Reads lines for two users, in turns, and gives each its own in order.

    A line is one burst, or, where ``max_burst`` is shorter, several; all have the ARID ``READER_ID``. Who asks must
    have a place for the line: neither the lines nor the bus ever wait. So no beat of others is held up. Two cycles from
    a request to AR, one from the last beat to the line; a request every third cycle.

    Parameters
    ----------
    addr_width : int
        Bits of a byte address.
    bus_bytes : int
        Bytes of a bus word: 16, 32 or 64.
    max_burst : int
        Bus words of a burst at most, a power of two.
    depth : int
        Lines under way at most, a power of two.

    Members
    -------
    requests : In(array of 2 stream of unsigned(addr_width - 6))
        Lines, by their addresses divided by 64.
    lines : Out(array of 2 stream of LineLayout(), always ready)
        What they hold.
    axi : Out(Axi4ReadSignature(addr_width, 8 * bus_bytes, 2))
        The bus.

    Attributes
    ----------
    owners : Queue
        Of the lines under way: their users; for proofs.
    """

    def __init__(self, addr_width, bus_bytes, max_burst, depth):
        beats = (1 << LINE_LOG2) // bus_bytes
        self._beats = beats
        self._burst = min(max_burst, beats)
        self._bus_log2 = exact_log2(bus_bytes)
        self._line = unsigned(addr_width - LINE_LOG2)
        self.owners = Queue(1, depth)
        super().__init__(
            {
                "requests": In(stream.Signature(self._line)).array(_USERS),
                "lines": Out(stream.Signature(LineLayout(), always_ready=True)).array(_USERS),
                "axi": Out(Axi4ReadSignature(addr_width, 8 * bus_bytes, 2)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.owners = self.owners
        self._ask(m)
        self._take(m)
        return m

    def _ask(self, m):
        """One line at a time is asked for, in one burst or in several."""
        axi, owners = self.axi, self.owners.i
        m.submodules.arbiter = arbiter = StreamArbiter(self._line, _USERS)
        for port, i in zip(self.requests, arbiter.i, strict=True):
            wiring.connect(m, port=wiring.flipped(port), i=i)
        bursts = self._beats // self._burst
        line, piece = Signal(self._line), Signal(range(bursts))
        free = Signal()  # a register: so the turns of the users depend on nothing outside
        last = piece == bursts - 1
        taken = arbiter.o.valid & arbiter.o.ready
        m.d.comb += [
            free.eq(~axi.arvalid & owners.ready),
            arbiter.o.ready.eq(free),
            owners.valid.eq(taken),
            owners.payload.eq(arbiter.winner[1]),
            axi.arid.eq(READER_ID),
            axi.araddr.eq(Cat(Const(0, LINE_LOG2 - len(piece)), piece, line)),
            axi.arlen.eq(self._burst - 1),
            axi.arsize.eq(self._bus_log2),
            axi.arburst.eq(Burst.INCR),
            axi.arprot.eq(UNPRIVILEGED_NON_SECURE),
            axi.arcache.eq(MODIFIABLE),
        ]
        with m.If(taken):
            m.d.sync += [axi.arvalid.eq(1), line.eq(arbiter.o.payload)]
        with m.Elif(axi.arvalid & axi.arready):
            m.d.sync += [axi.arvalid.eq(~last), piece.eq(Mux(last, 0, piece + 1))]

    def _take(self, m):
        """Beats of a line shift into a register, the first one furthest."""
        axi, owner = self.axi, self.owners.o
        word, failed = Signal(8 << LINE_LOG2), Signal()
        beat = Signal(range(self._beats))
        whole, mine = Signal(), Signal()  # the register holds a line, of this user
        error = axi.rresp.as_value()[1]
        last = beat == self._beats - 1
        m.d.comb += [axi.rready.eq(1), owner.ready.eq(axi.rvalid & last)]
        m.d.sync += [whole.eq(axi.rvalid & last), mine.eq(owner.payload)]
        with m.If(axi.rvalid):
            m.d.sync += [
                word.eq(Cat(word, axi.rdata)[len(axi.rdata) :]),
                failed.eq(error | (failed & (beat != 0))),
                beat.eq(Mux(last, 0, beat + 1)),
            ]
        for user, port in enumerate(self.lines):
            m.d.comb += [
                port.valid.eq(whole & (mine == user)),
                port.payload.data.eq(word),
                port.payload.error.eq(failed),
            ]
