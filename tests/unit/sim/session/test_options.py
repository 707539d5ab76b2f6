"""Arguments of sessions and runs: what is taken, and the sentence where it is not."""

from pathlib import Path

import pytest

from tilewright.golden.spec.tmau.registers import TMAU_REGISTERS
from tilewright.sim.hdl.build import require_tools
from tilewright.sim.session.options import chosen, port_order, probability, run_cycles, session_options, window
from tilewright.sim.session.scripts import register_address

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
