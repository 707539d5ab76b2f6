"""Numbers that matter: of every kind that floating-point numbers have, checked by numpy's own."""

import numpy as np
import pytest

from tilewright.golden.spec import Element
from tilewright.sim.silicon.special_values import special_values


def numbers_of(element):
    """As float64, which holds them all exactly."""
    bits = special_values(element)
    if element == Element.F16:
        numbers = np.array(bits, np.uint16).view(np.float16)
    else:
        numbers = np.array([bit << 16 for bit in bits] if element == Element.BF16 else bits, np.uint32).view(np.float32)
    with np.errstate(invalid="ignore"):  # there are signalling NaNs
        return numbers.astype(np.float64)


@pytest.mark.parametrize("element", [Element.F16, Element.BF16, Element.F32, Element.TF32])
def test_every_kind_of_float_is_there(element):
    numbers = numbers_of(element)
    smallest = {Element.F16: 2.0**-14}.get(element, 2.0**-126)
    for sign in (1, -1):
        signed = numbers[np.signbit(numbers) == (sign < 0)]
        sizes = np.abs(signed)
        assert (sizes == 0).any() and np.isinf(sizes).any() and (sizes == 1).any()
        assert ((sizes > 0) & (sizes < smallest)).sum() >= 2 and (sizes == smallest).any()
        assert np.isnan(sizes).any()


@pytest.mark.parametrize(("element", "places"), [(Element.F16, 10), (Element.BF16, 7), (Element.F32, 23)])
def test_sums_tie(element, places):
    """One and half of its last place, and the same above an odd one."""
    numbers = set(numbers_of(element).tolist())
    assert {2.0 ** -(places + 1), 1.0, 1 + 2.0**-places} <= numbers


@pytest.mark.parametrize("element", [Element.U32, Element.S32, Element.U64, Element.S64])
def test_limits_of_integers(element):
    values, top = special_values(element), 1 << 8 * element.bytes - 1
    assert {0, 1, top - 1, top, 2 * top - 1} <= set(values)
    assert len(set(values)) == len(values)


def test_ties_of_tf32():
    dropped = [value & 0x1FFF for value in special_values(Element.TF32) if value >> 23 == 127]
    kept = [value >> 13 & 1 for value in special_values(Element.TF32) if value & 0x1FFF == 0x1000]
    assert {0x0FFF, 0x1000, 0x1001} <= set(dropped)
    assert set(kept) == {0, 1}
