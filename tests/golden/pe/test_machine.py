"""The golden processing engine: each instruction and each error, by hand."""

import numpy as np
import pytest

from tilewright.golden.pe.checks import instruction_word
from tilewright.golden.pe.machine import BarrierNotCompleteError, Fault, Pe
from tilewright.golden.pe.segment import PageNotLoadedError, Segment
from tilewright.golden.pe.sizes import PeSizes
from tilewright.golden.smem import Barrier
from tilewright.spec.pe import PAGE_ENTRY, Compare, MmType, Operation, PeError, SegmentElement, Source

SIZES = PeSizes(threads=6, regs=32, segments=8, pages=8)
ALL = (0, SIZES.threads - 1)
SMEM_BYTES = 4096
#: Uniform register u names segment u.
BYTES, HALVES, WORDS, LINE, PAGED, WRONG, BEYOND = range(7)
UNSET = 7
TID, ZERO, K_AND_TID = 20, 21, 21  # offset registers: the thread; 0; 0 and the thread


@pytest.fixture
def pe():
    rng = np.random.default_rng(20261121)
    pe = Pe(rng.integers(0, 256, SMEM_BYTES, np.uint8), SIZES)
    pe.registers[:] = rng.integers(0, 1 << 32, pe.registers.shape, np.uint32)
    segments = {
        BYTES: Segment(SegmentElement.S8, (40, 5), (6, 3), base=0x100),
        HALVES: Segment(SegmentElement.BF16, (16, 5), (4, 3), base=0x400),
        WORDS: Segment(SegmentElement.S32, (10, 4), (4, 2), base=0x600),
        LINE: Segment(SegmentElement.U8, (64,), (6,), base=0x800),
        PAGED: Segment(SegmentElement.S8, (16, 6), (4, 0), paged=True, first_entry=1),
    }
    for index, segment in segments.items():
        pe.write_segment(index, segment.pack())
    pe.write_segment(WRONG, segments[BYTES].pack() | 1 << 15)
    for number in range(7):
        pe.execute(instruction_word(Operation.MOVU, ud=number, imm=number if number != BEYOND else SIZES.segments))
    pe.registers[:, TID] = pe.registers[:, K_AND_TID + 1] = range(SIZES.threads)
    pe.registers[:, ZERO] = 0
    return pe


def refused(pe, code, register, operation, **fields):
    """Executes an instruction that must do nothing but leave this record."""
    return refused_word(pe, code, register, instruction_word(operation, **fields))


def refused_word(pe, code, register, word):
    before, memory, number = pe.registers.copy(), pe.smem.copy(), pe.number
    assert pe.execute(word) == Fault(code, number, *ALL, register)
    assert pe.faults[-1] == (code, number, *ALL, register)
    assert pe.number == number + 1
    assert (pe.registers == before).all() and (pe.smem == memory).all()


def test_opcode(pe):
    mm = instruction_word(Operation.MM, ur=BYTES)
    refused_word(pe, PeError.OPCODE, 0, 0)
    refused_word(pe, PeError.OPCODE, 0, 16)
    refused_word(pe, PeError.OPCODE, 0, mm | 1 << 23)
    refused_word(pe, PeError.OPCODE, 0, mm | 10 << 24)
    refused_word(pe, PeError.OPCODE, 0, instruction_word(Operation.SETP) | 10 << 20)
    refused(pe, PeError.OPCODE, 0, Operation.LD, ur=UNSET, n=0)
    refused(pe, PeError.OPCODE, 0, Operation.ST, ur=BYTES, n=0)
    refused_word(pe, PeError.OPCODE, 0, instruction_word(Operation.MOVU, imm=1) | 1 << 8)


def test_a_stopped_engine_refuses_every_instruction(pe):
    pe.stopped = True
    refused(pe, PeError.STOPPED, 0, Operation.MM, ur=BYTES)
    refused(pe, PeError.STOPPED, 0, Operation.BAR_WAIT, imm=0)
    refused(pe, PeError.STOPPED, 0, Operation.MOVU, ud=UNSET, imm=1)
    refused_word(pe, PeError.STOPPED, 0, 10)
    pe.stopped = False
    refused(pe, PeError.UNIFORM, UNSET, Operation.MM, ur=UNSET)


def test_types_that_the_machine_does_not_have(pe):
    pe.sizes = PeSizes(**vars(SIZES) | {"types": ("i16", "f16")})
    for kind in (MmType.S8S8, MmType.U8U8, MmType.BF16):
        refused(pe, PeError.UNSUPPORTED, kind, Operation.MM, type=kind, ka=3, kb=3, ur=UNSET)
    for kind in (MmType.U16S16, MmType.F16):
        refused(pe, PeError.MERGE, 0, Operation.MM, type=kind, ka=3, kb=3, ur=UNSET)
    refused_word(pe, PeError.OPCODE, 0, instruction_word(Operation.MM) | 10 << 24)
    with pytest.raises(ValueError, match=r"^types must be one or more of i8, i16, f16, bf16, not \('s8',\)$"):
        PeSizes(types=("s8",))


def test_merge_comes_before_uniform(pe):
    refused(pe, PeError.MERGE, 0, Operation.MM, ka=3, kb=3, ur=UNSET)


@pytest.mark.parametrize("operation", [Operation.MM, Operation.LD, Operation.ST])
def test_uniform_and_segment(pe, operation):
    fields = {} if operation == Operation.MM else {"n": 1}
    for number in (UNSET, SIZES.uniform_regs, 255):
        refused(pe, PeError.UNIFORM, number, operation, ur=number, rf=40, **fields)
    for number in (WRONG, BEYOND):
        refused(pe, PeError.SEGMENT, number, operation, ur=number, rf=40, **fields)


def test_movu_out_of_range(pe):
    refused(pe, PeError.UNIFORM, 8, Operation.MOVU, ud=8, imm=1)


def test_segments_that_do_not_fit_an_mm(pe):
    refused(pe, PeError.SEGMENT, HALVES, Operation.MM, ur=HALVES)
    refused(pe, PeError.SEGMENT, BYTES, Operation.MM, ur=BYTES, type=MmType.F16)
    refused(pe, PeError.SEGMENT, LINE, Operation.MM, ur=LINE, transpose=1, ra=31)


def test_registers(pe):
    refused(pe, PeError.REGISTER, 31, Operation.MM, ur=BYTES, ra=31, rf=31)
    refused(pe, PeError.REGISTER, 31, Operation.MM, ur=BYTES, ra=30, rf=31)
    assert pe.execute(instruction_word(Operation.MM, ur=BYTES, ra=30, rf=30)) is None
    for operation, name in ((Operation.LD, "rd"), (Operation.ST, "rs")):
        refused(pe, PeError.REGISTER, 30, operation, ur=BYTES, rf=31, n=3, **{name: 30})
        refused(pe, PeError.REGISTER, 31, operation, ur=BYTES, rf=31, n=2, **{name: 30})
        refused(pe, PeError.REGISTER, 65535, operation, ur=BYTES, n=65535, **{name: 65535})
    refused(pe, PeError.REGISTER, 32, Operation.MOV, rd=32)
    refused(pe, PeError.REGISTER, 32, Operation.SETP, rs=32)


def test_mov_and_setp_of_threads_that_take_part(pe):
    run = [
        instruction_word(Operation.SETP, pd=1, source=Source.THREAD, compare=Compare.GEU, imm=4),
        instruction_word(Operation.MOV, rd=0, source=Source.THREAD),
        instruction_word(Operation.MOV, rd=0, imm=0xFFFFFFFE, guard=1, predicate=1),
        instruction_word(Operation.SETP, pd=2, compare=Compare.LT, rs=0, imm=0),
        instruction_word(Operation.SETP, pd=2, compare=Compare.LTU, rs=0, imm=3, guard=1, predicate=1),
    ]
    pe.run(run[:4])
    assert pe.registers[:, 0].tolist() == [0, 1, 2, 3, 0xFFFFFFFE, 0xFFFFFFFE]
    assert pe.predicates[2].tolist() == [0, 0, 0, 0, 1, 1]
    pe.run(run[4:])
    assert pe.predicates[2].tolist() == [0, 0, 0, 0, 0, 0]
    assert not pe.faults


@pytest.mark.parametrize("compare", Compare)
def test_compare(pe, compare):
    values = [5, 6, 7, 0xFFFFFFFF, 0x80000000, 0x7FFFFFFF]
    pe.registers[:, 0] = values
    pe.execute(instruction_word(Operation.SETP, pd=0, compare=compare, rs=0, imm=6))
    wrap = (lambda x: x) if compare.name.endswith("U") else lambda x: x - (x >> 31 << 32)
    holds = {"EQ": int.__eq__, "NE": int.__ne__, "LT": int.__lt__, "LE": int.__le__, "GT": int.__gt__, "GE": int.__ge__}
    assert pe.predicates[0].tolist() == [holds[compare.name[:2]](wrap(value), 6) for value in values]


@pytest.mark.parametrize("core", [0, 5, 15])
def test_mov_of_the_number_of_the_core(core):
    """It is ORed with the immediate, in threads that take part; the index of the thread stays as it is."""
    pe = Pe(np.zeros(SMEM_BYTES, np.uint8), SIZES, core)
    pe.run([
        instruction_word(Operation.SETP, pd=1, source=Source.THREAD, compare=Compare.GEU, imm=4),
        instruction_word(Operation.MOV, core=1, rd=0),
        instruction_word(Operation.MOV, core=1, rd=1, imm=0xFFFFFFF1),
        instruction_word(Operation.MOV, core=1, rd=2, source=Source.THREAD),
        instruction_word(Operation.MOV, rd=3, imm=0x100),
        instruction_word(Operation.MOV, core=1, rd=3, guard=1, predicate=1),
        instruction_word(Operation.MOV, rd=4, imm=0x100),
    ])  # fmt: skip
    assert pe.registers[:, :5].T.tolist() == [
        [core] * 6, [0xFFFFFFF1 | core] * 6, [*range(6)], [0x100] * 4 + [core] * 2, [0x100] * 6,
    ]  # fmt: skip
    assert not pe.faults


def test_number_of_a_core_out_of_range():
    with pytest.raises(ValueError, match=r"^core must be 0 to 15, not 16$"):
        Pe(np.zeros(SMEM_BYTES, np.uint8), SIZES, 16)


def paged(pe, *entries):
    for index, fields in enumerate(entries, 1):
        pe.write_page(index, PAGE_ENTRY.pack(**{"valid": 1, "loaded": 1, "on_chip": 1, "address": 0x900} | fields))


def test_a_waiting_instruction_changes_nothing(pe):
    paged(pe, *[{}] * 5, {"loaded": 0})
    before = pe.registers.copy()
    for operation, fields in ((Operation.MM, {}), (Operation.LD, {"n": 1})):
        with pytest.raises(PageNotLoadedError):
            pe.execute(instruction_word(operation, ur=PAGED, rf=K_AND_TID, **fields))
    assert (pe.registers == before).all() and pe.number == 7
    pe.write_page(6, PAGE_ENTRY.pack())
    assert pe.execute(instruction_word(Operation.LD, n=1, ur=PAGED, rf=K_AND_TID)).code == PeError.UNMAPPED


def test_bar_wait(pe):
    barrier = Barrier()
    barrier.init(1)
    pe.smem[0x40:0x48] = np.frombuffer(barrier.pack().to_bytes(8, "little"), np.uint8)
    wait = instruction_word(Operation.BAR_WAIT, imm=0x40, parity=0)
    with pytest.raises(BarrierNotCompleteError, match="parity 0 of the barrier at 0x40"):
        pe.execute(wait)
    barrier.arrive()
    pe.smem[0x40:0x48] = np.frombuffer(barrier.pack().to_bytes(8, "little"), np.uint8)
    assert pe.execute(wait) is None
    refused(pe, PeError.BARRIER, 0, Operation.BAR_WAIT, imm=0x44)
    refused(pe, PeError.BARRIER, 0, Operation.BAR_WAIT, imm=SMEM_BYTES)


def test_fence_and_halt(pe):
    pe.run([instruction_word(Operation.FENCE), instruction_word(Operation.HALT)])
    assert (pe.halts, pe.number, pe.faults) == (1, 9, [])
