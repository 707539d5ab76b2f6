"""Replay cases of the processing engine (docs/replay.md, "Kind program", "Kind kernel", "Kind gemm")."""

from collections.abc import Callable
from dataclasses import dataclass
from dataclasses import fields as dataclass_fields
from typing import NamedTuple

import numpy as np

from tilewright.errors import UsageError
from tilewright.golden.memory import fill_pattern
from tilewright.golden.pe.checks import instruction_word
from tilewright.golden.pe.machine import BarrierNotCompleteError, Pe
from tilewright.golden.pe.program import gemm_program
from tilewright.hw.pe.params import PE_PRESETS
from tilewright.spec.fields import names
from tilewright.spec.memory import Swizzle
from tilewright.spec.pe import PAGE_ENTRY, SEGMENT, Compare, Operation, PeError, SegmentElement, Source

from ..asm.pe import assemble_program
from ..session.products import PeProgram
from .fields import Fields, read_image, read_operand, read_text, read_type
from .kernel_cases import read_kernel
from .outcome import Judgement, Outcome, read_expectation

__all__ = [
    "PE_KINDS", "PeCase", "ProgramResult", "golden_engine", "judge_pe_case", "pe_outcome", "read_pages", "read_params",
    "read_pe_case", "read_registers", "read_segments", "run_on_golden",
]  # fmt: skip

_ELEMENTS = names(SegmentElement)
_SWIZZLES = names(Swizzle)
#: The predicate that initialisation of registers uses.
_SCRATCH = 7
_U32 = (1 << 32) - 1


def read_params(fields, smem_bytes=None):
    """Reads the member ``pe``: a preset and changed parameters. ``smem_bytes``, if any, are those of the case."""
    member = fields.inner("pe", None) or Fields({}, fields.case, "pe")
    params = PE_PRESETS[member.choice("preset", list(PE_PRESETS), "default")]
    names = [field.name for field in dataclass_fields(params) if field.name not in ("smem", "types", "units")]
    changes = {
        name: member.flag(name) if isinstance(getattr(params, name), bool) else member.integer(name, 1, 1 << 16)
        for name in names
        if name in member
    }
    changes |= {name: member.raw(name) for name in ("types", "units") if name in member}
    member.end()
    try:
        if smem_bytes is not None:
            changes["smem"] = params.smem.replace(size_bytes=smem_bytes)
        return params.replace(**changes)
    except (TypeError, ValueError) as error:
        raise member.wrong("", f"cannot be: {error}") from None


def read_segments(fields, params):
    """Reads the list ``segments``: words by index. null skips a segment; a wrong one is an error at its use."""
    words = {}
    for index, entry in enumerate(fields.listed("segments", [])):
        name = f"segments[{index}]"
        if index >= params.segments:
            raise fields.wrong(name, f"must be one of {params.segments}")
        if entry is not None:
            words[index] = _read_segment(Fields(entry, fields.case, fields.name(name)))
    return words


def _read_segment(fields):
    if "word" in fields:
        word = _hexadecimal(fields, SEGMENT.bits)
        fields.end()
        return word
    values = {"element": _ELEMENTS[fields.choice("element", list(_ELEMENTS))]}
    values["swizzle"] = _SWIZZLES[fields.choice("swizzle", list(_SWIZZLES), "none")]
    values["size"] = _dimensions(fields, "size", fields.integers("size", 0, 65535))
    values["rank"] = len(values["size"])
    pages = fields.integers("page", 1, 1 << 15, None)
    if pages is None:
        # The smallest page for the whole segment.
        shortest = 16 // values["element"].bytes
        pages = [1 << max(size - 1, 0).bit_length() for size in values["size"]]
        pages[0] = max(pages[0], shortest)
    if len(_dimensions(fields, "page", pages)) != values["rank"] or any(page & page - 1 for page in pages):
        raise fields.wrong("page", f"must be {values['rank']} powers of two")
    values["page_log2"] = [page.bit_length() - 1 for page in pages]
    if "first_entry" in fields:
        values |= {"paged": 1, "first_entry": fields.integer("first_entry", *SEGMENT["first_entry"].range)}
    else:
        values["base"] = fields.integer("base", 0, _U32)
    fields.end()
    return SEGMENT.pack(**values)


def _dimensions(fields, name, numbers):
    if not 1 <= len(numbers) <= SEGMENT["size"].count:
        raise fields.wrong(name, f"must have 1 to {SEGMENT['size'].count} entries, not {len(numbers)}")
    return numbers


def read_pages(fields, params):
    """Reads the list ``pages``: words by index, of loaded pages. null skips an entry, which is then invalid."""
    words = {}
    for index, entry in enumerate(fields.listed("pages", [])):
        name = f"pages[{index}]"
        if index >= params.pages:
            raise fields.wrong(name, f"must be one of {params.pages}")
        if entry is None:
            continue
        page = Fields(entry, fields.case, fields.name(name))
        address, on_chip = page.integer("address", 0, _U32), page.flag("on_chip", True)
        page.end()
        words[index] = PAGE_ENTRY.pack(address=address, valid=1, loaded=1, on_chip=on_chip)
    return words


def read_registers(fields, params):
    """Reads the object ``registers``: instructions that initialise registers, and change predicate 7.

    A value is a number, "tid", or a list of numbers, one for each thread.
    """
    words = []
    registers = fields.inner("registers", None)
    for name in registers.remaining() if registers else []:
        number = int(name[1:]) if name[:1] == "r" and name[1:].isdecimal() else params.regs
        if number >= params.regs:
            raise registers.wrong(name, f"must be a register, r0 to r{params.regs - 1}")
        words += _set_register(registers, name, number, params.threads)
    return words


def _set_register(registers, name, number, threads):
    member = registers.peek(name)
    if member == "tid":
        registers.raw(name)
        return [instruction_word(Operation.MOV, rd=number, source=Source.THREAD)]
    if not isinstance(member, list):
        return [instruction_word(Operation.MOV, rd=number, imm=registers.integer(name, 0, _U32))]
    values = registers.integers(name, 0, _U32)
    if len(values) != threads:
        raise registers.wrong(name, f"must have {threads} entries, one for each thread, not {len(values)}")
    chosen = {"guard": 1, "predicate": _SCRATCH}
    setters = [
        (
            instruction_word(Operation.SETP, pd=_SCRATCH, source=Source.THREAD, compare=Compare.EQ, imm=thread),
            instruction_word(Operation.MOV, rd=number, imm=value, **chosen),
        )
        for thread, value in enumerate(values)
    ]
    return [word for pair in setters for word in pair]


def _hexadecimal(fields, bits):
    text = fields.text("word")
    try:
        word = int(text, 16)
    except ValueError:
        word = -1
    if not 0 <= word < 1 << bits:
        raise fields.wrong("word", f"must be a hexadecimal number of {bits} bits, not {text!r}")
    return word


@dataclass(frozen=True)
class PeCase:
    """A case of one of ``PE_KINDS``, with all its members in the program.

    Attributes
    ----------
    name, kind : str
    expect : dict
        As in :class:`cases.Case`.
    program : PeProgram
        Error records do not count instructions in ``setup``.
    output : callable or None
        Reads the result of a product from shared memory: uint32, row by row.
    macs : int or None
        Multiplications for the result.
    """

    name: str
    kind: str
    expect: dict
    program: PeProgram
    output: Callable | None = None
    macs: int | None = None


def read_pe_case(fields, name, kind, expect, folder):
    """Reads the rest of a case of one of ``PE_KINDS``; ``expect`` is its member of this name, or None."""
    try:
        attributes, sizes = PE_KINDS[kind](fields, folder)
        return PeCase(name, kind, read_expectation(expect, PeError, sizes), **attributes)
    except ValueError as error:  # sizes that do not fit together
        raise UsageError(f"{fields.case}: {error}") from None


def _read_program(fields, folder):
    return _read_words(fields, folder, lambda params: read_text(fields, "program", assemble_program))


def _read_kernel(fields, folder):
    return _read_words(fields, folder, lambda params: read_kernel(fields, params))


def _read_words(fields, folder, read_body):
    """A case with its memory, tables and registers; ``read_body`` returns the words of its program."""
    smem = read_image(fields.inner("smem"), 1 << 20, (fill_pattern, 205), folder)
    params = read_params(fields, smem.size)
    program = PeProgram(
        params=params,
        smem=smem.contents(),
        segments=read_segments(fields, params),
        pages=read_pages(fields, params),
        setup=tuple(read_registers(fields, params)),
        body=read_body(params),
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


#: Kinds and their readers, which return attributes of the ``PeCase``, and sizes of its memories.
PE_KINDS = {"program": _read_program, "kernel": _read_kernel, "gemm": _read_gemm}


class ProgramResult(NamedTuple):
    """Shared memory and errors after a program.

    Attributes
    ----------
    smem : uint8 array
        All of shared memory.
    faults : list of Fault
        One for each instruction with an error, in program order; the first is the error record.
    """

    smem: np.ndarray
    faults: list


def golden_engine(program, kind=Pe):
    """The golden model, a ``kind`` of it, before the first instruction of a :class:`PeProgram`, with its late pages."""
    engine = kind(program.smem.copy(), program.params)
    for index, word in program.segments.items():
        engine.write_segment(index, word)
    for index, word in (program.pages | (program.late or {})).items():
        engine.write_page(index, word)
    return engine


def run_on_golden(program):
    """Runs a whole program; returns a :class:`ProgramResult`."""
    engine = golden_engine(program)
    engine.run(program.words)
    return ProgramResult(engine.smem, engine.faults)


def pe_outcome(case, result):
    """The :class:`Outcome` of a :class:`PeCase` from the :class:`ProgramResult` of its program."""
    fault = result.faults[0] if result.faults else None
    record = {
        "name": case.name,
        "error": fault.code.name.lower() if fault else None,
        "record": fault and {
            "instruction": fault.number - len(case.program.setup),
            "first": fault.first,
            "last": fault.last,
            "register": fault.register,
        },
    }  # fmt: skip
    memories = {"smem": result.smem}
    if not case.output:
        return Outcome.of(record, memories)
    output = case.output(result.smem).reshape(-1).view("uint8")
    return Outcome.of(record, memories | {"output": output}, macs=case.macs)


def judge_pe_case(case):
    """Runs a case on the golden model; a :class:`Judgement`. UsageError if it waits for a barrier for ever."""
    engine = golden_engine(case.program)
    try:
        engine.run(case.program.words)
    except BarrierNotCompleteError as error:
        raise UsageError(f"case {case.name!r}: {error}") from None
    open_bytes = engine.open.memory
    if case.output and open_bytes:
        open_bytes.undecide("the product")
    return Judgement.of(pe_outcome(case, ProgramResult(engine.smem, engine.faults)), {"smem": open_bytes})
