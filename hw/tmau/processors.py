"""Commands from a processor without a stream: words that are written one by one become one command."""

from amaranth.hdl import Cat, Const, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from tilewright.spec.tmau_registers import COMMAND_WINDOW_REGISTERS, COMMAND_WINDOW_WORDS, MOST_PROCESSORS, own_tag_bits

from ..bus.axi4_lite import AccessSignature
from ..lib.layouts import command_layout, packed_layout
from ..lib.routing import StreamArbiter
from ..lib.stream import SkidBuffer
from .layouts import WindowsLayout, all_windows
from .signatures import DoneSignature

__all__ = ["COMMAND_WINDOW_ADDR_WIDTH", "CommandWindow", "ProcessorShare", "WindowChoice"]

#: Bits of a byte address in the window: 128 bytes.
COMMAND_WINDOW_ADDR_WIDTH = 7

_ENDED = COMMAND_WINDOW_REGISTERS[-1]


class CommandWindow(wiring.Component):
    """Sixteen words, lowest first; writing the last one sends the command. A word behind them says what ended last.

    An access is answered 1 cycle after it was accepted; the last word 1 cycle after the command was taken, so that a
    write waits while the queue is full. All four bytes are written, whatever the strobes. Refused are reads of the
    words, writes of ``ended`` and all behind it.
    """

    def __init__(self):
        self.ended = Signal(packed_layout(_ENDED.format))
        super().__init__(
            {
                # Registers of ``spec.tmau_registers``, by byte offset. Accepted while no command waits, and when the
                # answer before has been taken.
                "accesses": In(AccessSignature()),
                # Valid from the cycle after the last word on.
                "commands": Out(stream.Signature(command_layout())),
                # Commands that end, however they came.
                "done": In(DoneSignature()),
            }
        )

    def elaborate(self, platform):
        m = Module()
        requests, answers, ended = self.accesses.requests, self.accesses.answers, self.ended
        access = requests.payload
        words = self.commands.payload.as_value()
        place = access.address[2:COMMAND_WINDOW_ADDR_WIDTH]
        index = access.address[2 : 2 + (COMMAND_WINDOW_WORDS - 1).bit_length()]
        accepted, written, sends = Signal(), Signal(), Signal()
        m.d.comb += [
            requests.ready.eq(~answers.valid & ~self.commands.valid),
            accepted.eq(requests.valid & requests.ready),
            written.eq(access.write & (place < COMMAND_WINDOW_WORDS)),
            sends.eq(written & (index == COMMAND_WINDOW_WORDS - 1)),
        ]
        with m.If(accepted & written):
            m.d.sync += words.word_select(index, 32).eq(access.data)
        with m.If(answers.ready):
            m.d.sync += answers.valid.eq(0)
        with m.If(accepted):
            m.d.sync += [
                self.commands.valid.eq(sends),
                answers.valid.eq(~sends),
                answers.payload.data.eq(ended.as_value()),
                answers.payload.error.eq(~written & (access.write | (place != _ENDED.offset >> 2))),
            ]
        with m.If(self.commands.valid & self.commands.ready):
            m.d.sync += [self.commands.valid.eq(0), answers.valid.eq(1)]
        with m.If(self.done.valid):
            m.d.sync += Cat(ended.tag, ended.error, ended.count).eq(
                Cat(self.done.tag, self.done.error, (ended.count + 1)[:8])
            )
        return m


class ProcessorShare(wiring.Component):
    """Commands of processors take turns; each sees the ends of its own (docs/cluster.md, "Several processors").

    One register from a command to the unit, none from its end to the processor; one command a cycle. A command waits
    for one of each other processor at most.

    Parameters
    ----------
    n : int
        Processors, 2 to 16.
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
                # Those of the processors. The upper ``ceil_log2(n)`` bits of a tag are ignored.
                "commands": In(stream.Signature(command_layout())).array(n),
                # Ends of each one's commands. In place of those bits there are zeros.
                "done": Out(DoneSignature()).array(n),
                # To the unit: there those bits are the number of the processor.
                "merged": Out(stream.Signature(command_layout())),
                # From the unit.
                "ended": In(DoneSignature()),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.arbiter = arbiter = self.arbiter
        m.submodules.buffer = buffer = self.buffer
        connect(m, arbiter.o, buffer.i)
        connect(m, buffer.o, flipped(self.merged))
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


class WindowChoice(wiring.Component):
    """Passes commands, and shows the windows of the processor that they are of; a change of processor waits.

    Combinational for a command of the same processor as the one before. One of another processor passes in the second
    cycle in which nothing is set up, at the earliest. So one register serves all blocks that have rules.

    Specification: docs/cluster.md, "Several processors".

    Parameters
    ----------
    params : TmauParams
        With ``confines_apart``.
    """

    def __init__(self, params):
        self.own_bits = own_tag_bits(params.processors)
        self.whose = Signal(16 - self.own_bits)
        super().__init__(
            {
                "i": In(stream.Signature(command_layout())),
                "o": Out(stream.Signature(command_layout())),
                # Of the commands that have passed, none depends on ``chosen`` any more; low from the cycle after one
                # passed.
                "idle": In(1),
                # Of each processor.
                "windows": In(all_windows(params)),
                # Of the command at the output, and of those that have passed. Registered.
                "chosen": Out(WindowsLayout(params)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        number, passes = self.i.payload.tag[self.own_bits :], Signal()
        m.d.comb += [
            passes.eq(self.whose == number),
            self.o.payload.eq(self.i.payload),
            self.o.valid.eq(self.i.valid & passes),
            self.i.ready.eq(self.o.ready & passes),
        ]
        with m.If(self.idle):
            m.d.sync += [self.whose.eq(number), self.chosen.eq(self.windows[number])]
        return m
