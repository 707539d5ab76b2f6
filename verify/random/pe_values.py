"""Random contents of memory and registers: numbers of all kinds that instructions take, and offsets."""

from dataclasses import dataclass

import ml_dtypes
import numpy as np

__all__ = ["Offset", "fill_memory", "offset_values", "register_values"]

_BLOCK = 32  # bytes of one kind side by side


@dataclass(frozen=True)
class Offset:
    """One of the first registers.

    Attributes
    ----------
    values : list of int
        Of each thread.
    gap : int
        By so much at least the values of any two threads differ, modulo 2^32; 0 if two may be equal.
    """

    values: list
    gap: int


def offset_values(rng, params):
    """The first registers, at most half of them: zero, the thread's index, and then others."""
    threads = range(params.threads)
    offsets = [Offset([0] * len(threads), 0), Offset(list(threads), 1)]
    kinds = ["spread", "zero", "mixed", "small", "spread", "eights", "small", "mixed"]
    for number in range(2, min(16, params.regs // 2)):
        order = list(threads)
        kind = kinds[(number - 2) % len(kinds)]
        if kind in ("spread", "mixed"):
            rng.shuffle(order)
            gap = 1 if kind == "mixed" else rng.choice([2, 4, 8, 16])
            first = rng.choice([0, 0, gap * rng.randint(0, 4)])
            offsets.append(Offset([first + gap * place for place in order], gap))
        elif kind == "zero":
            offsets.append(Offset([rng.choice([0, 0, 1])] * len(order), 0))
        elif kind == "small":
            offsets.append(Offset([rng.randrange(rng.choice([1, 2, 4])) for _ in order], 0))
        else:
            far = rng.random() < 0.3
            offsets.append(Offset([(8 * rng.randint(0, 8) - 64 * far) & 0xFFFFFFFF for _ in order], 0))
    return offsets


def fill_memory(seed, size):
    """``size`` bytes, in blocks of numbers of one kind."""
    rng = np.random.default_rng(seed)
    normal = rng.standard_normal(size // 2)
    special = [0x0000, 0x8000, 0x0001, 0x83FF, 0x7C00, 0xFC00, 0x7E01, 0x7BFF, 0x7F80, 0xFF80, 0x7FC1, 0x7F7F, 0x0080]
    kinds = np.stack(
        [
            rng.integers(0, 256, size, np.uint8),
            normal.astype(np.float16).view(np.uint8),
            normal.astype(ml_dtypes.bfloat16).view(np.uint8),
            (normal * 2.0 ** rng.integers(-30, 12, size // 2)).astype(np.float16).view(np.uint8),
            rng.choice(np.array(special, np.uint16), size // 2).view(np.uint8),
            rng.integers(0, 4, size, np.uint8),
        ]
    )
    chosen = np.repeat(rng.choice(len(kinds), size // _BLOCK, p=[0.35, 0.2, 0.2, 0.1, 0.05, 0.1]), _BLOCK)
    return kinds[chosen, np.arange(size)]


def register_values(seed, params, width):
    """The first ``width`` registers of all threads, uint32 of shape (threads, width)."""
    rng = np.random.default_rng([seed, 1])
    shape = params.threads, width
    kinds = np.stack(
        [
            rng.integers(0, 1 << 32, shape, np.uint32),
            rng.standard_normal(shape, np.float32).view(np.uint32),
            rng.integers(0, 256, shape, np.uint32),
            np.zeros(shape, np.uint32),
            rng.standard_normal((*shape[:1], 2 * width)).astype(np.float16).view(np.uint32),
            rng.standard_normal((*shape[:1], 2 * width)).astype(ml_dtypes.bfloat16).view(np.uint32),
        ]
    )
    chosen = rng.choice(len(kinds), width, p=[0.25, 0.2, 0.1, 0.1, 0.2, 0.15])
    return kinds[chosen, :, np.arange(width)].T
