"""Functions of a few bits, given by the values for which they are true."""

from amaranth.hdl import Const

__all__ = ["is_one_of"]


def is_one_of(code, values):
    """Whether ``code`` is one of ``values``.

    Compared, and not looked up in a constant: Verilator (5.48 was tried) loses terms of an OR of constants that
    are shifted by a variable.

    Parameters
    ----------
    code : Value
        A signal, as it is used for each of the values.
    values : iterable of int

    Returns
    -------
    Value
        One bit.
    """
    values = tuple(values)
    return code.matches(*values) if values else Const(0, 1)
