"""Strict reading of JSON objects: each value must have its kind and range, and no member may remain."""

import reprlib

from tilewright.errors import UsageError
from tilewright.spec.names import suggestion

__all__ = ["REQUIRED", "Fields"]

#: Default of a required field.
REQUIRED = object()


class Fields:
    """The members of one JSON object, read one by one; each error is a UsageError that names the case and the field.

    Parameters
    ----------
    value
        The object, or another value, which is an error.
    case : str
        Beginning of errors: ``case 'x'`` or the name of a file.
    path : str
        Name of the object within the case, empty for the case itself.
    """

    def __init__(self, value, case, path=""):
        self.case, self.path = case, path
        if not isinstance(value, dict):
            raise self.wrong("", f"must be an object, not {reprlib.repr(value)}")
        self._members = dict(value)
        self._known = []

    def name(self, field):
        """Full name of a member for errors."""
        return ".".join(part for part in (self.path, field) if part)

    def wrong(self, field, rule):
        """The error for a ``field`` that breaks a rule."""
        return UsageError(f"{self.case}: {self.name(field) or 'it'} {rule}")

    def __contains__(self, field):
        return field in self._members

    def peek(self, field):
        """The raw value of a member, which remains to be read; None if it is missing."""
        return self._members.get(field)

    def raw(self, field, default=REQUIRED):
        """Reads the raw value of a member."""
        self._known.append(field)
        if field not in self._members and default is REQUIRED:
            raise self.wrong(field, "is missing")
        return self._members.pop(field, default)

    def integer(self, field, low, high, default=REQUIRED):
        """Reads an integer from ``low`` to ``high``."""
        value = self.raw(field, default)
        if value is not default:
            self.check_integer(field, value, low, high)
        return value

    def check_integer(self, field, value, low, high):
        """Raises unless ``value`` is an integer from ``low`` to ``high``."""
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise self.wrong(field, f"must be an integer from {low} to {high}, not {reprlib.repr(value)}")

    def integers(self, field, low, high, default=REQUIRED):
        """Reads a list of integers from ``low`` to ``high``."""
        value = self.listed(field, default)
        if value is not default:
            for index, entry in enumerate(value):
                self.check_integer(f"{field}[{index}]", entry, low, high)
        return value

    def listed(self, field, default=REQUIRED):
        """Reads a list."""
        return self._kind(field, default, list, "a list")

    def text(self, field, default=REQUIRED):
        """Reads a string."""
        return self._kind(field, default, str, "a string")

    def flag(self, field, default=REQUIRED):
        """Reads true or false."""
        return self._kind(field, default, bool, "true or false")

    def choice(self, field, names, default=REQUIRED):
        """Reads one of ``names``."""
        value = self.raw(field, default)
        if value is not default and value not in names:
            sentence = f"must be one of {', '.join(map(str, names))}, not {reprlib.repr(value)}"
            raise self.wrong(field, sentence + suggestion(value, names))
        return value

    def inner(self, field, default=REQUIRED):
        """Reads an object; returns its :class:`Fields`."""
        value = self.raw(field, default)
        return value if value is default else Fields(value, self.case, self.name(field))

    def remaining(self):
        """Names of members that have not been read."""
        return list(self._members)

    def end(self):
        """Raises an error if members remain."""
        for field in self._members:
            others = [name for name in self._known if name != field]
            raise self.wrong(field, f"is not a known field{suggestion(field, others)}")

    def _kind(self, field, default, kind, description):
        value = self.raw(field, default)
        if value is not default and not isinstance(value, kind):
            raise self.wrong(field, f"must be {description}, not {reprlib.repr(value)}")
        return value
