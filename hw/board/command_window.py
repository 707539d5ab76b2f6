"""Commands from a computer: words that are written one by one become one command."""

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.golden.spec import COMMAND

from ..bus.axi4_lite import AccessSignature
from ..bus.commands import command_layout

__all__ = ["CommandWindow"]

_WORDS = COMMAND.bits // 32


class CommandWindow(wiring.Component):
    """Sixteen words, lowest first; writing the last one sends the command.

    A write is answered 1 cycle after it was accepted, that of the last word 1 cycle after the command was taken. All
    four bytes are written, whatever the strobes. A read is refused.

    Members
    -------
    accesses : In(AccessSignature)
        By byte offset, of which what is above 64 bytes is ignored. Accepted while no command waits, and when the answer
        before has been taken.
    commands : Out(stream of command_layout())
        Valid from the cycle after the last word on.
    """

    def __init__(self):
        super().__init__({"accesses": In(AccessSignature()), "commands": Out(stream.Signature(command_layout()))})

    def elaborate(self, platform):
        m = Module()
        requests, answers = self.accesses.requests, self.accesses.answers
        access = requests.payload
        words = self.commands.payload.as_value()
        index = access.address[2 : 2 + (_WORDS - 1).bit_length()]
        accepted, sends = Signal(), Signal()
        m.d.comb += [
            requests.ready.eq(~answers.valid & ~self.commands.valid),
            accepted.eq(requests.valid & requests.ready),
            sends.eq(access.write & (index == _WORDS - 1)),
        ]
        with m.If(accepted & access.write):
            m.d.sync += words.word_select(index, 32).eq(access.data)
        with m.If(answers.ready):
            m.d.sync += answers.valid.eq(0)
        with m.If(accepted):
            m.d.sync += [
                self.commands.valid.eq(sends),
                answers.valid.eq(~sends),
                answers.payload.error.eq(~access.write),
            ]
        with m.If(self.commands.valid & self.commands.ready):
            m.d.sync += [self.commands.valid.eq(0), answers.valid.eq(1)]
        return m
