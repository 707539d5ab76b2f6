"""Several processors that share one access unit."""

from amaranth.hdl import Cat, Const, Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.golden.spec.tmau.processors import MOST_PROCESSORS, own_tag_bits

from ..bus.commands import command_layout
from ..lib.arbiter import StreamArbiter
from ..lib.stream import SkidBuffer
from .signatures import DoneSignature

__all__ = ["ProcessorShare"]


class ProcessorShare(wiring.Component):
    """Commands of processors take turns; each sees the ends of its own (docs/cluster.md, "Several processors").

    One register from a command to the unit, none from its end to the processor; one command a cycle. A command waits
    for one of each other processor at most.

    Parameters
    ----------
    n : int
        Processors, 2 to 16.

    Members
    -------
    commands : In(array of n stream of command_layout())
        Those of the processors. The upper ``ceil_log2(n)`` bits of a tag are ignored.
    done : Out(array of n DoneSignature())
        Ends of each one's commands. In place of those bits there are zeros.
    merged : Out(stream of command_layout())
        To the unit: there those bits are the number of the processor.
    ended : In(DoneSignature())
        From the unit.
    """

    def __init__(self, n):
        if not isinstance(n, int) or not 2 <= n <= MOST_PROCESSORS:
            raise ValueError(f"n must be an int from 2 to 16, not {n!r}")
        self._n = n
        self._own_bits = own_tag_bits(n)
        self.arbiter = StreamArbiter(command_layout(), n)
        self.buffer = SkidBuffer(command_layout())
        super().__init__(
            {
                "commands": In(stream.Signature(command_layout())).array(n),
                "done": Out(DoneSignature()).array(n),
                "merged": Out(stream.Signature(command_layout())),
                "ended": In(DoneSignature()),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.arbiter = arbiter = self.arbiter
        m.submodules.buffer = buffer = self.buffer
        wiring.connect(m, arbiter=arbiter.o, buffer=buffer.i)
        wiring.connect(m, buffer=buffer.o, merged=wiring.flipped(self.merged))
        own, number = self.ended.tag[: self._own_bits], self.ended.tag[self._own_bits :]
        for processor in range(self._n):
            command, i, done = self.commands[processor], arbiter.i[processor], self.done[processor]
            m.d.comb += [
                i.payload.eq(command.payload),
                i.payload.tag.eq(Cat(command.payload.tag[: self._own_bits], Const(processor, len(number)))),
                i.valid.eq(command.valid),
                command.ready.eq(i.ready),
                done.valid.eq(self.ended.valid & (number == processor)),
                done.tag.eq(own),
                done.error.eq(self.ended.error),
            ]
        return m
