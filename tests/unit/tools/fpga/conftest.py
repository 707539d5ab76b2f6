"""What a combinational component has been mapped to, evaluated cell by cell."""

import pytest


@pytest.fixture
def evaluate():
    """A function of a netlist of an ECP5, as Yosys writes it, and its inputs by ports: its port ``o``."""
    return _output


@pytest.fixture
def add_cell():
    """Adds a cell to those of such a netlist: its kind, parameters, and wires of inputs and of outputs by ports."""
    return _add


def _add(cells, kind, parameters, inputs, outputs):
    cells[f"{kind}{len(cells)}"] = {
        "type": kind,
        "parameters": parameters,
        "connections": {port: [bit] for port, bit in (inputs | outputs).items()},
        "port_directions": dict.fromkeys(inputs, "input") | dict.fromkeys(outputs, "output"),
    }


def _output(module, inputs):
    known = {"0": 0, "1": 1, "x": None}  # a wire that is not there must not matter
    for name, value in inputs.items():
        known |= {bit: value >> i & 1 for i, bit in enumerate(module["ports"][name]["bits"])}
    waiting = [cell for cell in module["cells"].values() if cell["type"] != "$scopeinfo"]
    while waiting:
        cell = waiting.pop(0)
        wires = {port: bits[0] for port, bits in cell["connections"].items()}
        sources = {port: bit for port, bit in wires.items() if cell["port_directions"][port] == "input"}
        if any(bit not in known for bit in sources.values()):
            waiting.append(cell)
            continue
        found = _CELLS[cell["type"]](cell["parameters"], {port: known[bit] for port, bit in sources.items()})
        known |= {wires[port]: value for port, value in found.items() if wires.get(port, "x") != "x"}
    return sum(known[bit] << i for i, bit in enumerate(module["ports"]["o"]["bits"]))


def _table(parameters, at, init="INIT", number=""):
    row = sum(at[f"{letter}{number}"] << i for i, letter in enumerate("ABCD"))
    return int(parameters[init], 2) >> row & 1


def _carry(parameters, at):
    """Of each table the sum, and what goes on: the carry that came, or if the table is 0 what it is for C = D = 0."""
    carry, found = at["CIN"], {}
    for number in range(2):
        init = f"INIT{number}"
        assert parameters[f"INJECT1_{number}"] == "NO"
        high = _table(parameters, at, init, number)
        low = int(parameters[init], 2) >> (at[f"A{number}"] | at[f"B{number}"] << 1) & 1
        found[f"S{number}"] = None if carry is None else high ^ carry
        carry = carry if high else low
    return found | {"COUT": carry}


_CELLS = {
    "LUT4": lambda parameters, at: {"Z": _table(parameters, at)},
    "PFUMX": lambda parameters, at: {"Z": at["ALUT"] if at["C0"] else at["BLUT"]},
    "L6MUX21": lambda parameters, at: {"Z": at["D1"] if at["SD"] else at["D0"]},
    "CCU2C": _carry,
}
