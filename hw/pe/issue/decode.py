"""Decoder: numbers the instructions and finds what is wrong with their words alone."""

from amaranth import Array, Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.spec.pe import INSTRUCTIONS, MEMORY_OPERATIONS, Compare, MmType, Operation, PeError

from ...lib.layouts import packed_layout
from ..layouts import INSTRUCTION_BITS, NUMBER_BITS, SegmentEntryLayout
from .scoreboard import RangeLayout

__all__ = ["DecodedLayout", "Decoder", "MovedRegisters", "UniformRegisters", "Verdict", "VerdictLayout",
           "instruction_view"]  # fmt: skip

_MAX_RANK = 4


def instruction_view(operation, word):
    """The bits of ``word`` as the format of ``operation``."""
    return data.View(packed_layout(INSTRUCTIONS[operation]), word)


class DecodedLayout(data.StructLayout):
    """An instruction, its number, and the verdict on its word."""

    def __init__(self):
        super().__init__(
            {
                "word": unsigned(INSTRUCTION_BITS),
                "number": unsigned(NUMBER_BITS),
                "code": unsigned(4),  # PeError that stands whatever uniform registers and segments hold, or NONE
                "register": unsigned(16),  # of the record, with that code
                # Of memory operations, REGISTER if uniform register and segment are right:
                "file_outside": 1,  # factor registers, or those moved, leave the file
                "offsets_outside": unsigned(_MAX_RANK),  # so do the offset registers of a segment of rank r + 1
            }
        )


class Decoder(wiring.Component):
    """Checks that need an instruction's word alone (docs/pe.md, "Errors").

    Latency 2, one instruction every two cycles: a word is in a register while it is checked, and the next one waits.

    Members
    -------
    i : In(stream of INSTRUCTION_BITS)
        Instructions in program order. ``ready`` is a register.
    o : Out(stream of DecodedLayout)
        Registered.
    accepted : Out(1)
        Strobe: an instruction was taken, and counted.
    idle : Out(1)
        No instruction is here.
    """

    def __init__(self, params):
        self.params = params
        self.number = Signal(NUMBER_BITS)  # of the instruction that is checked, or of the next one
        super().__init__(
            {
                "i": In(stream.Signature(INSTRUCTION_BITS)),
                "o": Out(stream.Signature(DecodedLayout())),
                "accepted": Out(1),
                "idle": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        word, held = Signal(INSTRUCTION_BITS), Signal()  # the one that is checked; there is one
        leaves = Signal()
        opcode = word[:8]
        mm = instruction_view(Operation.MM, word)
        checked = Signal(DecodedLayout())
        refusals = (
            (PeError.OPCODE, self._illegal(m, word), 0),
            (PeError.UNSUPPORTED, (opcode == Operation.MM) & self._unsupported(m, mm), mm.type),
            (PeError.MERGE, (opcode == Operation.MM) & self._too_wide(m, mm), 0),
            (PeError.UNIFORM, self._no_uniform(opcode, mm.ur), mm.ur),
            (PeError.REGISTER, self._no_register(opcode, mm.rc), mm.rc),
            (PeError.BARRIER, self._no_barrier(opcode, word), 0),
        )
        for code, wrong, register in reversed(refusals):
            with m.If(wrong):
                m.d.comb += [checked.code.eq(code), checked.register.eq(register)]
        m.d.comb += [
            checked.word.eq(word),
            checked.number.eq(self.number),
            checked.file_outside.eq(self._file_outside(m, opcode, word)),
            checked.offsets_outside.eq(
                Cat(mm.rf > self.params.regs - rank for rank in range(1, _MAX_RANK + 1)),
            ),
            self.i.ready.eq(~held),
            self.accepted.eq(self.i.valid & self.i.ready),
            leaves.eq(held & (~self.o.valid | self.o.ready)),
            self.idle.eq(~held & ~self.o.valid),
        ]
        with m.If(self.i.ready):
            m.d.sync += word.eq(self.i.payload)
        m.d.sync += held.eq(self.accepted | (held & ~leaves))
        with m.If(leaves):
            m.d.sync += [self.o.valid.eq(1), self.o.payload.eq(checked), self.number.eq(self.number + 1)]
        with m.Elif(self.o.ready):
            m.d.sync += self.o.valid.eq(0)
        return m

    def _illegal(self, m, word):
        """OPCODE: no such operation, a bit of no field, no such value of an enumeration, or a count of 0."""
        mm, setp = instruction_view(Operation.MM, word), instruction_view(Operation.SETP, word)
        moves_nothing = instruction_view(Operation.LD, word).n == 0
        more = {
            Operation.MM: mm.type > max(MmType),
            Operation.SETP: setp.compare > max(Compare),
            Operation.LD: moves_nothing,
            Operation.ST: moves_nothing,
        }
        illegal = Signal(init=1)
        with m.Switch(word[:8]):
            for operation, fmt in INSTRUCTIONS.items():
                with m.Case(operation):
                    m.d.comb += illegal.eq((word & fmt.reserved_mask).any() | more.get(operation, 0))
        return illegal

    def _unsupported(self, m, mm):
        """UNSUPPORTED: there are no multipliers for the type."""
        unsupported = Signal()
        with m.Switch(mm.type):
            for kind in MmType:
                if kind.family not in self.params.types:
                    with m.Case(kind):
                        m.d.comb += unsupported.eq(1)
        return unsupported

    def _too_wide(self, m, mm):
        """MERGE: ka times kb is more than there are threads."""
        too_wide = Signal()
        with m.Switch(Cat(mm.ka, mm.kb)):
            for pair in range(16):
                if (pair % 4 + 1) * (pair // 4 + 1) > self.params.threads:
                    with m.Case(pair):
                        m.d.comb += too_wide.eq(1)
        return too_wide

    def _no_uniform(self, opcode, number):
        named = (*MEMORY_OPERATIONS, Operation.MOVU)
        return Cat(opcode == operation for operation in named).any() & (number >= self.params.uniform_regs)

    def _no_register(self, opcode, number):
        """REGISTER of the operations without a segment."""
        return ((opcode == Operation.MOV) | (opcode == Operation.SETP)) & (number >= self.params.regs)

    def _no_barrier(self, opcode, word):
        address = instruction_view(Operation.BAR_WAIT, word).imm
        return (opcode == Operation.BAR_WAIT) & (address[:3].any() | (address >= self.params.smem.size_bytes))

    def _file_outside(self, m, opcode, word):
        """REGISTER of the factor registers of mm, of the registers that ld and st move."""
        mm, ld, regs = instruction_view(Operation.MM, word), instruction_view(Operation.LD, word), self.params.regs
        # Sums of numbers of which each is in range are short.
        width = regs.bit_length()
        end = Signal(width + 1)
        m.d.comb += end.eq(ld.rd[:width] + ld.n[:width])
        moved_outside = (ld.rd > regs) | (ld.n > regs) | (end > regs)
        return Mux(opcode == Operation.MM, mm.ra > regs - self.params.factor_regs, moved_outside)


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


class UniformRegisters(wiring.Component):
    """Registers, one written and one read at a time. None is set after reset.

    Members
    -------
    write : In(1)
        Strobe: register ``number`` names segment ``value`` from the next cycle on.
    value : In(32)
    number : In(range(params.uniform_regs))
        Of a register that exists.
    is_set : Out(1)
        It was written. Combinational, as the others.
    exists : Out(1)
        There is a segment of that number.
    segment : Out(params.segment_width)
        The segment, if it exists.
    """

    def __init__(self, params):
        self.params = params
        super().__init__(
            {
                "write": In(1),
                "value": In(32),
                "number": In(range(params.uniform_regs)),
                "is_set": Out(1),
                "exists": Out(1),
                "segment": Out(params.segment_width),
            }
        )

    def elaborate(self, platform):
        m = Module()
        layout = data.StructLayout({"is_set": 1, "exists": 1, "segment": self.params.segment_width})
        registers = [Signal(layout, name=f"ur{number}") for number in range(self.params.uniform_regs)]
        named = Signal(layout)
        m.d.comb += [
            named.eq(Array(registers)[self.number]),
            self.is_set.eq(named.is_set),
            self.exists.eq(named.exists),
            self.segment.eq(named.segment),
        ]
        for number, register in enumerate(registers):
            with m.If(self.write & (self.number == number)):
                m.d.sync += [
                    register.is_set.eq(1),
                    register.exists.eq(self.value < self.params.segments),
                    register.segment.eq(self.value),
                ]
        return m
