"""Registers before the first write and open bytes: other results do not depend on them."""

import random

import numpy as np
import pytest

from tilewright.golden.pe.machine import Pe
from tilewright.golden.pe.segment import Segment
from tilewright.golden.pe.sizes import PeSizes
from tilewright.sim.asm.pe import assemble_program
from tilewright.spec.pe import SegmentElement

SIZES = PeSizes(threads=4, regs=32, segments=4, pages=8)
SMEM = 1024
#: Coordinates: 0 and 0 in registers 28 and 29, the thread and 0 in registers 30 and 31.
SETUP = ["mov r28, 0x0", "mov r29, 0x0", "mov r30, tid", "mov r31, 0x0", "movu ur0, 0", "movu ur1, 1"]


def engine(seed):
    """An engine with random registers, predicates and 64 open bytes."""
    rng = np.random.default_rng(seed)
    smem = np.arange(SMEM, dtype=np.uint32).astype(np.uint8)
    pe = Pe(smem, SIZES)
    pe.open.memory.spoil(np.arange(128, 192))
    smem[128:192] = rng.integers(0, 256, 64, np.uint8)
    pe.registers[:] = rng.integers(0, 1 << 32, pe.registers.shape, np.uint32)
    pe.predicates[:] = rng.integers(0, 2, pe.predicates.shape).astype(bool)
    pe.write_segment(0, Segment(SegmentElement.U32, (4, 32), (2, 5), base=0).pack())
    pe.write_segment(1, Segment(SegmentElement.S8, (16, 32), (4, 5), base=0).pack())
    return pe


def instruction(rng):
    first, predicate = rng.randrange(24), rng.randrange(1, 4)
    guard = rng.choice(["", "@p0, "])
    row = rng.choice([f"ur0:rf28:{rng.randrange(2):#x}", f"ur0:rf30:{rng.randrange(2):#x}"])
    return rng.choice([
        f"{guard}mov r{first}, {rng.randrange(9):#x}",
        f"@p{predicate}, mov r{first}, tid",
        f"setp.lt p{predicate}, r{first}, 0x7",
        f"{guard}ld r{first}, {row}, {rng.randrange(1, 3)}",
        f"{guard}st r{first}, {row}, 1",
        f"mm8 r{first % 8}, ur1:rf30:0x0, r{first % 8 + 10}" if rng.random() < 0.3 else "mov r30, tid",
    ])  # fmt: skip


@pytest.mark.parametrize("seed", range(30))
def test_other_values_do_not_depend_on_open_ones(seed):
    rng = random.Random(seed)
    program = assemble_program("\n".join(["setp.eq p0, tid, 0x1", *SETUP, *(instruction(rng) for _ in range(40))]))
    one, other = engine((seed, 1)), engine((seed, 2))
    for word in program:
        if one.open.memory.undecided:
            break
        one.execute(word)
        other.execute(word)
        assert one.faults == other.faults or one.open.memory.undecided
        if one.open.memory.undecided:
            break
        assert ((one.registers == other.registers) | one.open.registers).all()
        assert ((one.predicates == other.predicates) | one.open.predicates).all()
        assert not one.open.memory.wrong(other.smem).any()
    assert not one.open.registers[:, 30].any()


def run(*lines):
    pe = engine(1)
    pe.run(assemble_program("\n".join([*SETUP, *lines])))
    return pe


def test_bytes_stored_from_unset_registers_are_open():
    """Each thread stores at its own word of row 0; thread 1 has set the register."""
    pe = run("setp.eq p0, tid, 0x1", "@p0, mov r5, 0x3", "st r5, ur0:rf30:0x0, 1")
    assert np.flatnonzero(pe.open.memory.at(np.arange(16))).tolist() == [0, 1, 2, 3, *range(8, 16)]
    assert pe.open.memory.undecided is None


def test_bytes_that_threads_write_differently_are_open():
    pe = run("mov r5, tid", "mov r6, 0x7", "st r5, ur0:rf28:0x0, 1", "st r6, ur0:rf28:0x1, 1")
    assert np.flatnonzero(pe.open.memory.at(np.arange(16))).tolist() == [0], "tid differs in its low byte only"


def test_a_word_outside_does_not_depend_on_the_other_coordinate():
    """As products clear their accumulators."""
    pe = run("mov r4, 0x0", "ld r8, ur0:rf4:0x80000000, 1")
    assert pe.open.memory.undecided is None and not pe.open.registers[:, 8].any()
    assert (
        run("mov r4, 0x0", "ld r8, ur0:rf4:0x0, 1").open.memory.undecided
        == "what instruction 7 accesses depends on what is open"
    )


@pytest.mark.parametrize("line", ["@p3, st r30, ur0:rf30:0x0, 1", "ld r1, ur0:rf7:0x0, 1", "mm8 r0, ur1:rf7:0x0, r8"])
def test_an_access_that_is_open_leaves_everything_open(line):
    assert run(line).open.memory.undecided == "what instruction 6 accesses depends on what is open"
