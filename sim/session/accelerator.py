"""A core with all of its engines and a command processor, by the name of a preset."""

from tilewright.hw.conv.params import CONV_UNIT_PRESETS
from tilewright.hw.core import CORE_PRESETS
from tilewright.hw.core.program.params import ProgramParams

from .core import CoreSession

__all__ = ["NETWORK_BYTES", "AcceleratorSession"]

#: Bytes of memory for ResNet-50 with all of its tensors, and for smaller networks that share a simulator with it.
NETWORK_BYTES = 48 << 20
#: Presets whose sessions have so much, unless they say how much.
_LARGE = ("default", "full")


class AcceleratorSession(CoreSession):
    """A session of such a core.

    Parameters
    ----------
    preset : str
        Name in ``CORE_PRESETS`` and ``CONV_UNIT_PRESETS``.
    **options
        As of a ``CoreSession``.

    Attributes
    ----------
    preset : str

    and those of a ``CoreSession``.
    """

    def __init__(self, preset="default", **options):
        if preset in _LARGE:
            options = {"memory_bytes": NETWORK_BYTES} | options
        self.preset = preset
        params = CORE_PRESETS[preset].with_conv(CONV_UNIT_PRESETS[preset]).replace(program=ProgramParams())
        super().__init__(params=params, **options)
