"""The chunk permutation of shared memory (docs/tmau.md, "Swizzle")."""

__all__ = ["swizzle"]


def swizzle(address, mode):
    """Shared-memory byte ``address`` (int or integer array) after swizzle ``mode``, a :class:`golden.spec.Swizzle`.

    16-byte chunks change places inside their 128-byte line: ``a ^= ((a >> 7) mod (span / 16)) * 16``. The mapping
    is its own inverse.
    """
    if not mode.span:
        return address
    return address ^ ((address >> 7) % (mode.span // 16) << 4)
