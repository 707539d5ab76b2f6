"""How processors issue commands: word by word over AXI4-Lite, and several of them through one unit."""

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
    """Builds a command from sixteen registers; a write to the last one sends it. ``ended`` shows the last end.

    An access is answered 1 cycle after it was accepted; a write to the last register 1 cycle after the command was
    accepted, so that it waits while the queue is full. Strobes are ignored: all four bytes are written. Reads of the
    sixteen registers, writes to ``ended``, and accesses to other addresses are refused.
    """

    def __init__(self):
        self.ended = Signal(packed_layout(_ENDED.format))
        super().__init__(
            {
                # Registers of ``spec.tmau_registers``, by byte offset. One access at a time.
                "accesses": In(AccessSignature()),
                "commands": Out(stream.Signature(command_layout())),  # Valid from the cycle after the last write.
                "done": In(DoneSignature()),  # All commands that end, from any source.
            }
        )

    def elaborate(self, platform):
        m = Module()
        requests, answers, ended = self.accesses.requests, self.accesses.answers, self.ended
        access = requests.payload
        words = self.commands.payload.as_value()
        register = access.address[2:COMMAND_WINDOW_ADDR_WIDTH]
        index = access.address[2 : 2 + (COMMAND_WINDOW_WORDS - 1).bit_length()]
        accepted, written, sends = Signal(), Signal(), Signal()
        m.d.comb += [
            requests.ready.eq(~answers.valid & ~self.commands.valid),
            accepted.eq(requests.valid & requests.ready),
            written.eq(access.write & (register < COMMAND_WINDOW_WORDS)),
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
                answers.payload.error.eq(~written & (access.write | (register != _ENDED.offset >> 2))),
            ]
        with m.If(self.commands.valid & self.commands.ready):
            m.d.sync += [self.commands.valid.eq(0), answers.valid.eq(1)]
        with m.If(self.done.valid):
            m.d.sync += Cat(ended.tag, ended.error, ended.count).eq(
                Cat(self.done.tag, self.done.error, (ended.count + 1)[:8])
            )
        return m


class ProcessorShare(wiring.Component):
    """Merges the commands of ``n`` processors, 2 to 16, and reports to each the ends of its own commands.

    Round-robin, one command a cycle: a command waits for at most one command of each other processor. Latency: 1 cycle
    for commands, 0 for ends. The upper ``ceil_log2(n)`` bits of a tag hold the number of the processor inside the unit;
    processors' own values of these bits are ignored, and ends have zeros there (docs/cluster.md, "Several processors").
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
                # To the processors.
                "commands": In(stream.Signature(command_layout())).array(n),
                "done": Out(DoneSignature()).array(n),
                # To the unit.
                "merged": Out(stream.Signature(command_layout())),
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
    """Passes commands and shows the windows of their processor; needs ``params.confines_apart``.

    Combinational for a command of the same processor as the previous one. A command of another processor waits until no
    command is being set up, and passes one cycle later. So one register with windows serves all rules
    (docs/cluster.md, "Several processors").
    """

    def __init__(self, params):
        self.own_bits = own_tag_bits(params.processors)
        self.processor = Signal(16 - self.own_bits)  # whose windows are shown
        super().__init__(
            {
                "i": In(stream.Signature(command_layout())),
                "o": Out(stream.Signature(command_layout())),
                # No command that has passed depends on ``chosen`` any more; low from the cycle after one passed.
                "idle": In(1),
                "windows": In(all_windows(params)),
                "chosen": Out(
                    WindowsLayout(params)
                ),  # For the command at ``o`` and those that have passed. Registered.
            }
        )

    def elaborate(self, platform):
        m = Module()
        number, passes = self.i.payload.tag[self.own_bits :], Signal()
        m.d.comb += [
            passes.eq(self.processor == number),
            self.o.payload.eq(self.i.payload),
            self.o.valid.eq(self.i.valid & passes),
            self.i.ready.eq(self.o.ready & passes),
        ]
        with m.If(self.idle):
            m.d.sync += [self.processor.eq(number), self.chosen.eq(self.windows[number])]
        return m
