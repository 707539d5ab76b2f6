"""How many look-up tables follow one another in a mapped netlist."""

from graphlib import TopologicalSorter

__all__ = ["longest_path"]

#: Tables that a signal passes from an input of a cell to its output; cells that are not named start and end paths.
_LEVELS = {"LUT4": 1, "PFUMX": 0, "L6MUX21": 0, "CCU2C": 1}


def longest_path(module):
    """Levels of logic between registers, memories, multipliers and ports.

    Parameters
    ----------
    module : dict
        A module as Yosys writes it with ``write_json`` after ``synth_ecp5``.

    A carry chain counts as one table, whatever its length: carries run in wires of their own.
    """
    driver, inputs, weights = {}, {}, {}
    for name, cell in module["cells"].items():
        if cell["type"] not in _LEVELS:
            continue
        weights[name] = _LEVELS[cell["type"]]
        inputs[name] = []
        for port, bits in cell["connections"].items():
            if cell["port_directions"][port] == "output":
                driver.update((bit, (name, port)) for bit in bits)
            else:
                inputs[name] += [(bit, port) for bit in bits if isinstance(bit, int)]
    order = TopologicalSorter({name: {driver[bit][0] for bit, _ in bits if bit in driver} for name, bits in
                               inputs.items()}).static_order()  # fmt: skip
    levels = {}
    for name in order:
        arrivals = [0]
        for bit, port in inputs[name]:
            if bit in driver:
                source = driver[bit][0]
                along_chain = port == "CIN" and driver[bit][1] == "COUT"
                arrivals.append(levels[source] - (weights[source] if along_chain else 0))
        levels[name] = max(arrivals) + weights[name]
    return max(levels.values(), default=0)
