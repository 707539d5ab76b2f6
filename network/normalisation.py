"""Normalisation of rows of integers (docs/network.md, "Exact arithmetic")."""

import math

import numpy as np

from .arithmetic import fused, saturate
from .attributes import Normalise

__all__ = ["normalisation_of", "normalise", "normalise_channels"]


def normalisation_of(dimensions, x, y, gain, shift, epsilon, centred=True):
    """The :class:`Normalise` of floats with the quantities ``x`` and ``y`` of input and result.

    Parameters
    ----------
    dimensions : int
    x, y : Quantity
    gain, shift : float32 array
        For each element of a row.
    epsilon : float
    centred : bool
    """
    f32 = np.float32
    gains = (np.asarray(gain, f32) / f32(y.scale)).reshape(-1)
    shifts = (np.asarray(shift, f32) / f32(y.scale) + f32(y.zero)).reshape(-1)
    return Normalise(dimensions, x.zero, gains, shifts, f32(epsilon) / (f32(x.scale) * f32(x.scale)), centred)


def normalise_channels(x, node, dtype):
    """Channels of ``x``, integers [N, C, H, W], by a ``NormaliseChannels``; operations are rounded to binary32."""
    batch, channels = x.shape[:2]
    u = x.reshape(batch, channels, -1).astype(np.int64) - node.x_zero
    groups = u.reshape(batch * channels // node.members, -1)
    root, start = (each.repeat(node.members).reshape(batch, channels) for each in _scaling(groups, node.epsilon))
    factor, step = root * node.gain, fused(start, node.gain, node.shift)
    limits = np.iinfo(dtype)
    results = fused(u.astype(np.float32), factor[..., np.newaxis], step[..., np.newaxis])
    return saturate(results, 0, limits.min, limits.max, dtype).reshape(x.shape)


def _scaling(u, epsilon, centred=True):
    """r, and b = -m · r, of each row of u."""
    share = np.float32(1) / np.float32(u.shape[1])
    first, second = (total.astype(np.float32) * share for total in (u.sum(axis=1), (u * u).sum(axis=1)))
    mean = first * np.float32(centred)
    variance = np.maximum(fused(-mean, mean, second), np.float32(0))
    root = np.float32(1) / np.sqrt(variance + epsilon)
    return root, -mean * root


def normalise(x, node, dtype):
    """Rows of ``x``, integers, by a ``Normalise``; each operation is rounded to binary32."""
    count = math.prod(x.shape[x.ndim - node.dimensions :])
    u = x.reshape(-1, count).astype(np.int64) - node.x_zero
    root, start = _scaling(u, node.epsilon, node.centred)
    steps = fused(u.astype(np.float32), root[:, np.newaxis], start[:, np.newaxis])
    limits = np.iinfo(dtype)
    return saturate(fused(steps, node.gain, node.shift), 0, limits.min, limits.max, dtype).reshape(x.shape)
