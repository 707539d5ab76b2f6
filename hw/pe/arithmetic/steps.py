"""Steps of arithmetic on a word: additions with a carry, and shifts by up to three units in one four-way choice."""

from amaranth.hdl import Cat, Const, Mux

from ...lib.logic import masked_choice, named

__all__ = ["add", "digit", "shift_down", "shift_up"]


def add(a, b, carry):
    """``a`` + ``b`` + ``carry`` modulo 2^n, of two values of n bits: one adder, with the carry in a place below.

    A carry chain needs ``a`` by itself, and of ``b`` only whether it differs: logic before ``b`` takes no LUTs of its
    own. Tools may exchange the operands of a sum, but not those of a difference.
    """
    if len(a) != len(b):
        raise ValueError(f"a and b must have the same number of bits, not {len(a)} and {len(b)}")
    return (Cat(0, a) - Cat(~carry, ~b))[1 : len(a) + 1]


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


def shift_down(m, value, places, unit):
    """``value`` shifted right by 0 to 3 units of ``unit`` bits, and whether a one was lost, as signals.

    By masks: two-way multiplexers would be shared between bits, and with all bits of the result in use take more LUTs.
    """
    name = f"down_{unit}"
    down = masked_choice(m, places, [value[unit * number :] for number in range(4)], name)
    lost = masked_choice(m, places, [value[: unit * number].any() for number in range(4)], f"{name}_lost")
    return named(m, down, name), named(m, lost, f"{name}_lost")


def shift_up(m, value, places, unit, name="up"):
    """``value`` shifted left by 0 to 3 units of ``unit`` bits, without the bits above, as a signal."""
    zero, one, two, three = (Cat(Const(0, unit * number), value)[: len(value)] for number in range(4))
    return named(m, Mux(places[1], Mux(places[0], three, two), Mux(places[0], one, zero)), f"{name}_{unit}")
