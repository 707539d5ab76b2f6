"""The windows that confine commands (docs/tmau.md, "Windows")."""

from dataclasses import dataclass

__all__ = ["Windows"]

_PAGE_BITS, _LINE_BITS = 12, 7


@dataclass(frozen=True)
class Windows:
    """First and last byte that commands may touch, in each memory; None: all of it.

    Like the registers, a global window is made of whole pages of 4096 bytes and a shared one of lines of 128: the low
    bits of a first byte count as zeros, those of a last byte as ones.

    Attributes
    ----------
    global_, shared : (int, int) or None
    """

    global_: tuple[int, int] | None = None
    shared: tuple[int, int] | None = None

    def within(self, others):
        """What lies in these and in ``others``."""
        return Windows(_common(self.global_, others.global_), _common(self.shared, others.shared))

    def registers(self, processor=None):
        """Values of the registers that set them, by name: of the unit, or of one of its processors."""
        if processor is not None:
            return {f"{name}_{processor}": value for name, value in self.registers().items()}
        (base, limit), (first, last) = self.global_ or (0, 0), self.shared or (0, 0)
        return {
            "global_base_lo": base & 0xFFFF_FFFF,
            "global_base_hi": base >> 32,
            "global_limit_lo": limit & 0xFFFF_FFFF,
            "global_limit_hi": limit >> 32,
            "shared_base": first,
            "shared_limit": last,
            "windows": (self.global_ is not None) | (self.shared is not None) << 1,
        }

    def hold_global(self, address, count, addr_width):
        """Whether ``count`` bytes from ``address`` on, which do not wrap, lie in the global window and exist."""
        return self.global_ is None or (
            address + count <= 1 << addr_width and _inside(address, count, self.global_, _PAGE_BITS)
        )

    def hold_shared(self, address, count):
        """Whether ``count`` bytes from ``address`` on lie in the shared window."""
        return self.shared is None or _inside(address, count, self.shared, _LINE_BITS)


def _common(window, other):
    """What lies in both; of which the end may lie before the beginning."""
    if window is None or other is None:
        return window or other
    return max(window[0], other[0]), min(window[1], other[1])


def _inside(address, count, window, bits):
    """Whether the range lies in the window; a range of no bytes always does."""
    first, last = window
    return not count or (first >> bits <= address >> bits and address + count - 1 >> bits <= last >> bits)
