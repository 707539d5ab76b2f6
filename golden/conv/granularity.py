"""The granularity of channels by the seed's rule (docs/conv.md, "Granularity")."""

from ..arguments import integer, power_of_two

__all__ = ["granularities", "seed_granularity"]

#: Bytes by which more padding is accepted for the sake of larger blocks.
_ACCEPTED = 16


def granularities(row_bytes):
    """Bytes of a block that a row of ``row_bytes`` can have, the largest first, as a tuple."""
    return tuple(row_bytes >> shift for shift in range(5) if row_bytes >> shift)


def seed_granularity(size, row_bytes=64):
    """Bytes of a block for a pixel of ``size`` bytes, in rows of ``row_bytes``.

    The largest that pads less than 16 bytes more than the best one does; pixels of up to 4 bytes have the smallest.
    """
    integer("size", size, 1)
    candidates = granularities(power_of_two("row_bytes", row_bytes))
    if size <= 4:
        return candidates[-1]
    padding = {block: -size % block for block in candidates[:4]}
    return max(block for block, added in padding.items() if added - min(padding.values()) < _ACCEPTED)
