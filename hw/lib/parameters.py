"""Checks of parameters that are sizes."""

__all__ = ["check_sizes"]


def check_sizes(params, ranges, powers):
    """Checks attributes of ``params``.

    Parameters
    ----------
    params : object
    ranges : dict of str to (int, int)
        Lowest and highest value of each attribute.
    powers : set of str
        Attributes that must be powers of two.

    Raises
    ------
    TypeError, ValueError
        One sentence with the name and the value of the first attribute that is refused.
    """
    for name, (low, high) in ranges.items():
        value = getattr(params, name)
        if not isinstance(value, int) or isinstance(value, bool):
            raise TypeError(f"{name} must be an int, not {value!r}")
        if not low <= value <= high:
            raise ValueError(f"{name} must be {low} to {high}, not {value!r}")
        if name in powers and value & (value - 1):
            raise ValueError(f"{name} must be a power of two, not {value!r}")
