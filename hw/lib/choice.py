"""One of a few wide values, chosen by a code: two-way multiplexers, and none for codes that do not come."""

from amaranth import Mux

__all__ = ["chosen"]


def chosen(code, values):
    """The value of a code.

    Parameters
    ----------
    code : Value
    values : dict of int to Value
        By code. Of codes that are not here any may come out.

    Returns
    -------
    Value
    """
    return _chosen(code, values, len(code) - 1)


def _chosen(code, values, bit):
    if len(values) == 1:
        return next(iter(values.values()))
    ones, zeros = ({key: value for key, value in values.items() if key >> bit & 1 == one} for one in (1, 0))
    if not ones or not zeros:
        return _chosen(code, values, bit - 1)
    return Mux(code[bit], _chosen(code, ones, bit - 1), _chosen(code, zeros, bit - 1))
