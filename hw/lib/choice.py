"""One of a few wide values, chosen by a code."""

from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Mux, Signal

__all__ = ["chosen", "first_of", "masked"]


def chosen(code, values):
    """The value of a code: two-way multiplexers, and none for codes that do not come.

    Parameters
    ----------
    code : Value
    values : dict of int to Value
        By code. Of codes that are not here any may come out; codes of the very same value are not told apart.

    Returns
    -------
    Value
    """
    return _chosen(code, values, len(code) - 1)


def _chosen(code, values, bit):
    first = next(iter(values.values()))
    if all(value is first for value in values.values()):
        return first
    ones, zeros = ({key: value for key, value in values.items() if key >> bit & 1 == one} for one in (1, 0))
    if not ones or not zeros:
        return _chosen(code, values, bit - 1)
    return Mux(code[bit], _chosen(code, ones, bit - 1), _chosen(code, zeros, bit - 1))


def first_of(bits):
    """Number of the lowest bit that is high: a code for :func:`chosen`. If none is, any may come out.

    Parameters
    ----------
    bits : list of Value
        A power of two of them.

    Returns
    -------
    Value
    """
    if len(bits) == 1:
        return Cat()
    below, above = bits[: len(bits) // 2], bits[len(bits) // 2 :]
    here = Cat(below).any()
    return Cat(Mux(here, first_of(below), first_of(above)), ~here)


def masked(m, code, values, name):
    """The value of a code, each masked and all joined: what neighbours choose from the same values is not shared.

    Bits of a choice of four then fit one six-input table each. Two-way multiplexers, where neighbours have some in
    common as in a rotator, are mapped one by one.

    Parameters
    ----------
    m : Module
    code : Value
    values : list of Value
        For each code that comes, of the same width.
    name : str
        Of the masks.

    Returns
    -------
    Value
    """
    parts = []
    for number, value in enumerate(values):
        on = Signal(name=f"{name}_is{number}")
        m.d.comb += on.eq(code == number)
        parts.append(value & on.replicate(len(value)))
    return reduce(or_, parts)
