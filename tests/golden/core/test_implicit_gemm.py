"""Convolutions as products of matrices: plans that fit, results, and refusals."""

from itertools import pairwise

import ml_dtypes
import numpy as np
import pytest

from tilewright import golden
from tilewright.golden.core.implicit_plan import plan_implicit
from tilewright.golden.dot_product import mm_type
from tilewright.spec import Opcode
from tilewright.spec.core import PROGRAM_WORDS, Kind
from tilewright.spec.tmau import COMMAND

MACHINES = {
    "unit": (golden.PeSizes(threads=4, regs=32, segments=8, pages=32), 16 * 1024),
    "ecp5": (golden.PeSizes(threads=8, regs=128, segments=8, pages=64), 32 * 1024),
    "default": (golden.PeSizes(threads=16, regs=320, segments=16, pages=256), 128 * 1024),
}


def shape_of(size, out_channels, kernel, element_bytes=1):
    return golden.ConvShape.of(size, out_channels, kernel, element_bytes=element_bytes, result_bytes=4)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("kind", ["s8s8", "f16"])
def test_plans_fit(machine, kind):
    sizes, smem_bytes = MACHINES[machine]
    rng = np.random.default_rng(4)
    element_bytes = mm_type(kind).bytes
    planned = 0
    for _ in range(30):
        channels = 16 // element_bytes * int(rng.integers(1, 20))
        kernel = tuple(rng.integers(1, 4, 2).tolist())
        size = (1, *(rng.integers(4, 30, 2)).tolist(), channels)
        shape = shape_of(size, int(rng.integers(1, 200)), kernel, element_bytes)
        try:
            plan = plan_implicit(shape, mm_type(kind), sizes, smem_bytes)
        except ValueError as error:
            if "hold no part of the kernel" in str(error):
                continue
            raise
        planned += 1
        assert plan.gemm.m * plan.tiles >= shape.points > plan.gemm.m * (plan.tiles - 1)
        assert plan.gemm.n * plan.parts >= shape.out_channels > plan.gemm.n * (plan.parts - 1)
        assert plan.gemm.k * element_bytes == shape.taps * plan.blocks * plan.row_bytes
        pages = [page for number in (*plan.a, plan.b, *plan.c) for page in plan.pages(number)]
        assert len(pages) == len(set(pages)) == len(plan.placement.entries)
    assert planned > 10


@pytest.mark.parametrize(
    ("size", "out_channels", "kernel", "chosen"),
    [
        ((1, 8, 8, 64), 64, (3, 3), {"parts": 1, "row_bytes": 64, "blocks": 1}),
        ((1, 8, 8, 48), 64, (3, 3), {"parts": 1, "row_bytes": 16, "blocks": 3}),  # no zeros among 48
        ((1, 8, 8, 256), 512, (1, 1), {"parts": 2, "row_bytes": 128, "blocks": 2}),
    ],
)
def test_choice(size, out_channels, kernel, chosen):
    plan = plan_implicit(shape_of(size, out_channels, kernel), mm_type("s8"), *MACHINES["default"])
    assert {name: getattr(plan, name) for name in chosen} == chosen


SMALL = golden.PeSizes(threads=4, regs=32, segments=8, pages=32)
SMALL_BYTES = 16 * 1024

#: N, H, W, C; Co, Kh, Kw; further options.
LAYERS = {
    "3x3": ((1, 6, 7, 16), (8, 3, 3), {"padding": (1, 1, 1, 1)}),
    "1x1": ((1, 5, 5, 32), (20, 1, 1), {}),
    "1x1, stride 2": ((1, 7, 6, 32), (8, 1, 1), {"stride": (2, 2)}),
    "stride": ((1, 9, 8, 16), (8, 3, 3), {"stride": (2, 3), "padding": (1, 1, 0, 1)}),
    "dilation": ((1, 9, 10, 16), (8, 3, 3), {"dilation": (2, 3), "padding": (2, 1, 3, 2)}),
    "only rows padded": ((1, 4, 4, 16), (4, 3, 1), {"padding": (2, 2, 0, 0)}),
    "images, ragged tiles": ((3, 6, 8, 32), (16, 2, 2), {}),
    "channels of 48 bytes": ((1, 5, 5, 48), (8, 2, 2), {}),
    "channels filled up": ((1, 4, 4, 112), (4, 3, 1), {}),
    "odd output channels": ((1, 4, 6, 16), (5, 3, 3), {"padding": (1, 1, 1, 1)}),
    "parts of the kernel": ((1, 2, 2, 48), (40, 3, 3), {"padding": (1, 1, 1, 1)}),
    "one point": ((1, 3, 3, 16), (4, 3, 3), {}),
}


def draw(x_shape, kernel, dtypes=(np.int8, np.int8)):
    """Operands that use their whole range."""
    rng = np.random.default_rng(7)
    return (
        rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, shape, dtype, endpoint=True)
        for shape, dtype in zip((x_shape, (*kernel, x_shape[3])), dtypes, strict=True)
    )


@pytest.mark.parametrize("name", LAYERS)
def test_equals_the_convolution_engine(name):
    x_shape, kernel, options = LAYERS[name]
    x, k = draw(x_shape, kernel)
    layer = golden.ImplicitGemm(x, k, "s8s8", sizes=SMALL, smem_bytes=SMALL_BYTES, **options)
    assert (layer.run() == golden.convolve(x, k, "s8s8", **options)).all()
    if name == "images, ragged tiles":
        assert layer.plan.tiles > 1 and layer.shape.points % layer.plan.gemm.m
    assert (layer.plan.parts > 1) == (name == "parts of the kernel")
    if name == "channels filled up":
        assert layer.plan.blocks * layer.plan.row_bytes > x_shape[3]


@pytest.mark.parametrize(
    ("kind", "dtypes"),
    [("u8s8", (np.uint8, np.int8)), ("u8u8", (np.uint8, np.uint8)), ("s16u16", (np.int16, np.uint16))],
)
def test_integers(kind, dtypes):
    x, k = draw((1, 5, 6, 16), (8, 3, 3), dtypes)
    layer = golden.ImplicitGemm(x, k, kind, padding=(1, 1, 1, 1), sizes=SMALL, smem_bytes=SMALL_BYTES)
    assert (layer.run() == golden.convolve(x, k, kind, padding=(1, 1, 1, 1))).all()


@pytest.mark.parametrize(("kind", "dtype"), [("f16", np.float16), ("bf16", ml_dtypes.bfloat16)])
def test_floats_round_once_for_each_mm(kind, dtype):
    rng = np.random.default_rng(3)
    x = rng.standard_normal((1, 4, 5, 16)).astype(dtype)
    k = rng.standard_normal((8, 2, 2, 16)).astype(dtype)
    layer = golden.ImplicitGemm(x, k, kind, sizes=SMALL, smem_bytes=SMALL_BYTES)
    sums = np.zeros((3, 4, 8), np.uint32)
    for row, column, first in np.ndindex(2, 2, 16 // 4):
        part = np.s_[4 * first : 4 * first + 4]
        pixels = x[0, row : row + 3, column : column + 4, None, part].view(np.uint16)
        sums = golden.dot(sums, pixels, k[None, None, :, row, column, part].view(np.uint16), mm_type(kind))
    assert layer.run().dtype == np.float32
    assert (layer.run()[0].view(np.uint32) == sums).all()


def test_commands_are_between_instructions():
    """The next tile's loads, and the stores of the one before, are handed over while a product runs."""
    x, k = draw((1, 8, 8, 16), (8, 3, 3))
    layer = golden.ImplicitGemm(x, k, "s8s8", padding=(1, 1, 1, 1), sizes=SMALL, smem_bytes=SMALL_BYTES)
    assert layer.plan.tiles > 1
    kinds = [Kind(word >> PROGRAM_WORDS[Kind.END]["kind"].lsb) for word in layer.words]
    products = [index for index, kind in enumerate(kinds) if kind == Kind.PE]
    between = kinds[products[0] : products[-1]]
    assert between.count(Kind.WAIT_ALL) == layer.plan.tiles - 1
    loads = 9 * (layer.plan.tiles - 1)
    assert between.count(Kind.TMAU) == loads + layer.plan.tiles - 1
    for before, after in pairwise(products):
        assert Kind.TMAU in kinds[before:after] or Kind.WAIT_ALL in kinds[before:after]


def test_the_kernel_is_loaded_once(monkeypatch):
    x, k = draw((1, 8, 8, 16), (8, 3, 3))
    layer = golden.ImplicitGemm(x, k, "s8s8", padding=(1, 1, 1, 1), sizes=SMALL, smem_bytes=SMALL_BYTES)
    loads = []
    execute = golden.Machine.execute

    def counted(machine, word):
        command = COMMAND.unpack(word)
        loads.append(command["descriptor"] if command["opcode"] == Opcode.LOAD else None)
        return execute(machine, word)

    monkeypatch.setattr(golden.Machine, "execute", counted)
    layer.run()
    counts = sorted(loads.count(descriptor) for descriptor in set(loads) - {None})
    assert counts == [2, 9 * layer.plan.tiles]  # 144 bytes of K: two pages


@pytest.mark.parametrize(
    ("x", "k", "options", "message"),
    [
        (np.zeros((1, 4, 4, 8), np.int8), np.zeros((4, 3, 3, 8), np.int8), {},
         "channels of a pixel must be a multiple of 16 bytes, not 8"),
        (np.zeros((1, 4, 4, 16), np.int8), np.zeros((4, 3, 3, 32), np.int8), {}, "16 channels of x, not 32"),
        (np.zeros((4, 4, 16), np.int8), np.zeros((4, 3, 3, 16), np.int8), {}, "x must have 4 dimensions"),
        (np.zeros((1, 2, 2, 16), np.int8), np.zeros((4, 3, 3, 16), np.int8), {}, "does not fit 2 x 2"),
        (np.zeros((1, 16, 16, 512), np.int8), np.zeros((4, 3, 3, 512), np.int8), {}, "16384 bytes of shared memory"),
        (np.zeros((1, 20, 20, 16), np.int8), np.zeros((4, 3, 3, 16), np.int8), {"stride": (9, 9)}, "traversal"),
    ],
)  # fmt: skip
def test_refusals(x, k, options, message):
    with pytest.raises(ValueError, match=message):
        golden.ImplicitGemm(x, k, "s8s8", sizes=SMALL, smem_bytes=SMALL_BYTES, **options)


def test_operands_of_another_type_are_refused():
    with pytest.raises(TypeError, match="k must be an array of int8"):
        golden.ImplicitGemm(np.zeros((1, 4, 4, 16), np.int8), np.zeros((4, 3, 3, 16), np.int16), "s8s8")


def test_a_layer_on_the_convolution_engine_as_a_program():
    x, k = draw((2, 6, 7, 16), (5, 3, 3))
    params = golden.ConvParams()
    layer = golden.ConvLayer(x, k, "s8s8", padding=(1, 1, 1, 1), params=params)
    program = golden.LayerProgram(layer)
    core = golden.Core(golden.GlobalMemory(program.memory.copy()), np.zeros(len(layer.smem), np.uint8), conv=params)
    assert core.run(program.address, len(program.words)) is None and core.interrupts == 1
    assert (layer.result(core.gmem.data) == golden.convolve(x, k, "s8s8", padding=(1, 1, 1, 1))).all()
    with pytest.raises(ValueError, match=f"smem_bytes must be {len(layer.smem)} or more for this layer, not 128"):
        golden.LayerProgram(layer, 128)
