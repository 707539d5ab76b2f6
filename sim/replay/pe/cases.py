"""Replay cases of the processing engine (docs/replay.md): the kinds program and gemm."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tilewright.golden.patterns import fill_pattern
from tilewright.golden.pe.program import gemm_program
from tilewright.golden.spec.pe.errors import PeError
from tilewright.golden.spec.pe.instruction import MmType

from ...asm.pe.assembler import assemble_program
from ...session.pe_program import PeProgram
from ...usage import UsageError
from ..expectations import read_expectation
from ..images import read_image, read_init
from .tables import read_pages, read_params, read_registers, read_segments

__all__ = ["PE_KINDS", "PeCase", "read_pe_case"]

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


@dataclass(frozen=True)
class PeCase:
    """One case. It runs if its program does; all that it says is in the program.

    Attributes
    ----------
    name, kind : str
    expect : dict
        As of :class:`cases.Case`.
    program : PeProgram
        Instructions in ``setup`` do not count in error records.
    output : callable or None
        The result of a product in shared memory as the program left it: uint32, row by row.
    macs : int or None
        Multiplications that the result needs.
    skip : None
        Every case can run.
    """

    name: str
    kind: str
    expect: dict
    program: PeProgram
    output: Callable | None = None
    macs: int | None = None
    skip: None = None


def read_pe_case(fields, name, kind, expect, folder):
    """The rest of a case of one of ``PE_KINDS``; ``expect`` is its member of this name, or None."""
    try:
        attributes, sizes = PE_KINDS[kind](fields, folder)
        return PeCase(name, kind, read_expectation(expect, PeError, sizes), **attributes)
    except ValueError as error:  # what only the model can judge: sizes that do not fit together
        raise UsageError(f"{fields.case}: {error}") from None


def _read_program(fields, folder):
    smem = read_image(fields.inner("smem"), 1 << 20, (fill_pattern, 205), folder)
    params = read_params(fields, smem.size)
    program = PeProgram(
        params=params,
        smem=smem.contents(),
        segments=read_segments(fields, params),
        pages=read_pages(fields, params),
        setup=tuple(read_registers(fields, params)),
        body=_read_text(fields),
    )
    fields.end()
    return {"program": program}, {"smem": smem.size}


def _read_text(fields):
    """Text of instructions: one string, or a list of lines."""
    text = fields.raw("program")
    lines = text if isinstance(text, list) else [text]
    if not all(isinstance(line, str) for line in lines):
        raise fields.wrong("program", "must be a string, or a list of strings")
    try:
        return tuple(assemble_program("\n".join(lines)))
    except UsageError as error:
        raise fields.wrong("program", str(error)) from None


def _read_gemm(fields, folder):
    params = read_params(fields)
    kind = _TYPES[fields.choice("type", list(_TYPES))]
    m, n, k = (fields.integer(name, 1, 65535) for name in ("m", "n", "k"))
    transpose = fields.integer("t", 0, 1, 0)
    merged = {name: fields.integer(name, 1, 4, 1) for name in ("ka", "kb")}
    order = fields.choice("order", ["k", "columns"], "k")
    first = _read_matrix(fields, "a", (m, k), kind, folder)
    second = _read_matrix(fields, "b", (k, n) if transpose else (n, k), kind, folder)
    fields.end()
    columns = second if transpose else second.T
    options = {"transpose": transpose, "order": order, **merged}
    product = gemm_program(first, columns, kind, sizes=params, size_bytes=params.smem.size_bytes, **options)
    attributes = {"program": PeProgram.of_product(product), "output": product.result, "macs": m * n * k}
    return attributes, {"smem": params.smem.size_bytes, "output": m * n * 4}


def _read_matrix(fields, name, shape, kind, folder):
    """Raw bits of a matrix: an init as of a memory, or normally distributed numbers."""
    init = fields.inner(name)
    size = shape[0] * shape[1]
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


#: Kinds, and what reads the rest of such a case: attributes of the ``PeCase``, and bytes of the memories it leaves.
PE_KINDS = {"program": _read_program, "gemm": _read_gemm}
