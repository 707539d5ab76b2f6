"""Hardware for replay cases: its parameters, and reasons why there is none."""

from tilewright.errors import UsageError
from tilewright.hw.cluster.params import ClusterParams
from tilewright.hw.conv.params import CONV_UNIT_PRESETS, ConvUnitParams
from tilewright.hw.core.params import CORE_PRESETS, CoreParams, ProgramParams
from tilewright.hw.smem.params import SmemParams
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.spec.conv import JOB
from tilewright.spec.pe import MmType

from .cases import PE_KINDS
from .commands import shared_reach

__all__ = ["hardware_bytes", "hardware_of", "why_no_hardware"]

#: The smallest shared memory of hardware.
_LEAST = 1024


def hardware_bytes(case):
    """Bytes of the smallest shared memory of hardware that no command tells from the case's; if one can, the case's."""
    size = case.smem.size
    return max(1 << (size - 1).bit_length(), _LEAST) if shared_reach(case) <= size else size


def hardware_of(case, preset=None):
    """Parameters of hardware for a case: CoreParams, or ClusterParams for several cores.

    Parameters
    ----------
    case : Case or one of another engine
    preset : str or None
        Configuration of the access unit. None: ``default``, and ``unit`` for cases of several cores and of kind core.

    Raises
    ------
    UsageError
        If no shared memory has the size of the case.
    ValueError
        If there is no such hardware; a sentence.
    """
    if case.kind in PE_KINDS:
        return CoreParams(pe=case.program.params)
    if case.kind == "conv":
        return CoreParams(conv=_conv_params(case))
    preset = preset or _usual_preset(case)
    if case.kind == "core":
        return _core_params(case, preset)
    return _cluster_params(case, preset) if case.cores > 1 else CoreParams(_tmau_params(case, preset))


def why_no_hardware(case, preset=None):
    """Why there is no hardware of a preset for a case, as a sentence, or None."""
    try:
        params = hardware_of(case, preset)
    except UsageError:
        return None  # said where the case comes to run
    except ValueError as error:
        return f"there is no hardware for it: {error}"
    if not params.tmau or params.tmau.has("windows"):
        return None
    if not any(windows.registers()["windows"] for windows in _confining(case)):
        return None
    return f"there is no hardware for it: preset {preset or _usual_preset(case)} has no windows"


def _usual_preset(case):
    """The preset of the access unit where none is given."""
    return "unit" if case.kind == "core" or case.cores > 1 else "default"


def _confining(case):
    """All windows of a case with an access unit."""
    return case.windows, *getattr(case, "processors", ())


def _tmau_params(case, preset):
    """The preset, if the case cannot see that its shared memory is larger; otherwise with one for the case."""
    params = TMAU_PRESETS[preset].replace(processors=len(case.processors) or 1)
    size = case.smem.size
    if size == params.smem.size_bytes or shared_reach(case) <= size <= params.smem.size_bytes:
        return params
    return params.replace(smem=_smem(case, params))


def _cluster_params(case, preset):
    """Access units of a preset, with shared memory for the case."""
    params = TMAU_PRESETS[preset]
    unit = params.replace(smem=_smem(case, params), processors=len(case.processors) or 1)
    return ClusterParams(case.cores, CoreParams(unit))


def _smem(case, params):
    """The shared memory of a case of the access unit."""
    try:
        return params.smem.replace(size_bytes=hardware_bytes(case))
    except ValueError as error:
        raise UsageError(f"case {case.name!r}: smem.bytes: {error}") from None


def _core_params(case, preset):
    """The case's engines, and the TMAU of a preset."""
    smem = case.pe.smem
    params = CoreParams(CORE_PRESETS[preset].tmau.replace(smem=smem), case.pe, program=ProgramParams())
    return params.with_conv(ConvUnitParams(case.conv, SmemParams(smem.size_bytes))) if case.conv else params


def _conv_params(case):
    """The engine of a :class:`ConvCase`.

    Where a case does not multiply floats, neither does its hardware. Its shared memory is that of a preset with the
    same engine if that is enough, so that few models serve many cases, or else the next power of two.
    """
    size = max(1024, 1 << (len(case.layer.smem) - 1).bit_length())
    params, presets = ConvUnitParams(case.layer.plan.params, SmemParams(size)), CONV_UNIT_PRESETS.values()
    kind = MmType(JOB.unpack(case.layer.word)["type"])
    if not kind.is_float or kind.family not in params.conv.types:
        params, presets = params.without_floats(), [preset.without_floats() for preset in presets]
    memories = [preset.smem for preset in presets if preset.conv == params.conv and preset.smem.size_bytes >= size]
    return params.replace(smem=min(memories, key=lambda smem: smem.size_bytes, default=params.smem))
