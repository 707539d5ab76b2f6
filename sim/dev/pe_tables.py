"""Pages of the documentation on the processing engine, made from its tables."""

from tilewright.golden.spec.pe.errors import PeError
from tilewright.golden.spec.pe.instruction import INSTRUCTIONS

from .tables import enum_sections, enum_table, fields_table

__all__ = ["instructions_page", "pe_errors_page"]


def instructions_page():
    """Page of the formats of all instructions."""
    parts = [
        "# Instructions\n",
        "16 bytes, stored little-endian: bit 0 is the least significant bit of byte 0. The opcode says which of the "
        "formats an instruction has; bits in no field of it are zero. [The processing engine](pe.md) says what each "
        "one does. `tilewright asm --pe FILE` makes words of their text, and with `--back` text of words.\n",
    ]
    for operation, fmt in INSTRUCTIONS.items():
        name = operation.name.lower().replace("_", ".")
        parts += [f"## {name}\n", f"{fmt.doc} Opcode {int(operation)}.\n", fields_table(fmt)]
    fields = [field for fmt in INSTRUCTIONS.values() for field in fmt.fields]
    return "\n".join(parts + enum_sections(fields))


def pe_errors_page():
    """Page of the error codes of the processing engine."""
    return "\n".join(
        [
            "# Errors of the processing engine\n",
            "An [instruction](instructions.md) that meets an error does not stop those behind it. Its record says "
            "which: code, number of the instruction, first and last thread, and register. In which order they are "
            "looked for is said with [the engine](pe.md#errors).\n",
            "Up to `BARRIER` the instruction does nothing, and the record names all threads. From `PRODUCT` on only "
            "the accesses that meet it are left out.\n",
            enum_table(PeError),
        ]
    )
