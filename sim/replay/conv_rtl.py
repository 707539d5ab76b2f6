"""Replay cases of the convolution engine on hardware."""

from tilewright.golden.spec.conv.errors import ConvError
from tilewright.golden.spec.conv.job import JOB
from tilewright.golden.spec.pe.instruction import MmType
from tilewright.hw.conv.params import CONV_UNIT_PRESETS, ConvUnitParams
from tilewright.hw.smem.params import SmemParams

from .conv_cases import conv_outcome

__all__ = ["run_conv_on_session", "unit_params", "why_no_hardware"]


def unit_params(case):
    """What hardware to run a :class:`ConvCase` on, as ConvUnitParams; ValueError if it cannot be.

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


def why_no_hardware(case):
    """Why there is no hardware for a case, as a sentence, or None."""
    try:
        unit_params(case)
    except ValueError as error:
        return f"there is no hardware for it: {error}"
    return None


def run_conv_on_session(case, session):
    """Runs a :class:`ConvCase` on a ``ConvSession`` that is large enough; its :class:`Outcome`."""
    layer = case.layer
    run = session.run([layer.word], shared=layer.smem)
    (end,) = run.jobs
    error = None if end.code == ConvError.NONE else end.code.name.lower()
    smem = session.shared_memory.read(0, len(layer.smem))
    return conv_outcome(case, error, smem, cycles=end.cycle - run.accepted[0])
