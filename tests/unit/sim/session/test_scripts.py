"""Rows of scripts: commands of every format become the word that the hardware sees."""

import pytest

from tilewright.golden.spec import BLOCK, COMMAND, FORMATS, GROUP, LANES, Opcode
from tilewright.hw.bus.commands import command_layout
from tilewright.sim.harness.script_driver import ScriptRowLayout
from tilewright.sim.hdl.packing import pack
from tilewright.sim.session.scripts import command_row


@pytest.mark.parametrize("opcode", FORMATS, ids=lambda opcode: opcode.name)
def test_every_format_has_its_fields(opcode):
    """The last field of each format, which the others do not all have, lands where the format says."""
    field = FORMATS[opcode].fields[-1]
    value = [field.range[1]] if field.count else field.range[1]
    row = command_row({"opcode": opcode, field.name: value}, 5)
    assert row == {"item": FORMATS[opcode].pack(opcode=opcode, tag=5, **{field.name: value}), "wait": False}


def test_tags_and_waits():
    assert GROUP.unpack(command_row({"opcode": Opcode.COMMIT}, 7)["item"])["tag"] == 7
    row = command_row({"opcode": Opcode.COPY_BLOCK, "tag": 9, "size": 32, "wait": True}, 7)
    assert row == {"item": BLOCK.pack(opcode=Opcode.COPY_BLOCK, tag=9, size=32), "wait": True}


def test_packed_words_are_taken_as_they_are():
    word = (1 << 512) - 1
    assert command_row(word, 3) == {"item": word}
    layout = ScriptRowLayout(command_layout())
    assert pack(layout, command_row(word, 3)) == word
    lanes = {"opcode": Opcode.LANES, "shape": [1, 2, 3, 65536]}
    assert LANES.unpack(pack(layout, command_row(lanes, 3)))["shape"] == [1, 2, 3, 65536]


def test_no_operation_has_the_fields_of_a_tensor_command():
    """So that tests can hand such a command to the hardware, which refuses it."""
    fields = {"opcode": 15, "smem": 128, "coords": (-1, 2)}
    assert command_row(fields, 3)["item"] == COMMAND.pack(tag=3, **fields)


def test_a_field_of_another_format_is_refused():
    with pytest.raises(
        ValueError, match=r"^a group command has no field 'smem': its fields are opcode, tag, count, read$"
    ):
        command_row({"opcode": Opcode.WAIT, "smem": 0}, 0)
