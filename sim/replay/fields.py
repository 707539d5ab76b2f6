"""Strict reading of JSON objects: every value has the stated kind and range, and nothing is left over."""

import reprlib

from tilewright.errors import UsageError
from tilewright.spec.names import suggestion

__all__ = ["REQUIRED", "Fields"]

#: Default of a field that must be given.
REQUIRED = object()


class Fields:
    """The members of one JSON object, taken one by one; a wrong one is a UsageError that names case and field.

    Parameters
    ----------
    value
        What should be an object.
    case : str
        What the sentence begins with: ``case 'x'`` or ``the file``.
    path : str
        Name of the object seen from the case, empty for the case itself.
    """

    def __init__(self, value, case, path=""):
        self.case, self.path = case, path
        if not isinstance(value, dict):
            raise self.wrong("", f"must be an object, not {reprlib.repr(value)}")
        self._left = dict(value)
        self._known = []

    def name(self, field):
        """Full name of a member, as errors show it."""
        return ".".join(part for part in (self.path, field) if part)

    def wrong(self, field, what):
        """The error to raise when ``field`` is not what it must be."""
        return UsageError(f"{self.case}: {self.name(field) or 'it'} {what}")

    def __contains__(self, field):
        return field in self._left

    def peek(self, field):
        """A member as it is, without taking it; None if there is none."""
        return self._left.get(field)

    def raw(self, field, default=REQUIRED):
        """Takes a member as it is."""
        self._known.append(field)
        if field not in self._left and default is REQUIRED:
            raise self.wrong(field, "is missing")
        return self._left.pop(field, default)

    def integer(self, field, low, high, default=REQUIRED):
        """Takes an integer from ``low`` to ``high``."""
        value = self.raw(field, default)
        if value is not default:
            self.check_integer(field, value, low, high)
        return value

    def check_integer(self, field, value, low, high):
        """Raises unless ``value`` is an integer from ``low`` to ``high``."""
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise self.wrong(field, f"must be an integer from {low} to {high}, not {reprlib.repr(value)}")

    def integers(self, field, low, high, default=REQUIRED):
        """Takes a list of integers from ``low`` to ``high``."""
        value = self.listed(field, default)
        if value is not default:
            for index, entry in enumerate(value):
                self.check_integer(f"{field}[{index}]", entry, low, high)
        return value

    def listed(self, field, default=REQUIRED):
        """Takes a list."""
        return self._kind(field, default, list, "a list")

    def text(self, field, default=REQUIRED):
        """Takes a string."""
        return self._kind(field, default, str, "a string")

    def flag(self, field, default=REQUIRED):
        """Takes true or false."""
        return self._kind(field, default, bool, "true or false")

    def choice(self, field, names, default=REQUIRED):
        """Takes one of ``names``."""
        value = self.raw(field, default)
        if value is not default and value not in names:
            sentence = f"must be one of {', '.join(map(str, names))}, not {reprlib.repr(value)}"
            raise self.wrong(field, sentence + suggestion(value, names))
        return value

    def inner(self, field, default=REQUIRED):
        """Takes an object, as Fields."""
        value = self.raw(field, default)
        return value if value is default else Fields(value, self.case, self.name(field))

    def rest(self):
        """Names of what has not been taken."""
        return list(self._left)

    def end(self):
        """Raises if something has not been taken."""
        for field in self._left:
            others = [name for name in self._known if name != field]
            raise self.wrong(field, f"is not a known field{suggestion(field, others)}")

    def _kind(self, field, default, kind, what):
        value = self.raw(field, default)
        if value is not default and not isinstance(value, kind):
            raise self.wrong(field, f"must be {what}, not {reprlib.repr(value)}")
        return value
