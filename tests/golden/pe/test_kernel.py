"""Kernels, loads and single elements by hand: what they do, each error and its record, waits, and what is open."""

import numpy as np
import pytest

from tilewright.golden.pe.checks import instruction_word
from tilewright.golden.pe.machine import BarrierNotCompleteError, Fault, Pe
from tilewright.golden.pe.segment import PageNotLoadedError, Segment
from tilewright.golden.pe.sizes import PeSizes
from tilewright.golden.smem import Barrier
from tilewright.sim.asm.pe import assemble_program
from tilewright.spec.arithmetic import Function, Operand
from tilewright.spec.pe import PAGE_ENTRY, Operation, PeError, SegmentElement

SIZES = PeSizes(threads=6, regs=16, segments=8, pages=4, kernel_words=32, lookup_words=16)
BARRIER = 0x80
LOADED = 0x100_0000_0000


@pytest.fixture
def pe():
    pe = Pe(np.arange(256, dtype=np.uint8), SIZES)
    pe.registers[:] = np.arange(SIZES.threads)[:, np.newaxis] + 100 * np.arange(SIZES.regs)
    pe.registers[:, 0] = 0
    pe.open.registers[:] = pe.open.predicates[:] = False
    return pe


def run(pe, text):
    """Runs a program in text; returns code, number and register of every fault."""
    pe.run(assemble_program(text))
    assert all((fault.first, fault.last) == (0, SIZES.threads - 1) for fault in pe.faults)
    return [(fault.code.name.lower(), fault.number, fault.register) for fault in pe.faults]


def load(kernel, index=0):
    return f"load.code {index}, {len(kernel.splitlines())}\n{kernel}\n"


def test_loops_are_nested_and_every_instruction_is_counted(pe):
    kernel = "mov r1, 0\nloop 3\nadd r1, r1, 1\nloop ur2\nadd r1, r1, 10\nend\nend\nreturn"
    assert run(pe, load(kernel, 5) + "movu ur2, 2\ncall 5\nmov r2, r1") == []
    assert (pe.registers[:, 1:3] == 3 + 60).all()
    # load, movu, call; mov, loop; in each round add, loop, two rounds of add and end, end; return; mov.
    assert pe.number == 3 + 2 + 3 * (2 + 2 * 2 + 1) + 1 + 1


def test_return_ends_a_kernel_inside_loops(pe):
    assert run(pe, load("loop 9\nloop 9\nadd r1, r1, 1\nreturn\nend\nend") + "call 0\ncall 0") == []
    assert (pe.registers[:, 1] == 102 + np.arange(6)).all()


def test_kernels_have_all_kinds_of_instructions(pe):
    pe.write_segment(3, Segment(SegmentElement.S8, (16, 4), (4, 2)).pack())
    Barrier(pending=1, expected=1, phase=1).write(pe.smem, BARRIER)
    kernel = (
        "movu ur1, 3\nld r4, ur1:rf0:0, 2\nst r4, ur1:rf0:4, 1\nbar.wait 0x80, 0\nfence\nhalt\nsetp.lt p1, tid, 2\n"
    )
    kernel += "@p1, mov r9, core\nmm8 r10, ur1:rf0:0, r4\nreturn"
    pe.registers[:, 1] = 0
    assert run(pe, load(kernel) + "call 0") == []
    assert (pe.registers[:, 4] == 0x03020100).all() and pe.smem[4:8].tolist() == [0, 1, 2, 3]
    assert pe.halts == 1 and pe.uniform[1] == 3


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("return", [("control", 0, 0)]),
        ("end", [("control", 0, 0)]),
        ("loop 2\nend", [("control", 0, 0), ("control", 1, 0)]),
        ("loop ur5", [("uniform", 0, 5)]),
        ("loop ur200", [("uniform", 0, 200)]),
        ("call 32", [("control", 0, 32)]),
        ("call 0x12345678", [("control", 0, 0x5678)]),
        ("load.code 31, 2\nhalt\nhalt", [("control", 0, 0)]),
        ("load.code 0xffffffff, 1\nhalt", [("control", 0, 0)]),
        ("load.lookup 13, 1\nhalt", [("control", 0, 0)]),
        ("load.lookup 12, 2\nhalt\nhalt\nload.lookup 12, 1\nhalt", [("control", 0, 0)]),
        ("load.lookup 2, 1\nhalt", [("control", 0, 0)]),
        (load("fence\ncall 0\nhalt", 4) + "call 4\nreturn", [("control", 3, 5), ("control", 4, 0)]),
        (load("fence\ncall 99\nhalt", 4) + "call 4", [("control", 3, 5)]),
        (load("end\nhalt", 4) + "call 4", [("control", 2, 4)]),
        (load("loop 1\nend\nend\nhalt") + "call 0", [("control", 4, 2)]),
        (load("loop 2\nloop 2\nloop 2\nhalt") + "call 0", [("control", 4, 2)]),
        (load("movu ur1, 0\nloop ur1\nhalt") + "call 0", [("control", 3, 1)]),
        (load("loop ur1\nhalt") + "call 0", [("uniform", 2, 1)]),
        (load("load.code 0, 1\nload.lookup 0, 1\nfence\nreturn") + "call 0", [("control", 2, 0), ("control", 3, 1)]),
        (load("fence\nfence", 30) + "call 30\nfence", [("control", 4, 32)]),
        (load("loop 2\nfence\nfence", 29) + "call 29\nend", [("control", 5, 32), ("control", 6, 0)]),
        # An operation of a kernel's control that cannot be decoded ends it too; others do not.
        (load(f"word {Operation.RETURN | 1 << 99}\nhalt") + "call 0", [("opcode", 2, 0)]),
        (load(f"word {Operation.LOOP}\nhalt") + "call 0", [("opcode", 2, 0)]),
        (
            load(f"word {Operation.MOV | 1 << 60}\nword 0\nfence\nreturn") + "call 0",
            [("opcode", 2, 0), ("opcode", 3, 0)],
        ),
        (load("add r16, r1, r2\nadd r1, r2, ur6\nfence\nreturn") + "call 0", [("register", 2, 16), ("uniform", 3, 6)]),
        # A load without words takes none.
        (f"word {Operation.LOAD}\nfence\nreturn", [("opcode", 0, 0), ("control", 2, 0)]),
        (f"word {instruction_word(Operation.LOAD, n=1) | 1 << 40}\nreturn", [("opcode", 0, 0), ("control", 1, 0)]),
    ],
)
def test_errors_of_control(pe, text, faults):
    assert run(pe, text) == faults
    assert pe.halts == 0 and not pe.kernels.active
    assert (pe.registers[:, 1] == 100 + np.arange(6)).all()


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("add r16, r17, r18", [("register", 0, 16)]),
        ("add r1, r17, r18", [("register", 0, 17)]),
        ("add r1, r2, r18", [("register", 0, 18)]),
        ("fma r1, r2, r18, r17", [("register", 0, 18)]),
        ("mad r1, r2, r3, r19", [("register", 0, 19)]),
        ("lt p7, r16, r2", [("register", 0, 16)]),
        ("mov r1, ur8", [("uniform", 0, 8)]),
        ("mov r16, ur7", [("uniform", 0, 7)]),
        (f"word {instruction_word(Operation.ARITH, function=Function.EQ, rd=8)}", [("opcode", 0, 0)]),
        (f"word {instruction_word(Operation.ARITH, function=Function.ADD, b=3)}", [("opcode", 0, 0)]),
        (f"word {instruction_word(Operation.ARITH, function=Function.ADD, part=1)}", [("opcode", 0, 0)]),
        (f"word {instruction_word(Operation.ARITH, function=Function.XH, part=2)}", [("opcode", 0, 0)]),
        (f"word {instruction_word(Operation.ARITH, function=Function.ADD, rc=1)}", [("opcode", 0, 0)]),
        (f"word {instruction_word(Operation.ARITH, function=Function.ADD, ps=1)}", [("opcode", 0, 0)]),
        (f"word {instruction_word(Operation.ARITH, function=Function.MOV, ra=1)}", [("opcode", 0, 0)]),
        (f"word {instruction_word(Operation.ARITH, function=Function.FSQRT, b=Operand.IMMEDIATE)}", [("opcode", 0, 0)]),
        (f"word {instruction_word(Operation.ARITH, function=Function.ADD, imm=1)}", [("opcode", 0, 0)]),
        (f"word {instruction_word(Operation.ARITH, function=Function.ADD, b=1, rb=1)}", [("opcode", 0, 0)]),
        (f"word {instruction_word(Operation.ARITH, function=Function.ADD, b=2, imm=1)}", [("opcode", 0, 0)]),
        (f"word {instruction_word(Operation.ARITH, function=55)}", [("opcode", 0, 0)]),
    ],
)
def test_errors_of_arithmetic(pe, text, faults):
    test_errors_of_control(pe, text, faults)


def test_missing_units(pe):
    pe.sizes = PeSizes(**vars(SIZES) | {"units": ("alu", "lookup")})
    text = "fadd r1, r99, r2\ndivu r1, r2, ur77\nfeq p1, r2, r3\nadd r2, r2, 1\nlookup.0 r3, r2, 0"
    wanted = [
        ("unsupported", number, function)
        for number, function in enumerate((Function.FADD, Function.DIVU, Function.FEQ))
    ]
    assert run(pe, text) == wanted
    pe.sizes, pe.faults[:] = PeSizes(**vars(SIZES) | {"units": ()}), []
    text = "call 99\nreturn\nloop ur99\nend\nload.code 99, 1\nload.lookup 1, 1\nadd r1, r1, r99\nmov r1, 1"
    assert run(pe, text) == [("unsupported", number, 0) for number in range(5, 12)]


@pytest.mark.parametrize(
    ("units", "error", "sentence"),
    [
        (("div",), ValueError, r"^units without alu, which the others need: \('div',\)$"),
        (("alu", "fpu"), ValueError, r"^units must be some of alu, div, f32, lookup, not \('alu', 'fpu'\)$"),
        ("alu", TypeError, r"^units must be a list or tuple, not 'alu'$"),
    ],
)
def test_wrong_units(units, error, sentence):
    with pytest.raises(error, match=sentence):
        PeSizes(units=units)
    with pytest.raises(ValueError, match=r"^lookup_words must be a power of two, not 500$"):
        PeSizes(lookup_words=500)


def test_words_of_refused_loads_are_dropped(pe):
    assert run(pe, "load.code 31, 2\nreturn\nreturn\nload.lookup 0, 2\nword 1\nword 2") == [("control", 0, 0)]
    assert pe.kernels.code == [None] * 32 and pe.number == 2
    assert pe.kernels.lookup.tolist() == [1, 0, 0, 0, 2, *[0] * 11]
    assert pe.kernels.lookup_open.tolist() == [False] * 8 + [True] * 8
    pe.stopped = True
    pe.run(assemble_program("load.code 0, 1\nreturn"))
    assert pe.kernels.code[0] is None and pe.faults[-1].code == PeError.STOPPED and pe.number == 3
    pe.run([Operation.LOAD, instruction_word(Operation.FENCE)])
    assert pe.number == 5


def test_a_kernel_that_waits_goes_on_with_the_same_call(pe):
    pe.write_segment(1, Segment(SegmentElement.U8, (16, 4), (4, 2), paged=True, first_entry=1).pack())
    pe.write_page(1, PAGE_ENTRY.pack(address=0, valid=1))
    Barrier(pending=1, expected=1).write(pe.smem, BARRIER)
    kernel = "loop 2\nadd r1, r1, 1\nbar.wait 0x80, 0\nend\nmovu ur1, 1\nld r2, ur1:rf0:0, 1\nreturn"
    run(pe, load(kernel, 8))
    pe.registers[:, 1] = 0
    call, other = assemble_program("call 8\ncall 9")
    for _ in range(2):
        with pytest.raises(BarrierNotCompleteError):
            pe.execute(call)
        assert pe.kernels.index == 10 and pe.number == 4 and (pe.registers[:, 1] == 1).all()
    with pytest.raises(ValueError, match=r"^a kernel waits at index 10: its call must be executed again, not 0x"):
        pe.execute(other)
    Barrier(pending=1, expected=1, phase=1).write(pe.smem, BARRIER)
    with pytest.raises(PageNotLoadedError):
        pe.execute(call)
    pe.write_page(1, PAGE_ENTRY.pack(address=0, valid=1, loaded=1, on_chip=1))
    assert pe.execute(call) is None
    assert (pe.registers[:, 1] == 2).all() and (pe.registers[:, 2] == 0x23222120).all()
    assert pe.number == 2 + 7 + 3
    assert pe.execute(call) is None


def test_a_stopped_engine_ends_kernels(pe):
    Barrier(pending=1, expected=1).write(pe.smem, BARRIER)
    run(pe, load("fence\nbar.wait 0x80, 0\nreturn"))
    call = instruction_word(Operation.CALL)
    with pytest.raises(BarrierNotCompleteError):
        pe.execute(call)
    pe.stopped = True
    last = SIZES.threads - 1
    assert pe.execute(call) == Fault(PeError.STOPPED, 3, 0, last, 0)
    assert not pe.kernels.active and pe.number == 4
    assert pe.execute(call) == Fault(PeError.STOPPED, 4, 0, last, 0)
    assert pe.number == 5 and not pe.kernels.active


def test_the_first_fault_of_a_kernel_is_returned(pe):
    run(pe, load("add r16, r1, r1\nadd r1, r1, ur7\nreturn"))
    assert pe.execute(instruction_word(Operation.CALL)).code == PeError.REGISTER
    assert [fault.code for fault in pe.faults] == [PeError.REGISTER, PeError.UNIFORM]


@pytest.mark.parametrize(
    ("element", "wanted"),
    [("s8", [0xFFFFFF80, 0x7F, 0, 0]), ("u8", [0x80, 0x7F, 0, 0]), ("s16", [0xFFFF8001, 0x7FFF, 0, 0]),
     ("u16", [0x8001, 0x7FFF, 0, 0]), ("f16", [0x8001, 0x7FFF, 0, 0]), ("bf16", [0x8001, 0x7FFF, 0, 0]),
     ("s32", [0x80000001, 5, 0, 0]), ("f32", [0x80000001, 5, 0, 0])],
)  # fmt: skip
def test_single_elements(pe, element, wanted):
    """The last two elements, extended, and 0 for those outside; there and back."""
    kind = SegmentElement[element.upper()]
    raw = {1: [0x80, 0x7F], 2: [0x8001, 0x7FFF], 4: [0x80000001, 5]}[kind.bytes]
    data = np.array(raw, f"<u{kind.bytes}").view(np.uint8)
    pe.smem[3 * kind.bytes : 5 * kind.bytes] = data
    pe.write_segment(1, Segment(kind, (5,), (4,)).pack())
    pe.registers[:, 1] = 3
    assert run(pe, "movu ur1, 1\nld.e r2, ur1:rf1:0, 4") == []
    assert (pe.registers[:, 2:6] == wanted).all()
    pe.smem[:] = 0xEE
    assert run(pe, "st.e r2, ur1:rf1:0, 4\nmov r1, 1\nst.e r3, ur1:rf1:0, 1") == []
    assert pe.smem[3 * kind.bytes : 5 * kind.bytes].tolist() == data.tolist()
    second = data[kind.bytes :].tolist()
    assert pe.smem[: 3 * kind.bytes].tolist() == [*[0xEE] * kind.bytes, *second, *[0xEE] * kind.bytes]
    assert (pe.smem[5 * kind.bytes :] == 0xEE).all()


def test_what_is_open(pe):
    marks, predicates = pe.open.registers, pe.open.predicates
    marks[2, 3] = True
    run(pe, "add r4, r1, r3\nadd r5, r1, 7\nlt p1, r3, r4\nsel r6, p1, r1, r2\nshfl.0 r7, r3\n@p1, mov r8, r2")
    # Registers of thread 2, but of thread 3 after the exchange.
    assert [np.flatnonzero(marks[:, register]).tolist() for register in range(4, 9)] == [[2], [], [2], [3], [2]]
    assert np.flatnonzero(predicates[1]).tolist() == [2]
    run(pe, "pand p2, p1, p0\npand p3, p0, p0\nmov r4, 0\neq p1, r1, r1")
    assert np.flatnonzero(predicates[2]).tolist() == [2] and not predicates[3].any()
    assert not marks[:, 4].any() and not predicates[1].any()
    run(pe, "load.lookup 0, 1\nword 9\nmov r1, tid\nlookup.0 r9, r1, 0\nlookb.0 r10, r1, 16, r2")
    assert np.flatnonzero(marks[:, 9]).tolist() == np.flatnonzero(marks[:, 10]).tolist() == [4, 5]
    assert pe.open.memory.undecided is None
    run(pe, "call 0")
    assert pe.open.memory.undecided == "what instruction 15 is depends on what is open"


def test_single_elements_that_are_open(pe):
    pe.write_segment(1, Segment(SegmentElement.S8, (16, 4), (4, 2)).pack())
    pe.open.memory.spoil(np.array([2]))
    pe.registers[:, 1] = 0
    run(pe, "movu ur1, 1\nld.e r2, ur1:rf0:0, 4\nld r6, ur1:rf0:0, 1\nst.e r4, ur1:rf0:8, 1\nst.e r2, ur1:rf0:2, 1")
    assert pe.open.registers[:, 2:7].tolist() == [[False, False, True, False, True]] * 6
    assert np.flatnonzero(pe.open.memory.at(np.arange(16))).tolist() == [8]
