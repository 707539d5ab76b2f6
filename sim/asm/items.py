"""What a line may consist of. An item takes its words from a :class:`TextLine`, and writes them.

``read(line, fmt, fields)`` puts values into ``fields``, by the names in the format ``fmt``. ``write(fields)`` is the
text: parts of the operation, each with a point before it, or one operand; empty if there is none.
"""

__all__ = ["Number", "Optional", "Part", "When"]


class Number:
    """An operand that is the value of a field.

    Parameters
    ----------
    field : str
    what : str
        What it is called when it is missing.
    form : str
        How it is written: ``#x`` or ``d``.
    """

    def __init__(self, field, what, form="#x"):
        self.field, self.what, self.form = field, what, form

    def read(self, line, fmt, fields):
        self.parse(line.operand(self.what), line, fmt, fields)

    def parse(self, word, line, fmt, fields):
        """Reads ``word``, which has been taken."""
        fields[self.field] = line.integer(word, fmt[self.field].range)

    def write(self, fields):
        return f"{fields[self.field]:{self.form}}"


class Part:
    """A part of the operation: the value of a field, by its name in the dictionary ``names``."""

    def __init__(self, field, names, what):
        self.field, self._names, self._what = field, names, what
        self._written = {value: name for name, value in names.items()}

    def read(self, line, fmt, fields):
        fields[self.field] = line.part(self._names, self._what)

    def write(self, fields):
        return f".{self._written[fields[self.field]]}"


class Optional:
    """Parts that are there together, or not at all: then the field of the first one is 0."""

    def __init__(self, *items):
        self._items = items

    def read(self, line, fmt, fields):
        for item in self._items if line.parts else ():
            item.read(line, fmt, fields)

    def write(self, fields):
        return "".join(item.write(fields) for item in self._items) if fields[self._items[0].field] else ""


class When:
    """An item that is there if ``condition`` holds for the fields of the items before."""

    def __init__(self, condition, item):
        self._condition, self._item = condition, item

    def read(self, line, fmt, fields):
        if self._condition(fields):
            self._item.read(line, fmt, fields)

    def write(self, fields):
        return self._item.write(fields) if self._condition(fields) else ""
