"""The tensor memory access unit."""

from .params import PRESETS, TmauParams
from .subsystem import TmauSubsystem
from .top import Tmau

__all__ = ["PRESETS", "Tmau", "TmauParams", "TmauSubsystem"]
