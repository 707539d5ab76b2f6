"""Meanings are found where they are declared."""

import re
from enum import IntEnum

import pytest
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.hw.pe.layouts import INSTRUCTION_BITS
from tilewright.sim.hdl.tops import TOPS, top_component
from tilewright.sim.hdl.verilog import conventional_ports
from tilewright.spec import COMMAND, Element
from tilewright.spec.conv import JOB
from tilewright.tools.package.ports import Bits, clock_and_reset, field_docs, member_docs, port_docs, ports_of


class Colour(IntEnum):
    """A colour."""

    RED = 1  #: of ``fire``
    BLUE = 4


class PairLayout(data.StructLayout):
    """Two numbers."""

    def __init__(self):
        super().__init__(
            {
                "left": 3,  # the first, of two
                "right": 4,
            }
        )


def shared_members():
    """Members of several."""
    return {"clear": In(1)}  # drops all


class Adder(wiring.Component):
    """Adds.

    Attributes
    ----------
    nothing : int
        Is said of this.
    """

    def __init__(self):
        super().__init__(
            {
                # Numbers to add,
                # of eight bits.
                "a": In(8),
                "b": In(8),  # the second of them
                "total": Out(stream.Signature(9)),
            }
            | shared_members()
        )


def test_comments_of_members():
    assert member_docs(Colour) == {"RED": "of ``fire``"}
    assert member_docs(Element) == {"TF32": "32 bits in memory, rounded to ten mantissa bits by a load"}


def test_comments_of_fields():
    assert field_docs(PairLayout) == {"left": "The first, of two."}


def test_texts_of_ports():
    """A comment above a member, of several lines, or after it; a member without one is left out."""
    docs = {"a": "Numbers to add, of eight bits.", "b": "The second of them.", "clear": "Drops all."}
    assert port_docs(Adder) == docs


#: Payloads that are no structure: numbers, or words whose format the opcode says, and their widths.
WHOLE = {
    "commands_payload": COMMAND.bits,
    "page_moves_payload": COMMAND.bits,
    "instructions_payload": INSTRUCTION_BITS,
    "jobs_payload": JOB.bits,
}
ALL = [(top, preset) for top in TOPS for preset in TOPS[top].presets]


class Totals(wiring.Component):
    """Sums."""

    operands: In(8).array(2)  # to be added
    total: Out(wiring.Signature({"value": Out(9), "taken": In(1)}))


@pytest.mark.parametrize(("top", "preset"), ALL)
def test_nothing_is_without_a_meaning(top, preset):
    for port in ports_of(top_component(top, preset)):
        assert port.meaning.endswith("."), port.name
        for field in port.fields:
            assert field.meaning.endswith("."), f"{port.name}: {field.name}"


@pytest.mark.parametrize(("top", "preset"), ALL)
def test_the_bits_add_up(top, preset):
    """Fields follow each other from bit 0 to the last one; only known words have none."""
    for port in ports_of(top_component(top, preset)):
        if port.fields:
            bit = 0
            for field in port.fields:
                assert field.lsb == bit, f"{port.name}: {field.name}"
                bit += field.total
            assert bit == port.width, port.name
        elif port.name.endswith("_payload") and port.name != "smem_fetch_rows_payload":
            assert port.width == WHOLE[re.sub(r"_\d+_", "_", port.name)]


@pytest.mark.parametrize("top", TOPS)
def test_names_and_widths_are_those_of_the_verilog(top):
    component = top_component(top, "unit")
    ports = {port.name: (port.width, port.is_input) for port in ports_of(component)[len(clock_and_reset()) :]}
    expected = {
        name: (len(value), direction.name == "Input")
        for name, (value, direction) in conventional_ports(component).items()
    }
    assert ports == expected


def test_a_payload_by_hand():
    ports = {port.name: port for port in ports_of(top_component("core", "default", engines=["tmau"]))}
    operation, address, value = ports["barriers_payload"].fields
    assert operation == Bits("op", 0, 3, 0, "Operation: BarrierOp.")
    assert (address.lsb, address.width, value.lsb, value.width) == (3, 17, 20, 21)
    lanes, chunks = ports["reads_payload"].fields
    assert (lanes.lsb, lanes.total) == (0, 8)
    assert (chunks.lsb, chunks.width, chunks.count) == (8, 13, 8)
    assert ports["flip_valid"].meaning == "A barrier's phase is complete. Strobe."
    assert ports["barriers_ready"].meaning == "`barriers_payload` is accepted if it is valid."


def test_a_missing_text_is_seen_as_missing():
    """So that the test of all meanings can fail."""
    ports = {port.name: port.meaning for port in ports_of(Totals())}
    assert ports["operands_0"] == ports["operands_1"] == "To be added."
    assert ports["total_value"] == ports["total_taken"] == ""
