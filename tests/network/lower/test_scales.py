"""Tables as sums of products with one number."""

import numpy as np
import pytest

from tilewright.network.lower.scales import steps_of


def table(dtype, made, scale, x_zero, y_zero):
    x = np.arange(256).astype(np.uint8).view(dtype).astype(np.float32)
    limits = np.iinfo(made)
    return np.clip(np.rint((x - np.float32(x_zero)) * np.float32(scale)) + y_zero, limits.min, limits.max).astype(made)


def play(wanted, dtype):
    """The results of the steps of a table, none of which may leave the type; and how many there are."""
    results, limits, steps = 0, np.iinfo(wanted.dtype), steps_of(wanted, np.dtype(dtype))
    for step in steps:
        product = table(dtype, wanted.dtype, np.uint32(step.scale).view(np.float32), step.x_zero, step.y_zero)
        for number in (step.y_zero, step.minimum, step.maximum):
            assert limits.min <= number <= limits.max
        results = results + step.times * np.clip(product, step.minimum, step.maximum).astype(int)
        assert limits.min <= results.min() <= results.max() <= limits.max
    np.testing.assert_array_equal(results, wanted)
    return len(steps)


@pytest.mark.parametrize("made", [np.uint8, np.int8])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_a_product_is_found(dtype, made):
    rng = np.random.default_rng(1)
    low, high = np.iinfo(dtype).min, np.iinfo(made).min
    for scale in [1.0, 0.5, 2.0, 0.003, 100.0, *rng.random(40) * 3]:
        zeros = int(rng.integers(low, low + 256)), int(rng.integers(high, high + 256))
        wanted = table(dtype, made, scale, *zeros)
        assert play(wanted, dtype) == 1


@pytest.mark.parametrize(("low", "high"), [(60, 200), (0, 60), (20, 100)])
def test_a_product_with_a_clamp_is_found(low, high):
    for scale in (1.0, 0.3, 1.7):
        wanted = np.clip(table(np.uint8, np.uint8, scale, 40, 60), low, high)
        assert play(wanted, np.uint8) == 1


@pytest.mark.parametrize("made", [np.uint8, np.int8])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_a_table_that_almost_is_a_product_takes_few_steps(dtype, made):
    """Entries one off, and a run of them: two steps each, upwards or downwards, also beside ends of the type."""
    rng = np.random.default_rng(2)
    for scale in (0.3, 0.98, 1.7, -0.4):
        wanted = table(dtype, made, scale, *(3, 5) if made is np.int8 else (3, 130)).astype(int)
        sign, limits = (1 if scale > 0 else -1), np.iinfo(made)
        order = np.argsort(np.arange(256).astype(np.uint8).view(dtype))
        free = [place for place in range(10, 240) if limits.min < wanted[order[place]] < limits.max]
        first, second = sorted(rng.choice(len(free) - 4, 2, replace=False))
        wanted[order[free[first]]] += sign
        wanted[order[free[second] : free[second] + 3]] -= sign
        wanted = np.clip(wanted, limits.min, limits.max).astype(made)
        assert play(wanted, dtype) <= 5


@pytest.mark.parametrize("made", [np.uint8, np.int8])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_any_table_is_reached(dtype, made):
    rng = np.random.default_rng(3)
    drawn = [
        rng.integers(0, 256, 256),
        rng.permutation(256),
        np.arange(256) % 2 * 255,
        np.arange(256) // 128 * 255,
        np.arange(256) // 64 % 2 * 255,
    ]
    for entries in drawn:
        wanted = entries.astype(np.uint8).view(made)
        assert play(wanted, dtype) < 256


@pytest.mark.parametrize("made", [np.uint8, np.int8])
@pytest.mark.parametrize(("function", "most"), [
    (lambda x: np.where(x < 0, 0.1 * x, x), 3), (lambda x: 1 / (1 + np.exp(-x)), 25), (np.tanh, 25),
    (lambda x: x * np.clip(x / 6 + 0.5, 0, 1), 25), (np.abs, 4), (lambda x: -x * np.exp(-x * x), 40),
])  # fmt: skip
def test_functions_take_few_steps(function, most, made):
    """Each piece of a curve that is nearly straight is one; also where it falls, and rises again."""
    for low, high in ((-6.0, 6.0), (-1.3, 4.1), (-3.0, 0.2)):
        x = np.linspace(low, high, 256)
        y = function(x)
        limits = np.iinfo(made)
        wanted = np.rint((y - y.min()) / (y.max() - y.min()) * 255 + limits.min).astype(made)
        assert play(wanted, np.uint8) <= most
