"""One core of an accelerator: engines around one shared memory."""

from .params import CORE_PRESETS, ENGINES, CoreParams, ProgramParams, core_params
from .top import Core, core_regions

__all__ = ["CORE_PRESETS", "ENGINES", "Core", "CoreParams", "ProgramParams", "core_params", "core_regions"]
