"""Backdoor access of a session to the memories in its simulation."""

import numpy as np

from tilewright.golden.arguments import integer
from tilewright.golden.memory import as_bytes
from tilewright.spec import BANKS, LINE_BYTES

__all__ = ["GlobalBackdoor", "SharedBackdoor"]


class _Backdoor:
    """A memory of rows, each of which lies side by side in one array or several."""

    def __init__(self, simulation, name, arrays, row_bytes, rows):
        self._simulation = simulation
        self._name = name
        self._arrays = arrays
        self._row_bytes = row_bytes
        self._rows = rows
        self.base = 0

    def __len__(self):
        return self._rows * self._row_bytes

    def __repr__(self):
        return f"{len(self)} bytes of {self._name} memory from {self.base:#x} on"

    def check(self, address, count):
        """IndexError unless ``count`` bytes from ``address`` on are in this memory."""
        self._place(address, count)

    def windows(self, address, count):
        """What to dump to have ``count`` bytes from ``address`` on, for :meth:`assemble`."""
        first, after, _ = self._place(address, count)
        return dict.fromkeys(self._arrays, (first, after - first))

    def assemble(self, dumped, address, count):
        """The bytes that :meth:`windows` asked for."""
        if not count:
            return np.zeros(0, np.uint8)
        _, _, skipped = self._place(address, count)
        rows = np.concatenate([dumped[name] for name in self._arrays], axis=1)
        return rows.reshape(-1)[skipped : skipped + count]

    def read(self, address, count):
        """``count`` bytes as the simulation has them."""
        _, dumped = self._simulation.exchange(dump=self.windows(address, count))
        return self.assemble(dumped, address, count)

    def write(self, address, values):
        """Stores bytes or an array of any type, at any address."""
        values = as_bytes(values)
        first, after, skipped = self._place(address, len(values))
        if not len(values):
            return
        rows = np.zeros((after - first, self._row_bytes), np.uint8)
        # What the rows at the ends hold beside the values stays.
        edges = {first} if skipped else set()
        if (skipped + len(values)) % self._row_bytes:
            edges.add(after - 1)
        for edge in edges:
            rows[edge - first] = self.read(self.base + edge * self._row_bytes, self._row_bytes)
        rows.reshape(-1)[skipped : skipped + len(values)] = values
        for name, part in zip(self._arrays, np.split(rows, len(self._arrays), axis=1), strict=True):
            self._simulation.load(name, first, part)

    def _place(self, address, count):
        """First row, first row behind, bytes of the first row before ``address``; IndexError if they are not here."""
        count = integer("count", count, 0)
        start = integer("address", address) - self.base
        if not 0 <= start <= start + count <= len(self):
            raise IndexError(f"{count} bytes at {address:#x} leave the {len(self)} bytes of {self._name} memory")
        first, skipped = divmod(start, self._row_bytes)
        return first, -(-(start + count) // self._row_bytes), skipped


class GlobalBackdoor(_Backdoor):
    """Global memory.

    Parameters
    ----------
    simulation : Simulation
    word_bytes, words : int
        Of its array.

    Attributes
    ----------
    base : int
        Global address of the first byte.
    """

    def __init__(self, simulation, word_bytes, words):
        super().__init__(simulation, "global", ["memory"], word_bytes, words)


class SharedBackdoor(_Backdoor):
    """Shared memory: lines of eight chunks, each chunk in a bank of its own.

    Parameters
    ----------
    simulation : Simulation
    rows : int
        Lines.
    prefix : str
        Of the names of its arrays.
    """

    def __init__(self, simulation, rows, prefix=""):
        super().__init__(simulation, "shared", [f"{prefix}bank{bank}" for bank in range(BANKS)], LINE_BYTES, rows)
