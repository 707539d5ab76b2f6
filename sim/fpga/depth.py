"""The longest path between registers in a mapped netlist, in look-up tables that follow one another."""

from dataclasses import dataclass
from graphlib import TopologicalSorter

__all__ = ["DepthPath", "longest_path"]

#: Cells that a signal passes, and the tables that this counts as. All others start and end paths. A multiplier takes
#: 3 ns on an ECP5 of speed grade 8, and a table with its wire about 1 ns.
_LEVELS = {"LUT4": 1, "PFUMX": 0, "L6MUX21": 0, "CCU2C": 1, "TRELLIS_DPR16X4": 1, "MULT18X18D": 3}
#: Inputs that a signal passes from, where not all are such: distributed memory is written with the clock.
_PASSING = {"TRELLIS_DPR16X4": {"RAD"}}
#: Parameters of a multiplier that has a register there, by directions of its ports.
_REGISTERS = {"input": "REG_INPUTA_CLK", "output": "REG_OUTPUT_CLK"}


@dataclass(frozen=True)
class DepthPath:
    """A path through a netlist.

    Attributes
    ----------
    levels : int
        Tables that follow one another on it.
    steps : tuple of (str, int)
        Cells in the order of the signal, each with the levels up to its output; the first and the last are the cells
        or ports where the path starts and ends, if there are any.
    """

    levels: int
    steps: tuple


def longest_path(module):
    """The deepest logic between registers, block memories and ports.

    Parameters
    ----------
    module : dict
        A module as Yosys writes it with ``write_json`` after ``synth_ecp5``.

    Returns
    -------
    DepthPath
        A carry chain counts as one table, whatever its length: carries run in wires of their own. So does a read of
        distributed memory; a multiplier counts as three, or as nothing if it has registers on both sides.
    """
    driver, inputs, outputs = {}, {}, {}
    for name, cell in module["cells"].items():
        passing = _PASSING.get(cell["type"]) if cell["type"] in _LEVELS else ()
        inputs[name], outputs[name] = [], []
        for port, bits in cell["connections"].items():
            if _registered(cell, cell["port_directions"][port]):
                continue
            if cell["port_directions"][port] == "output":
                driver.update((bit, (name, port)) for bit in bits)
                outputs[name] += bits
            elif passing is None or port in passing:
                inputs[name] += [(bit, port) for bit in bits if isinstance(bit, int)]
    logic = {
        name: 0 if all(_registered(cell, side) for side in _REGISTERS) else _LEVELS[cell["type"]]
        for name, cell in module["cells"].items()
        if cell["type"] in _LEVELS
    }
    before = {name: {driver[bit][0] for bit, _ in inputs[name] if bit in driver} & logic.keys() for name in logic}
    levels, source = {}, {}
    for name in TopologicalSorter(before).static_order():
        arrival, source[name] = 0, None
        for bit, port in inputs[name]:
            cell, output = driver.get(bit, (None, None))
            along_chain = port == "CIN" and output == "COUT"
            then = levels.get(cell, 0) - (logic[cell] if along_chain else 0)
            # What begins here is said where there is nothing deeper.
            if source[name] is None or then > arrival or (then == arrival and source[name][0] is None):
                arrival, source[name] = then, (cell, bit)
        levels[name] = arrival + logic[name]
    if not levels:
        return DepthPath(0, ())
    last = max(levels, key=levels.get)
    return DepthPath(levels[last], tuple(_steps(module, last, levels, source, outputs[last])))


def _registered(cell, direction):
    """Whether a multiplier has registers at its ports of a direction."""
    return cell["type"] == "MULT18X18D" and _REGISTERS[direction] in cell["parameters"]


def _steps(module, last, levels, source, outputs):
    """The :class:`DepthPath`'s steps, found from its last cell backwards."""
    steps = [(end, levels[last]) for end in _ends(module, levels, set(outputs))][:1] + [(last, levels[last])]
    while (origin := source.get(steps[-1][0])) is not None:
        name = origin[0] or next(_ports(module, {origin[1]}), None)
        if name is None:  # nothing drives it
            break
        steps.append((name, levels.get(name, 0)))
    return reversed(steps)


def _ends(module, levels, bits):
    """Names of what ``bits`` end at: cells through which no signal passes, and ports."""
    for name, cell in module["cells"].items():
        for port, wires in cell["connections"].items():
            ends = name not in levels or port not in _PASSING.get(cell["type"], {port})
            if ends and cell["port_directions"][port] == "input" and not bits.isdisjoint(wires):
                yield name
    yield from _ports(module, bits)


def _ports(module, bits):
    return (name for name, port in module.get("ports", {}).items() if not bits.isdisjoint(port["bits"]))
