"""Shared memory: the swizzle, and the barrier that counts arrivals and landed bytes (docs/tmau.md)."""

from dataclasses import asdict, dataclass

import numpy as np

from tilewright.spec import BARRIER, BarrierOp

__all__ = ["Barrier", "swizzle"]

_EXPECTED_MAX = BARRIER["expected"].range[1]
_TRANSACTIONS_MIN, _TRANSACTIONS_MAX = BARRIER["transactions"].range


def swizzle(address, mode):
    """Shared-memory byte ``address`` (int or integer array) after the permutation of a :class:`spec.Swizzle`.

    16-byte chunks are permuted in their 128-byte line: ``a ^= ((a >> 7) mod (span / 16)) * 16``. The mapping is its own
    inverse.
    """
    if not mode.span:
        return address
    return address ^ ((address >> 7) % (mode.span // 16) << 4)


@dataclass
class Barrier:
    """State of one barrier. A refused operation raises ValueError and changes nothing.

    Attributes
    ----------
    pending, expected : int
        Arrivals that the current phase still waits for, and that every phase waits for.
    transactions : int
        Bytes expected minus bytes landed in the current phase.
    phase : int
        Parity of the current phase.
    """

    pending: int = 0
    expected: int = 0
    transactions: int = 0
    phase: int = 0

    @classmethod
    def unpack(cls, word):
        """The barrier of a 64-bit ``word`` in memory."""
        return cls(**BARRIER.unpack(word))

    def pack(self):
        """The 64-bit word in memory."""
        return BARRIER.pack(**asdict(self))

    @classmethod
    def read(cls, memory, address):
        """The barrier at ``address`` of ``memory``, a uint8 array."""
        return cls.unpack(int.from_bytes(memory[address : address + BARRIER.bytes].tobytes(), "little"))

    def write(self, memory, address):
        """Stores it at ``address``."""
        state = self.pack().to_bytes(BARRIER.bytes, "little")
        memory[address : address + BARRIER.bytes] = np.frombuffer(state, np.uint8)

    def init(self, arrivals):
        """Starts phase 0; every phase waits for ``arrivals``, 1 to 2^20 - 1."""
        if not 1 <= arrivals <= _EXPECTED_MAX:
            raise ValueError(f"a barrier expects 1 to {_EXPECTED_MAX} arrivals, not {arrivals!r}")
        self.pending = self.expected = arrivals
        self.transactions = self.phase = 0

    def arrive(self, arrivals=1):
        """Subtracts ``arrivals`` from the pending ones; True if that completes the phase."""
        if not 1 <= arrivals <= self.pending:
            raise ValueError(f"{arrivals!r} arrivals at a barrier that waits for {self.pending}")
        self.pending -= arrivals
        return self._complete()

    def expect_tx(self, count):
        """Adds ``count`` bytes to the transaction count; True if that completes the phase."""
        return self._count(count, count)

    def complete_tx(self, count):
        """Subtracts ``count`` bytes from the transaction count; True if that completes the phase."""
        return self._count(count, -count)

    def try_wait(self, parity):
        """Whether the phase of ``parity`` (bit 0 counts) is complete, that is, not the current one."""
        return self.phase != parity & 1

    def apply(self, op, value):
        """Operation ``op`` (:class:`BarrierOp`) with ``value``; the ``done`` of its answer."""
        if op not in set(BarrierOp):
            raise ValueError(f"no barrier operation has the number {op!r}")
        return bool(getattr(self, BarrierOp(op).name.lower())(value))

    def _count(self, count, change):
        if count < 0:
            raise ValueError(f"a count of bytes is not negative: {count!r}")
        if not _TRANSACTIONS_MIN <= self.transactions + change <= _TRANSACTIONS_MAX:
            raise ValueError(f"transaction count {self.transactions} cannot change by {change}")
        self.transactions += change
        return self._complete()

    def _complete(self):
        if self.pending or self.transactions:
            return False
        self.phase ^= 1
        self.pending = self.expected
        return True
