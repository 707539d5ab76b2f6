"""Replay cases of the processing engine (docs/replay.md): the kinds program and gemm."""

from collections.abc import Callable
from dataclasses import dataclass

from tilewright.golden.patterns import fill_pattern
from tilewright.golden.pe.program import gemm_program
from tilewright.golden.spec.pe.errors import PeError

from ...asm.pe.assembler import assemble_program
from ...session.pe_program import PeProgram
from ...usage import UsageError
from ..expectations import read_expectation
from ..images import read_image
from ..operands import read_operand, read_type
from ..text import read_text
from .tables import read_pages, read_params, read_registers, read_segments

__all__ = ["PE_KINDS", "PeCase", "read_pe_case"]


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
    """

    name: str
    kind: str
    expect: dict
    program: PeProgram
    output: Callable | None = None
    macs: int | None = None


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
        body=read_text(fields, "program", assemble_program),
    )
    fields.end()
    return {"program": program}, {"smem": smem.size}


def _read_gemm(fields, folder):
    params = read_params(fields)
    kind = read_type(fields)
    m, n, k = (fields.integer(name, 1, 65535) for name in ("m", "n", "k"))
    transpose = fields.integer("t", 0, 1, 0)
    merged = {name: fields.integer(name, 1, 4, 1) for name in ("ka", "kb")}
    order = fields.choice("order", ["k", "columns"], "k")
    first = read_operand(fields, "a", (m, k), kind, folder)
    second = read_operand(fields, "b", (k, n) if transpose else (n, k), kind, folder)
    fields.end()
    columns = second if transpose else second.T
    options = {"transpose": transpose, "order": order, **merged}
    product = gemm_program(first, columns, kind, sizes=params, size_bytes=params.smem.size_bytes, **options)
    attributes = {"program": PeProgram.of_product(product), "output": product.result, "macs": m * n * k}
    return attributes, {"smem": params.smem.size_bytes, "output": m * n * 4}


#: Kinds, and what reads the rest of such a case: attributes of the ``PeCase``, and bytes of the memories it leaves.
PE_KINDS = {"program": _read_program, "gemm": _read_gemm}
