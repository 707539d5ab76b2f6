"""Where the parts of a top lie in the addresses of its AXI4-Lite port."""

from dataclasses import dataclass

__all__ = ["Region", "address_map", "map_addr_width"]


@dataclass(frozen=True)
class Region:
    """A part of an address space.

    Attributes
    ----------
    bit : int or None
        Number of the address bit that selects it; None for the one that begins at 0, which no bit selects.
    addr_width : int
        Bits of a byte address in it.
    """

    bit: int | None
    addr_width: int

    @property
    def base(self):
        """Its first byte address."""
        return 0 if self.bit is None else 1 << self.bit

    @property
    def size(self):
        """Its bytes."""
        return 1 << self.addr_width


def address_map(**addr_widths):
    """The regions of a top by name, each above those before it and aligned to its size.

    The first begins at 0. The others are selected by one bit each, the highest that is set.

    Parameters
    ----------
    **addr_widths : int
        Bits of a byte address in each region.

    Returns
    -------
    dict of str to Region
    """
    regions, used = {}, 0
    for name, width in addr_widths.items():
        bit = max(used, width) if regions else None
        regions[name] = Region(bit, width)
        used = width if bit is None else bit + 1
    return regions


def map_addr_width(regions):
    """Bits of a byte address that reaches all of ``regions``."""
    *_, last = regions.values()
    return last.addr_width if last.bit is None else last.bit + 1
