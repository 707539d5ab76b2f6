"""The dictionary of CUDA's words: our names exist, and the sentence that refuses one of theirs suggests the same."""

import re
from pathlib import Path

import pytest

from tilewright.spec import DESCRIPTOR, BarrierOp, Element, Fill, Interleave, Opcode, Swizzle
from tilewright.spec.fields import names
from tilewright.spec.names import suggestion

PAGE = (Path(__file__).parents[2] / "docs/cuda.md").read_text(encoding="utf-8")


def rows(section):
    """Cells of the table of a section, without its head."""
    text = PAGE.split(f"\n## {section}\n")[1].split("\n## ")[0]
    lines = [line for line in text.splitlines() if line.startswith("| ")][2:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def codes(cell):
    return [code.strip('"') for code in re.findall(r"`([^`]+)`", cell)]


@pytest.mark.parametrize("row", rows("The tensor map"), ids=lambda row: row[0])
def test_arguments_of_the_driver_are_fields_of_a_descriptor(row):
    theirs, ours = codes(row[0]), codes(row[1])
    fields = {field.name for field in DESCRIPTOR.fields}
    values = {"interleave": Interleave, "swizzle": Swizzle, "oobFill": Fill}
    if theirs[0] in values:
        enum, prefix = values[theirs[0]], {"oobFill": "FLOAT_OOB_FILL"}.get(theirs[0], theirs[0].upper())
        assert ours[0] in fields
        for word, name in zip(theirs[1:], ours[1:], strict=True):
            assert suggestion(f"CU_TENSOR_MAP_{prefix}_{word}", names(enum)) == f"; did you mean {name!r}?"
    else:
        for word, name in zip(theirs, ours, strict=False):
            assert name in fields
            assert word in ("tensorRank", name) or suggestion(word, fields) == f"; did you mean {name!r}?"


def test_types_of_the_driver_are_element_types():
    named = []
    for theirs, ours, *_ in rows("Element types"):
        words, elements = codes(theirs), codes(ours)
        if ours == "none":
            assert all(suggestion(f"CU_TENSOR_MAP_DATA_TYPE_{word}", names(Element)) == "" for word in words)
        elif not theirs.startswith("none"):
            for word, name in zip(words, elements * len(words) if len(elements) == 1 else elements, strict=True):
                assert suggestion(f"CU_TENSOR_MAP_DATA_TYPE_{word}", names(Element)) == f"; did you mean {name!r}?"
        named += elements
    assert set(named) == set(names(Element))


def test_instructions_are_commands_and_operations_of_barriers():
    said = {word for row in rows("Instructions") for word in re.findall(r"\b[A-Z]+(?:_[A-Z]+)*\b", row[1])}
    assert {opcode.name for opcode in Opcode} - said == {"WAIT_ALL", "LANES"}
    said = {word for row in rows("Barriers") for word in re.findall(r"\b[A-Z]+(?:_[A-Z]+)*\b", row[1])}
    assert {operation.name for operation in BarrierOp} == said
