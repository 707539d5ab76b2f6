"""Steps of arithmetic on a word: additions with a carry, and shifts by up to three units in one four-way choice."""

from amaranth.hdl import Cat, Const, Mux

from ...lib.logic import named

__all__ = ["add", "digit", "shift_down", "shift_up"]


def add(a, b, carry):
    """``a`` + ``b`` + ``carry`` modulo 2^n, of two values of n bits: one adder, with the carry in a place below."""
    if len(a) != len(b):
        raise ValueError(f"a and b must have the same number of bits, not {len(a)} and {len(b)}")
    return (Cat(1, a) + Cat(carry, b))[1 : len(a) + 1]


def digit(m, remainder, following, divisor):
    """A step of a division that does not restore: the next remainder, as a signal, of digit 1 if it is not negative.

    Parameters
    ----------
    m : Module
    remainder : Value
        With its sign, from −``divisor`` to ``divisor`` − 1.
    following : Value
        The next bit of the dividend.
    divisor : Value
        At most as wide as the remainder without its sign.
    """
    subtract = ~remainder[-1]
    operand = Cat(divisor, Const(0, len(remainder)))[: len(remainder)]
    twice = Cat(following, remainder[:-1])
    return named(m, add(twice, operand ^ subtract.replicate(len(remainder)), subtract), "remainder")


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
