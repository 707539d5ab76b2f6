"""Layouts made from field tables."""

import random

import pytest
from amaranth.hdl import Shape
from amaranth.lib import data

from tilewright.hw.lib.layouts import packed_layout, struct_layout
from tilewright.spec import BARRIER, COMMAND, DESCRIPTOR
from tilewright.spec.fields import Field, Format

SEED = 20


@pytest.mark.parametrize("fmt", [BARRIER, COMMAND, DESCRIPTOR], ids=lambda fmt: fmt.name)
def test_packed_layout_reads_what_the_format_packs(fmt):
    print(f"seed {SEED}")
    rng = random.Random(SEED)
    layout = packed_layout(fmt)
    assert layout.size == fmt.bits
    for _ in range(100):
        values = {f.name: [rng.randint(*f.range) for _ in range(f.count or 1)] for f in fmt.fields}
        word = layout.from_bits(
            fmt.pack(**{f.name: values[f.name] if f.count else values[f.name][0] for f in fmt.fields})
        )
        for field in fmt.fields:
            for index, value in enumerate(values[field.name]):
                stored = word[f"{field.name}{index}" if field.count else field.name]
                assert stored + field.bias == value, field.name


def test_packed_layout_by_hand():
    layout = packed_layout(DESCRIPTOR)
    assert layout["stride3"] == data.Field(40, 704)
    assert layout["lower2"] == data.Field(Shape(16, signed=True), 416)
    assert layout["swizzle"] == data.Field(2, 18)


def test_struct_layout_has_no_reserved_bits():
    fmt = Format("demo", 64, "", (Field("a", 3, 5, ""), Field("b", 16, 8, "", count=3, pitch=16, signed=True)))
    layout = struct_layout(fmt)
    assert layout.size == 5 + 3 * 8
    assert layout["b"].shape == data.ArrayLayout(Shape(8, signed=True), 3)


def test_struct_layout_with_a_narrower_field():
    assert struct_layout(COMMAND, smem=12)["smem"].width == 12


def test_struct_layout_of_an_unknown_field():
    with pytest.raises(ValueError, match=r"^command has no field 'shared'$"):
        struct_layout(COMMAND, shared=12)
