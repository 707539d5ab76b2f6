"""Padding by class of operator: shapes, copies by the TMAU, neutral fills, and added bytes."""

import math
from itertools import product

import ml_dtypes
import numpy as np
import pytest

from tilewright.golden import GlobalMemory, align, unalign
from tilewright.golden.tmau.align import Operator, Padding
from tilewright.spec import Element

SEED = 20261121
SHAPES = [(1, 1, 1, 1), (3, 5, 3, 7), (2, 3, 5, 5), (3, 2, 3, 3), (2, 2, 2, 2), (5, 1, 7, 1), (1, 3, 17, 31)]
#: Padded shapes of (3, 5, 3, 7) with 2-byte elements and a granularity of 4, by hand.
SEED_TABLE = {
    "elementwise": (316,),
    "row": (4, 105),
    "column": (3, 106),
    "batch_norm_2d": (15, 22),
    "pool": (45, 8),
    "batch_norm_3d": (3, 6, 22),
}


def padded_by_numpy(array, alignment, value):
    view = array.reshape(alignment.view)
    widths = [(0, after - before) for before, after in zip(alignment.view, alignment.padded, strict=True)]
    return np.pad(view, widths, constant_values=value)


def copied(array, alignment):
    """The padded tensor that the TMAU's copy makes, and the tensor that its way back makes of that."""
    padding_memory = GlobalMemory(1 << 18)
    padding_memory.write(alignment.source.address, array)
    alignment.pad(padding_memory)
    count = math.prod(alignment.padded) * array.itemsize
    padded = padding_memory.read(alignment.target.address, count)
    stripping_memory = GlobalMemory(1 << 18)
    stripping_memory.write(alignment.target.address, padded)
    alignment.strip(stripping_memory)
    return padded.view(array.dtype).reshape(alignment.padded), stripping_memory.read(
        alignment.source.address, array.nbytes
    )


@pytest.mark.parametrize(("operator", "padded"), SEED_TABLE.items())
def test_padded_shapes_of_half_precision(operator, padded):
    alignment = align((3, 5, 3, 7), "f16", operator, 4)
    assert alignment.padded == padded
    assert alignment.strides == tuple(2 * math.prod(padded[d + 1 :]) for d in range(len(padded)))
    even = align((2, 4, 2, 6), "f16", operator, 4)
    assert even.padded == even.view
    assert even.added_bytes == 0


@pytest.mark.parametrize("operator", Operator)
@pytest.mark.parametrize(("dtype", "granularity"), [("u2", 4), ("u1", 16), ("u1", 4), ("u4", 16), ("u8", 4)])
def test_copies_pad_and_strip(operator, dtype, granularity):
    rng = np.random.default_rng(SEED)
    for shape, box_bytes in product(SHAPES, (16384, 64)):
        array = rng.integers(1, 255, shape).astype(dtype)
        element = Element[f"U{8 * array.itemsize}"]
        alignment = align(
            shape, element, operator, granularity, source=3 * array.itemsize, target=1 << 17, box_bytes=box_bytes
        )
        expected = padded_by_numpy(array, alignment, 0)
        padded, stripping_memory = copied(array, alignment)
        assert (padded == expected).all(), shape
        assert stripping_memory.tobytes() == array.tobytes(), shape
        assert (unalign(alignment, expected) == array).all()
        assert alignment.added_bytes == expected.nbytes - array.nbytes
        grown = [n for n, before in zip(alignment.padded, alignment.view, strict=True) if n != before]
        assert all(n * array.itemsize % granularity == 0 for n in grown)
        assert max(alignment.source.box) <= 256


def test_padding_every_dimension_costs_more():
    """Added bytes in the order of the table, and those of padding N, C, H and W."""
    added = {name: align((3, 5, 3, 7), "f16", name, 4).added_bytes for name in SEED_TABLE}
    everywhere = 2 * (4 * 6 * 4 * 8 - 3 * 5 * 3 * 7)
    assert list(added.values()) == [2, 210, 6, 30, 90, 162]
    assert max(added.values()) < everywhere == 906


def softmax(rows):
    powers = np.exp(rows - rows.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def test_minus_infinity_is_neutral_for_softmax_and_zero_is_not():
    array = np.random.default_rng(SEED).standard_normal((3, 5, 3, 7)).astype(np.float16)
    direct = softmax(array.reshape(3, -1).astype(np.float64))
    for padding, neutral in ((Padding.MINUS_INFINITY, True), (Padding.ZERO, False)):
        alignment = align(array.shape, "f16", "column", 4, padding=padding, source=2, target=4096)
        padded, _ = copied(array, alignment)
        result = softmax(padded.astype(np.float64))[:, : direct.shape[1]]
        assert np.allclose(result, direct, rtol=1e-12) == neutral
    alignment = align(array.shape, "f16", "row", 4, source=2, target=4096)
    assert (softmax(copied(array, alignment)[0].astype(np.float64))[:3] == direct).all(), "rows do not see each other"


@pytest.mark.parametrize(
    ("dtype", "element", "padding"),
    [
        (np.float16, "f16", "minus_infinity"), (np.float16, "f16", "lowest"), (ml_dtypes.bfloat16, "bf16", "lowest"),
        (ml_dtypes.float8_e4m3fn, "f8e4m3", "lowest"), (ml_dtypes.float8_e5m2, "f8e5m2", "minus_infinity"),
        (np.int8, "s8", "lowest"), (np.uint16, "u16", "lowest"),
    ],
)  # fmt: skip
def test_lowest_numbers_are_neutral_for_a_maximum(dtype, element, padding):
    array = -np.random.default_rng(SEED).integers(1, 99, (3, 5, 3, 7)).astype(np.int8)
    array = (array if np.dtype(dtype).kind != "u" else -array).astype(dtype)
    alignment = align(array.shape, element, "pool", 16, padding=padding, source=0, target=4096)
    padded, _ = copied(array, alignment)
    assert padded.shape[1] > 7
    assert (padded.astype(np.float32).max(axis=1) == array.reshape(-1, 7).astype(np.float32).max(axis=1)).all()


@pytest.mark.parametrize(
    ("dtype", "element"),
    [
        (np.float16, "f16"), (ml_dtypes.bfloat16, "bf16"), (np.float32, "f32"), (np.float32, "tf32"),
        (ml_dtypes.float8_e4m3fn, "f8e4m3"), (ml_dtypes.float8_e5m2, "f8e5m2"),
    ],
)  # fmt: skip
def test_lowest_floats_are_those_of_ml_dtypes(dtype, element):
    source = align((1, 1, 1, 3), element, "pool", 16, padding="lowest", target=4096).source
    lowest, *_ = np.array([source.fill_constant], np.uint32).view(dtype)
    assert lowest == ml_dtypes.finfo(dtype).min


def test_zero_is_neutral_for_sums():
    """Average pool, batch norm and fc add up elements, and divide by the number of elements of the tensor."""
    array = np.random.default_rng(SEED).integers(-99, 99, (3, 5, 3, 7), dtype=np.int16)
    for operator in ("column", "batch_norm_2d", "pool"):
        alignment = align(array.shape, "s16", operator, 4, target=4096)
        padded, _ = copied(array, alignment)
        assert (padded.sum(axis=1) == array.reshape(alignment.view).sum(axis=1)).all()
    padded, _ = copied(array, align(array.shape, "s16", "batch_norm_3d", 4, target=4096))
    assert (padded.sum(axis=(0, 2))[:5] == array.sum(axis=(0, 2, 3))).all()


@pytest.mark.parametrize(
    ("arguments", "changes", "sentence"),
    [
        (((1, 2, 3), "u8", "pool", 4), {}, r"shape must be N, C, H, W, each at least 1, not \(1, 2, 3\)"),
        (((1, 2, 3, 0), "u8", "pool", 4), {}, r"shape must be N, C, H, W, each at least 1, not \(1, 2, 3, 0\)"),
        (((1, 2, 3, 4), "u8", "fc", 4), {},
         "operator must be one of elementwise, row, column, batch_norm_2d, pool, batch_norm_3d, not 'fc'"),
        (((1, 2, 3, 4), "u8", "pool", 4), {"padding": "one"},
         "padding must be one of zero, lowest, minus_infinity, not 'one'"),
        (((1, 2, 3, 4), "u8", "pool", 4), {"box_bytes": 0}, "box_bytes must be 1 or more, not 0"),
        (((1, 2, 3, 4), "u8", "pool", 6), {}, "granularity must be a power of two, not 6"),
        (((1, 2, 3, 4), "u8", "pool", 4), {"target": 6},
         "target must be a multiple of the granularity 4, not 0x6"),
        (((1, 2, 3, 4), "u8", "pool", 4), {"padding": "minus_infinity"},
         "padding minus_infinity needs a type that has infinity, not u8"),
        (((1, 2, 3, 4), "f64", "pool", 16), {"padding": "lowest"},
         "padding lowest of f64 does not repeat every 4 bytes"),
    ],
)  # fmt: skip
def test_wrong_arguments(arguments, changes, sentence):
    with pytest.raises(ValueError, match=f"^{sentence}$"):
        align(*arguments, **changes)
