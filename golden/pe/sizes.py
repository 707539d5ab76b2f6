"""Sizes of a golden processing engine."""

from dataclasses import dataclass

from tilewright.spec.arithmetic import UNITS, units_of
from tilewright.spec.pe import MM_FAMILIES, families

from ..arguments import integer, power_of_two, shown

__all__ = ["PeSizes", "sizes_or_default"]


@dataclass(frozen=True)
class PeSizes:
    """Sizes of a machine, by the names of the hardware's parameters."""

    threads: int = 16
    regs: int = 320
    factor_regs: int = 2
    uniform_regs: int = 8
    segments: int = 16
    pages: int = 256
    types: tuple = MM_FAMILIES
    units: tuple = UNITS
    kernel_words: int = 512
    lookup_words: int = 512

    def __post_init__(self):
        for name in self.__dataclass_fields__:
            if name not in ("types", "units"):
                integer(name, getattr(self, name), 1)
        power_of_two("lookup_words", self.lookup_words)
        object.__setattr__(self, "types", families(self.types))
        object.__setattr__(self, "units", units_of(self.units))


def sizes_or_default(sizes):
    """``sizes``, or default ones if None; TypeError if they lack an attribute of :class:`PeSizes`."""
    if sizes is None:
        return PeSizes()
    if not all(hasattr(sizes, name) for name in PeSizes.__dataclass_fields__):
        raise TypeError(f"sizes must be golden.PeSizes, or have its attributes, not {shown(sizes)}")
    return sizes
