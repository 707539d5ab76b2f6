"""Arithmetic and kernels against a second model, ``support.pe_scalar``: every function, and random programs."""

import random

import numpy as np
import pytest

from support.pe_scalar import ScalarPe, scalar
from tilewright.golden.pe.arithmetic import combine, compare, compute, lookup_index, replace_byte
from tilewright.golden.pe.checks import instruction_word
from tilewright.golden.pe.machine import Pe
from tilewright.golden.pe.sizes import PeSizes
from tilewright.spec.arithmetic import FUNCTIONS, Function, Operand
from tilewright.spec.pe import Operation, PeError
from tilewright.verify.random.pe_arithmetic import random_arithmetic, wrong_arithmetic
from tilewright.verify.random.pe_kernels import RandomKernels, load_entries

SEED = 56
#: Limits of bytes, halves and words, and of counts of shifts.
CORNERS = [
    0, 1, 2, 3, 7, 31, 32, 33, 127, 128, 129, 254, 255, 256, 1023, 1024, 0x7FFE, 0x7FFF, 0x8000, 0x8001, 0xFFFF,
    0x10000, 0x7FFFFFFE, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFF80, 0xFFFFFF7F, 0xFFFF8000,
    0xFFFF7FFF, 0x80808080, 0x7F7F7F7F, 0x80007FFF, 0x00FF00FF,
]  # fmt: skip
INTEGERS = [each for each, info in FUNCTIONS.items() if info.unit in ("alu", "div") and not info.selects]
INTEGERS.remove(Function.SHFL)


@pytest.mark.parametrize("function", INTEGERS)
def test_every_function_of_integers(function):
    rng = np.random.default_rng(SEED + function)
    pairs = np.array(np.meshgrid(CORNERS, CORNERS), np.uint64).reshape(2, -1)
    few = rng.integers(0, 1 << rng.integers(1, 33, (2, 1500)), dtype=np.uint64)
    a, b = np.concatenate([pairs, few], axis=1).astype(np.uint32)
    c = rng.choice(np.array(CORNERS, np.uint32), len(a)) + rng.integers(0, 2, len(a), np.uint32)
    info = FUNCTIONS[function]
    for part in range(info.parts):
        result = compare(function, a, b) if info.predicate else compute(function, a, b, c, part)
        wanted = [scalar(function, *map(int, each), part) for each in zip(a, b, c, strict=True)]
        assert result.dtype == (bool if info.predicate else np.uint32)
        assert result.tolist() == wanted, function


def test_functions_of_predicates_and_of_the_lookup_memory():
    p, q = np.array([[False, False, True, True], [False, True, False, True]])
    for function in (Function.PAND, Function.POR, Function.PXOR, Function.PANDN):
        assert combine(function, p, q).tolist() == [scalar(function, x, y) for x, y in zip(p, q, strict=True)]
    a, b = np.array([0x04030201, 0xFFFFFFFF], np.uint32), np.array([0xFFFFFFFF, 0x101], np.uint32)
    assert [lookup_index(a, b, part, 512).tolist() for part in range(4)] == [[0, 0], [1, 0], [2, 0], [3, 0]]
    assert replace_byte(a, b, 2).tolist() == [0x04FF0201, 0xFF01FFFF]


def test_results_by_hand():
    one = np.ones(1, np.uint32)

    def of(function, a, b=0, c=0, part=0):
        return int(compute(function, a * one, b % (1 << 32) * one, c * one, part)[0])

    assert of(Function.PACKB, 300, -300, 0x11112222, 1) == 0x807F2222
    assert of(Function.PACKBU, 300, -300, 0x11112222, 0) == 0x000000FF
    assert of(Function.PACKHU, 70000, 5) == 0x0005FFFF
    assert of(Function.DP4, 0xFF020304, 0x01010101, 10, 0) == 10 - 1 + 2 + 3 + 4
    assert of(Function.DP4, 0xFF020304, 0x01010101, 10, 2) == 10 + 255 + 2 + 3 + 4
    assert of(Function.DIV, (-7) % (1 << 32), 2) == (-3) % (1 << 32)
    assert of(Function.REM, (-7) % (1 << 32), 2) == (-1) % (1 << 32)
    assert of(Function.QDIV, 255, 1000, 256) == (255 * 256 + 500) // 1000
    assert of(Function.QDIV, 255, 1, 1023) == of(Function.QDIV, 1, 0, 1) == 1023
    assert of(Function.XB, 0x80000000, 128, part=3) == 0
    assert of(Function.FMUL, 0x40000000, 0x3F000000) == 0x3F800000


def machine(rng, sizes):
    pe = Pe(np.zeros(256, np.uint8), sizes)
    values = np.random.default_rng(rng.getrandbits(32))
    kinds = values.integers(0, 4, pe.registers.shape)
    numbers = np.stack([
        values.integers(0, 1 << 32, kinds.shape, np.uint32), values.integers(0, 256, kinds.shape, np.uint32),
        values.standard_normal(kinds.shape, np.float32).view(np.uint32),
        values.choice(np.array(CORNERS, np.uint32), kinds.shape),
    ])  # fmt: skip
    pe.registers[:] = np.take_along_axis(numbers, kinds[np.newaxis], 0)[0]
    pe.predicates[:] = values.random(pe.predicates.shape) < 0.6
    pe.uniform[1:5] = values.integers(0, 1 << 32, 4).tolist()
    return pe


def agree(pe, other):
    assert pe.registers.tolist() == other.registers
    assert pe.predicates.T.tolist() == other.predicates
    assert pe.uniform == other.uniform
    assert [tuple(fault) for fault in pe.faults] == other.faults
    assert pe.number == other.number


@pytest.mark.parametrize("threads", [6, 16])
def test_random_instructions(threads):
    """All functions with operands of all kinds, in place too, and refused ones."""
    rng, seen, codes = random.Random(SEED), set(), set()
    pe = machine(rng, PeSizes(threads=threads, regs=12))
    other = ScalarPe(pe)
    entries = list(load_entries(rng, pe.sizes))
    words = [*entries]
    for _ in range(3000):
        word = random_arithmetic(rng, pe.sizes, 0, range(1, 5), clean=rng.random() < 0.5, entries=True)
        words.append(wrong_arithmetic(rng) if rng.random() < 0.1 else word)
        seen.add((word >> 16 & 255, word >> 24 & 3))
    pe.run(words)
    other.run(words)
    agree(pe, other)
    codes = {fault.code for fault in pe.faults}
    assert codes == {PeError.OPCODE, PeError.UNIFORM, PeError.REGISTER}
    with_b = {(function, b) for function, info in FUNCTIONS.items() for b in Operand if "b" in info.operands}
    assert len(seen & with_b) > 0.9 * len(with_b)


@pytest.mark.parametrize("units", [("alu", "div", "f32", "lookup"), ("alu", "div"), ("alu",), ()])
def test_random_kernels(units):
    """Loops, calls and loads, right and wrong ones; for an engine without a unit too."""
    rng, codes, longest = random.Random(SEED + len(units)), set(), 0
    for number in range(60):
        sizes = PeSizes(threads=4, regs=16, kernel_words=64, lookup_words=256, units=units)
        pe = machine(rng, sizes)
        clean = number % 3 == 0 and units

        def simple(pe=pe, clean=clean):
            return random_arithmetic(rng, pe.sizes, 0, range(1, 5), clean=clean, entries=True)

        kernels = RandomKernels(rng, sizes, simple, 6, clean)
        words = [kernels.count(), *kernels.setup()]
        words += load_entries(rng, sizes) if "lookup" in units or not clean else []
        for _ in range(8):
            wrong = [instruction_word(Operation.RETURN), instruction_word(Operation.END)]
            words += [kernels.count(), kernels.call(), *kernels.reload(), simple()]
            words += [] if clean else [*kernels.refused(), rng.choice(wrong)]
        other = ScalarPe(pe)
        pe.run(words)
        other.run(words)
        agree(pe, other)
        assert not pe.kernels.active and not pe.open.memory.undecided
        assert not (clean and pe.faults)
        codes |= {fault.code for fault in pe.faults}
        longest = max(longest, pe.number)
    missing = {PeError.UNSUPPORTED} if len(units) < 4 else set()
    assert codes - {PeError.OPCODE} == missing | (
        {PeError.CONTROL, PeError.UNIFORM, PeError.REGISTER} if units else set()
    )
    assert longest > 200 or not units
