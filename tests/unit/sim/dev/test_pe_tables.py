"""Pages on the processing engine."""

from tilewright.golden.spec.pe.errors import PeError
from tilewright.golden.spec.pe.instruction import INSTRUCTIONS, Compare, MmType, Operation
from tilewright.golden.spec.pe.segment import PAGE_ENTRY, SEGMENT
from tilewright.sim.dev.pe_tables import instructions_page, pe_errors_page
from tilewright.sim.dev.tables import format_page


def test_every_field_of_every_instruction_has_a_row():
    sections = instructions_page().split("\n## ")
    for operation, fmt in INSTRUCTIONS.items():
        title = operation.name.lower().replace("_", ".")
        (section,) = (text for text in sections if text.startswith(f"{title}\n"))
        assert f"Opcode {int(operation)}." in section
        for number, field in enumerate(fmt.fields):
            assert f"| {number} | `{field.name}`" in section


def test_enumerations_have_their_sections():
    page = instructions_page()
    for enumeration in (Operation, MmType, Compare):
        assert page.count(f"\n## {enumeration.__name__}\n") == 1
        assert all(f"| {int(member)} | `{member.name}` |" in page for member in enumeration)


def test_every_error_says_what_is_wrong():
    page = pe_errors_page()
    for error in set(PeError) - {PeError.NONE}:
        (row,) = (line for line in page.splitlines() if line.startswith(f"| {int(error)} |"))
        assert not row.endswith("|  |")


def test_formats_that_no_record_names():
    page = format_page(SEGMENT, recorded=False)
    assert "error record" not in page
    assert "| 6 | `size` × 4 | 64–79, +16 each | 16 |" in page
    assert "## SegmentElement" in page
    assert format_page(PAGE_ENTRY, recorded=False).startswith("# Page entry\n")
