"""What an instruction says: its number, its errors, the registers that it moves, and the segment that it names."""

from amaranth.hdl import Array, Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.spec.arithmetic import FUNCTIONS, Operand
from tilewright.spec.pe import INSTRUCTIONS, MEMORY_OPERATIONS, Compare, MmType, Operation, PeError

from ...lib.layouts import packed_layout
from ...lib.logic import is_one_of
from ..layouts import INSTRUCTION_BITS, NUMBER_BITS
from .kernels import FetchedLayout
from .scoreboard import RangeLayout

__all__ = [
    "DecodedLayout",
    "Decoder",
    "ErrorLayout",
    "instruction_view",
    "memory_error",
    "moved_registers",
    "uniform_registers",
]

_MAX_RANK = 4
_PREDICATES = 8
#: Operations that need arithmetic.
_COMPUTING = (Operation.ARITH, Operation.CALL, Operation.RETURN, Operation.LOOP, Operation.END, Operation.LOAD)


def instruction_view(operation, word):
    """The bits of ``word`` as the format of ``operation``."""
    return data.View(packed_layout(INSTRUCTIONS[operation]), word)


class DecodedLayout(data.StructLayout):
    """An instruction, its number, and the errors of its word."""

    def __init__(self):
        super().__init__(
            {
                "word": unsigned(INSTRUCTION_BITS),
                "number": unsigned(NUMBER_BITS),
                "inside": 1,  # as fetched
                "code": unsigned(4),  # PeError that does not depend on uniform registers and segments, or NONE
                "register": unsigned(16),  # for the error record, with that code
                # For memory operations, error REGISTER if uniform register and segment are right:
                "file_outside": 1,  # factor registers, or registers that are moved, are outside the file
                "offsets_outside": unsigned(_MAX_RANK),  # bit r: so are the offset registers for a rank of r + 1
                "arithmetic": 1,  # without an error, and performed by the arithmetic
                "job": 1,  # without an error of the word, and an mm, ld or st; only with arithmetic
                "done": 1,  # without an error, and Kernels has executed it: nothing is left to do
                "index": unsigned(16),  # in instruction memory
                "by_uniform": 1,  # uniform register ``rb`` is an operand: it must be set, which comes before REGISTER
            }
        )


class ErrorLayout(data.StructLayout):
    """An error of a whole instruction, for its record."""

    def __init__(self):
        super().__init__({"code": unsigned(4), "register": unsigned(16)})


class Decoder(wiring.Component):
    """Numbers instructions, and performs the checks that need the instruction word alone (docs/pe.md, "Errors").

    Latency: 2 cycles. Throughput: one instruction every two cycles; with arithmetic one every cycle, if ``passes``
    comes with each. ``o`` is registered, and ``i.ready`` does not depend on ``o.ready``.
    """

    def __init__(self, params):
        self._params = params
        super().__init__(
            {
                "i": In(stream.Signature(FetchedLayout())),
                "o": Out(stream.Signature(DecodedLayout())),
                "passes": In(1),  # the instruction at ``o`` is accepted, and no late signal says so
                "accepted": Out(1),  # strobe: an instruction was accepted, to be counted
                "idle": Out(1),  # no instruction is in this block
            }
        )

    def elaborate(self, platform):
        m = Module()
        fetched, word_valid = Signal(FetchedLayout()), Signal()
        word = fetched.word
        number = Signal(NUMBER_BITS)  # of the instruction that is checked, or of the next one
        leaves = Signal()
        opcode = word[:8]
        mm = instruction_view(Operation.MM, word)
        checked = Signal(DecodedLayout())
        arith = instruction_view(Operation.ARITH, word)
        checks = (
            (PeError.OPCODE, self._illegal(m, word), 0),
            (PeError.UNSUPPORTED, (opcode == Operation.MM) & self._unsupported(m, mm), mm.type),
            *self._unsupported_arithmetic(opcode, arith),
            (PeError.MERGE, (opcode == Operation.MM) & self._too_wide(m, mm), 0),
            (PeError.UNIFORM, self._no_uniform(opcode, mm.ur), mm.ur),
            *self._outside(m, opcode, arith, checked),
            (PeError.REGISTER, self._no_register(opcode, mm.rc), mm.rc),
            (PeError.BARRIER, self._no_barrier(opcode, word), 0),
            (PeError.CONTROL, fetched.misplaced, fetched.index),
        )
        for code, wrong, register in reversed(checks):
            with m.If(wrong):
                m.d.comb += [checked.code.eq(code), checked.register.eq(register)]
        m.d.comb += [
            checked.word.eq(word),
            checked.number.eq(number),
            checked.index.eq(fetched.index),
            checked.inside.eq(fetched.inside),
            checked.file_outside.eq(self._file_outside(m, opcode, word)),
            checked.offsets_outside.eq(Cat(mm.rf > self._params.regs - rank for rank in range(1, _MAX_RANK + 1))),
            checked.arithmetic.eq(self._is_arithmetic(opcode) & (checked.code == PeError.NONE)),
            checked.job.eq(self._is_job(opcode) & (checked.code == PeError.NONE)),
            checked.done.eq(self._is_done(opcode, arith) & fetched.inside & (checked.code == PeError.NONE)),
            self.i.ready.eq(~word_valid | (~self.o.valid | self.passes if self._params.units else 0)),
            self.accepted.eq(self.i.valid & self.i.ready),
            leaves.eq(word_valid & (~self.o.valid | self.o.ready)),
            self.idle.eq(~word_valid & ~self.o.valid),
        ]
        with m.If(self.i.ready):
            m.d.sync += fetched.eq(self.i.payload)
        m.d.sync += word_valid.eq(self.accepted | (word_valid & ~leaves))
        with m.If(leaves):
            m.d.sync += [self.o.valid.eq(1), self.o.payload.eq(checked), number.eq(number + 1)]
        with m.Elif(self.o.ready):
            m.d.sync += self.o.valid.eq(0)
        return m

    def _illegal(self, m, word):
        """OPCODE: no such operation, a reserved bit set, an undefined value of an enumeration, or a count of 0."""
        mm, setp = instruction_view(Operation.MM, word), instruction_view(Operation.SETP, word)
        moves_nothing = instruction_view(Operation.LD, word).n == 0
        more = {
            Operation.MM: mm.type > max(MmType),
            Operation.SETP: setp.compare > max(Compare),
            Operation.LD: moves_nothing,
            Operation.ST: moves_nothing,
            Operation.LOAD: moves_nothing,
        }
        loop, arith = (instruction_view(operation, word) for operation in (Operation.LOOP, Operation.ARITH))
        more[Operation.LOOP] = ~(
            ((loop.b == Operand.IMMEDIATE) & (loop.rb == 0) & (loop.imm != 0))
            | ((loop.b == Operand.UNIFORM) & (loop.imm == 0))
        )
        more[Operation.ARITH] = self._malformed(m, arith)
        illegal = Signal(init=1)
        with m.Switch(word[:8]):
            for operation, fmt in INSTRUCTIONS.items():
                with m.Case(operation):
                    if operation in _COMPUTING and not self._params.units:
                        m.d.comb += illegal.eq(0)
                        continue
                    m.d.comb += illegal.eq((word & fmt.reserved_mask).any() | more.get(operation, 0))
        return illegal

    @staticmethod
    def _malformed(m, arith):
        """OPCODE of an ARITH: an unknown function, or a field that it does not use and that is not 0."""

        def having(predicate):
            return is_one_of(arith.function, [function for function, info in FUNCTIONS.items() if predicate(info)])

        reads_a, reads_b, reads_c = (having(lambda info, name=name: name in info.operands) for name in "abc")
        limits = sorted({info.parts for info in FUNCTIONS.values()} - {8})
        parts = [having(lambda info, limit=limit: info.parts == limit) & (arith.part >= limit) for limit in limits]
        return (
            ~having(lambda info: True)
            | (~reads_a & (arith.ra != 0))
            | ((~reads_b | (arith.b == Operand.IMMEDIATE)) & (arith.rb != 0))
            | ((~reads_b | (arith.b != Operand.IMMEDIATE)) & (arith.imm != 0))
            | (~reads_b & (arith.b != 0))
            | (arith.b > max(Operand))
            | (~reads_c & (arith.rc != 0))
            | (~having(lambda info: info.selects) & (arith.ps != 0))
            | (having(lambda info: info.predicate) & (arith.rd >= _PREDICATES))
            | Cat(parts).any()
        )

    def _unsupported_arithmetic(self, opcode, arith):
        """Checks of units that are not built."""
        units = self._params.units
        if not units:
            single = is_one_of(opcode, (Operation.LD, Operation.ST)) & arith.function[0]  # field ``element``
            yield PeError.UNSUPPORTED, is_one_of(opcode, _COMPUTING) | single, 0
            return
        missing = [function for function, info in FUNCTIONS.items() if info.unit not in units]
        yield PeError.UNSUPPORTED, (opcode == Operation.ARITH) & is_one_of(arith.function, missing), arith.function
        if "lookup" not in units:
            yield PeError.UNSUPPORTED, (opcode == Operation.LOAD) & self._loads_lookup(arith), 0

    @staticmethod
    def _loads_lookup(word):
        return word.function[0]  # field ``target`` of LOAD

    def _is_arithmetic(self, opcode):
        """Whether the arithmetic performs the operation."""
        if not self._params.units:
            return 0
        return is_one_of(opcode, (Operation.ARITH, Operation.MOV, Operation.SETP))

    def _is_job(self, opcode):
        return is_one_of(opcode, MEMORY_OPERATIONS) if self._params.units else 0

    def _is_done(self, opcode, word):
        """Whether the operation needs nothing else than a check; of LOOP, with an immediate."""
        if not self._params.units:
            return 0
        counted = (opcode == Operation.LOOP) & (word.b == Operand.IMMEDIATE)
        return is_one_of(opcode, (Operation.CALL, Operation.RETURN, Operation.END)) | counted

    def _outside(self, m, opcode, arith, checked):
        """Checks of the uniform register and the registers of an ARITH; and of the uniform register of a LOOP."""
        if not self._params.units:
            return
        is_arith, regs = opcode == Operation.ARITH, self._params.regs
        by_uniform = Signal()
        m.d.comb += [
            by_uniform.eq((is_arith | (opcode == Operation.LOOP)) & (arith.b == Operand.UNIFORM)),
            checked.by_uniform.eq(by_uniform),
        ]
        yield PeError.UNIFORM, by_uniform & (arith.rb >= self._params.uniform_regs), arith.rb
        to_predicate = is_one_of(arith.function, [f for f, info in FUNCTIONS.items() if info.predicate])
        reads_b = is_one_of(arith.function, [f for f, info in FUNCTIONS.items() if "b" in info.operands])
        yield PeError.REGISTER, is_arith & ~to_predicate & (arith.rd >= regs), arith.rd
        yield PeError.REGISTER, is_arith & (arith.ra >= regs), arith.ra  # 0 if it is not used
        yield PeError.REGISTER, is_arith & reads_b & (arith.b == Operand.REGISTER) & (arith.rb >= regs), arith.rb
        yield PeError.REGISTER, is_arith & (arith.rc >= regs), arith.rc

    def _unsupported(self, m, mm):
        """UNSUPPORTED: the hardware has no multipliers for the type."""
        unsupported = Signal()
        with m.Switch(mm.type):
            for kind in MmType:
                if kind.family not in self._params.types:
                    with m.Case(kind):
                        m.d.comb += unsupported.eq(1)
        return unsupported

    def _too_wide(self, m, mm):
        """MERGE: ka·kb is larger than the number of threads."""
        too_wide = Signal()
        with m.Switch(Cat(mm.ka, mm.kb)):
            for pair in range(16):
                if (pair % 4 + 1) * (pair // 4 + 1) > self._params.threads:
                    with m.Case(pair):
                        m.d.comb += too_wide.eq(1)
        return too_wide

    def _no_uniform(self, opcode, number):
        users = (*MEMORY_OPERATIONS, Operation.MOVU)
        return Cat(opcode == operation for operation in users).any() & (number >= self._params.uniform_regs)

    def _no_register(self, opcode, number):
        """REGISTER of the operations without a segment."""
        return ((opcode == Operation.MOV) | (opcode == Operation.SETP)) & (number >= self._params.regs)

    def _no_barrier(self, opcode, word):
        address = instruction_view(Operation.BAR_WAIT, word).imm
        return (opcode == Operation.BAR_WAIT) & (address[:3].any() | (address >= self._params.smem.size_bytes))

    def _file_outside(self, m, opcode, word):
        """REGISTER of the factor registers of mm, and of the registers that ld and st move."""
        mm, ld, regs = instruction_view(Operation.MM, word), instruction_view(Operation.LD, word), self._params.regs
        # The sum only matters if both numbers are in range, so it can be narrow.
        width = regs.bit_length()
        end = Signal(width + 1)
        m.d.comb += end.eq(ld.rd[:width] + ld.n[:width])
        moved_outside = (ld.rd > regs) | (ld.n > regs) | (end > regs)
        return Mux(opcode == Operation.MM, mm.ra > regs - self._params.factor_regs, moved_outside)


def memory_error(m, decoded, *, is_set, exists, segment):
    """The first error of an mm, ld or st that has code NONE in ``decoded``.

    Parameters
    ----------
    m : Module
    decoded : View
        DecodedLayout.
    is_set, exists : Value
        The uniform register is set, and names a segment that exists.
    segment : View
        SegmentEntryLayout, of that segment.

    Returns
    -------
    View
        ErrorLayout, combinational.
    """
    error = Signal(ErrorLayout())
    mm = instruction_view(Operation.MM, decoded.word)
    is_mm = mm.opcode == Operation.MM
    wide = mm.type >= MmType.S16S16
    unfit = is_mm & ((segment.element_log2 != wide) | (mm.transpose & (segment.rank == 0)))
    checks = (
        (PeError.UNIFORM, ~is_set, mm.ur),
        (PeError.SEGMENT, ~exists | ~segment.good | unfit, mm.ur),
        (PeError.REGISTER, decoded.file_outside, Mux(is_mm, mm.ra, mm.rc)),
        (PeError.REGISTER, decoded.offsets_outside.bit_select(segment.rank, 1), mm.rf),
    )
    for code, wrong, register in reversed(checks):
        with m.If(wrong):
            m.d.comb += [error.code.eq(code), error.register.eq(register)]
    return error


def moved_registers(m, params, word):
    """Registers that an instruction moves: accumulators of mm, or registers of ld, st, mov and setp.

    Parameters
    ----------
    m : Module
    params : PeParams
    word : Value
        An instruction without an error. Only accumulators may be outside the file; they count as its last register.

    Returns
    -------
    View
        RangeLayout, one cycle after the word. Of an mm, all accumulators that it could have if every column were on.
    """
    moved = Signal(RangeLayout(params))
    mm, ld = (instruction_view(operation, word) for operation in (Operation.MM, Operation.LD))
    threads, limit = params.threads, params.regs - 1
    columns = Signal(range(threads + 1))  # accumulators of a thread
    with m.Switch(mm.ka):
        for ka in range(4):
            with m.Case(ka):
                m.d.comb += columns.eq(-(-threads // (ka + 1)))
    outside, last = Signal(), Signal(range(limit + 1 + threads))
    m.d.comb += [outside.eq(mm.rc > limit), last.eq(mm.rc[: params.reg_width] + columns - 1)]
    m.d.sync += [moved.first.eq(mm.rc), moved.last.eq(mm.rc)]
    with m.Switch(mm.opcode):
        with m.Case(Operation.MM):
            m.d.sync += moved.first.eq(Mux(outside, limit, mm.rc))
            m.d.sync += moved.last.eq(Mux(outside | (last > limit), limit, last))
        with m.Case(Operation.LD, Operation.ST):
            m.d.sync += moved.last.eq(ld.rd + ld.n - 1)
    return moved


def uniform_registers(m, params, *, number, write, value):
    """Registers that each name a segment. None is set after reset.

    Parameters
    ----------
    m : Module
    params : PeParams
    number : Value
        Of a register that exists.
    write : Value
        Strobe: the register names segment ``value`` from the next cycle on.
    value : Value
        32 bits.

    Returns
    -------
    View
        Of register ``number``, combinational: ``is_set``, it was written; ``exists``, its segment exists; ``segment``;
        with arithmetic also ``number``, all of its bits.
    """
    layout = data.StructLayout(
        {"is_set": 1, "exists": 1, "segment": params.segment_width, **({"number": 32} if params.units else {})}
    )
    registers = [Signal(layout, name=f"ur{number}") for number in range(params.uniform_regs)]
    for index, register in enumerate(registers):
        with m.If(write & (number == index)):
            m.d.sync += [register.is_set.eq(1), register.exists.eq(value < params.segments), register.segment.eq(value)]
            if params.units:
                m.d.sync += register.number.eq(value)
    selected = Signal(layout)
    m.d.comb += selected.eq(Array(registers)[number])
    return selected
