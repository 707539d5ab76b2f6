"""Parameters of a board."""

from dataclasses import dataclass

from ..lib.sizes import check_sizes
from ..tmau.params import TMAU_PRESETS, TmauParams

__all__ = ["BoardParams"]


_RANGES = {"memory_bytes": (4096, 1 << 24), "cycles_per_bit": (4, 1 << 16)}


#: Tiles, swizzles and stores, at any alignment: the rest of an ECP5-85 is free for others.
_TMAU = TMAU_PRESETS["ecp5"].replace(
    max_outstanding=16, commands_in_flight=8, features=("unaligned", "swizzle", "stores")
)


@dataclass(frozen=True)
class BoardParams:
    """What is on the chip beside the pins.

    Attributes
    ----------
    tmau : TmauParams
        Of the access unit.
    memory_bytes : int
        Bytes of global memory, 4096 to 16 MiB, a power of two.
    cycles_per_bit : int
        Of the serial line, 4 to 65536.
    """

    tmau: TmauParams = _TMAU
    memory_bytes: int = 128 * 1024
    cycles_per_bit: int = 25

    def __post_init__(self):
        check_sizes(self, _RANGES, {"memory_bytes"})
        if not isinstance(self.tmau, TmauParams):
            raise TypeError(f"tmau must be TmauParams, not {self.tmau!r}")
