"""What a harness has logged, as columns."""

import numpy as np

from ..harness.log import LogRowLayout
from ..hdl.packing import row_bytes, unpack_column

__all__ = ["Logs"]


class Logs:
    """Dumped logs as columns.

    Parameters
    ----------
    entries : dict of str to shape
        Of each log.
    arrays : dict of str to uint8 array
        Rows of those that are not empty, by the name of the array, ``…_log``.
    """

    def __init__(self, entries, arrays):
        self._rows = {name: LogRowLayout(shape) for name, shape in entries.items()}
        self._arrays = arrays

    def __contains__(self, name):
        """Whether there is such a log."""
        return name in self._rows

    def cycles(self, name):
        """When each entry was made."""
        return self._column(name, "cycle")

    def field(self, name, *path):
        """One field of each entry, or all of it."""
        return self._column(name, "entry", *path)

    def stamped(self, name, *fields):
        """Each entry's cycle and fields, as tuples of int."""
        columns = [self.cycles(name), *(self.field(name, field) for field in fields)]
        return list(zip(*(column.tolist() for column in columns), strict=True))

    def _column(self, name, *path):
        row = self._rows[name]
        rows = self._arrays.get(f"{name}_log", np.zeros((0, row_bytes(row)), np.uint8))
        return unpack_column(row, rows, *path)
