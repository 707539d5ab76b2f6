"""Steps of arithmetic on a word: additions with a carry, and shifts by up to three units in one four-way choice."""

from amaranth.hdl import Cat, Const, Mux

from ...lib.logic import named

__all__ = ["add", "shift_down", "shift_up"]


def add(a, b, carry):
    """``a`` + ``b`` + ``carry`` modulo 2^n, of two values of n bits: one adder, with the carry in a place below."""
    if len(a) != len(b):
        raise ValueError(f"a and b must have the same number of bits, not {len(a)} and {len(b)}")
    return (Cat(1, a) + Cat(carry, b))[1 : len(a) + 1]


def _choice(places, values):
    zero, one, two, three = values
    return Mux(places[1], Mux(places[0], three, two), Mux(places[0], one, zero))


def shift_down(m, value, places, unit):
    """``value`` shifted right by 0 to 3 units of ``unit`` bits, and whether a one was lost, as signals."""
    down = _choice(places, [value >> unit * number for number in range(4)])
    lost = _choice(places, [value[: unit * number].any() if number else Const(0) for number in range(4)])
    return named(m, down[: len(value)], f"down_{unit}"), named(m, lost, f"lost_{unit}")


def shift_up(m, value, places, unit, name="up"):
    """``value`` shifted left by 0 to 3 units of ``unit`` bits, without the bits above, as a signal."""
    up = _choice(places, [Cat(Const(0, unit * number), value)[: len(value)] for number in range(4)])
    return named(m, up, f"{name}_{unit}")
