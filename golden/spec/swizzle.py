"""Swizzles: how 16-byte chunks of shared memory change places (docs/tmau.md, "Swizzle")."""

from enum import IntEnum

__all__ = ["Swizzle"]


class Swizzle(IntEnum):
    """Span in which 16-byte chunks of a 128-byte shared-memory line change places."""

    NONE = 0
    B32 = 1
    B64 = 2
    B128 = 3

    @property
    def span(self):
        """Bytes; 0 without swizzle."""
        return (0, 32, 64, 128)[self]
