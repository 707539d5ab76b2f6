"""Initial contents of memories, as replay files name them (docs/replay.md, "Memory")."""

import numpy as np

__all__ = ["fill_pattern", "hex_pattern", "mix_pattern"]


def fill_pattern(size, value):
    """``size`` times the byte ``value``."""
    return np.full(size, value, np.uint8)


def mix_pattern(size, seed):
    """Bytes that differ with address and ``seed``: the byte at address a is
    ``((((a + 1) * 0x9E3779B1 + seed * 0x85EBCA6B) mod 2**32) >> 24)``.
    """
    mixed = np.arange(1, size + 1, dtype=np.uint32)
    mixed *= np.uint32(0x9E3779B1)
    mixed += np.uint32(seed * 0x85EBCA6B & 0xFFFFFFFF)
    return (mixed >> np.uint32(24)).astype(np.uint8)


def hex_pattern(size, digits):
    """The bytes that ``digits`` spell, from address 0 on; the rest is zero."""
    contents = np.zeros(size, np.uint8)
    raw = np.frombuffer(bytes.fromhex(digits), np.uint8)
    contents[: len(raw)] = raw
    return contents
