"""Arguments of sessions and runs: what is taken, and the sentence where it is not."""

import re
from pathlib import Path

import pytest

from tilewright.hw.core import core_params
from tilewright.hw.lib.layouts import command_layout
from tilewright.sim.harness.drivers import ScriptRowLayout
from tilewright.sim.hdl.build import require_tools
from tilewright.sim.hdl.packing import pack
from tilewright.sim.session.scripts import (
    RegisterMap,
    chosen,
    command_row,
    port_order,
    probability,
    register_address,
    run_cycles,
    session_options,
    window,
)
from tilewright.spec import BLOCK, COMMAND, FORMATS, GROUP, LANES, Opcode
from tilewright.spec.tmau_registers import TMAU_REGISTERS

PORTS = ("commands", "reads", "barriers", "registers")
PRESETS = {"one": 1, "two": 2}


class _Backdoor:
    base = 0x100

    def __len__(self):
        return 64

    def check(self, address, count):
        if not self.base <= address <= address + count <= self.base + len(self):
            raise IndexError("outside")


def test_what_is_right_comes_back():
    assert run_cycles(None, 0) == (None, 0)
    assert run_cycles(1, (1 << 32) - 1) == (1, (1 << 32) - 1)
    after = {"reads": ["barriers"], "commands": ("reads", "barriers")}
    assert port_order(PORTS, after) is after
    assert [window("shared", value, _Backdoor()) for value in (None, False, True, (0x110, 4))] == [
        None, None, (0x100, 64), (0x110, 4),
    ]  # fmt: skip
    assert (chosen(PRESETS, "two", None), chosen(PRESETS, "two", 7)) == (2, 7)
    assert (probability(0), probability(0.5), probability(0.999)) == (0, 128, 255)
    session_options(("verilator",), simulator="verilator", patience=1, waves=Path("x.vcd"), coverage=None)


def test_names_that_are_misspelt_come_with_ours():
    options = {"patience": 1, "waves": None, "coverage": None}
    for call, ours in (
        (lambda: chosen(PRESETS, "TWO", None), "two"),
        (lambda: session_options(("verilator", "icarus"), simulator="Verilater", **options), "verilator"),
        (lambda: register_address(TMAU_REGISTERS, "irq_statu"), "irq_status"),
        (lambda: require_tools("icaruss"), "icarus"),
        (lambda: require_tools("icarus", ".fst"), "fst"),
    ):
        with pytest.raises(ValueError, match=rf"; did you mean '{ours}'\?$"):
            call()


@pytest.mark.parametrize(
    ("kind", "call", "sentence"),
    [
        (ValueError, lambda: run_cycles(-1, 0), "limit must be 1 to 4294967295, not -1"),
        (ValueError, lambda: run_cycles(0, 0), "limit must be 1 to 4294967295, not 0"),
        (ValueError, lambda: run_cycles(1 << 40, 0), "limit must be 1 to 4294967295, not 1099511627776"),
        (TypeError, lambda: run_cycles("1", 0), "limit must be an integer, not '1'"),
        (ValueError, lambda: run_cycles(None, -1), "drain must be 0 to 4294967295, not -1"),
        (ValueError, lambda: run_cycles(None, 1 << 32), "drain must be 0 to 4294967295, not 4294967296"),
        (TypeError, lambda: run_cycles(None, None), "drain must be an integer, not None"),
        (TypeError, lambda: port_order(PORTS, ["reads"]), "after must be a dictionary of ports, not ['reads']"),
        (TypeError, lambda: port_order(PORTS, {"reads": "barriers"}),
         "after must give a list of ports for 'reads', not 'barriers'"),
        (ValueError, lambda: port_order(PORTS, {"reads": ["barrier"]}),
         "after must name ports among commands, reads, barriers, registers, not 'barrier'"),
        (ValueError, lambda: port_order(PORTS, {3: []}),
         "after must name ports among commands, reads, barriers, registers, not 3"),
        (ValueError, lambda: port_order(PORTS, {"reads": ["reads"]}),
         "after must not have ports wait for each other: reads for reads"),
        (TypeError, lambda: session_options(("icarus",), simulator="icarus", patience="x"),
         "patience must be an integer, not 'x'"),
        (ValueError, lambda: session_options(("icarus",), simulator="icarus", patience=0),
         "patience must be 1 to 4294967295, not 0"),
        (ValueError, lambda: session_options(("icarus",), simulator="iverilog", patience=1),
         "the simulator must be one of icarus, not 'iverilog'"),
        (TypeError, lambda: session_options(("icarus",), simulator="icarus", patience=1, waves=1),
         "waves must be a path, not 1"),
        (ValueError, lambda: chosen(PRESETS, "three", None), "the preset must be one of one, two, not 'three'"),
        (ValueError, lambda: chosen(PRESETS, ["one"], None), "the preset must be one of one, two, not ['one']"),
        (TypeError, lambda: chosen(PRESETS, "one", "two"), "params must be int, not 'two'"),
        (TypeError, lambda: window("shared", 5, _Backdoor()), "shared must be an address and a number of bytes, not 5"),
        (ValueError, lambda: window("memory", (0, -1), _Backdoor()), "memory must be 0 or more, not -1"),
        (TypeError, lambda: probability("x"), "the probability of a pause must be a number, not 'x'"),
        (ValueError, lambda: probability(1),
         "the probability of a pause must be at least 0 and less than 1, not 1"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_one_sentence(kind, call, sentence):
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value) == sentence


def test_a_window_outside_is_refused():
    with pytest.raises(IndexError, match=r"^outside$"):
        window("shared", (0, 4), _Backdoor())


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


@pytest.mark.parametrize(
    ("engines", "access", "row"),
    [
        (["tmau", "pe"], ("status",), (0x24, 0)),
        (["tmau", "pe"], ("irq_enable", 3), (0x2C, 3)),
        (["tmau", "pe"], ("pe", "status"), (0x1024, 0)),
        (["tmau", "pe"], ("pe", "irq_enable", 2), (0x102C, 2)),
        (["tmau", "pe"], (0x1024,), (0x1024, 0)),
        (["pe"], ("status",), (0x24, 0)),
        (["conv"], ("conv", "status"), (0x24, 0)),
    ],
)
def test_registers_by_engine_and_name(engines, access, row):
    (made,) = RegisterMap(core_params("unit", engines)).rows([access])
    assert (made["item"]["address"], made["item"]["data"]) == row
    assert made["item"]["write"] == isinstance(access[-1], int) & (len(access) > 1)


@pytest.mark.parametrize(
    ("access", "sentence"),
    [
        (("conv", "status"), "the engine must be one of tmau, pe, not 'conv'"),
        (("pea", "status", 1), "the engine must be one of tmau, pe, not 'pea'"),
        (("statu",), "there is no register 'statu'; did you mean 'status'?"),
    ],
)
def test_registers_that_are_not_there(access, sentence):
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        RegisterMap(core_params("unit")).rows([access])
