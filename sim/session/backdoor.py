"""The memories of a running TMAU behind its back: bytes in numpy to words and banks in the simulation."""

import numpy as np

from tilewright.golden.spec import BANKS, CHUNK_BYTES, LINE_BYTES

__all__ = ["GlobalBackdoor", "SharedBackdoor", "as_bytes"]


def as_bytes(values):
    """``values`` (bytes or an array of any type, in row-major order) as a flat uint8 array."""
    if isinstance(values, bytes | bytearray):
        return np.frombuffer(values, np.uint8)
    return np.ascontiguousarray(values).reshape(-1).view(np.uint8)


class GlobalBackdoor:
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
        self._simulation = simulation
        self._word_bytes = word_bytes
        self._words = words
        self.base = 0

    def __len__(self):
        return self._words * self._word_bytes

    def windows(self, address, count):
        """What to dump to have ``count`` bytes from ``address`` on, for :meth:`assemble`."""
        first, after, _ = self._place(address, count)
        return {"memory": (first, after - first)}

    def assemble(self, arrays, address, count):
        """The bytes that :meth:`windows` asked for."""
        if not count:
            return np.zeros(0, np.uint8)
        _, _, skipped = self._place(address, count)
        return arrays["memory"].reshape(-1)[skipped : skipped + count].copy()

    def read(self, address, count):
        """``count`` bytes as the simulation has them."""
        _, arrays = self._simulation.exchange(dump=self.windows(address, count))
        return self.assemble(arrays, address, count)

    def write(self, address, values):
        """Stores bytes or an array of any type, at any address."""
        values = as_bytes(values)
        first, after, skipped = self._place(address, len(values))
        if not len(values):
            return
        words = np.zeros((after - first, self._word_bytes), np.uint8)
        # What the words at the ends hold beside the values stays.
        edges = {first} if skipped else set()
        if (skipped + len(values)) % self._word_bytes:
            edges.add(after - 1)
        for edge in edges:
            words[edge - first] = self.read(self.base + edge * self._word_bytes, self._word_bytes)
        words.reshape(-1)[skipped : skipped + len(values)] = values
        self._simulation.load("memory", first, words)

    def _place(self, address, count):
        """First word, first word behind, and bytes of the first word before ``address``."""
        start = address - self.base
        if not 0 <= start <= start + count <= len(self):
            raise IndexError(f"{count} bytes at {address:#x} leave the {len(self)} bytes of global memory")
        first, skipped = divmod(start, self._word_bytes)
        return first, -(-(start + count) // self._word_bytes), skipped


class SharedBackdoor:
    """Shared memory: lines of eight chunks, each chunk in a bank of its own.

    Parameters
    ----------
    simulation : Simulation
    rows : int
        Lines.
    """

    def __init__(self, simulation, rows):
        self._simulation = simulation
        self._rows = rows

    def __len__(self):
        return self._rows * LINE_BYTES

    def windows(self, address, count):
        """What to dump to have ``count`` bytes from ``address`` on, for :meth:`assemble`."""
        if not 0 <= address <= address + count <= len(self):
            raise IndexError(f"{count} bytes at {address:#x} leave the {len(self)} bytes of shared memory")
        first, after = address // LINE_BYTES, -(-(address + count) // LINE_BYTES)
        return {f"bank{bank}": (first, after - first) for bank in range(BANKS)}

    def assemble(self, arrays, address, count):
        """The bytes that :meth:`windows` asked for."""
        if not count:
            return np.zeros(0, np.uint8)
        lines = np.stack([arrays[f"bank{bank}"] for bank in range(BANKS)], axis=1)
        skipped = address % LINE_BYTES
        return lines.reshape(-1)[skipped : skipped + count]

    def read(self, address, count):
        """``count`` bytes."""
        _, arrays = self._simulation.exchange(dump=self.windows(address, count))
        return self.assemble(arrays, address, count)

    def write(self, address, values):
        """Stores bytes or an array of any type, at any address."""
        values = as_bytes(values)
        start, end = address // LINE_BYTES * LINE_BYTES, -(-(address + len(values)) // LINE_BYTES) * LINE_BYTES
        whole = start == address and end == address + len(values)
        lines = values if whole else self.read(start, end - start).copy()
        if not whole:
            lines[address - start : address - start + len(values)] = values
        lines = lines.reshape(-1, BANKS, CHUNK_BYTES)
        for bank in range(BANKS):
            self._simulation.load(f"bank{bank}", start // LINE_BYTES, lines[:, bank])
