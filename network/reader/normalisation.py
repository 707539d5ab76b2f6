"""Normalisations of rows (docs/network.md, "Exact arithmetic")."""

from math import prod

import numpy as np

from ..arithmetic import limits, numbers
from ..attributes import NormaliseChannels, Reshape
from ..normalisation import normalisation_of
from .operator import Constant, reads

__all__ = []

_BY_CHANNEL = 21


@reads("LayerNormalization", "RMSNormalization")
def _layer(op, reading):
    """LayerNormalization of floats: x, gain, shift; RMSNormalization has no shift, and takes the mean as 0."""
    real, centred = op.real(0), op.kind == "LayerNormalization"
    shape = reading.shape(real.name)
    axis = op.take("axis", -1)
    if not -len(shape) <= axis < len(shape):
        raise op.refusal(f"it has no dimension {axis}: its input has {len(shape)}", host="nothing")
    epsilon = op.take("epsilon", 1e-5, float)
    op.require("stash_type", 1)
    sizes = shape[axis:]
    gain = _numbers(op, 1, "gain", sizes)
    shift = _numbers(op, 2, "shift", sizes) if op.has(2) else np.zeros(prod(sizes), np.float32)

    def finish(output, y, clamp):
        node = normalisation_of(len(sizes), real.quantity, y, gain, shift, epsilon, centred)
        _emit(op, reading, real.name, output, node, y, clamp)

    def floats(x):
        rows = x.reshape(-1, prod(sizes))
        mean = rows.mean(axis=1, keepdims=True) if centred else np.float32(0)
        root = np.sqrt(np.square(rows - mean).mean(axis=1, keepdims=True) + np.float32(epsilon))
        return ((rows - mean) / root * gain + shift).reshape(x.shape).astype(np.float32)

    reading.defer_floats(op, shape, reading.apply(op, real, floats), finish)


@reads("InstanceNormalization", "GroupNormalization")
def _instance(op, reading):
    """InstanceNormalization of floats: x, gain and shift for each channel; GroupNormalization of groups of channels."""
    real = op.real(0)
    shape, epsilon = tuple(reading.shape(real.name)), op.take("epsilon", 1e-5, float)
    op.refuse_if(len(shape) < 3, f"its input is {list(shape)}, which has no dimensions after the channels")
    members = _members(op, shape[1]) if op.kind == "GroupNormalization" else 1
    # Before version 21 a GroupNormalization has a gain and a shift for each group.
    count = shape[1] if reading.opset >= _BY_CHANNEL else shape[1] // members
    gain, shift = (_numbers(op, index, role, (count,)).repeat(shape[1] // count)
                   for index, role in ((1, "gain"), (2, "shift")))  # fmt: skip
    folded = *shape[:2], prod(shape[2:-1]), shape[-1]

    def finish(output, y, clamp):
        whole = normalisation_of(1, real.quantity, y, gain, shift, epsilon)
        node = NormaliseChannels(whole.x_zero, whole.gain, whole.shift, whole.epsilon, members)
        if len(shape) == 4:
            _emit(op, reading, real.name, output, node, y, clamp)
            return
        names = [reading.fresh(f"{output}.{each}") for each in ("map", "normalised")]
        reading.emit(op, (real.name,), names[0], Reshape(folded), folded, real.quantity.dtype)
        _emit(op, reading, names[0], names[1], node, y, clamp)
        reading.emit(op, names[1:], output, Reshape(shape), shape, y.dtype)

    def floats(x):
        rows = x.reshape(shape[0], shape[1] // members, members, -1)
        mean = rows.mean(axis=(2, 3), keepdims=True)
        root = np.sqrt(np.square(rows - mean).mean(axis=(2, 3), keepdims=True) + np.float32(epsilon))
        gains, shifts = (numbers.reshape(-1, members, 1) for numbers in (gain, shift))
        return ((rows - mean) / root * gains + shifts).reshape(shape).astype(np.float32)

    reading.defer_floats(op, shape, reading.apply(op, real, floats), finish)


def _members(op, channels):
    """Channels of a group."""
    groups, stash = op.take("num_groups", None), op.take("stash_type", 1)
    if stash != 1:
        raise op.refusal(f"its attribute 'stash_type' is {stash}, and only 1 is supported", host="nothing")
    if not groups or groups < 1 or channels % groups:
        raise op.refusal(f"its attribute 'num_groups' is {groups}, which does not divide {channels} channels")
    return channels // groups


def _numbers(op, index, role, sizes):
    """A constant of floats, of a shape that broadcasts to ``sizes``, as an array of one dimension."""
    value = op.value(index)
    if not isinstance(value, Constant):
        raise op.refusal(f"its {role} {op.input_name(index)!r} is computed, and only a constant is supported")
    array = value.meaning.astype(np.float32)
    try:
        return np.broadcast_to(array, sizes).reshape(-1)
    except ValueError:
        raise op.refusal(f"its {role} is {list(array.shape)}, which does not fit {list(sizes)}") from None


def _emit(op, reading, name, output, node, y, clamp):
    """Adds the node, with a clamp after it if that is less than the type."""
    direct = clamp == limits(y.dtype)
    made = output if direct else reading.fresh(f"{output}.whole")
    reading.emit(op, (name,), made, node, reading.shape(name), y.dtype)
    if not direct:
        reading.table(op, made, output, np.clip(numbers(y.dtype), *clamp).astype(y.dtype))
