"""Exact arithmetic against definitions in fractions and in integers of any size, one element at a time."""

import math
from fractions import Fraction

import numpy as np
import pytest

from tilewright.golden.conv.results import requantise as requantise_by_integers
from tilewright.network import Add, Conv, Mul, Pool
from tilewright.network.arithmetic import (
    add,
    change_table,
    convolution_sums,
    convolve,
    fused,
    multiply,
    multiply_matrix,
    pool,
    quantise,
    requantise,
    sum_constants,
)

RNG = np.random.default_rng(1)


def to_float(value):
    """A fraction rounded once to binary32, to nearest even."""
    if value == 0:
        return np.float32(0)
    exponent = max(math.floor(math.log2(abs(value))) - 23, -149)
    while abs(value) / Fraction(2) ** exponent >= 2**24:
        exponent += 1
    return np.float32(float(round(value / Fraction(2) ** exponent) * Fraction(2) ** exponent))


def whole(value):
    """To an integer, nearest even."""
    return round(Fraction(float(value)))


def test_fused_rounds_once():
    a = RNG.integers(-255, 256, 3000)
    b = (RNG.normal(0, 1, 3000) * 10.0 ** RNG.integers(-6, 6, 3000)).astype(np.float32)
    c = (RNG.normal(0, 1, 3000) * 10.0 ** RNG.integers(-9, 9, 3000)).astype(np.float32)
    # Products that cancel all but a little, and ties that a second rounding would meet.
    c[:500] = -(a[:500] * b[:500].astype(np.float64)).astype(np.float32)
    b[500:900], c[500:900] = np.float32(2.0**-40), np.float32(1 + 2.0**-23) * (1 + (np.arange(400) % 3))
    b[900:950], c[900:950], a[900:950] = np.float32(2.0**-24), 1, np.arange(50) % 5
    got = fused(a, b, c)
    for i in range(len(a)):
        exact = int(a[i]) * Fraction(float(b[i])) + Fraction(float(c[i]))
        assert got[i] == to_float(exact), (a[i], b[i], c[i])


def test_requantise_is_that_of_the_convolution_engine():
    large, small = RNG.integers(-(2**31), 2**31, 40000), RNG.integers(-3000, 3000, 40000)
    acc = np.concatenate([large, small, [-(2**31), 2**31 - 1]]).astype(np.int32)
    for scale in (*np.float32(10.0) ** RNG.uniform(-12, 3, 12).astype(np.float32), np.float32(0.5), np.float32(1e-45)):
        for zero, low, high, dtype in ((0, 0, 255, "uint8"), (-7, -128, 127, "int8"), (130, 12, 200, "uint8")):
            bits = np.array([scale], np.float32).view(np.uint32)
            expected = requantise_by_integers(acc[:, np.newaxis], bits, zero, (low, high))[:, 0]
            np.testing.assert_array_equal(requantise(acc, scale, zero, low, high, dtype), expected)


@pytest.mark.parametrize("groups", [1, 2, 6])
def test_convolution(groups):
    x = RNG.integers(0, 256, (2, 6, 7, 8)).astype(np.uint8)
    node = Conv(
        weight=RNG.integers(-128, 128, (6, 6 // groups, 3, 2)).astype(np.int8), x_zero=77,
        w_zero=RNG.integers(-128, 128, 6).astype(np.int32),  # one for each channel
        bias=np.array([0, 2**31 - 1, -(2**31), 5, -5, 2**30], np.int32), scale=np.float32(RNG.uniform(1e-4, 1e-3, 6)),
        y_zero=100, stride=(2, 3), pad=(1, 0, 2, 1), dilation=(2, 1), groups=groups, minimum=20, maximum=230,
    )  # fmt: skip
    sums, results = convolution_sums(x, node), convolve(x, node, "uint8")
    assert sums.shape == results.shape == (2, 6, 3, 3)
    for n, co, ho, wo in np.ndindex(sums.shape):
        acc = int(node.bias[co])
        for ci, kh, kw in np.ndindex(node.weight.shape[1:]):
            h, w, c = ho * 2 - 1 + kh * 2, wo * 3 + kw, co // (6 // groups) * (6 // groups) + ci
            if 0 <= h < 7 and 0 <= w < 8:
                acc += (int(x[n, c, h, w]) - 77) * (int(node.weight[co, ci, kh, kw]) - int(node.w_zero[co]))
        acc = (acc + 2**31) % 2**32 - 2**31
        assert sums[n, co, ho, wo] == acc
        value = whole(to_float(Fraction(float(to_float(Fraction(acc)))) * Fraction(float(node.scale[co])))) + 100
        assert results[n, co, ho, wo] == min(max(value, 20), 230)


def test_sums_of_many_products_are_exact():
    length = 70000
    node = Conv(weight=np.full((1, length, 1, 1), -128, np.int8), x_zero=0, w_zero=np.int32([127]), bias=np.int32([1]),
                scale=np.float32([2.0**-24]), y_zero=0, minimum=-128, maximum=127, matrix=True)  # fmt: skip
    x = np.full((1, length), 255, np.uint8)
    acc = (255 * -255 * length + 1 + 2**31) % 2**32 - 2**31
    assert convolution_sums(x.reshape(1, length, 1, 1), node).item() == acc
    assert multiply_matrix(x, node, "int8").item() == whole(to_float(Fraction(float(np.float32(acc))) / 2**24))


def test_add():
    pairs = [(np.float32(scale), zero) for scale, zero in ((0.37, -12), (0.011, 99), (0.2, 5))]
    ratio, offset = sum_constants(*pairs)
    (sa, za), (sb, zb), (sy, zy) = ((Fraction(float(scale)), zero) for scale, zero in pairs)
    ra, rb = to_float(sa / sy), to_float(sb / sy)
    inner = to_float(Fraction(float(ra)) * za + Fraction(float(to_float(Fraction(float(rb)) * zb))))
    assert (*ratio, offset) == (ra, rb, to_float(zy - Fraction(float(inner))))
    a, b = (RNG.integers(-128, 128, 500).astype(np.int8) for _ in range(2))
    got = add(a, b, Add(ratio, offset, -100, 90), "int8")
    for i in range(500):
        inner = to_float(int(b[i]) * Fraction(float(rb)) + Fraction(float(offset)))
        value = whole(to_float(int(a[i]) * Fraction(float(ra)) + Fraction(float(inner))))
        assert got[i] == min(max(value, -100), 90)


def test_mul():
    a = np.arange(256, dtype=np.uint8)
    for factor, y_zero in ((0.0137, 120), (0.00625, 119)):  # the latter gives halves, next to an odd number
        node = Mul(b=-77, a_zero=10, b_zero=3, scale=np.float32(factor), y_zero=y_zero, minimum=0, maximum=255)
        products = [to_float((int(x) - 10) * -80 * Fraction(float(node.scale))) for x in a]
        expected = [whole(to_float(Fraction(float(product)) + y_zero)) for product in products]
        assert multiply(a, node, "uint8").tolist() == np.clip(expected, 0, 255).tolist()


def test_pools():
    x = RNG.integers(-128, 128, (1, 2, 5, 6)).astype(np.int8)
    windows = {"kernel": (2, 3), "stride": (2, 1), "pad": (1, 1, 0, 0), "dilation": (1, 2)}
    scale = np.float32(RNG.uniform(0.1, 0.3, (3, 3)))
    limits = {"minimum": -128, "maximum": 127}
    means = pool(x, Pool(kind="sum", **windows, x_zero=-3, scale=scale, y_zero=4, **limits), "int8")
    largest = pool(x, Pool(kind="max", **windows, **limits), "int8")
    for c, ho, wo in np.ndindex(2, 3, 3):
        places = [(ho * 2 - 1 + kh, wo - 1 + kw * 2) for kh, kw in np.ndindex(2, 3)]
        values = [int(x[0, c, h, w]) for h, w in places if 0 <= h < 5 and 0 <= w < 6]
        total = sum(value + 3 for value in values)
        expected = whole(to_float(total * Fraction(float(scale[ho, wo])))) + 4
        assert means[0, c, ho, wo] == min(max(expected, -128), 127)
        assert largest[0, c, ho, wo] == max(values)


def test_quantise():
    scale = np.float32(0.1)
    x = np.float32([0.05, 0.15, 0.25, -0.05, 0.35, 1e30, -1e30, np.inf, 12.75])
    expected = [whole(to_float(Fraction(float(v)) / Fraction(float(scale)))) + 3 if abs(v) < 1e9 else v for v in x]
    assert quantise(x, scale, 3, "uint8").tolist() == np.clip(expected, 0, 255).tolist()


def test_tables_are_indexed_by_bytes():
    table = change_table((np.float32(0.5), -128), "int8", (np.float32(1), 0), "uint8")
    assert table.dtype == np.uint8
    assert table[[0, 1, 127, 128, 129, 255]].tolist() == [64, 64, 128, 0, 0, 64]
