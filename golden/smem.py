"""The barrier: counts arrivals and landed bytes until a phase is complete (docs/tmau.md, "Barriers")."""

from dataclasses import asdict, dataclass

import numpy as np

from tilewright.spec import BARRIER, BarrierOp

__all__ = ["Barrier", "swizzle"]

_EXPECTED_MAX = BARRIER["expected"].range[1]
_TRANSACTIONS_MIN, _TRANSACTIONS_MAX = BARRIER["transactions"].range


@dataclass
class Barrier:
    """State of one barrier. An operation that is refused raises ValueError and changes nothing.

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
        """The barrier that lies in memory as the 64-bit ``word``."""
        return cls(**BARRIER.unpack(word))

    def pack(self):
        """The 64-bit word as it lies in memory."""
        return BARRIER.pack(**asdict(self))

    @classmethod
    def read(cls, memory, address):
        """The barrier at ``address`` of ``memory``, an uint8 array."""
        return cls.unpack(int.from_bytes(memory[address : address + BARRIER.bytes].tobytes(), "little"))

    def write(self, memory, address):
        """Puts it there."""
        state = self.pack().to_bytes(BARRIER.bytes, "little")
        memory[address : address + BARRIER.bytes] = np.frombuffer(state, np.uint8)

    def init(self, arrivals):
        """Starts phase 0; every phase waits for ``arrivals``, 1 to 2^20 - 1."""
        if not 1 <= arrivals <= _EXPECTED_MAX:
            raise ValueError(f"a barrier expects 1 to {_EXPECTED_MAX} arrivals, not {arrivals!r}")
        self.pending = self.expected = arrivals
        self.transactions = self.phase = 0

    def arrive(self, arrivals=1):
        """Takes ``arrivals`` from the pending ones; True if that completes the phase."""
        if not 1 <= arrivals <= self.pending:
            raise ValueError(f"{arrivals!r} arrivals at a barrier that waits for {self.pending}")
        self.pending -= arrivals
        return self._complete()

    def expect_tx(self, count):
        """Adds ``count`` bytes to the transaction count; True if that completes the phase."""
        self._add(count, count)
        return self._complete()

    def complete_tx(self, count):
        """Takes ``count`` bytes from the transaction count; True if that completes the phase."""
        self._add(count, -count)
        return self._complete()

    def try_wait(self, parity):
        """True if the phase of ``parity`` (bit 0 counts) is complete, that is, not the current one."""
        return self.phase != parity & 1

    def apply(self, op, value):
        """Operation ``op`` (:class:`BarrierOp`) with ``value``; the ``done`` of its answer."""
        operations = {
            BarrierOp.INIT: self.init,
            BarrierOp.ARRIVE: self.arrive,
            BarrierOp.EXPECT_TX: self.expect_tx,
            BarrierOp.COMPLETE_TX: self.complete_tx,
            BarrierOp.TRY_WAIT: self.try_wait,
        }
        if op not in operations:
            raise ValueError(f"no barrier operation has the number {op!r}")
        return bool(operations[op](value))

    def _add(self, count, change):
        if count < 0:
            raise ValueError(f"a count of bytes is not negative: {count!r}")
        if not _TRANSACTIONS_MIN <= self.transactions + change <= _TRANSACTIONS_MAX:
            raise ValueError(f"transaction count {self.transactions} cannot change by {change}")
        self.transactions += change

    def _complete(self):
        if self.pending or self.transactions:
            return False
        self.phase ^= 1
        self.pending = self.expected
        return True


def swizzle(address, mode):
    """Shared-memory byte ``address`` (int or integer array) after swizzle ``mode``, a :class:`spec.Swizzle`.

    16-byte chunks change places inside their 128-byte line: ``a ^= ((a >> 7) mod (span / 16)) * 16``. The mapping
    is its own inverse.
    """
    if not mode.span:
        return address
    return address ^ ((address >> 7) % (mode.span // 16) << 4)
