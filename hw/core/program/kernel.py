"""The instructions that a word KERNEL stands for."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.spec.core import ARGUMENTS, PROGRAM_WORDS, Kind
from tilewright.spec.pe import INSTRUCTIONS, Operation

from ...lib.layouts import packed_layout
from ...lib.logic import mux_tree
from ...pe.layouts import INSTRUCTION_BITS
from .checks import word_view

__all__ = ["KernelCaller"]


class KernelCaller(wiring.Component):
    """A movu for each argument of a word, then the call of its kernel: one a cycle.

    The words are offered while ``go`` is high. When ``go`` has been low for a cycle, the sequence restarts.
    """

    def __init__(self):
        super().__init__(
            {
                "word": In(PROGRAM_WORDS[Kind.KERNEL].bits),
                "go": In(1),
                "o": Out(stream.Signature(INSTRUCTION_BITS)),
                # Strobe: the call has been accepted.
                "done": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        kernel, given = word_view(Kind.KERNEL, self.word), Signal(range(ARGUMENTS + 1))
        arguments = dict(enumerate(kernel[f"argument{n}"] for n in range(ARGUMENTS)))
        movu, call = (Signal(packed_layout(INSTRUCTIONS[kind])) for kind in (Operation.MOVU, Operation.CALL))
        calls = given == kernel.count
        m.d.comb += [
            movu.opcode.eq(Operation.MOVU),
            movu.ud.eq(kernel.first + given),
            movu.imm.eq(mux_tree(given, arguments)),
            call.opcode.eq(Operation.CALL),
            call.imm.eq(kernel.entry),
            self.o.payload.eq(Mux(calls, call.as_value(), movu.as_value())),
            self.o.valid.eq(self.go),
            self.done.eq(self.go & self.o.ready & calls),
        ]
        m.d.sync += given.eq(Mux(self.go & ~self.done, given + self.o.ready, 0))
        return m
