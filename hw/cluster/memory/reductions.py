"""Reductions of several cores: no two of them in one page at a time."""

from amaranth.hdl import Array, Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2, exact_log2

from ...lib.routing import StreamArbiter

__all__ = ["ReductionGate"]

#: Bits of the number of a stretch of time in which a core had a reduction open all along. Once in 256 stretches a core
#: may wait for one that has the number of one long gone.
_STRETCH_BITS = 8
#: Log2 of the reductions that a core may have open: times a burst, more than memory takes to answer.
_OPEN_LOG2 = 6
#: Requests of a turn after the one that was held back, and cycles that a turn waits for the next one: a power of two.
_TURN = 16


class ReductionGate(wiring.Component):
    """Grants pages to cores that want to read, modify and write in them (docs/cluster.md, "Memory side").

    A reduction is open from its grant until it has been answered or has failed. Each core numbers its stretches, in
    which it always has one open. A memory keeps for each group of pages which core was there last, and in which
    stretch. While that one lasts, other cores wait and no page is granted, so that it ends. The core that waited gets a
    turn: only its requests are taken, up to 16 more, until it has made none for 16 cycles. While one waits, at most 17
    requests of each other core are granted.

    Two cycles from a page to its grant, one page every other cycle; two from an end to the grant of the waiting core.

    Parameters
    ----------
    page_width : int
        Bits of the number of a page.
    cores : int
        2 to 16.
    groups : int
        Groups of pages that the memory tells apart, a power of two of at least 2.
    """

    def __init__(self, page_width, cores, groups):
        if not isinstance(groups, int) or groups < 2 or groups & (groups - 1):
            raise ValueError(f"groups must be a power of two of at least 2, not {groups!r}")
        self._cores = cores
        self._place_log2 = exact_log2(groups)
        note = data.StructLayout({"core": ceil_log2(cores), "stretch": _STRETCH_BITS})
        self.memory = Memory(shape=note, depth=groups, init=[])
        self.arbiter = StreamArbiter(unsigned(page_width), cores)
        self.waiting = Signal()  # a page has been taken and not granted
        self.asker = Signal(cores)  # whose, one-hot
        self.place = Signal(self._place_log2)  # and where the memory has it
        self.note = Signal(note)  # the last core there
        self.blocked = Signal()  # it has been held back
        self.turn = Signal()  # only the last asker may ask
        self.rest = Signal(range(_TURN))  # requests that are left of the turn
        self.quiet = Signal(range(_TURN))  # cycles since the last one
        self.open = Array(Signal(_OPEN_LOG2 + 1, name=f"open{core}") for core in range(cores))
        self.stretch = Array(
            Signal(_STRETCH_BITS, name=f"stretch{core}", init=1)
            for core in range(cores)  # memory begins with zeros
        )
        super().__init__(
            {
                # ``ready`` depends on the requests and on registers. The next request comes after the grant.
                "pages": In(stream.Signature(unsigned(page_width))).array(cores),
                # Strobes: the page that was taken last is the core's.
                "granted": Out(cores),
                # Strobes: a write of the core has been answered. Answers of open reductions come first.
                "answered": In(cores),
                # Strobes: an open reduction of the core will write nothing.
                "failed": In(cores),
            }
        )

    def place_of(self, page):
        """Where the memory has a page."""
        return (page ^ (page >> self._place_log2))[: self._place_log2]

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = self.memory
        m.submodules.arbiter = arbiter = self.arbiter
        write, read = self.memory.write_port(), self.memory.read_port()
        for core, (port, i) in enumerate(zip(self.pages, arbiter.i, strict=True)):
            # No request is accepted while one waits, so that turns go on from the last granted core.
            mine = ~self.waiting & (~self.turn | self.asker[core])
            m.d.comb += [i.payload.eq(port.payload), i.valid.eq(port.valid & mine), port.ready.eq(i.ready & mine)]

        takes, grants = Signal(), Signal()
        m.d.comb += [
            arbiter.o.ready.eq(1),
            takes.eq(arbiter.o.valid),
            read.addr.eq(self.place_of(arbiter.o.payload)),
            read.en.eq(~self.waiting),
        ]
        with m.If(takes):
            m.d.sync += [self.waiting.eq(1), self.asker.eq(arbiter.winner), self.place.eq(read.addr)]
        with m.Elif(grants):
            m.d.sync += self.waiting.eq(0)

        # Of the asker, and of the core that was there last.
        number, note = Signal(ceil_log2(self._cores)), self.note
        held, full = Signal(), Signal()
        m.d.comb += [
            note.eq(read.data),
            *(number[bit].eq(self._asks(lambda core, bit=bit: core >> bit & 1)) for bit in range(len(number))),
            full.eq(self._asks(lambda core: self.open[core][-1])),
            held.eq((note.core != number) & (self.open[note.core] != 0) & (self.stretch[note.core] == note.stretch)),
            grants.eq(self.waiting & ~held & ~full),
            self.granted.eq(Mux(grants, self.asker, 0)),
            write.addr.eq(self.place),
            write.data.core.eq(number),
            write.data.stretch.eq(self.stretch[number]),
            write.en.eq(grants),
        ]
        self._take_turns(m, takes, grants, held)
        for core in range(self._cores):
            self._count(m, core)
        return m

    def _asks(self, value):
        """The bit that ``value`` gives for the core that asks."""
        return Cat(self.asker[core] & value(core) for core in range(self._cores)).any()

    def _take_turns(self, m, takes, grants, held):
        m.d.sync += self.blocked.eq(self.waiting & (self.blocked | held) & ~grants)
        with m.If(grants):
            m.d.sync += [
                self.turn.eq(Mux(self.turn, self.rest != 0, self.blocked)),
                self.rest.eq(Mux(self.turn, self.rest - 1, _TURN - 1)),
                self.quiet.eq(0),
            ]
        with m.Elif(self.turn & ~self.waiting & ~takes):
            m.d.sync += [self.quiet.eq(self.quiet + 1), self.turn.eq(~self.quiet.all())]

    def _count(self, m, core):
        """What is open of a core. As the last one ends, the next one begins a stretch."""
        opened, rest = self.open[core], Signal.like(self.open[core], name=f"rest{core}")
        answered, failed = Signal(name=f"answered{core}"), Signal(name=f"failed{core}")
        m.d.sync += [answered.eq(self.answered[core]), failed.eq(self.failed[core])]
        ended = failed + (answered & (opened != 0))
        m.d.comb += rest.eq(opened - ended + self.granted[core])
        m.d.sync += opened.eq(rest)
        with m.If((opened != 0) & (rest == 0)):
            m.d.sync += self.stretch[core].eq(self.stretch[core] + 1)
