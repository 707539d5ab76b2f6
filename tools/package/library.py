"""The C library of ``c/`` with what is generated for it from ``spec/``: constants, structures, tables and sentences."""

import importlib.metadata
import re
import textwrap
from importlib.resources import files

from tilewright.spec import BLOCK, COMMAND, DESCRIPTOR, DESCRIPTOR_VERSION, GROUP, LANES, REPLACE, Error
from tilewright.spec.conv import JOB, JOB_VERSION, ConvError
from tilewright.spec.core import PROGRAM_WORDS, Engine, Kind, ProgramError
from tilewright.spec.pe import PAGE_ENTRY, SEGMENT, PeError

from .header import FORMAT_NOTES, FUNCTIONS, all_definitions
from .ports import member_docs

__all__ = ["FORMS", "Form", "library_files"]


class Form:
    """A format as a structure in C, with the table that packs it.

    Parameters
    ----------
    fmt : Format
    name : str or None
        Name of the structure without ``tw_``; None: the name of the format.
    constant : (str, int) or None
        Name of the field that has the same value in every word, and the value; the structure lacks it.
    """

    def __init__(self, fmt, name=None, constant=None):
        self.format, self.name = fmt, name or fmt.name
        self.constant, self.value = constant or (None, 0)
        for field in fmt.fields:
            half = 64 if field.width > 32 else 32
            if any(
                lsb // half != (lsb + field.width - 1) // half or (self.is_wide(field) and lsb % 32)
                for lsb in field.lsbs
            ):
                raise ValueError(f"{fmt.name}.{field.name} crosses a half of a word, which tw_pack cannot express")
            if (field.count or 1) > 16 or (field.count and field.pitch != max(4, 1 << (field.width - 1).bit_length())):
                raise ValueError(f"the elements of {fmt.name}.{field.name} do not lie as tw_pack has them")

    @staticmethod
    def is_wide(field):
        """Whether values of a field need 64 bits."""
        return field.range[1] >= 1 << 32

    @staticmethod
    def c_type(field):
        """The type of the member of a field."""
        return "uint64_t" if Form.is_wide(field) else "int32_t" if field.signed else "uint32_t"

    def declaration(self):
        """Lines of the structure, and of the function that packs it."""
        yield f"\n/* {_wrapped(self.format.doc)} */"
        yield f"struct tw_{self.name} {{"
        for field in self.format.fields:
            if field.name != self.constant:
                size = f"[{field.count}]" if field.count else ""
                yield f"    {self.c_type(field)} {field.name}{size}; /* {_wrapped(field.doc, 8)} */"
        words = self.format.bits // 64
        given = f"uint64_t words[{words}], const struct tw_{self.name} *members"
        yield f"}};\nextern const tw_format tw_{self.name}_format;"
        yield f"static inline tw_status tw_{self.name}_pack({given})"
        yield f"{{\n    return tw_pack(words, &tw_{self.name}_format, members);\n}}"

    def table(self):
        """Lines of the table."""
        yield f"\nstatic const tw_field {self.name}_fields[] = {{"
        for field in self.format.fields:
            constant = field.name == self.constant
            offset = "0" if constant else f"offsetof(struct tw_{self.name}, {field.name}) / 4"
            flags = [
                name
                for name, given in (
                    ("WIDE", self.is_wide(field)), ("SIGNED", field.signed), ("BIASED", field.bias),
                    ("CONSTANT", constant),
                )
                if given
            ]  # fmt: skip
            shape = " | ".join([str((field.count or 1) - 1), *(f"TW_FIELD_{flag}" for flag in flags)])
            yield f"    {{{field.lsb} | {field.width - 1} << 10, {shape}, {offset}}},"
        fields, words = len(self.format.fields), self.format.bits // 64
        yield f"}};\nconst tw_format tw_{self.name}_format = {{{self.name}_fields, {fields}, {words}, {self.value}}};"


_PACKED_KINDS = (Kind.PE, Kind.BARRIER, Kind.WAIT_ALL, Kind.REGISTER, Kind.LOOP, Kind.KERNEL, Kind.END)
#: Formats that the library packs.
FORMS = (
    Form(DESCRIPTOR, constant=("version", DESCRIPTOR_VERSION)),
    *map(Form, (COMMAND, BLOCK, GROUP, REPLACE, LANES)),
    Form(JOB, constant=("version", JOB_VERSION)),
    *map(Form, (SEGMENT, PAGE_ENTRY)),
    *(Form(PROGRAM_WORDS[kind], f"program_{kind.name.lower()}", ("kind", kind)) for kind in _PACKED_KINDS),
)  # fmt: skip

#: Codes of the records of each engine, in the order of their numbers; 0 is the command processor.
_RECORDS = {0: ("program", ProgramError), Engine.TMAU: ("tmau", Error), Engine.PE: ("pe", PeError),
            Engine.CONV: ("conv", ConvError)}  # fmt: skip

_NOTICE = """\
/*
 * Tilewright {version}, generated from its specification by `tilewright header --library`. Licence: Apache-2.0.
"""


def library_files():
    """The files of the library, a dict of str to str."""
    sources = {
        path.name: path.read_text(encoding="utf-8")
        for path in sorted(files("tilewright.c").iterdir(), key=lambda path: path.name)
        if path.name.endswith((".c", ".h"))
    }
    notice = _NOTICE.format(version=importlib.metadata.version("tilewright"))
    return sources | {
        "tilewright_spec.h": _header(notice),
        "tilewright_formats.c": _formats(notice),
        "tilewright_sentences.c": _sentences(notice),
    }


def _wrapped(text, indent=0):
    """Text of a comment; further lines begin with a star."""
    return f"\n{' ' * indent} * ".join(textwrap.wrap(text.replace("``", ""), 108 - indent))


def _header(notice):
    opening = f"{notice} *\n{FORMAT_NOTES}\n */\n#ifndef TILEWRIGHT_SPEC_H\n#define TILEWRIGHT_SPEC_H\n\n"
    lines = [
        "#include <stdint.h>\n", FUNCTIONS, *all_definitions(), _FORMAT_TYPES,
        *(line for form in FORMS for line in form.declaration()),
        "\n/* Sentences of error codes, by code, each with a zero at its end; an empty one is after the last. */",
        *(f"extern const char tw_{name}_sentences[];" for name, _ in _RECORDS.values()),
    ]  # fmt: skip
    return opening + "\n".join(lines) + "\n\n#endif /* TILEWRIGHT_SPEC_H */\n"


_FORMAT_TYPES = """
/*
 * How a member of a structure lies in the words of its format: see tw_pack. Elements of an array are as far apart as
 * the least power of two that holds one, at least 4 bits.
 */
typedef struct {
    uint16_t place; /* bits 9 to 0: its lowest bit; bits 15 to 10: its width - 1 */
    uint8_t shape; /* bits 3 to 0: elements - 1; bits 7 to 4: flags */
    uint8_t offset; /* of the member in the structure, in units of 4 bytes */
} tw_field;
#define TW_FIELD_LSB(field) ((field)->place & 0x3FFu)
#define TW_FIELD_WIDTH(field) (((field)->place >> 10) + 1u)
#define TW_FIELD_COUNT(field) (((field)->shape & 15u) + 1)
#define TW_FIELD_WIDE 16 /* the member has 64 bits */
#define TW_FIELD_SIGNED 32 /* two's complement */
#define TW_FIELD_BIASED 64 /* the stored number is the value minus one */
#define TW_FIELD_CONSTANT 128 /* no member; the stored number is `constant` of the format */

/* The fields of a structure, in the order of their numbers in error records. */
typedef struct {
    const tw_field *fields;
    uint8_t count, words, constant;
} tw_format;

/* 0, or why something was refused or failed; tilewright.h has its parts. */
typedef uint32_t tw_status;

/* Packs a structure to the words of its format. TW_LIBRARY_VALUE, with its number: a value does not fit its field. */
tw_status tw_pack(uint64_t *words, const tw_format *format, const void *members);"""


def _formats(notice):
    includes = '#include "tilewright.h"\n\n#include <stddef.h>'
    return "\n".join([f"{notice} */\n{includes}", *(line for form in FORMS for line in form.table())]) + "\n"


def _sentences(notice):
    lines = [f'{notice} */\n#include "tilewright.h"']
    for name, codes in _RECORDS.values():
        docs = member_docs(codes)
        lines.append(f"\nconst char tw_{name}_sentences[] =")
        for code in range(max(codes) + 1):
            member = codes(code) if code in set(codes) else None
            sentence = docs.get(member.name, "no error") if member is not None else "unknown"
            # What a processor cannot show: markup, and remarks on values that only Python's records have.
            sentence = re.sub(r"; value is .*", "", sentence.replace("``", ""))
            lines.append(f'    "{sentence}\\0"')
        lines[-1] += ";"
    return "\n".join(lines) + "\n"
