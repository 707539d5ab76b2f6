"""Checks of arguments: a wrong one is refused in one sentence with the offending value. Sessions use them too."""

import operator
from functools import cache

import numpy as np

from tilewright.spec.fields import names, one_line
from tilewright.spec.names import suggestion

__all__ = [
    "array", "field_value", "format_values", "instance", "integer", "integers", "listed", "member", "no_member",
    "numbers", "packed", "pair", "power_of_two", "room", "shown", "truth",
]  # fmt: skip

_LONGEST = 60  # characters of a value in a sentence
_MOST_BYTES = 1 << 40  # of a memory of the golden model


def shown(value):
    """``value`` in a sentence: shape and type of an array, and the beginning of any other long value."""
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape} and {value.dtype}"
    text = one_line(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def integer(name, value, low=None, high=None, *, description="an integer"):
    """``value``, an integer from ``low`` to ``high``, both inclusive, as an int; TypeError or ValueError otherwise."""
    try:
        if isinstance(value, (bool, np.bool_)):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be {description}, not {shown(value)}") from None
    if (low is not None and number < low) or (high is not None and number > high):
        limits = f"{low} or more" if high is None else f"{low} to {high}"
        raise ValueError(f"{name} must be {limits}, not {number}")
    return number


def packed(name, value, bits):
    """``value``, a word of ``bits`` bits, as an int; TypeError or ValueError otherwise."""
    description = f"an integer of {bits} bits"
    number = integer(name, value, description=description)
    if not 0 <= number < 1 << bits:
        raise ValueError(f"{name} must be {description}, not {shown(number)}")
    return number


def power_of_two(name, value):
    """``value``, a power of two, as an int; TypeError or ValueError otherwise."""
    number = integer(name, value)
    if number < 1 or number & number - 1:
        raise ValueError(f"{name} must be a power of two, not {number}")
    return number


def integers(name, value):
    """``value``, a list, tuple or array of integers, as a tuple of int; TypeError otherwise."""
    if not isinstance(value, (list, tuple, np.ndarray, range)) or (isinstance(value, np.ndarray) and not value.ndim):
        raise TypeError(f"{name} must be a list or tuple, not {shown(value)}")
    return tuple(integer(name, entry, description="made of integers") for entry in value)


def pair(name, value, count=2):
    """``value``, ``count`` integers in a list, tuple or array, as a tuple of int; TypeError or ValueError otherwise."""
    entries = integers(name, value)
    if len(entries) != count:
        raise ValueError(f"{name} must have {count} entries, not {shown(value)}")
    return entries


def member(name, enum, value, also=None):
    """``value``, a member of ``enum``, its number, or its name in any case, as the member; ValueError otherwise.

    ``also`` maps further names to members.
    """
    if isinstance(value, enum):
        return value
    if isinstance(value, str):
        by_name = {key.lower(): each for key, each in (names(enum) | (also or {})).items()}
        if value.lower() in by_name:
            return by_name[value.lower()]
        raise ValueError(no_member(name, enum, value))
    try:
        number = integer(name, value)
    except TypeError:
        raise TypeError(no_member(name, enum, value)) from None
    if number not in set(enum):
        raise ValueError(no_member(name, enum, value))
    return enum(number)


def no_member(name, enum, value):
    """The sentence about a ``value`` that is not a member of ``enum``."""
    known = names(enum)
    return f"{name} must be one of {', '.join(known)}, not {shown(value)}{suggestion(value, known)}"


def field_value(field, value):
    """A user's value of ``field`` as ``Format.pack`` takes it; TypeError or ValueError if it cannot be one.

    A member of the field's enumeration may be given by name.
    """
    if field.count:
        return integers(field.name, value)
    if field.enum and isinstance(value, str):
        return member(field.name, field.enum, value)
    return integer(field.name, int(value) if isinstance(value, (bool, np.bool_)) else value)


def format_values(kind, fields, values):
    """``values``, which must be of ``fields`` (Field objects) of a ``kind``, for ``Format.pack``; ValueError otherwise.

    Each value is as in :func:`field_value`.
    """
    known = {field.name: field for field in fields}
    for name in values:
        if name not in known:
            fields_are = f"its fields are {', '.join(known)}{suggestion(name, known)}"
            raise ValueError(f"a {kind} has no field {name!r}: {fields_are}")
    return {name: field_value(known[name], value) for name, value in values.items()}


def listed(name, value):
    """``value``, a list, a tuple, or an array of one dimension; TypeError otherwise."""
    if isinstance(value, list | tuple | range) or (isinstance(value, np.ndarray) and value.ndim == 1):
        return value
    raise TypeError(f"{name} must be a list, not {shown(value)}")


def truth(name, value):
    """``value``, True, False, 0 or 1, as a bool; TypeError otherwise."""
    if not isinstance(value, bool | np.bool_ | int) or value not in (0, 1):
        raise TypeError(f"{name} must be True or False, not {shown(value)}")
    return bool(value)


def instance(name, value, kind, package="golden"):
    """``value``, an instance of the class ``kind`` of a package; TypeError otherwise."""
    if not isinstance(value, kind):
        raise TypeError(f"{name} must be {package}.{kind.__name__}, not {shown(value)}")
    return value


def room(name, value):
    """``value``, the bytes of a memory, as an int; TypeError or ValueError if no memory can have this size."""
    number = integer(name, value, 0)
    if number > _MOST_BYTES:
        raise ValueError(f"{name} must be {_MOST_BYTES} or less, not {number}")
    return number


def numbers(name, value, dtype=np.int64):
    """``value``, an integer, or an array or nested lists of integers, as an array of ``dtype``.

    TypeError if it is something else, ValueError if an integer does not fit the type.
    """
    low, high = _limits(dtype)
    if type(value) is int and low <= value <= high:  # most calls have one address
        return np.array(value, dtype)
    result = None
    if isinstance(value, int | np.integer | list | tuple | range | np.ndarray) and not isinstance(value, bool):
        try:
            result = np.asarray(value)
        except ValueError:  # lists of different lengths
            result = None
    if result is None or (result.size and result.dtype.kind not in "iu" and not _are_integers(result)):
        raise TypeError(f"{name} must be integers, not {shown(value)}")
    if not result.size:
        return result.astype(dtype)
    if np.can_cast(result.dtype, dtype):
        return result.astype(dtype, copy=False)
    for end in (int(result.min()), int(result.max())):
        if not low <= end <= high:
            raise ValueError(f"{name} must be {low} to {high}, not {end}")
    return result.astype(dtype)


@cache
def _limits(dtype):
    """The smallest and the largest integer of a type."""
    limits = np.iinfo(dtype)
    return limits.min, limits.max


def _are_integers(values):
    """Whether an array of objects holds integers: numpy makes one of integers that fit none of its types."""
    return values.dtype == object and all(isinstance(each, int) and not isinstance(each, bool) for each in values.flat)


def array(name, value):
    """``value``, an array that is not empty; TypeError or ValueError otherwise."""
    if not isinstance(value, np.ndarray):
        raise TypeError(f"{name} must be a numpy array, not {shown(value)}")
    if not value.size:
        raise ValueError(f"{name} must not be empty, with shape {value.shape}")
    return value
