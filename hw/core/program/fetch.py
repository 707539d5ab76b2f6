"""Reads of global memory by the command processor: words of the program, and instructions."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from tilewright.spec.core import ProgramError

from ...bus.axi4 import MODIFIABLE, UNPRIVILEGED_NON_SECURE, Axi4ReadSignature, Burst
from ...lib.routing import StreamArbiter
from ...lib.stream import Queue, ShallowQueue
from ...pe.layouts import INSTRUCTION_BITS
from .layouts import INSTRUCTIONS, LINE_LOG2, FetchedLayout, LineLayout, RunLayout

__all__ = ["READER_ID", "InstructionStreamer", "LineReader", "ProgramFetcher"]

#: ARID of all reads.
READER_ID = 3
#: Users of the reader.
_USERS = 2


class LineReader(wiring.Component):
    """Reads lines for two users, which take turns; each gets its lines in the order of its requests.

    A line is one burst, or several if ``max_burst`` is shorter; all have the ARID ``READER_ID``. A user must have space
    for each line that it requests: lines and beats never wait, so no beat of the access unit is held up.

    Latency: two cycles from a request to AR, one from the last beat to the line. Throughput: a request every third
    cycle.

    Parameters
    ----------
    addr_width : int
        Bits of a byte address.
    bus_bytes : int
        Bytes of a bus word: 16, 32 or 64.
    max_burst : int
        The most bus words of a burst, a power of two.
    depth : int
        The most lines in flight, a power of two.

    Attributes
    ----------
    owners : Queue
        The users of the lines in flight; for proofs.
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
                # Lines, by their addresses divided by 64.
                "requests": In(stream.Signature(self._line)).array(_USERS),
                # What they hold.
                "lines": Out(stream.Signature(LineLayout(), always_ready=True)).array(_USERS),
                # The bus.
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
        """Requests one line at a time, in one burst or in several."""
        axi, owners = self.axi, self.owners.i
        m.submodules.arbiter = arbiter = StreamArbiter(self._line, _USERS)
        for port, i in zip(self.requests, arbiter.i, strict=True):
            wiring.connect(m, port=wiring.flipped(port), i=i)
        bursts = self._beats // self._burst
        line, piece = Signal(self._line), Signal(range(bursts))
        free = Signal()  # registered: the turns of the users depend on nothing outside
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
        """Shifts the beats of a line into a register."""
        axi, owner = self.axi, self.owners.o
        word, failed = Signal(8 << LINE_LOG2), Signal()
        beat = Signal(range(self._beats))
        whole, user_bit = Signal(), Signal()  # the register holds a line, of this user
        error = axi.rresp.as_value()[1]
        last = beat == self._beats - 1
        m.d.comb += [axi.rready.eq(1), owner.ready.eq(axi.rvalid & last)]
        m.d.sync += [whole.eq(axi.rvalid & last), user_bit.eq(owner.payload)]
        with m.If(axi.rvalid):
            m.d.sync += [
                word.eq(Cat(word, axi.rdata)[len(axi.rdata) :]),
                failed.eq(error | (failed & (beat != 0))),
                beat.eq(Mux(last, 0, beat + 1)),
            ]
        for user, port in enumerate(self.lines):
            m.d.comb += [
                port.valid.eq(whole & (user_bit == user)),
                port.payload.data.eq(word),
                port.payload.error.eq(failed),
            ]


class ProgramFetcher(wiring.Component):
    """Fetches the words of a program in order, from any word on; after the last word it reports ``NO_END``.

    It requests a word when it has space for it. A jump or a halt makes all words in flight stale: they are dropped when
    they come, while new words are requested already.

    Latency: two cycles from a jump to its request, one from a line to its word. Throughput: a word a cycle.

    Parameters
    ----------
    addr_width : int
        Bits of a byte address.
    depth : int
        Words in flight, stale ones included: 2 to 32, a power of two.

    Attributes
    ----------
    used : Signal
        Words that were requested, and have neither left nor been dropped.
    stale : Signal
        Number of these words, the oldest ones, that are to be dropped.
    """

    def __init__(self, addr_width, depth):
        self._line = unsigned(addr_width - LINE_LOG2)
        self._depth = depth
        self.queue = ShallowQueue(LineLayout(), depth)
        self.used, self.stale = Signal(range(depth + 1)), Signal(range(depth + 1))
        super().__init__(
            {
                # Line of the program's first word.
                "base": In(self._line),
                # Words of the program. No line outside is requested.
                "count": In(32),
                # Strobe: go on with word ``target``.
                "jump": In(1),
                # At most ``count``.
                "target": In(32),
                # Request nothing more, and offer nothing.
                "halt": In(1),
                "requests": Out(stream.Signature(self._line)),
                # One for each request, in order.
                "lines": In(stream.Signature(LineLayout(), always_ready=True)),
                # May be withdrawn by ``jump`` and ``halt``.
                "o": Out(stream.Signature(FetchedLayout())),
                # Words are in flight.
                "busy": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.queue = queue = self.queue
        requests, used, stale, o = self.requests, self.used, self.stale, self.o
        active = Signal()
        line, left = Signal(self._line), Signal(32)  # the next line to request; lines from it on
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


class InstructionStreamer(wiring.Component):
    """Streams a run of instructions from memory to the engine, lines ahead: an instruction a cycle.

    Parameters
    ----------
    addr_width : int
        Bits of a byte address.
    depth : int
        Lines in flight, stale ones included: 2 to 32, a power of two.

    Attributes
    ----------
    used, stale : Signal
        See ``ProgramFetcher``.
    """

    def __init__(self, addr_width, depth):
        self._depth = depth
        self._line = unsigned(addr_width - LINE_LOG2)
        self.queue = ShallowQueue(LineLayout(), depth)
        self.used, self.stale = Signal(range(depth + 1)), Signal(range(depth + 1))
        super().__init__(
            {
                # Accepted when the last instruction has been taken, or with ``failed``. May be withdrawn with ``halt``.
                "i": In(stream.Signature(RunLayout(addr_width))),
                # The bus answered with an error; instructions before that line have been offered.
                "failed": Out(1),
                # Drop all but the instruction that is offered.
                "halt": In(1),
                "requests": Out(stream.Signature(self._line)),
                # One for each request, in order.
                "lines": In(stream.Signature(LineLayout(), always_ready=True)),
                # Registered.
                "instructions": Out(stream.Signature(INSTRUCTION_BITS)),
                # Lines are under way.
                "busy": Out(1),
                # The next instruction has not come.
                "stall": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.queue = queue = self.queue
        requests, used, stale, run = self.requests, self.used, self.stale, self.i.payload
        active = Signal()
        left = Signal(32)  # instructions that have not been offered
        line, lines = Signal(self._line), Signal(32 - exact_log2(INSTRUCTIONS) + 1)  # the next one to ask for; how many
        ask, leaves, after, over = Signal(), Signal(), Signal.like(used), Signal()
        m.d.comb += [
            over.eq(self.halt | self.i.ready),
            ask.eq(active & (lines != 0) & (used != self._depth) & ~requests.valid & ~over),
            queue.i.valid.eq(self.lines.valid),
            queue.i.payload.eq(self.lines.payload),
            leaves.eq(queue.o.valid & queue.o.ready),
            after.eq(used + ask - leaves),
            self.busy.eq(used != 0),
            # A line that failed stays, until it is dropped with the lines after it.
            self.failed.eq(active & queue.o.valid & (stale == 0) & queue.o.payload.error),
            self.i.ready.eq(
                self.failed | (active & (left == 0) & (~self.instructions.valid | self.instructions.ready))
            ),
        ]
        m.d.sync += used.eq(after)
        with m.If(over):
            m.d.sync += stale.eq(after)
        with m.Elif((stale != 0) & leaves):
            m.d.sync += stale.eq(stale - 1)

        with m.If(ask):
            m.d.sync += [requests.valid.eq(1), requests.payload.eq(line), line.eq(line + 1), lines.eq(lines - 1)]
        with m.Elif(requests.ready):
            m.d.sync += requests.valid.eq(0)
        cut = self._cut(m, active, left)
        with m.If(over):
            m.d.sync += active.eq(0)
        with m.Elif(self.i.valid & ~active & (used == 0)):
            m.d.sync += [
                active.eq(1),
                left.eq(run.count),
                line.eq(run.line),
                lines.eq((run.count + INSTRUCTIONS - 1) // INSTRUCTIONS),
            ]
        with m.Elif(cut):
            m.d.sync += left.eq(left - 1)
        return m

    def _cut(self, m, active, left):
        """Offers the instructions of the oldest line, one a cycle; returns the strobe of each."""
        queue, o = self.queue.o, self.instructions
        place = Signal(range(INSTRUCTIONS))
        there, cut = Signal(), Signal()
        m.d.comb += [
            there.eq(active & (self.stale == 0) & queue.valid & ~queue.payload.error & (left != 0)),
            cut.eq(there & ~self.halt & (~o.valid | o.ready)),
            queue.ready.eq((self.stale != 0) | (cut & ((left == 1) | (place == INSTRUCTIONS - 1)))),
            self.stall.eq(active & ~o.valid & ~there & (left != 0)),
        ]
        with m.If(~active):
            m.d.sync += place.eq(0)
        with m.If(cut):
            m.d.sync += [
                place.eq(place + 1),
                o.valid.eq(1),
                o.payload.eq(queue.payload.data.word_select(place, INSTRUCTION_BITS)),
            ]
        with m.Elif(o.ready):
            m.d.sync += o.valid.eq(0)
        return cut
