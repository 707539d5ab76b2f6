"""Words of the program, ahead of those that are carried out."""

from amaranth.hdl import Module, Signal, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.golden.spec.core.errors import ProgramError

from ...lib.stream import ShallowQueue
from .layouts import LINE_LOG2, FetchedLayout, LineLayout

__all__ = ["ProgramFetcher"]


class ProgramFetcher(wiring.Component):
    """Reads the words from any one on, in order, and hands them out; behind the last one there is ``NO_END``.

    It asks for a word when it has a place for it. A jump or a halt makes stale what has been asked for: it is dropped
    as it comes, while new words are asked for already. A request follows the jump after two cycles, a word its line
    after one; a word a cycle.

    Parameters
    ----------
    addr_width : int
        Bits of a byte address.
    depth : int
        Words ahead, stale ones included: 2 to 32, a power of two.

    Members
    -------
    base : In(addr_width - 6)
        Line of the program's first word.
    count : In(32)
        Words of the program. No line outside is asked for.
    jump : In(1)
        Strobe: go on with word ``target``.
    target : In(32)
        At most ``count``.
    halt : In(1)
        Ask for nothing more, and hand out nothing.
    requests : Out(stream of unsigned(addr_width - 6))
    lines : In(stream of LineLayout(), always ready)
        One for each request, in order.
    o : Out(stream of FetchedLayout())
        May be withdrawn by ``jump`` and ``halt``.
    busy : Out(1)
        Something is stale, or under way.

    Attributes
    ----------
    used : Signal
        Words that were asked for, and have neither been handed out nor dropped.
    stale : Signal
        The first so many of them are dropped.
    """

    def __init__(self, addr_width, depth):
        self._line = unsigned(addr_width - LINE_LOG2)
        self._depth = depth
        self.queue = ShallowQueue(LineLayout(), depth)
        self.used, self.stale = Signal(range(depth + 1)), Signal(range(depth + 1))
        super().__init__(
            {
                "base": In(self._line),
                "count": In(32),
                "jump": In(1),
                "target": In(32),
                "halt": In(1),
                "requests": Out(stream.Signature(self._line)),
                "lines": In(stream.Signature(LineLayout(), always_ready=True)),
                "o": Out(stream.Signature(FetchedLayout())),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.queue = queue = self.queue
        requests, used, stale, o = self.requests, self.used, self.stale, self.o
        active = Signal()
        line, left = Signal(self._line), Signal(32)  # the next one to ask for; how many there are from it on
        ask, leaves, after = Signal(), Signal(), Signal.like(used)
        m.d.comb += [
            ask.eq(active & (left != 0) & (used != self._depth) & ~requests.valid & ~self.jump & ~self.halt),
            queue.i.valid.eq(self.lines.valid),
            queue.i.payload.eq(self.lines.payload),
            queue.o.ready.eq((stale != 0) | (o.ready & active)),
            leaves.eq(queue.o.valid & queue.o.ready),
            after.eq(used + ask - leaves),
            self.busy.eq(used != 0),
            o.payload.word.eq(queue.o.payload.data),
        ]
        m.d.sync += used.eq(after)
        with m.If(self.jump | self.halt):
            m.d.sync += stale.eq(after)
        with m.Elif((stale != 0) & leaves):
            m.d.sync += stale.eq(stale - 1)

        with m.If(self.halt):
            m.d.sync += active.eq(0)
        with m.Elif(self.jump):
            m.d.sync += [active.eq(1), line.eq(self.base + self.target), left.eq(self.count - self.target)]
        with m.Elif(ask):
            m.d.sync += [line.eq(line + 1), left.eq(left - 1)]
        with m.If(ask):
            m.d.sync += [requests.valid.eq(1), requests.payload.eq(line)]
        with m.Elif(requests.ready):
            m.d.sync += requests.valid.eq(0)

        with m.If(active & (left == 0) & (used == 0)):
            m.d.comb += [o.valid.eq(1), o.payload.code.eq(ProgramError.NO_END)]
        with m.Else():
            m.d.comb += o.valid.eq(active & (stale == 0) & queue.o.valid)
            with m.If(queue.o.payload.error):
                m.d.comb += o.payload.code.eq(ProgramError.BUS)
        return m
