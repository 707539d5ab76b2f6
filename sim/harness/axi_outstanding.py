"""What the protocol monitors keep of bursts that are under way."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

__all__ = ["OutstandingBursts", "OutstandingWrites"]


class OutstandingBursts(wiring.Component):
    """Lengths of the bursts of one ID that are in flight, oldest first, and the position in the oldest.

    The outputs are about the cycles before: a burst pushed now counts from the next cycle on. A push to a full table
    is ignored, and so is a beat for an empty one.

    Parameters
    ----------
    depth : int
        Bursts that fit.

    Members
    -------
    push : In(1)
        A burst of ``length`` beats minus one is accepted in this cycle.
    length : In(8)
    beat : In(1)
        A beat is accepted in this cycle.
    level : Out(ceil_log2(depth) + 1)
        Bursts in flight.
    last : Out(1)
        The next beat is the last one of its burst; low while nothing is in flight.

    Attributes
    ----------
    lengths, head, position
        The memory, the place in it of the oldest burst, and the beats of that which have come: for proofs.
    """

    def __init__(self, depth):
        index_width = ceil_log2(depth)
        self.lengths = Memory(shape=8, depth=1 << index_width, init=[])
        self.head = Signal(index_width)
        self.position = Signal(8)
        super().__init__({"push": In(1), "length": In(8), "beat": In(1), "level": Out(index_width + 1), "last": Out(1)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.lengths = self.lengths
        write = self.lengths.write_port()
        read = self.lengths.read_port(domain="comb")

        beat = self.beat & (self.level != 0)
        ended = beat & self.last
        m.d.comb += [
            read.addr.eq(self.head),
            self.last.eq((self.level != 0) & (self.position == read.data)),
            write.addr.eq(self.head + self.level),
            write.data.eq(self.length),
            write.en.eq(self.push & ((self.level != self.lengths.depth) | ended)),
        ]
        m.d.sync += self.level.eq(self.level + write.en - ended)
        with m.If(beat):
            m.d.sync += self.position.eq(Mux(ended, 0, self.position + 1))
            m.d.sync += self.head.eq(self.head + ended)
        return m


class OutstandingWrites(wiring.Component):
    """Matches write requests with bursts of data, whichever come first: both are in the same order.

    What one side is ahead of the other is kept: requests whose data are not complete, or, while ``ahead`` is high,
    complete bursts of data that have not been asked for. There are never both. A push to a full table is ignored.

    Parameters
    ----------
    depth : int
        Bursts that either side may be ahead.
    id_width : int

    Members
    -------
    request : In(1)
        A request of ``length`` beats minus one is accepted in this cycle.
    id : In(id_width)
    length : In(8)
    beat : In(1)
        A beat of data is accepted in this cycle.
    beat_last : In(1)
        And it ends its burst.
    level : Out(ceil_log2(depth) + 1)
        Bursts by which one side is ahead, as of the cycles before.
    ahead : Out(1)
        It is the data; low while ``level`` is zero.
    position : Out(8)
        Beats that have come of the burst of data that is not complete.
    mismatch : Out(1)
        In this cycle, a burst of data turns out to be longer or shorter than its request. Combinational.
    complete : Out(1)
        In this cycle, both request and data of a burst have been accepted. Combinational.
    complete_id : Out(id_width)

    Attributes
    ----------
    bursts, head
        The memory, and the place in it of the oldest burst: for proofs.
    """

    def __init__(self, *, depth, id_width):
        index_width = ceil_log2(depth)
        self.bursts = Memory(shape=_EntryLayout(id_width), depth=1 << index_width, init=[])
        self.head = Signal(index_width)
        super().__init__(
            {
                "request": In(1),
                "id": In(id_width),
                "length": In(8),
                "beat": In(1),
                "beat_last": In(1),
                "level": Out(index_width + 1),
                "ahead": Out(1),
                "position": Out(8),
                "mismatch": Out(1),
                "complete": Out(1),
                "complete_id": Out(id_width),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.bursts = self.bursts
        write = self.bursts.write_port()
        read = self.bursts.read_port(domain="comb")
        oldest = read.data

        burst = self.beat & self.beat_last
        # The burst of data that is under way is the next one to be asked for, if neither is ahead.
        equal = self.level == 0
        with m.If(self.ahead):
            m.d.comb += [
                self.complete.eq(self.request),
                self.complete_id.eq(self.id),
                self.mismatch.eq(self.request & (self.length != oldest.length)),
            ]
        with m.Elif(equal):
            come = self.position + self.beat
            m.d.comb += [
                self.complete.eq(self.request & burst),
                self.complete_id.eq(self.id),
                self.mismatch.eq(self.request & Mux(burst, self.length != self.position, self.length < come)),
            ]
        with m.Else():
            m.d.comb += [
                self.complete.eq(burst),
                self.complete_id.eq(oldest.id),
                self.mismatch.eq(self.beat & (self.beat_last != (self.position == oldest.length))),
            ]

        with m.If(self.beat & ~self.beat_last & (self.position == 0xFF)):
            m.d.comb += self.mismatch.eq(1)  # no request is that long

        pop = self.complete & ~equal
        pushed = Mux(self.ahead, burst, Mux(equal, self.request ^ burst, self.request))
        m.d.comb += [
            read.addr.eq(self.head),
            write.addr.eq(self.head + self.level),
            write.data.id.eq(self.id),
            write.data.length.eq(Mux(self.ahead | (equal & burst), self.position, self.length)),
            write.en.eq(pushed & ((self.level != self.bursts.depth) | pop)),
        ]
        following = (self.level + write.en - pop)[: len(self.level)]
        m.d.sync += [
            self.level.eq(following),
            self.head.eq(self.head + pop),
            self.ahead.eq((following != 0) & Mux(equal, burst, self.ahead)),
        ]
        with m.If(self.beat):
            m.d.sync += self.position.eq(Mux(burst, 0, self.position + 1))
        return m


class _EntryLayout(data.StructLayout):
    """A burst of a :class:`OutstandingWrites`; the ID counts only if it is a request."""

    def __init__(self, id_width):
        super().__init__({"id": id_width, "length": 8})
