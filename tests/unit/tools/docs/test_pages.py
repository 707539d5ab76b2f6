"""Pages on all engines."""

import pytest

from tilewright.spec import FORMATS, Error
from tilewright.spec.conv import ConvError
from tilewright.spec.pe import INSTRUCTIONS, Compare, MmType, Operation, PeError
from tilewright.tools.docs.pages import generated_pages


@pytest.fixture(scope="module")
def pages():
    return generated_pages()


def test_every_field_of_every_instruction_has_a_row(pages):
    sections = pages["instructions.md"].split("\n## ")
    for operation, fmt in INSTRUCTIONS.items():
        title = operation.name.lower().replace("_", ".")
        (section,) = (text for text in sections if text.startswith(f"{title}\n"))
        assert f"Opcode {int(operation)}." in section
        for number, field in enumerate(fmt.fields):
            assert f"| {number} | `{field.name}`" in section


def test_enumerations_have_their_sections(pages):
    page = pages["instructions.md"]
    for enumeration in (Operation, MmType, Compare):
        assert page.count(f"\n## {enumeration.__name__}\n") == 1
        assert all(f"| {int(member)} | `{member.name}` |" in page for member in enumeration)


def test_errors_name_the_page_of_every_format(pages):
    for fmt in FORMATS.values():
        assert f"[{fmt.name}]({fmt.name}.md)" in pages["errors.md"]


@pytest.mark.parametrize(
    ("name", "errors"), [("errors.md", Error), ("pe_errors.md", PeError), ("conv_errors.md", ConvError)]
)
def test_every_error_says_what_is_wrong(pages, name, errors):
    for error in set(errors) - {errors.NONE}:
        (row,) = (line for line in pages[name].splitlines() if line.startswith(f"| {int(error)} |"))
        assert not row.endswith("|  |")


def test_formats_that_no_record_names(pages):
    page = pages["segment.md"]
    assert "error record" not in page
    assert "| 6 | `size` × 4 | 64–79, +16 each | 16 |" in page
    assert "## SegmentElement" in page
    assert pages["page_entry.md"].startswith("# Page entry\n")
