"""Which registers an instruction moves: accumulators, or those of ld, st, mov and setp."""

from amaranth import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from tilewright.golden.spec.pe.instruction import Operation

from ..layouts import INSTRUCTION_BITS
from .decode import instruction_view
from .layouts import RangeLayout

__all__ = ["MovedRegisters"]


class MovedRegisters(wiring.Component):
    """First and last of them, one cycle after the word. Accumulators past the end of the file
    count as its last register.

    Members
    -------
    word : In(INSTRUCTION_BITS)
        An instruction of which no register but accumulators leaves the file.
    o : Out(RangeLayout)
        Registered. Of an mm all accumulators that it could have, whatever columns are on.
    """

    def __init__(self, params):
        self.params = params
        super().__init__({"word": In(INSTRUCTION_BITS), "o": Out(RangeLayout(params))})

    def elaborate(self, platform):
        m = Module()
        mm, ld = (instruction_view(operation, self.word) for operation in (Operation.MM, Operation.LD))
        threads, limit = self.params.threads, self.params.regs - 1
        columns = Signal(range(threads + 1))  # accumulators of a thread
        with m.Switch(mm.ka):
            for ka in range(4):
                with m.Case(ka):
                    m.d.comb += columns.eq(-(-threads // (ka + 1)))
        outside, last = Signal(), Signal(range(limit + 1 + threads))
        m.d.comb += [
            outside.eq(mm.rc > limit),
            last.eq(mm.rc[: self.params.reg_width] + columns - 1),
        ]
        m.d.sync += [self.o.first.eq(mm.rc), self.o.last.eq(mm.rc)]
        with m.Switch(mm.opcode):
            with m.Case(Operation.MM):
                m.d.sync += self.o.first.eq(Mux(outside, limit, mm.rc))
                m.d.sync += self.o.last.eq(Mux(outside | (last > limit), limit, last))
            with m.Case(Operation.LD, Operation.ST):
                m.d.sync += self.o.last.eq(ld.rd + ld.n - 1)
        return m
