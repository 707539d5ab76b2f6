"""Unpacked payloads are the constants that Amaranth would make of the same bits."""

import random
from itertools import product

import numpy as np
import pytest
from amaranth.hdl import Shape, signed, unsigned
from amaranth.lib import data, enum

from tilewright.sim.pysim.streams import packed
from tilewright.sim.pysim.unpacked import unpacked


class Kind(enum.Enum, shape=2):
    NONE = 0
    ONE = 1
    TWO = 2
    LAST = 3


class Way(enum.IntEnum, shape=signed(2)):
    BACK = -1
    STAY = 0
    ON = 1


class Pair(data.Struct):
    kind: Kind
    count: signed(3)


class Either(data.Union):
    number: unsigned(6)
    pair: Pair


STRUCT = data.StructLayout({"x": signed(4), "nothing": 0, "kind": Kind, "pair": Pair, "z": data.ArrayLayout(Pair, 3)})
LAYOUTS = {
    "struct": STRUCT,
    "struct class": Pair,
    "union": data.UnionLayout({"whole": 9, "signed": signed(5), "pairs": data.ArrayLayout(Kind, 2)}),
    "union class": Either,
    "array": data.ArrayLayout(signed(3), 5),
    "array of arrays": data.ArrayLayout(data.ArrayLayout(STRUCT, 2), 2),
    "with gaps": data.FlexibleLayout(20, {"first": data.Field(signed(3), 11), 7: data.Field(STRUCT["z"].shape, 1)}),
    "empty": data.StructLayout({}),
}


def assert_same(value, constant):
    """``value`` is what ``constant`` is, down to the last member."""
    if not isinstance(constant, data.Const):
        assert (value, type(value)) == (constant, type(constant))
        return
    layout = data.Layout.cast(constant.shape())
    assert data.Layout.cast(value.shape()) == layout
    assert value.as_bits() == constant.as_bits()
    for name, _ in layout:
        assert_same(value[name], constant[name])
        if isinstance(name, str):
            assert_same(getattr(value, name), constant[name])
            assert_same(getattr(value, name), constant[name])  # the second time


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_members_are_those_of_a_constant(layout):
    rng = random.Random(1)
    width = Shape.cast(layout).width
    for bits in [0, (1 << width) - 1, *(rng.getrandbits(width) for _ in range(50))]:
        value, constant = unpacked(layout, bits), layout.from_bits(bits)
        assert_same(value, constant)
        assert value == constant
        assert constant == value
        assert hash(value) == hash(constant)
        assert value.as_value().value == bits
        assert packed(layout, value) == bits


@pytest.mark.parametrize("key", [0, 4, -1, -5, np.int64(2), slice(1, 4), slice(None, None, -2), slice(3, 3)], ids=repr)
def test_an_array_takes_indices_and_slices(key):
    layout = LAYOUTS["array"]
    value, constant = unpacked(layout, 0o76543), layout.from_bits(0o76543)
    assert_same(value[key], constant[key if isinstance(key, slice) else int(key)])
    assert (len(value), list(value)) == (5, list(constant))


@pytest.mark.parametrize("same", [True, False])
@pytest.mark.parametrize("kinds", [*product(["unpacked", "constant"], repeat=2)], ids="-".join)
def test_equal_are_equal_bits(kinds, same):
    make = {"unpacked": unpacked, "constant": lambda layout, bits: layout.from_bits(bits)}
    left, right = make[kinds[0]](STRUCT, 5), make[kinds[1]](STRUCT, 5 if same else 6)
    assert (left == right) is same
    assert (left != right) is not same


def test_equals_a_dictionary_and_never_another_layout():
    value = unpacked(Pair, 0b11101)
    assert value == {"kind": Kind.ONE, "count": -1}
    assert value != {"kind": Kind.ONE, "count": 1}
    for other in (unpacked(LAYOUTS["array"], 5), 5):
        with pytest.raises(TypeError, match="can only be compared to"):
            value == other  # noqa: B015
        with pytest.raises(TypeError, match="can only be compared to"):
            value != other  # noqa: B015


def test_plain_shapes_and_enumerations():
    assert [unpacked(signed(3), bits) for bits in range(8)] == [0, 1, 2, 3, -4, -3, -2, -1]
    assert [unpacked(2, bits) for bits in range(4)] == [unpacked(range(4), bits) for bits in range(4)] == [0, 1, 2, 3]
    assert unpacked(Kind, 3) is Kind.LAST


def test_shown_by_members():
    value = unpacked(STRUCT["z"].shape, 0b00000_00111_11101)
    members = [
        f"Const({{'kind': {kind!r}, 'count': {n}}})" for kind, n in ((Kind.ONE, -1), (Kind.LAST, 1), (Kind(0), 0))
    ]
    assert repr(value) == f"Const({{0: {members[0]}, 1: {members[1]}, 2: {members[2]}}})"


def test_bits_that_are_no_member_of_an_enumeration():
    value = unpacked(data.StructLayout({"ways": data.ArrayLayout(Way, 2)}), 0b1011)
    with pytest.raises(ValueError, match="2 is not a valid Way"):
        _ = value.ways[1]
    assert repr(value) == "Const({'ways': Const({0: 0x3, 1: 0x2})})"


def test_errors_name_what_is_wrong():
    value = unpacked(Pair, 0)
    with pytest.raises(ValueError, match=r"^0x20 does not fit the 5 bits of"):
        unpacked(Pair, 32)
    with pytest.raises(ValueError, match=r"^-0x1 does not fit the 5 bits of"):
        unpacked(Pair, -1)
    with pytest.raises(AttributeError, match="does not have a field 'king'; did you mean one of: 'kind', 'count'"):
        _ = value.king
    with pytest.raises(AttributeError, match="_kind"):
        _ = value._kind
    with pytest.raises(KeyError, match="king"):
        _ = value["king"]
    with pytest.raises(IndexError, match="Index 5 is out of range for array layout of length 5"):
        _ = unpacked(LAYOUTS["array"], 0)[5]
    with pytest.raises(TypeError, match="cannot be indexed with a slice"):
        _ = value[0:1]
