"""What is wrong with an instruction that has a logical address, once its segment is known (docs/pe.md, "Errors")."""

from amaranth import Module, Mux, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from tilewright.golden.spec.pe.errors import PeError
from tilewright.golden.spec.pe.instruction import MmType, Operation

from ..layouts import SegmentEntryLayout
from .decode import DecodedLayout, instruction_view

__all__ = ["Verdict", "VerdictLayout"]


class VerdictLayout(data.StructLayout):
    """An error of a whole instruction, for its record."""

    def __init__(self):
        super().__init__({"code": unsigned(4), "register": unsigned(16)})


class Verdict(wiring.Component):
    """The first rule that is broken of those that the decoder left. Combinational.

    Members
    -------
    decoded : In(DecodedLayout)
        An mm, ld or st of code NONE.
    is_set, exists : In(1)
        Its uniform register is set, and names a segment that exists.
    segment : In(SegmentEntryLayout)
        That segment.
    o : Out(VerdictLayout)
    """

    def __init__(self, params):
        super().__init__(
            {
                "decoded": In(DecodedLayout()),
                "is_set": In(1),
                "exists": In(1),
                "segment": In(SegmentEntryLayout(params)),
                "o": Out(VerdictLayout()),
            }
        )

    def elaborate(self, platform):
        m = Module()
        decoded, segment = self.decoded, self.segment
        mm = instruction_view(Operation.MM, decoded.word)
        is_mm = mm.opcode == Operation.MM
        wide = mm.type >= MmType.S16S16
        unfit = is_mm & ((segment.element_log2 != wide) | (mm.transpose & (segment.rank == 0)))
        refusals = (
            (PeError.UNIFORM, ~self.is_set, mm.ur),
            (PeError.SEGMENT, ~self.exists | ~segment.good | unfit, mm.ur),
            (PeError.REGISTER, decoded.file_outside, Mux(is_mm, mm.ra, mm.rc)),
            (PeError.REGISTER, decoded.offsets_outside.bit_select(segment.rank, 1), mm.rf),
        )
        for code, wrong, register in reversed(refusals):
            with m.If(wrong):
                m.d.comb += [self.o.code.eq(code), self.o.register.eq(register)]
        return m
