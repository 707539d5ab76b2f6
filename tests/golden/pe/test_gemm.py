"""Products as programs: results of all shapes, types and plans against numpy, and the order of instructions."""

from itertools import pairwise, product

import ml_dtypes
import numpy as np
import pytest

from tilewright.golden.dot_product import dot
from tilewright.golden.pe.gemm_plan import Gemm, Plan
from tilewright.golden.pe.program import gemm_of_shapes, gemm_program, laid_out
from tilewright.golden.pe.sizes import PeSizes
from tilewright.spec import Swizzle
from tilewright.spec.pe import INSTRUCTIONS, MmType, Operation

SHAPES = {
    "seed": ((3, 5, 20), (20, 2, 3, 4)),
    "only A": ((2, 2, 3, 9), (9, 7)),
    "only B": ((7, 33), (33, 3, 6)),
    "ones": ((1, 4, 1, 17), (17, 1, 5, 1)),
    "wider than the threads": ((2, 9, 24), (24, 2, 3, 19)),
}


@pytest.mark.parametrize("transpose", [0, 1])
@pytest.mark.parametrize(("ka", "kb"), [(1, 1), (2, 1), (3, 2), (1, 4)])
@pytest.mark.parametrize(("a_shape", "b_shape"), SHAPES.values(), ids=SHAPES)
def test_against_numpy(a_shape, b_shape, ka, kb, transpose):
    rng = np.random.default_rng([20261121, ka, kb, transpose])
    a, b = (rng.integers(-128, 128, shape).astype(np.int8) for shape in (a_shape, b_shape))
    expected = np.tensordot(a.astype(int), b.astype(int), 1)
    order = "columns" if ka > 1 else "k"
    program = gemm_program(a, b, MmType.S8S8, ka=ka, kb=kb, transpose=transpose, order=order, sizes=PeSizes(12, 48))
    assert program.shape == (*a_shape[:-1], *b_shape[1:])
    assert (program.run().view(np.int32) == expected).all()


def test_accumulated():
    rng = np.random.default_rng(20261121)
    a, b = rng.integers(0, 256, (3, 4, 10), np.uint8), rng.integers(0, 256, (10, 3, 5), np.uint8)
    c = rng.integers(0, 1 << 32, (3, 4, 3, 5), np.uint32)
    for transpose in (0, 1):
        program = gemm_program(a, b, MmType.U8U8, c=c, ka=2, transpose=transpose, sizes=PeSizes(12, 32))
        assert (program.run() == c + np.tensordot(a.astype(np.uint32), b.astype(np.uint32), 1)).all()


def test_k_is_the_last_dimension_in_memory_or_the_last_but_one():
    b = np.arange(24).reshape(2, 3, 4)  # k, n, y
    assert laid_out(b, 0).shape == (3, 4, 2)
    assert laid_out(b, 1).shape == (3, 2, 4)
    assert (laid_out(b, 0)[..., 1] == b[1]).all()
    assert (laid_out(b, 1)[:, 1] == b[1]).all()


SEED = 20261121
UNIT = PeSizes(threads=4, regs=32, segments=8, pages=32)
INTEGERS = [kind for kind in MmType if not kind.is_float]
FLOATS = {MmType.F16: np.float16, MmType.BF16: ml_dtypes.bfloat16}
MERGES = list(product(range(1, 5), range(1, 5)))


def operands(rng, kind, a_shape, b_shape):
    """A and B, and the product if it is one of integers."""
    if kind.is_float:
        a, b = (rng.standard_normal(shape).astype(FLOATS[kind]) for shape in (a_shape, b_shape))
        return a, b, None
    a, b = (
        rng.integers(0, 1 << 8 * kind.bytes, shape).astype(f"{'u' if kind & unsigned else 'i'}{kind.bytes}")
        for shape, unsigned in ((a_shape, 2), (b_shape, 1))
    )
    return a, b, np.tensordot(a.astype(np.int64), b.astype(np.int64), 1).astype(np.uint32)


def run(program, rng):
    """The result of the program on a machine with random registers."""
    pe = program.pe()
    pe.registers[:] = rng.integers(0, 1 << 32, pe.registers.shape, np.uint32)
    pe.predicates[:] = rng.integers(0, 2, pe.predicates.shape)
    pe.run(program.words)
    assert pe.faults == [] and pe.halts == 1
    return program.result(pe.smem)


def instructions(program, *operations):
    return [
        INSTRUCTIONS[word & 0xFF].unpack(word) | {"place": place}
        for place, word in enumerate(program.words)
        if word & 0xFF in operations
    ]


@pytest.mark.parametrize("transpose", [0, 1])
@pytest.mark.parametrize("order", ["k", "columns"])
def test_ragged_shapes(order, transpose):
    rng = np.random.default_rng([SEED, transpose, order == "k"])
    for _ in range(10):
        m, n, k = rng.integers(1, (40, 50, 70)).tolist()
        threads = int(rng.integers(4, 30))
        ka, kb = MERGES[rng.choice([i for i, (ka, kb) in enumerate(MERGES) if ka * kb <= threads])]
        sizes = PeSizes(threads, 2 * int(rng.integers(11, 80)), int(rng.integers(1, 3)))
        a, b, expected = operands(rng, MmType(rng.choice(INTEGERS)), (m, k), (k, n))
        kind = MmType({"int8": 0, "uint8": 2, "int16": 4, "uint16": 6}[a.dtype.name] + (b.dtype.kind == "u"))
        program = gemm_program(
            a, b, kind, sizes=sizes, ka=ka, kb=kb, transpose=transpose, order=order, depth=int(rng.integers(1, 6))
        )
        assert (run(program, rng) == expected).all(), (m, n, k, sizes, ka, kb)


@pytest.mark.parametrize(("ka", "kb"), MERGES)
def test_every_merge(ka, kb):
    rng = np.random.default_rng([SEED, ka, kb])
    for transpose in (0, 1):
        a, b, expected = operands(rng, MmType.S8U8, (13, 75), (75, 41))
        program = gemm_program(a, b, MmType.S8U8, ka=ka, kb=kb, transpose=transpose, sizes=PeSizes(18, 64))
        assert (run(program, rng) == expected).all()


@pytest.mark.parametrize("kind", INTEGERS)
def test_integer_types(kind):
    rng = np.random.default_rng([SEED, kind])
    a, b, expected = operands(rng, kind, (9, 30), (30, 11))
    assert (run(gemm_program(a, b, kind, sizes=UNIT), rng) == expected).all()


@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize(("kb", "factor_regs"), [(1, 2), (3, 2), (2, 1)])
def test_floats_round_once_an_issue_in_the_order_of_k(kind, kb, factor_regs):
    rng = np.random.default_rng([SEED, kind, kb])
    a, b, _ = operands(rng, kind, (11, 50), (50, 21))
    step = kb * 2 * factor_regs
    padded_a, padded_b = (np.zeros((count, -(-50 // step) * step), np.uint16) for count in (11, 21))
    padded_a[:, :50], padded_b[:, :50] = a.view(np.uint16), b.view(np.uint16).T
    expected = np.zeros((11, 21), np.uint32)
    for k in range(0, padded_a.shape[1], step):
        expected = dot(expected, padded_a[:, np.newaxis, k : k + step], padded_b[np.newaxis, :, k : k + step], kind)
    for order, depth, transpose in (("k", 1, 0), ("k", 3, 1), ("columns", 2, 0)):
        sizes = PeSizes(12, 40, factor_regs)
        program = gemm_program(a, b, kind, kb=kb, order=order, depth=depth, transpose=transpose, sizes=sizes)
        assert (run(program, rng) == expected).all()
    assert np.allclose(expected.view(np.float32), a.astype(np.float64) @ b.astype(np.float64), atol=1e-4)


@pytest.mark.parametrize("kind", [MmType.S16U16, MmType.F16])
def test_split_along_k(kind):
    rng = np.random.default_rng([SEED, kind])
    a, b, _ = operands(rng, kind, (7, 60), (60, 30))
    whole = run(gemm_program(a, b, kind, ka=2, kb=2), rng)
    c = None
    for part in (slice(0, 16), slice(16, 24), slice(24, 60)):
        c = run(gemm_program(a[:, part], b[part], kind, ka=2, kb=2, c=c), rng)
    assert (c == whole).all()


@pytest.mark.parametrize("transpose", [0, 1])
@pytest.mark.parametrize(("paged", "swizzle"), [(True, Swizzle.B128), (False, Swizzle.B64), (False, Swizzle.NONE)])
def test_operands_lie_anywhere(paged, swizzle, transpose):
    rng = np.random.default_rng([SEED, transpose])
    a, b, expected = operands(rng, MmType.U8U8, (20, 70), (70, 35))
    log2 = ((5, 2), (4, 3), (3, 4)) if paged else ((7, 5), (7, 7), (6, 5))
    program = gemm_program(
        a, b, MmType.U8U8, paged=paged, swizzle=swizzle, page_log2=log2, transpose=transpose, size_bytes=1 << 16
    )
    assert [segment.paged for segment in program.placement.segments[:3]] == [paged, paged, paged]
    assert (run(program, rng) == expected).all()


def test_256_cubed():
    rng = np.random.default_rng(SEED)
    a, b, expected = operands(rng, MmType.S8S8, (256, 256), (256, 256))
    program = gemm_program(a, b, MmType.S8S8, sizes=PeSizes(threads=256), size_bytes=1 << 19)
    assert (run(program, rng) == expected).all()


def visits(program):
    """(first column's accumulator, K) of every mm of a program with K in the immediates."""
    return [(mm["rc"], mm["imm"]) for mm in instructions(program, Operation.MM)]


def test_orders_of_the_seed():
    a, b, _ = operands(np.random.default_rng(SEED), MmType.S8S8, (16, 64), (64, 64))
    ks, blocks = range(0, 64, 8), range(0, 64, 16)
    outside = visits(gemm_program(a, b, MmType.S8S8, order="k", depth=1))
    assert outside == [(block, k) for k in ks for block in blocks]
    by_columns = visits(gemm_program(a, b, MmType.S8S8, order="columns"))
    assert by_columns == [(block, k) for block in blocks for k in ks]


@pytest.mark.parametrize("transpose", [0, 1])
def test_factors_are_loaded_while_others_multiply(transpose):
    a, b, _ = operands(np.random.default_rng(SEED), MmType.S8S8, (16, 128), (128, 256))
    program = gemm_program(a, b, MmType.S8S8, depth=2, transpose=transpose)
    multiplies = instructions(program, Operation.MM)
    parts = [multiplies[i : i + 32] for i in range(0, len(multiplies), 32)]
    factors = [{mm["ra"] for mm in part} for part in parts]
    assert factors[0].isdisjoint(factors[1])
    loads = instructions(program, Operation.LD)
    for before, (part, after) in enumerate(pairwise(parts)):
        register = min(mm["ra"] for mm in after)
        halfway, end = part[15]["place"], after[0]["place"]
        between = [ld for ld in loads if ld["rd"] in (register, register + 2) and halfway < ld["place"] < end]
        assert [(ld["rd"] - register, ld["n"]) for ld in between] == [(0, 2), (2, 2)], before
        assert any(between[0]["place"] < mm["place"] < between[1]["place"] for mm in part), "not together"
    # A part of K takes 32 multiplies, two loads, and two moves if K is not in the immediate.
    whole = parts[3][0]["place"], parts[4][0]["place"]
    assert whole[1] - whole[0] == 32 + 2 + 2 * transpose


@pytest.mark.parametrize("threads", [8, 16])
@pytest.mark.parametrize("ka", [1, *(pytest.param(ka, marks=pytest.mark.long) for ka in (2, 3)), 4])
@pytest.mark.parametrize("columns", [128, 112, 80, 16])
def test_few_blocks_take_turns(columns, ka, threads):
    a, b, _ = operands(np.random.default_rng(SEED), MmType.S8S8, (threads // ka, 512), (512, columns))
    program = gemm_program(a, b, MmType.S8S8, ka=ka, sizes=PeSizes(threads, 320), size_bytes=1 << 20)
    plan = Plan(program.gemm, program.sizes)
    groups = plan.take_turns(list(range(plan.slots)))
    least, most = min(map(len, groups)), max(map(len, groups))
    assert most <= 3
    if plan.products >= 16:
        assert most == 1
    elif plan.products >= 8:
        assert least >= min(2, plan.slots)
    # A part of K: group after group, in each issue after issue, in each block after block.
    part = plan.depth * plan.slots
    multiplies = instructions(program, Operation.MM)
    for begin in range(0, len(multiplies), part):
        issues = range(begin // plan.slots, min(begin // plan.slots + plan.depth, plan.steps))
        expected = [(slot * plan.products, issue * 8) for group in groups for issue in issues for slot in group]
        assert [(mm["rc"], mm["imm"]) for mm in multiplies[begin : begin + part]] == expected
    if least * plan.products >= 16:
        last = {}
        for number, mm in enumerate(multiplies):
            assert (number - last.get(mm["rc"], -16)) * plan.products >= 16
            last[mm["rc"]] = number


class Timing:
    """Approximate cycles in which the mm's of a program begin to multiply on hardware without other delays.

    Loads and columns of eight threads take a cycle; offset registers outside the last four sets take 12 more. At most
    four mm's overlap. The steps of a product are 15 apart.
    """

    def __init__(self, program, ranks=(2, 2, 2, 1)):
        self.begins, self._ends, self._products = [], [0] * 4, {}
        self._ranks, self._threads = ranks, program.sizes.threads
        self._fetched, self._sets = 0, []
        for fields in instructions(program, *Operation):
            operation = fields["opcode"]
            if operation in (Operation.LD, Operation.ST, Operation.MM):
                self._fetch(fields, operation == Operation.MM)
            if operation in (Operation.LD, Operation.MOV):
                self._write(range(fields["rd"], fields["rd"] + fields.get("n", 1)))

    def _fetch(self, fields, multiply):
        if multiply:
            self._fetched = max(self._fetched, self._ends[-4])
        offsets = fields["ur"], fields["rf"]
        self._fetched += -(-self._threads // 8) * (1 if multiply else fields["n"])
        if offsets not in self._sets:
            self._fetched += 12
            self._sets = [*self._sets, offsets][-4:]
        if multiply:
            begin = max(self._ends[-1], self._fetched, self._products.get(fields["rc"], 0))
            self._products[fields["rc"]] = begin + 15
            self._ends.append(begin + -(-self._threads // fields["ka"]))
            self.begins.append(begin)

    def _write(self, registers):
        self._sets = [
            (segment, first)
            for segment, first in self._sets
            if first + self._ranks[segment] <= registers.start or first >= registers.stop
        ]


@pytest.mark.parametrize(("threads", "merges"), [(16, [(1, 1), (2, 1), (1, 2), (2, 2)]), (8, [(1, 1), (1, 2)])])
@pytest.mark.parametrize("transpose", [0, 1])
def test_multipliers_are_kept_busy(threads, merges, transpose):
    for ka, kb in merges:
        a, b, _ = operands(np.random.default_rng(SEED), MmType.S8S8, (threads // (ka * kb), 1024), (1024, 16 * threads))
        program = gemm_program(
            a, b, MmType.S8S8, ka=ka, kb=kb, transpose=transpose, sizes=PeSizes(threads), size_bytes=1 << 20
        )
        begins = Timing(program).begins
        first, last = len(begins) // 8, len(begins) * 7 // 8
        assert (last - first) * (threads // ka) >= 0.99 * (begins[last] - begins[first]), (ka, kb)


def test_blocks_are_as_wide_as_registers_allow():
    def plan(columns, regs, **options):
        return Plan(Gemm((16,), (columns,), 64, MmType.S8S8, **options), PeSizes(16, regs))

    # Depth 8 would leave room for fewer blocks.
    assert (plan(256, 320).slots, plan(256, 320).depth) == (16, 6)
    assert (plan(256, 320, ka=2).slots, plan(256, 320, ka=2).depth) == (16, 8)
    assert (plan(10, 64).width, plan(10, 64).guarded) == (10, False)
    assert (plan(40, 22).width, plan(40, 22).guarded) == (10, True)
    assert (plan(40, 64, ka=3).width, plan(40, 64, ka=3).products) == (15, 5)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: gemm_program(np.ones((1, 1), np.uint16), np.ones((1, 1), np.int16), "u16s16",
                              sizes=PeSizes(types=("i8", "bf16"))),
         "the machine does not have the type u16s16: its types are i8, bf16"),
        (lambda: Plan(Gemm((1,), (1,), 1, MmType.S8S8, ka=3, kb=2), UNIT), "ka 3 times kb 2 is more than 4 threads"),
        (lambda: Plan(Gemm((1,), (1,), 1, MmType.S8S8), PeSizes(4, 12)), "12 registers are too few"),
        (lambda: Gemm((1,), (1,), 1, MmType.S8S8, order="n"), "order must be one of ('k', 'columns'), not 'n'"),
        (lambda: Gemm((1,), (1,), 1, MmType.S8S8, depth=0), "depth must be 1 or more, not 0"),
        (lambda: Gemm((1,), (1,), 0, MmType.S8S8), "k must be 1 or more, not 0"),
        (lambda: Gemm((1, 1, 1, 1), (1,), 1, MmType.S8S8), "rows must be 1 to 3 dimensions"),
        (lambda: gemm_program(np.zeros((64, 64), np.int8), np.zeros((64, 64), np.int8), "s8s8", size_bytes=1 << 14),
         "16384 bytes of shared memory do not hold all operands: split the product"),
        (lambda: gemm_of_shapes((2, 3), (4, 2), MmType.S8S8), "A has 3 elements along K, and B 4"),
    ],
)  # fmt: skip
def test_refusals(call, sentence):
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - compared below
        call()
    assert str(caught.value).startswith(sentence)
