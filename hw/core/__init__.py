"""One core of an accelerator: all engines around one shared memory."""

from .params import CORE_PRESETS, CoreParams, ProgramParams
from .top import Core, core_regions

__all__ = ["CORE_PRESETS", "Core", "CoreParams", "ProgramParams", "core_regions"]
