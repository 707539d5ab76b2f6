"""A core with all of its engines and a command processor, by the name of a preset."""

from tilewright.hw.conv.params import CONV_UNIT_PRESETS
from tilewright.hw.core import CORE_PRESETS
from tilewright.hw.core.params import ProgramParams

from ..hdl.settings import changed, groups_of, require_groups
from .core import CoreSession

__all__ = ["NETWORK_BYTES", "AcceleratorSession", "accelerator_params"]

#: Bytes of memory for ResNet-50 with all of its tensors, and for smaller networks that share a simulator with it.
NETWORK_BYTES = 48 << 20
#: Presets whose sessions have so much, unless they say how much.
_LARGE = ("default", "full")


def accelerator_params(preset, settings=()):
    """The CoreParams of a preset with all engines and a command processor; UsageError if a setting is of neither."""
    params = CORE_PRESETS[preset].with_conv(CONV_UNIT_PRESETS[preset]).replace(program=ProgramParams())
    require_groups(settings, groups_of(params))
    return changed(params, settings)


class AcceleratorSession(CoreSession):
    """A session of such a core.

    Parameters
    ----------
    preset : str
        Name in ``CORE_PRESETS`` and ``CONV_UNIT_PRESETS``.
    settings : sequence of Setting
        Parameters that differ from the preset.
    **options
        As of a ``CoreSession``.
    """

    def __init__(self, preset="default", settings=(), **options):
        if preset in _LARGE:
            options = {"memory_bytes": NETWORK_BYTES} | options
        super().__init__(params=changed(accelerator_params(preset), settings), **options)
