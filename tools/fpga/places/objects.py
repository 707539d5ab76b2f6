"""A mapped netlist as objects that nets pull together."""

from collections import Counter, defaultdict
from dataclasses import dataclass

import numpy as np

__all__ = ["Objects", "read_objects"]

#: What nextpnr takes for a cell: tables and flip-flops of a tile of logic. All others take none.
_AREAS = {"LUT4": (1, 0), "CCU2C": (2, 0), "TRELLIS_DPR16X4": (6, 0), "TRELLIS_FF": (0, 1)}
#: Inputs that only what lies in the same slice can drive.
_INSIDE = {"PFUMX": ("BLUT", "ALUT"), "L6MUX21": ("D0", "D1")}
_CLOCKS = {"CLK", "WCK", "CLKA", "CLKB", "CLK0", "CLK1", "CLK2", "CLK3"}
#: A net with more ends is everywhere, and pulls nothing.
_ENDS = 1500


@dataclass
class Objects:
    """Cells, those that lie together as one object, and their nets.

    Attributes
    ----------
    areas : array of float, (2, n)
        Tables and flip-flops of each object.
    pins, starts : array of int
        Objects of all nets, one net behind the other, and where each net begins.
    cells : dict of str to dict of str to int
        Objects of block memories and multipliers: by kind, by name.
    """

    areas: np.ndarray
    pins: np.ndarray
    starts: np.ndarray
    cells: dict

    @property
    def nets(self):
        """The net of each pin."""
        return np.repeat(np.arange(len(self.starts)), np.diff(self.starts, append=len(self.pins)))


def read_objects(module):
    """:class:`Objects` of a mapped netlist, as Yosys writes it with ``write_json``."""
    cells = {name: cell for name, cell in module["cells"].items() if cell["type"] not in ("$scopeinfo", "DCCA")}
    drivers, readers = {}, Counter()
    for name, cell in cells.items():
        for port, bits in cell["connections"].items():
            for bit in bits:
                if cell["port_directions"][port] == "input":
                    readers[bit] += 1
                elif isinstance(bit, int):  # a constant if nothing hangs on it
                    drivers[bit] = name
    number = _joined(cells, drivers, readers)
    areas = np.zeros((2, len(set(number.values()))))
    macros, nets = {"DP16KD": {}, "MULT18X18D": {}}, defaultdict(set)
    for name, cell in cells.items():
        areas[:, number[name]] += _AREAS.get(cell["type"], (0, 0))
        if cell["type"] in macros:
            macros[cell["type"]][name] = number[name]
        for port, bits in cell["connections"].items():
            if port not in _CLOCKS:
                for bit in bits:
                    nets[bit].add(number[name])
    ends = [sorted(objects) for bit, objects in nets.items() if bit in drivers and 1 < len(objects) <= _ENDS]
    starts = np.cumsum([0, *(len(objects) for objects in ends)])[:-1]
    return Objects(areas, np.array([number for objects in ends for number in objects], int), starts, macros)


def _joined(cells, drivers, readers):
    """Each cell's object: a register lies with the table in front of it, a multiplexer with its tables."""
    first = {name: name for name in cells}

    def root(name):
        while first[name] != name:
            name = first[name] = first[first[name]]
        return name

    for name, cell in cells.items():
        kind = cell["type"]
        for port in ("DI",) if kind == "TRELLIS_FF" else _INSIDE.get(kind, ()):
            bit = cell["connections"][port][0]
            driver = drivers.get(bit)
            if driver and (kind != "TRELLIS_FF" or (readers[bit] == 1 and cells[driver]["type"] in {"LUT4", *_INSIDE})):
                first[root(driver)] = root(name)
    numbers = {}
    return {name: numbers.setdefault(root(name), len(numbers)) for name in cells}
