"""The C header of a top, for drivers: offsets, widths and enumerations of its registers and formats in memory.

Names of formats, registers and encodings begin with ``TW_`` and mean the same in every header. Names of values of this
top begin with the name of its module. Therefore a file can include the headers of several tops.
"""

import importlib.metadata
import inspect
import re
import textwrap
from enum import EnumType
from typing import NamedTuple

from tilewright.board.top import board_regions
from tilewright.hw.core.params import CoreParams
from tilewright.hw.core.top import Core
from tilewright.sim.hdl.settings import groups_of, parameters_of
from tilewright.spec import BARRIER, COMMAND_FIELD, DESCRIPTOR, DESCRIPTOR_VERSION, FORMATS, BarrierOp, Error, Format
from tilewright.spec.cluster import CLUSTER_REGISTERS, DELIVERY, L2_REGISTERS
from tilewright.spec.conv import CONV_REGISTERS, JOB, JOB_VERSION, ConvError
from tilewright.spec.core import PROGRAM_REGISTERS, PROGRAM_WORDS, Kind, ProgramError
from tilewright.spec.pe import (
    INSTRUCTIONS,
    PAGE_ENTRY,
    PE_REGISTERS,
    SEGMENT,
    Compare,
    MmType,
    Operation,
    PeError,
    Put,
    Source,
)
from tilewright.spec.registers import Access
from tilewright.spec.tmau_registers import (
    BARRIER_WINDOW_REGISTERS,
    COMMAND_WINDOW_REGISTERS,
    PROCESSOR_REGISTERS,
    PROCESSOR_STRIDE,
    TMAU_REGISTERS,
    processor_registers,
)

from .fusesoc import notice
from .ports import maps_of, member_docs, ports_of

__all__ = ["FORMAT_NOTES", "FUNCTIONS", "all_definitions", "board_header", "header_text"]


#: What the names of formats mean, for the opening comment of a header.
FORMAT_NOTES = """\
 * A format is an array of 64-bit words, word 0 first, least significant bit first, stored little-endian. No field
 * crosses a word. <FORMAT>_<FIELD>_LSB is the first bit, counted from bit 0 of word 0; element i of an array field
 * begins i * <FORMAT>_<FIELD>_PITCH bits later. The value is the stored number plus <FORMAT>_<FIELD>_BIAS."""
#: What every header has, once in a file that includes several.
FUNCTIONS = """\
#ifndef TILEWRIGHT_FUNCTIONS /* the headers of all tops have them */
#define TILEWRIGHT_FUNCTIONS

/* Stores `stored` in the field of `width` bits at bit `lsb`; bits of it beyond the field are dropped. */
static inline void tw_put(uint64_t *words, unsigned lsb, unsigned width, uint64_t stored)
{
    uint64_t mask = (~(uint64_t)0 >> (64 - width)) << (lsb % 64);

    words[lsb / 64] = (words[lsb / 64] & ~mask) | ((stored << (lsb % 64)) & mask);
}

/* The number stored in the field of `width` bits at bit `lsb`, not sign-extended. */
static inline uint64_t tw_get(const uint64_t *words, unsigned lsb, unsigned width)
{
    return (words[lsb / 64] >> (lsb % 64)) & (~(uint64_t)0 >> (64 - width));
}

#endif /* TILEWRIGHT_FUNCTIONS */
"""
_OPENING = """\
/*
{notice}
 *
{notes}
 */
#ifndef {name}_H
#define {name}_H

#include <stdint.h>

{functions}"""
_CLOSING = "\n#endif /* {name}_H */\n"


class _Part(NamedTuple):
    """The part of a header for an engine.

    Attributes
    ----------
    title : str
    tables : tuple of Format or Register
    prefix : str
        Beginning of their names.
    codes : EnumType or None
        Codes of its error records, or of operations. All other enumerations belong to fields.
    constants : tuple of (str, int, str)
        Names, values and meanings.
    """

    title: str
    tables: tuple
    prefix: str = ""
    codes: EnumType | None = None
    constants: tuple = ()


#: Parts of a header, by group of parameters of the top, or for tops with several cores or processors, or windows.
_PARTS = {
    "smem": (_Part("Shared memory", (BARRIER,), codes=BarrierOp),),
    "tmau": (
        _Part(
            "Access unit: TW_REG_<REGISTER> is the byte offset of a 32-bit word",
            (DESCRIPTOR, *dict.fromkeys(FORMATS.values()), *TMAU_REGISTERS),
            codes=Error,
            constants=(
                ("DESCRIPTOR_LAYOUT_VERSION", DESCRIPTOR_VERSION, "Stored in the field `version` of a descriptor."),
                ("COMMAND_FIELD", COMMAND_FIELD, "Added to a field number in error records if the command has it."),
            ),
        ),
    ),
    "cores": (_Part("Cluster", (DELIVERY, *CLUSTER_REGISTERS)),),
    "processors": (
        _Part("Processors that share the access unit", processor_registers(2, windows=False)),
        _Part(
            "Windows of processor 0",
            PROCESSOR_REGISTERS,
            "PROCESSOR_",
            constants=(("PROCESSOR_REG_STRIDE", PROCESSOR_STRIDE, "Bytes from a processor to the next."),),
        ),
    ),
    "command_window": (
        _Part("Command window: TW_COMMAND_WINDOW_REG_<REGISTER>", COMMAND_WINDOW_REGISTERS, "COMMAND_WINDOW_"),
    ),
    "barrier_window": (
        _Part("Barrier window: TW_BARRIER_WINDOW_REG_<REGISTER>", BARRIER_WINDOW_REGISTERS, "BARRIER_WINDOW_"),
    ),
    "pe": (
        _Part("Processing engine: TW_PE_REG_<REGISTER>", PE_REGISTERS, "PE_", PeError),
        _Part("Tables of the processing engine", (SEGMENT, PAGE_ENTRY)),
        _Part("Instructions of the processing engine: TW_PE_<OPERATION>_<FIELD>", tuple(INSTRUCTIONS.values()), "PE_"),
    ),
    "conv": (
        _Part("Convolution engine: TW_CONV_REG_<REGISTER>", CONV_REGISTERS, "CONV_", ConvError),
        _Part("Jobs of the convolution engine", (JOB,), constants=(
            ("CONVOLUTION_LAYOUT_VERSION", JOB_VERSION, "Stored in the field `version` of a job."),)),
    ),
    "program": (
        _Part("Command processor: TW_PROGRAM_REG_<REGISTER>", PROGRAM_REGISTERS, "PROGRAM_", ProgramError),
        _Part("Words of programs: TW_PROGRAM_<KIND>_<FIELD>", tuple(PROGRAM_WORDS.values()), "PROGRAM_"),
    ),
    "l2": (_Part("Second-level cache: TW_L2_REG_<REGISTER>", L2_REGISTERS, "L2_"),),
}  # fmt: skip
#: Prefixes of enumerations whose names are common words.
_PREFIXES = dict.fromkeys((Operation, MmType, Compare, Source, Put), "PE_") | {Kind: "PROGRAM_"}


def _snake(name):
    """``L2Promotion`` → ``L2_PROMOTION``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).upper()


def _comment(doc):
    text = textwrap.wrap(doc.replace("``", ""), 114)
    return "/* " + "\n * ".join(text) + " */"


def _define(name, value):
    return f"#define TW_{name} {value}"


def _format_lines(fmt, prefix=""):
    name = prefix + fmt.name.upper()
    yield "\n" + _comment(fmt.doc)
    yield _define(f"{name}_WORDS", fmt.bits // 64)
    for field in fmt.fields:
        stem = f"{name}_{field.name.upper()}"
        if any(lsb // 64 != (lsb + field.width - 1) // 64 for lsb in field.lsbs):
            raise ValueError(f"{fmt.name}.{field.name} crosses a 64-bit word, which the header cannot express")
        yield _comment(field.doc)
        yield _define(f"{stem}_LSB", field.lsb)
        yield _define(f"{stem}_WIDTH", field.width)
        if field.count:
            yield _define(f"{stem}_COUNT", field.count)
            yield _define(f"{stem}_PITCH", field.pitch)
        yield _define(f"{stem}_BIAS", field.bias)


def _register_lines(register, prefix=""):
    name = f"{prefix}REG_{register.name.upper()}"
    yield "\n" + _comment(f"{register.doc} ({register.access.value})")
    yield _define(name, f"0x{register.offset:02x}")
    if register.access is Access.CONSTANT:
        yield _define(f"{name}_VALUE", f"0x{register.reset:08x}")
    for field in register.fields:
        yield _define(f"{name}_{field.name.upper()}_LSB", field.lsb)
        yield _define(f"{name}_{field.name.upper()}_WIDTH", field.width)


def _enum_lines(enumeration):
    docs = member_docs(enumeration)
    yield "\n" + _comment(inspect.getdoc(enumeration).splitlines()[0])
    for member in enumeration:
        define = _define(f"{_PREFIXES.get(enumeration, '')}{_snake(enumeration.__name__)}_{member.name}", int(member))
        doc = docs.get(member.name)
        yield f"{define} {_comment(doc)}" if doc else define


def _part_lines(part):
    yield "\n" + _comment(f"{part.title}.")
    for table in part.tables:
        yield from (_format_lines if isinstance(table, Format) else _register_lines)(table, part.prefix)
    for name, value, meaning in part.constants:
        yield f"{_define(name, value)} {_comment(meaning)}"


def _parts(params):
    """The parts that a top with these parameters has."""
    groups = groups_of(params)
    tmau = groups.get("tmau")
    if tmau:
        groups |= {name: None for name in ("cores", "processors") if getattr(tmau, name) > 1}
        groups |= {name: None for name in ("command_window", "barrier_window") if getattr(tmau, name)}
    return [part for name, parts in _PARTS.items() if name in groups for part in parts]


def _top_lines(component, stem):
    """Sizes, addresses and ports of a top, whose names begin with ``stem``."""
    yield f"\n/* {type(component).__name__}: parameters. */"
    for path, value in parameters_of(component.params).items():
        name = f"{stem}_{path.replace('.', '_')}".upper()
        if isinstance(value, tuple):  # members of a set: those that are present
            yield from (f"#define {name}_{member.upper()} 1" for member in value)
        else:
            yield f"#define {name} {int(value)}"
    tmau = groups_of(component.params).get("tmau")
    for name in ("cores", "processors") if tmau else ():
        yield f"#define {stem}_{name.upper()} {getattr(tmau, name)}"
    for port, regions in maps_of(component).items():
        yield f"\n/* Address map of {port}: first byte address of each region, and bytes. */"
        for region in regions:
            yield f"#define {stem}_{region.name.upper()}_BASE 0x{region.base:x} {_comment(region.meaning)}"
            yield f"#define {stem}_{region.name.upper()}_SIZE 0x{region.size:x}"
    for port in ports_of(component):
        if port.fields:
            yield "\n" + _comment(f"{port.name}, {port.width} bits: {port.meaning}")
        for field in port.fields:
            name = f"{stem}_{port.name}_{field.name}".upper()
            yield f"#define {name}_LSB {field.lsb} {_comment(field.meaning)}"
            yield f"#define {name}_WIDTH {field.width}"
            if field.count:
                yield f"#define {name}_COUNT {field.count}"
                yield f"#define {name}_PITCH {field.width}"


def header_text(choice):
    """The header of a :class:`~.choice.Choice`, as one string."""
    component, stem = choice.component(), choice.name.upper()
    return _text(stem, notice(choice), _parts(component.params), _top_lines(component, stem))


def board_header(name, params):
    """The header of the design for a board, ``name`` in lower case: a core, and what the computer sees where.

    Parameters
    ----------
    name : str
    params : BoardParams
    """
    stem, core = name.upper(), Core(CoreParams(params.tmau))
    version = importlib.metadata.version("tilewright")
    says = [f"{name}: the design for a board.", f"Made by Tilewright {version}; do not edit."]
    window = "The command window, and global memory from its address 0 on. The regions of the core are as above."
    lines = [*_top_lines(core, stem), f"\n{_comment(window)}"]
    _, regions = board_regions(params)
    for place in ("commands", "memory"):
        lines.append(f"#define {stem}_{place.upper()}_BASE 0x{regions[place].base:x}")
        lines.append(f"#define {stem}_{place.upper()}_SIZE 0x{regions[place].size:x}")
    return _text(stem, says, [*_parts(core.params), *_PARTS["command_window"]], lines)


def _text(stem, says, parts, lines):
    says = "\n".join(f" * {line}".rstrip() for line in says)
    opening = _OPENING.format(notice=says, notes=FORMAT_NOTES, functions=FUNCTIONS, name=stem)
    return opening + "\n".join([*_definitions(parts), *lines]) + "\n" + _CLOSING.format(name=stem)


def all_definitions():
    """Lines that define everything that is the same for every top."""
    return _definitions([part for parts in _PARTS.values() for part in parts])


def _definitions(parts):
    """Lines of registers, formats and enumerations."""
    tables = [table for part in parts for table in part.tables]
    used = [field.enum for table in tables for field in table.fields if field.enum]
    enumerations = dict.fromkeys([part.codes for part in parts if part.codes] + used)
    yield from (line for part in parts for line in _part_lines(part))
    yield from (line for enumeration in enumerations for line in _enum_lines(enumeration))
