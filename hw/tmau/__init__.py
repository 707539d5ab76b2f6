"""The tensor memory access unit."""

from .params import TMAU_PRESETS, TmauParams
from .top import Tmau

__all__ = ["TMAU_PRESETS", "Tmau", "TmauParams"]
