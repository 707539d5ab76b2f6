"""Commands from a processor without a stream: words that are written one by one become one command."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.golden.spec.host_windows import COMMAND_WINDOW_REGISTERS, COMMAND_WINDOW_WORDS

from ..bus.axi4_lite import AccessSignature
from ..bus.commands import command_layout
from ..lib.formats import packed_layout
from .signatures import DoneSignature

__all__ = ["COMMAND_WINDOW_ADDR_WIDTH", "CommandWindow"]

#: Bits of a byte address in the window: 128 bytes.
COMMAND_WINDOW_ADDR_WIDTH = 7

_ENDED = COMMAND_WINDOW_REGISTERS[-1]


class CommandWindow(wiring.Component):
    """Sixteen words, lowest first; writing the last one sends the command. A word behind them says what ended last.

    An access is answered 1 cycle after it was accepted; the last word 1 cycle after the command was taken, so that a
    write waits while the queue is full. All four bytes are written, whatever the strobes. Refused are reads of the
    words, writes of ``ended`` and all behind it.

    Members
    -------
    accesses : In(AccessSignature)
        Registers of ``golden.spec.host_windows``, by byte offset. Accepted while no command waits, and when the answer
        before has been taken.
    commands : Out(stream of command_layout())
        Valid from the cycle after the last word on.
    done : In(DoneSignature)
        Commands that end, however they came.
    """

    def __init__(self):
        self.ended = Signal(packed_layout(_ENDED.format))
        super().__init__(
            {
                "accesses": In(AccessSignature()),
                "commands": Out(stream.Signature(command_layout())),
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
