"""Sizes, segments, page entries and registers of replay cases of the processing engine.

Specification: docs/replay.md, "Kind program".
"""

from dataclasses import fields as dataclass_fields

from tilewright.golden.pe.machine import instruction_word
from tilewright.golden.spec.fields import names
from tilewright.golden.spec.pe.instruction import Compare, Operation, Source
from tilewright.golden.spec.pe.segment import PAGE_ENTRY, SEGMENT, SegmentElement
from tilewright.golden.spec.swizzle import Swizzle
from tilewright.hw.pe.params import PE_PRESETS

from ..fields import Fields

__all__ = ["read_pages", "read_params", "read_registers", "read_segments"]

_ELEMENTS = names(SegmentElement)
_SWIZZLES = names(Swizzle)
#: The predicate that giving registers their values changes.
_SCRATCH = 7
_U32 = (1 << 32) - 1


def read_params(fields, smem_bytes=None):
    """The member ``pe``: a preset, and sizes that are others than its own; ``smem_bytes``: as the case says."""
    given = fields.inner("pe", None) or Fields({}, fields.case, "pe")
    params = PE_PRESETS[given.choice("preset", list(PE_PRESETS), "default")]
    names = [field.name for field in dataclass_fields(params) if field.name not in ("smem", "types")]
    changes = {
        name: given.flag(name) if isinstance(getattr(params, name), bool) else given.integer(name, 1, 1 << 16)
        for name in names
        if name in given
    }
    if "types" in given:
        changes["types"] = given.raw("types")
    given.end()
    try:
        if smem_bytes is not None:
            changes["smem"] = params.smem.replace(size_bytes=smem_bytes)
        return params.replace(**changes)
    except (TypeError, ValueError) as error:
        raise given.wrong("", f"cannot be: {error}") from None


def read_segments(fields, params):
    """The list ``segments``: words by their index. null leaves one out; a wrong one is an error when it is used."""
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
        # The smallest page that holds all of it, and that is not too short.
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
    """The list ``pages``: words by their index; null leaves one out, and it is not valid. All others are loaded."""
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
    """The object ``registers``: instructions that give registers their values, and that change predicate 7.

    A value is a number, "tid", or a list of one number a thread.
    """
    words = []
    registers = fields.inner("registers", None)
    for name in registers.rest() if registers else []:
        number = int(name[1:]) if name[:1] == "r" and name[1:].isdecimal() else params.regs
        if number >= params.regs:
            raise registers.wrong(name, f"must be a register, r0 to r{params.regs - 1}")
        words += _set_register(registers, name, number, params.threads)
    return words


def _set_register(registers, name, number, threads):
    given = registers.peek(name)
    if given == "tid":
        registers.raw(name)
        return [instruction_word(Operation.MOV, rd=number, source=Source.THREAD)]
    if not isinstance(given, list):
        return [instruction_word(Operation.MOV, rd=number, imm=registers.integer(name, 0, _U32))]
    values = registers.integers(name, 0, _U32)
    if len(values) != threads:
        raise registers.wrong(name, f"must have {threads} entries, one a thread, not {len(values)}")
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
