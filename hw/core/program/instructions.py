"""Instructions of the processing engine, from global memory to its stream."""

from amaranth.hdl import Module, Signal, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from ...lib.stream import ShallowQueue
from ...pe.layouts import INSTRUCTION_BITS
from .layouts import INSTRUCTIONS, LINE_LOG2, LineLayout, RunLayout

__all__ = ["InstructionStreamer"]


class InstructionStreamer(wiring.Component):
    """Reads a run of instructions, lines ahead, and hands them over in order: an instruction a cycle.

    Parameters
    ----------
    addr_width : int
        Bits of a byte address.
    depth : int
        Lines ahead, stale ones included: 2 to 32, a power of two.

    Members
    -------
    i : In(stream of RunLayout(addr_width))
        Accepted when the last instruction has been taken, or with ``failed``. May be withdrawn with ``halt``.
    failed : Out(1)
        The bus answered with an error; instructions before that line have been offered.
    halt : In(1)
        Drop all but the instruction that is offered.
    requests : Out(stream of unsigned(addr_width - 6))
    lines : In(stream of LineLayout(), always ready)
        One for each request, in order.
    instructions : Out(stream of INSTRUCTION_BITS)
        Registered.
    busy : Out(1)
        Lines are under way.
    stall : Out(1)
        The next instruction has not come.

    Attributes
    ----------
    used, stale : Signal
        As of a ``ProgramFetcher``.
    """

    def __init__(self, addr_width, depth):
        self._depth = depth
        self._line = unsigned(addr_width - LINE_LOG2)
        self.queue = ShallowQueue(LineLayout(), depth)
        self.used, self.stale = Signal(range(depth + 1)), Signal(range(depth + 1))
        super().__init__(
            {
                "i": In(stream.Signature(RunLayout(addr_width))),
                "failed": Out(1),
                "halt": In(1),
                "requests": Out(stream.Signature(self._line)),
                "lines": In(stream.Signature(LineLayout(), always_ready=True)),
                "instructions": Out(stream.Signature(INSTRUCTION_BITS)),
                "busy": Out(1),
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
            # A line that failed stays: it is dropped with those behind it.
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
        """Instructions of the oldest line, one a cycle; returns when there is one."""
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
