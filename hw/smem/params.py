"""Parameters of the shared memory."""

from dataclasses import dataclass, replace

from tilewright.spec import BANKS, LINE_BYTES

__all__ = ["SmemParams"]


@dataclass(frozen=True)
class SmemParams:
    """Sizes of the shared memory.

    Attributes
    ----------
    size_bytes : int
        Bytes of shared memory: a power of two, 1 KiB to 1 MiB. The 128-byte swizzle repeats every 1 KiB; a barrier
        counts at most 2^20 - 1 bytes a phase.
    chunks_a_cycle : int
        Chunks that an engine reads in one cycle at most: 8, or 4 for half of the multiplexers.
    writes_a_cycle : int
        Chunks that it writes: 8, 4 or 2.
    """

    size_bytes: int = 128 * 1024
    chunks_a_cycle: int = BANKS
    writes_a_cycle: int = BANKS

    def __post_init__(self):
        if not isinstance(self.size_bytes, int):
            raise TypeError(f"size_bytes must be an int, not {self.size_bytes!r}")
        if self.size_bytes & (self.size_bytes - 1) or not 1024 <= self.size_bytes <= 1 << 20:
            raise ValueError(f"size_bytes must be a power of two from 1024 to 1048576, not {self.size_bytes!r}")
        if self.chunks_a_cycle not in (BANKS // 2, BANKS):
            raise ValueError(f"chunks_a_cycle must be {BANKS // 2} or {BANKS}, not {self.chunks_a_cycle!r}")
        if self.writes_a_cycle not in (BANKS // 4, BANKS // 2, BANKS):
            raise ValueError(f"writes_a_cycle must be 2, 4 or 8, not {self.writes_a_cycle!r}")

    def replace(self, **changes):
        """The same parameters with some changed."""
        return replace(self, **changes)

    @property
    def paced(self):
        """Whether a read of eight chunks takes two cycles, so that stages before it may have every other cycle."""
        return self.chunks_a_cycle < BANKS

    @property
    def addr_width(self):
        """Bits of a byte address."""
        return self.size_bytes.bit_length() - 1

    @property
    def row_width(self):
        """Bits of a row address, the same in every bank: ``byte address >> 7``."""
        return self.addr_width - 7

    @property
    def rows(self):
        """Rows (lines): chunks of one bank."""
        return self.size_bytes // LINE_BYTES
