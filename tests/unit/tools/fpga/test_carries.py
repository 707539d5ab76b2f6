"""Carry chains of an ECP5: the right results, and no more cells than they need."""

import random

import pytest
from amaranth.hdl import Cat, Module, Mux
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from tilewright.tools.fpga.carries import cut_ends
from tilewright.tools.fpga.mapping import map_flat

SEED = 20261126


class Sums(wiring.Component):
    """All that becomes a chain, of two numbers of one width."""

    def __init__(self, width):
        self.width = width
        super().__init__({"a": In(width), "b": In(width), "o": Out(data.ArrayLayout(width + 1, 11))})

    def elaborate(self, platform):
        m = Module()
        a, b = self.a, self.b
        results = (a + b, a - b, -a, a + b[0], a < b, b <= a, a.as_signed() < b.as_signed(), Mux(a < b, a, b),
                   Cat((a - b)[: self.width], a < b), a + b + (a ^ b), a + (a ^ b) - b)  # fmt: skip
        m.d.comb += [o.eq(result) for o, result in zip(self.o, results, strict=True)]
        return m


def expected(a, b, width):
    signed = [value - (value >> width - 1 << width) for value in (a, b)]
    results = (a + b, a - b, -a, a + (b & 1), a < b, b <= a, signed[0] < signed[1], min(a, b),
               (a - b) % (1 << width) | (a < b) << width, a + b + (a ^ b), a + (a ^ b) - b)  # fmt: skip
    return sum(result % (1 << width + 1) << i * (width + 1) for i, result in enumerate(results))


@pytest.mark.parametrize("width", [6, 9, 16])
def test_results(tmp_path, evaluate, width):
    module = map_flat(Sums(width), "ecp5", tmp_path).module
    rng = random.Random(SEED)
    for _ in range(300):
        a = rng.getrandbits(width)
        b = (a + rng.randrange(-1, 2)) % (1 << width) if rng.random() < 0.3 else rng.getrandbits(width)
        assert evaluate(module, {"a": a, "b": b}) == expected(a, b, width), (a, b)


class Sum(wiring.Component):
    """One adder, or one comparison."""

    def __init__(self, width, less):
        self.less = less
        super().__init__({"a": In(width), "b": In(width), "o": Out(1 if less else width)})

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.o.eq(self.a < self.b if self.less else self.a + self.b)
        return m


@pytest.mark.parametrize("less", [False, True])
@pytest.mark.parametrize("width", [8, 9])
def test_cells(tmp_path, width, less):
    """A table for each bit, two a cell, with room for one for the last carry or none. Nothing comes in or goes out."""
    cells = map_flat(Sum(width, less), "ecp5", tmp_path).module["cells"].values()
    chain = [cell["connections"] for cell in cells if cell["type"] == "CCU2C"]
    assert len(chain) == (width + 1) // 2
    assert sum(not isinstance(cell["CIN"][0], int) for cell in chain) == 1
    assert sum(not isinstance(cell["COUT"][0], int) for cell in chain) == 1


@pytest.mark.parametrize(
    ("table", "second", "left"), [(0x96AA, 1, "x"), (0x96AA, 2, "0"), (0x0008, 2, "x"), (0x0018, 2, "0")]
)
def test_only_a_chain_that_makes_its_first_carry_loses_the_one_that_comes_in(table, second, left):
    ports = {"CIN": ["0"], "A0": [1], "B0": [second], "C0": ["0"], "D0": ["1"], "COUT": [7]}
    directions = {port: "output" if port == "COUT" else "input" for port in ports}
    cell = {
        "type": "CCU2C",
        "parameters": {"INIT0": f"{table:016b}"},
        "connections": ports,
        "port_directions": directions,
    }
    cut_ends({"cells": {"chain": cell}})
    assert (ports["CIN"], ports["COUT"]) == ([left], ["x"])
