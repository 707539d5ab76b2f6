"""The generated pages of the documentation, for all engines."""

from pathlib import Path

from tilewright import spec
from tilewright.hw.conv.params import CONV_UNIT_PRESETS
from tilewright.hw.core.params import CORE_PRESETS, ENGINES
from tilewright.hw.pe.params import PE_PRESETS, PeParams
from tilewright.hw.smem.params import SmemParams
from tilewright.hw.tmau.params import TMAU_PRESETS, TmauParams
from tilewright.spec.conv import CONV_PRESETS, CONV_REGISTERS, JOB, ConvError, ConvParams
from tilewright.spec.core import PROGRAM_REGISTERS, PROGRAM_WORDS, ProgramError
from tilewright.spec.pe import INSTRUCTIONS, PAGE_ENTRY, PE_REGISTERS, SEGMENT, PeError
from tilewright.spec.tmau_registers import BARRIER_WINDOW_REGISTERS, COMMAND_WINDOW_REGISTERS, TMAU_REGISTERS

from ..package.choice import Choice
from ..package.header import header_text
from .field_tables import errors_page, format_page, instructions_page, parameters_page, registers_page
from .interfaces import address_map_page, ports_page
from .stages import stages_text

__all__ = ["generated_pages"]

#: The page of stages, for rows without new measurements.
_STAGES = Path("STAGES.md")
_INSTRUCTIONS = (
    "16 bytes, stored little-endian: bit 0 is the least significant bit of byte 0. The opcode determines the "
    "format of an instruction; bits in no field of the format are zero. [The processing engine](pe.md) says what each "
    "instruction does. `tilewright asm --pe FILE` assembles text, and `--back` disassembles words."
)
_ERRORS = (
    "A command that breaks a rule is dropped: no byte moves and no barrier moves. An error record has the "
    "code, the tag of the command, and the field, as its number in the [descriptor](descriptor.md), or "
    "{first} + its number in the command's format: {formats}. A command that breaks "
    "several rules reports the lowest code, then the lowest field. Records of bus errors and of barrier operations "
    "have an address."
)
_PE_ERRORS = (
    "An [instruction](instructions.md) with an error does not stop later instructions. Its record has the "
    "code, the number of the instruction, the first and last thread, and the register. "
    "[Errors](pe.md#errors) has the order of the checks.",
    "Up to `BARRIER`, and with `STOPPED`, the instruction does nothing, and the record names all threads. From "
    "`PRODUCT` to `MEMORY` only the accesses with the error are left out.",
)
_CONV_ERRORS = (
    "A [job](convolution.md) that breaks a rule is refused: nothing is written and no barrier moves. Its record has "
    "the code, the number of the field and the tag. [Checks](conv.md#checks) has the order of the rules.",
)
_WORDS = (
    "64 bytes, stored little-endian: bit 0 is the least significant bit of byte 0. The kind determines the format "
    "of a word; bits in no field of the format are zero, except in a command. [The command processor](core.md) says "
    "what each word does. `tilewright asm --core FILE` assembles text, and `--back` disassembles words."
)
_PROGRAM_ERRORS = (
    "A [program](core.md) with an error stops: no further word is executed. Its record has the code, the "
    "engine with the error, the tag and the index of the word.",
)

#: The top whose C header is shown: all engines.
_EXAMPLE = Choice("core", "default", engines=ENGINES)


def generated_pages():
    """Texts by file name."""
    formats = ", ".join(f"[{fmt.name}]({fmt.name}.md)" for fmt in dict.fromkeys(spec.FORMATS.values()))
    return {
        "descriptor.md": format_page(spec.DESCRIPTOR),
        **{f"{fmt.name}.md": format_page(fmt) for fmt in spec.FORMATS.values()},
        "barrier.md": format_page(spec.BARRIER, spec.BarrierOp),
        "registers.md": registers_page(TMAU_REGISTERS, "tmau", TMAU_PRESETS),
        "errors.md": errors_page("Errors", spec.Error, _ERRORS.format(first=spec.COMMAND_FIELD, formats=formats)),
        "parameters.md": parameters_page(TMAU_PRESETS, TmauParams, SmemParams),
        "instructions.md": instructions_page("Instructions", _INSTRUCTIONS, INSTRUCTIONS),
        "segment.md": format_page(SEGMENT, recorded=False),
        "page_entry.md": format_page(PAGE_ENTRY, recorded=False),
        "pe_errors.md": errors_page("Errors of the processing engine", PeError, *_PE_ERRORS),
        "pe_registers.md": registers_page(PE_REGISTERS, "pe", PE_PRESETS, title="Registers of the processing engine"),
        "pe_parameters.md": parameters_page(PE_PRESETS, PeParams, title="Parameters of the processing engine"),
        "convolution.md": format_page(JOB),
        "conv_errors.md": errors_page("Errors of the convolution engine", ConvError, *_CONV_ERRORS),
        "conv_registers.md": registers_page(
            CONV_REGISTERS, "conv", CONV_UNIT_PRESETS, title="Registers of the convolution engine"
        ),
        "conv_parameters.md": parameters_page(CONV_PRESETS, ConvParams, title="Parameters of the convolution engine"),
        "program_words.md": instructions_page("Words of programs", _WORDS, PROGRAM_WORDS, "Kind"),
        "program_errors.md": errors_page("Errors of programs", ProgramError, *_PROGRAM_ERRORS),
        "program_registers.md": registers_page(
            PROGRAM_REGISTERS, "program", CORE_PRESETS, title="Registers of the command processor"
        ),
        "command_window.md": registers_page(
            COMMAND_WINDOW_REGISTERS, "commands", TMAU_PRESETS, title="Registers of the command window"
        ),
        "barrier_window.md": registers_page(
            BARRIER_WINDOW_REGISTERS, "barriers", TMAU_PRESETS, title="Registers of the barrier window"
        ),
        "ports.md": ports_page(),
        "address_map.md": address_map_page(),
        "stages.md": stages_text(_STAGES.read_text(encoding="utf-8") if _STAGES.exists() else ""),
        f"{_EXAMPLE.name}.h": header_text(_EXAMPLE),
    }
