"""Replay cases of the convolution engine (docs/replay.md, "Kind conv"): reading them, and running them on golden."""

import reprlib
from dataclasses import dataclass
from dataclasses import fields as dataclass_fields

import numpy as np

from tilewright.errors import UsageError
from tilewright.golden import Conv, ConvLayer, ConvShape, PostProcessing
from tilewright.spec.conv import CONV_PRESETS, ConvError

from .fields import Fields, read_init, read_operand, read_type
from .outcome import Outcome, read_expectation

__all__ = ["ConvCase", "conv_outcome", "read_conv_case", "read_conv_params", "run_conv_case"]

_MOST_BYTES = 1 << 28
_LIMITS = {"u8": (0, 255), "s8": (-128, 127)}


@dataclass(frozen=True)
class ConvCase:
    """A case of kind conv.

    Attributes
    ----------
    name, kind : str
    expect : dict
        As in :class:`cases.Case`.
    layer : ConvLayer
        The job with its shared memory and the parameters of its engine.
    """

    name: str
    kind: str
    expect: dict
    layer: ConvLayer


def read_conv_case(fields, name, expect, folder):
    """Reads the rest of a case; ``expect`` is its member of this name, or None."""
    kind = read_type(fields)
    size = _numbers(fields, "x", (1,) * 4, (65536,) * 4)
    out_channels, *kernel = _numbers(fields, "k", (1,) * 3, (65536, 256, 256))
    options = {
        "stride": _numbers(fields, "stride", (1, 1), (256, 256)),
        "padding": _numbers(fields, "pad", (0,) * 4, (255,) * 4),
        "dilation": _numbers(fields, "dilation", (1, 1), (256, 256)),
        "params": read_conv_params(fields),
    }
    depthwise = _read_groups(fields, size[3], out_channels)
    inner = 1 if depthwise else size[3]
    for field, shape in (("x", size), ("k", (out_channels, *kernel, inner))):
        if np.prod(shape, dtype=object) * kind.bytes > _MOST_BYTES:
            raise fields.wrong(field, f"must have at most {_MOST_BYTES} bytes")
    x = read_operand(fields, "x_init", size, kind, folder)
    k = read_operand(fields, "k_init", (out_channels, *kernel, inner), kind, folder)
    options["zeros"] = tuple(_read_zero(fields, name, kind, bit) for name, bit in (("x_zero", 2), ("k_zero", 1)))
    try:
        shape = ConvShape.of(size, out_channels, kernel, *(options[key] for key in ("stride", "padding", "dilation")))
        results = shape.batch, shape.out_height, shape.out_width, shape.out_channels
        options["post"] = _read_post(fields, kind, folder, results)
        fields.end()
        operands = (x, k[..., 0]) if depthwise else (x, k)
        layer = ConvLayer(*operands, kind, operation="depthwise" if depthwise else "convolution", **options)
    except ValueError as error:  # sizes that do not fit together
        raise UsageError(f"{fields.case}: {error}") from None
    sizes = {"smem": len(layer.smem), "output": layer.shape.bytes_written}
    return ConvCase(name, "conv", read_expectation(expect, ConvError, sizes), layer)


def run_conv_case(case):
    """Runs a case on the golden model."""
    layer = case.layer
    smem = layer.smem.copy()
    engine = Conv(smem, layer.plan.params)
    engine.execute(layer.word)
    return conv_outcome(case, engine.errors[0].code.name.lower() if engine.errors else None, smem)


def conv_outcome(case, error, smem, **figures):
    """The :class:`Outcome` of a case from its error or None, shared memory after it, and other members."""
    layer = case.layer
    output = np.ascontiguousarray(layer.result(smem)).reshape(-1).view(np.uint8)
    memories = {"smem": smem, "output": output}
    return Outcome.of({"name": case.name, "error": error}, memories, macs=layer.shape.macs, **figures)


def _numbers(fields, name, low, high):
    """Reads a list of numbers, each within its limits."""
    values = fields.listed(name)
    if len(values) != len(low):
        raise fields.wrong(name, f"must have {len(low)} entries, not {len(values)}")
    for index, (value, lowest, highest) in enumerate(zip(values, low, high, strict=True)):
        fields.check_integer(f"{name}[{index}]", value, lowest, highest)
    return tuple(values)


def read_conv_params(fields):
    """Reads the member ``conv``: a preset and changed parameters."""
    member = fields.inner("conv", None) or Fields({}, fields.case, "conv")
    params = CONV_PRESETS[member.choice("preset", list(CONV_PRESETS), "default")]
    changes = {name: member.raw(name) for name in (field.name for field in dataclass_fields(params)) if name in member}
    member.end()
    try:
        return params.replace(**changes)
    except (TypeError, ValueError) as error:
        raise member.wrong("", f"cannot be: {error}") from None


def _read_groups(fields, channels, out_channels):
    """Whether each channel is a group."""
    groups = fields.choice("groups", [1, channels], 1)
    if groups == 1:
        return False
    if out_channels != channels:
        raise fields.wrong("k[0]", f"must be {channels} where there are as many groups, not {out_channels}")
    return True


def _read_zero(fields, name, kind, unsigned):
    """Reads a zero point, which is 0 for floats."""
    bits = 0 if kind.is_float else 8 * kind.bytes
    low = 0 if kind.is_float or kind & unsigned else -(1 << bits - 1)
    return fields.integer(name, low, low + (1 << bits) - 1, 0)


def _read_post(fields, kind, folder, results):
    """Reads the member ``post``, for results of the shape ``results``; returns :class:`PostProcessing` or None."""
    member = fields.inner("post", None)
    if member is None:
        return None
    if kind.is_float:
        raise fields.wrong("post", "needs elements that are integers")
    output = member.choice("type", list(_LIMITS))
    low, high = _LIMITS[output]
    bias = member.integers("bias", -(1 << 31), (1 << 31) - 1, [0] * results[3])
    scale = [_binary32(member, f"scale[{index}]", value) for index, value in enumerate(member.listed("scale"))]
    for name, values in (("bias", bias), ("scale", scale)):
        if len(values) != results[3]:
            raise member.wrong(name, f"must have {results[3]} entries, one for each channel, not {len(values)}")
    options = {"zero": member.integer("zero", low, high, 0)} | _read_clamp(member, low, high, "")
    addition = member.inner("add", None)
    if addition is not None:
        contents = read_init(addition.inner("init"), int(np.prod(results)), folder).contents()
        ratio = addition.listed("ratio")
        if len(ratio) != 2:
            raise addition.wrong("ratio", f"must have 2 entries, not {len(ratio)}")
        options |= {
            "addend": contents.reshape(results),
            "ratio": tuple(_binary32(addition, f"ratio[{index}]", value) for index, value in enumerate(ratio)),
            "offset": _binary32(addition, "offset", addition.raw("offset")),
        } | _read_clamp(addition, low, high, "add_")
        addition.end()
    member.end()
    return PostProcessing(output, bias, scale, **options)


def _read_clamp(fields, low, high, prefix):
    """The least and the largest result."""
    return {f"{prefix}{name}imum": fields.integer(name, low, high, None) for name in ("min", "max")}


def _binary32(fields, name, value):
    """``value``, which must be a number of binary32."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    try:
        with np.errstate(over="ignore"):
            if is_number and float(np.float32(value)) == value:
                return float(value)
    except OverflowError:
        pass  # an integer above all floats
    raise fields.wrong(name, f"must be a number that binary32 holds, not {reprlib.repr(value)}")
