"""Pages made from tables."""

from enum import IntEnum

import pytest

from tilewright.hw.conv.params import CONV_UNIT_PRESETS
from tilewright.hw.core.params import CORE_PRESETS
from tilewright.hw.pe.params import PE_PRESETS
from tilewright.hw.smem.params import SmemParams
from tilewright.hw.tmau.params import TMAU_PRESETS, TmauParams
from tilewright.spec import BLOCK, COMMAND, DESCRIPTOR, FORMATS, GROUP, LANES, REPLACE
from tilewright.spec.conv import CONV_PRESETS, CONV_REGISTERS, JOB, ConvParams
from tilewright.spec.core import PROGRAM_REGISTERS, PROGRAM_WORDS, Kind
from tilewright.spec.pe import PE_REGISTERS
from tilewright.spec.tmau_registers import TMAU_REGISTERS
from tilewright.tools.docs.field_tables import (
    enum_table,
    format_page,
    instructions_page,
    parameters_page,
    registers_page,
    table,
)

#: Registers and presets by region.
REGISTERS = {
    "tmau": (TMAU_REGISTERS, TMAU_PRESETS),
    "pe": (PE_REGISTERS, PE_PRESETS),
    "conv": (CONV_REGISTERS, CONV_UNIT_PRESETS),
    "program": (PROGRAM_REGISTERS, CORE_PRESETS),
}


class Colour(IntEnum):
    """A colour."""

    RED = 1  #: of ``fire``
    BLUE = 4


def test_a_bar_in_a_cell_does_not_end_it():
    assert table(["a"], [["x | y"]]) == "| a |\n| --- |\n| x \\| y |\n"


def test_enum_table():
    assert enum_table(Colour).splitlines()[2:] == ["| 1 | `RED` | of `fire` |", "| 4 | `BLUE` |  |"]


@pytest.mark.parametrize(
    "fmt", [DESCRIPTOR, *dict.fromkeys(FORMATS.values()), JOB, *PROGRAM_WORDS.values()], ids=lambda fmt: fmt.name
)
def test_every_field_has_a_row_and_a_number(fmt):
    page = format_page(fmt)
    for number, field in enumerate(fmt.fields):
        assert f"| {number} | `{field.name}`" in page


def test_rows_by_hand():
    assert "| 5 | `smem` | 32–63 | 32 |  | Byte address in shared memory" in format_page(COMMAND)
    assert "| 8 | `coords` × 5 | 192–223, +32 each | 32 | signed |" in format_page(COMMAND)
    assert "| 5 | `size` | 32–63 | 32 |  | Bytes: a multiple of 16" in format_page(BLOCK)
    assert "| 7 | `source_space` | 96 | 1 | [Space](#space) |" in format_page(BLOCK)
    assert "| 3 | `read` | 40 | 1 |  | WAIT: 1:" in format_page(GROUP)
    assert "| 3 | `index` | 40–42 | 3 |  | Element of an array field" in format_page(REPLACE)
    assert "| 7 | `shape` × 4 | 256–271, +16 each | 16 | value − 1 | Elements, W H C N" in format_page(LANES)
    assert "| 11 | `destination_layout` | 330–331 | 2 | [LaneLayout](#lanelayout) |" in format_page(LANES)
    assert "| 12 | `size` × 5 | 128–159, +32 each | 32 | value − 1 |" in format_page(DESCRIPTOR)
    assert "| 8 | `unaligned` | 24 | 1 |" in format_page(DESCRIPTOR)
    assert "| 9 | `merge` | 32–39 | 8 | value − 1 |" in format_page(JOB)
    assert "| 40 | `addend_pitch` × 3 | 864–895, +32 each | 32 |" in format_page(JOB)


def test_words_of_programs():
    page = instructions_page("Words", "Sixty-four bytes.", PROGRAM_WORDS, "Kind")
    assert "\n## wait.all\n\nWaits until engines have finished all of their work. Kind 5.\n" in page
    assert "| 2 | `address` | 64–127 | 64 |  | Global byte address of the first one" in page
    assert all(f"| {int(kind)} | `{kind.name}` |" in page for kind in Kind)


def test_every_enumeration_has_its_section():
    page = format_page(DESCRIPTOR)
    for name in ("Mode", "Element", "Interleave", "Swizzle", "Fill", "L2Promotion"):
        assert f"\n## {name}\n" in page
        assert f"[{name}](#{name.lower()})" in page


@pytest.mark.parametrize("name", REGISTERS)
def test_every_register_has_a_row_and_every_field_too(name):
    registers, presets = REGISTERS[name]
    page = registers_page(registers, name, presets)
    for register in registers:
        section = page.split(f"\n## {register.name}\n")[1].split("\n## ")[0]
        assert all(f"| `{field.name}` | " in section for field in register.fields)
        assert f"| 0x{register.offset:02X} | `{register.name}` | {register.access.value} |" in page


def test_bits_of_registers_and_what_is_stored_in_them():
    page = registers_page(TMAU_REGISTERS, "tmau", TMAU_PRESETS)
    assert "## status\n\n| bits | field | meaning |\n| --- | --- | --- |\n| 0 | `idle` |" in page
    assert "| 8–15 | `queue_level` |" in page
    page = registers_page(PE_REGISTERS, "pe", PE_PRESETS, title="Registers of an engine")
    assert page.startswith("# Registers of an engine\n")
    assert "| 0–2 | `kind` | Kind of the contents. [Put](#put) |" in page
    assert "\n## Put\n" in page
    assert "| 4 | `PAGE_IN` | sixteen words:" in page


def test_what_registers_read_after_reset():
    page = registers_page(TMAU_REGISTERS, "tmau", TMAU_PRESETS)
    assert "| 0x24 | `status` | read-only | 0x1 | What the unit does now. |" in page
    assert "| 0x10 | `params2` | read-only | [by preset](#parameters) |" in page
    assert "| `params2` | 0x1000 | 0x8000 | 0x20000 | 0x20000 | 0x40000 |" in page
    assert "## params2\n\n| bits | field | meaning |\n| --- | --- | --- |\n| 0–31 | `smem_bytes` |" in page


def test_parameters_of_all_presets():
    page = parameters_page(TMAU_PRESETS, TmauParams, SmemParams)
    assert "| `bus_bytes` | 16 | 16 | 64 | 64 |" in page
    assert "| `smem.size_bytes` | 4096 | 32768 | 131072 | 131072 | 262144 |" in page
    switches = ("prefetches", "prefer_bram", "command_window", "barrier_window")
    kinds = {"features": "tuple of str"} | dict.fromkeys(switches, "bool")
    for name in (*TmauParams.__dataclass_fields__, *SmemParams.__dataclass_fields__):
        assert f"| `{name}` | {kinds.get(name, 'int')} |" in page or name == "smem"
    page = parameters_page(CONV_PRESETS, ConvParams)
    assert "| `slaves` | 2 | 4 | 8 | 16 |" in page
    assert "| `types` | i8 | i8 | i8, i16 | i8, i16, f16, bf16 |" in page
