"""Packing against Amaranth's own constants, and columns against values."""

import re

import numpy as np
import pytest
from amaranth.hdl import signed
from amaranth.lib import data

from tilewright.sim.hdl.packing import pack, pack_rows, unpack_column

LAYOUT = data.StructLayout(
    {
        "bit": 1,
        "wide": 64,
        "inner": data.StructLayout({"a": signed(5), "b": 7}),
        "list": data.ArrayLayout(signed(9), 3),
        "fill": 2,
        "bytes": 128,
    }
)
VALUE = {"bit": 1, "wide": (1 << 64) - 3, "inner": {"a": -16, "b": 100}, "list": [-256, 255, -1], "bytes": 0xABC << 100}


def test_pack_agrees_with_amaranth():
    assert pack(LAYOUT, VALUE) == LAYOUT.const(VALUE).as_bits()


def test_what_is_left_out_is_zero():
    assert (
        pack(LAYOUT, {"inner": {"b": 3}, "list": [1]}) == LAYOUT.const({"inner": {"b": 3}, "list": [1, 0, 0]}).as_bits()
    )


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ({"bit": 2}, "2 does not fit 1 bits"),
        ({"inner": {"a": 16}}, "16 does not fit 5 bits"),
        ({"no": 1}, "there is no field 'no' among bit, wide, inner, list, fill, bytes"),
        ({"list": [0, 0, 0, 0]}, "there is no field 3 among 0, 1, 2"),
    ],
)
def test_what_does_not_fit(value, sentence):
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        pack(LAYOUT, value)


def test_columns():
    words = np.arange(1, 6)
    rows = pack_rows(
        LAYOUT, [{"bit": w & 1, "wide": (1 << 64) - int(w), "inner": {"b": 3 * w}, "bytes": int(w) << 8} for w in words]
    )
    assert (unpack_column(LAYOUT, rows, "bit") == words & 1).all()
    assert unpack_column(LAYOUT, rows, "wide").tolist() == [(1 << 64) - int(w) for w in words]
    assert (unpack_column(LAYOUT, rows, "inner", "b") == 3 * words).all()
    with pytest.raises(ValueError, match=r"^field 'bytes' of 128 bits does not lie on bytes$"):
        unpack_column(LAYOUT, rows, "bytes")
    aligned = data.StructLayout({"head": 8, "bytes": 128})
    rows = pack_rows(aligned, [{"head": 9, "bytes": int(w) << 8} for w in words])
    assert (unpack_column(aligned, rows, "bytes")[:, 1] == words).all()
