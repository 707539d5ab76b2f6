"""Operands of products and convolutions in replay cases: their types, and contents (docs/replay.md, "Kind gemm")."""

import numpy as np

from tilewright.golden.spec.pe.instruction import MmType

from .images import read_init

__all__ = ["read_operand", "read_type"]

_TYPES = {
    "s8": MmType.S8S8,
    "u8": MmType.U8U8,
    "s8u8": MmType.S8U8,
    "u8s8": MmType.U8S8,
    "s16": MmType.S16S16,
    "u16": MmType.U16U16,
    "s16u16": MmType.S16U16,
    "u16s16": MmType.U16S16,
    "f16": MmType.F16,
    "bf16": MmType.BF16,
}


def read_type(fields):
    """The member ``type``: elements of the first and of the second operand."""
    return _TYPES[fields.choice("type", list(_TYPES))]


def read_operand(fields, name, shape, kind, folder):
    """Raw bits of an operand: an init as of a memory, or normally distributed numbers."""
    init = fields.inner(name)
    size = int(np.prod(shape))
    if "normal" in init:
        if not kind.is_float:
            raise init.wrong("normal", "needs elements that are floating-point numbers")
        generator = np.random.Generator(np.random.PCG64(init.integer("normal", 0, (1 << 64) - 1)))
        init.end()
        return _rounded(generator.standard_normal(size), kind).reshape(shape)
    contents = read_init(init, size * kind.bytes, folder).contents()
    return contents.view(f"<u{kind.bytes}").reshape(shape)


def _rounded(numbers, kind):
    """Raw bits of float64 ``numbers`` rounded once to fp16 or bf16; of bf16, those that are no subnormal numbers."""
    if kind == MmType.F16:
        return numbers.astype(np.float16).view(np.uint16)
    bits = numbers.view(np.uint64)
    dropped = np.uint64(52 - 7)
    odd = bits >> dropped & np.uint64(1)
    kept = (bits + odd + np.uint64((1 << 52 - 8) - 1)) >> dropped << dropped
    # A bfloat16 is the upper half of a float32, which holds the rounded number exactly.
    return (kept.view(np.float64).astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
