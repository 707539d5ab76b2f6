"""Parameters of a board."""

from dataclasses import dataclass

from ..tmau.params import TMAU_PRESETS, TmauParams

__all__ = ["BoardParams"]


@dataclass(frozen=True)
class BoardParams:
    """What is on the chip beside the pins.

    Attributes
    ----------
    tmau : TmauParams
        Of the access unit: tiles, swizzles and stores leave most of an ECP5-85 free.
    memory_bytes : int
        Bytes of global memory, a power of two, 4096 at least.
    cycles_per_bit : int
        Of the serial line, 4 to 65536.
    """

    tmau: TmauParams = TMAU_PRESETS["ecp5"].replace(
        max_outstanding=16, commands_in_flight=8, features=("unaligned", "swizzle", "stores")
    )
    memory_bytes: int = 128 * 1024
    cycles_per_bit: int = 25
