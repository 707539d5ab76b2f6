"""Copies of what drives many ends, in an ECP5's netlist.

nextpnr pulls an end to its driver the less the more ends there are, so that the ends of a wire lie far apart, as the
enables of a wide register do. With a copy of the table or register for each few of them, these lie together.
"""

import re
from collections import defaultdict
from copy import deepcopy
from itertools import count

__all__ = ["copy_drivers"]

#: Ends from which on there are copies, and how many each has at most.
_MANY, _ENDS = 40, 32
#: What has copies: registers, tables, and the multiplexers that join two tables or two of these, which go with them.
_KINDS = ("TRELLIS_FF", "LUT4", "PFUMX", "L6MUX21")
_JOINED = {"PFUMX": ("ALUT", "BLUT"), "L6MUX21": ("D0", "D1")}
#: Where the name of a cell goes on behind that of its wire.
_CELL = re.compile(r"_[A-Z][A-Z0-9].*")
#: A register of no more bits is control: such ends come together, apart from those of words.
_CONTROL = 4


def copy_drivers(module):
    """Gives tables and registers that have many ends copies, each for some ends whose names follow one another.

    Clocks have a network of their own, and so has a reset of many ends (``resets.py``); wires of both stay as they are.

    Parameters
    ----------
    module : dict
        A mapped netlist, as Yosys writes it with ``write_json``; is changed.
    """
    cells = module["cells"]
    drivers, ends, known = {}, defaultdict(list), set()
    for name, cell in cells.items():
        for port, bits in cell["connections"].items():
            known.update(bit for bit in bits if isinstance(bit, int))
            for i, bit in enumerate(bits):
                if cell["port_directions"][port] == "output":
                    drivers[bit] = (name, port)
                else:
                    ends[bit].append((name, port, i))
    outside = {bit for port in module["ports"].values() for bit in port["bits"]}
    free = count(max(known) + 1)
    for bit, (name, port) in drivers.items():
        if len(ends[bit]) <= _MANY or bit in outside or cells[name]["type"] not in _KINDS:
            continue
        for part in _parts(ends[bit])[1:]:
            copied = _copy(cells, drivers, name, port, free)
            for cell, pin, i in part:
                cells[cell]["connections"][pin][i] = copied


def _copy(cells, drivers, name, port, free):
    """Copies a cell and the tables that it joins; the wire that the copy drives."""
    bit = next(free)
    copy = cells[f"{name}_{bit}"] = deepcopy(cells[name])
    copy["connections"][port] = [bit]
    for joined in _JOINED.get(copy["type"], ()):
        copy["connections"][joined] = [_copy(cells, drivers, *drivers[copy["connections"][joined][0]], free)]
    return bit


def _parts(ends):
    """The ends in parts that should lie together: each as (cell, port, place)."""
    wires = defaultdict(list)
    for end in sorted(ends, key=lambda end: _in_order(end[0])):
        wires[_CELL.sub("", end[0])].append(end)
    control = [end for own in wires.values() if len(own) <= _CONTROL for end in own]
    words = [end for own in wires.values() if len(own) > _CONTROL for end in own]
    parts = []
    for group in (control, words):
        count = -(-len(group) // _ENDS)
        parts += [group[k * len(group) // count : (k + 1) * len(group) // count] for k in range(count)]
    return parts


def _in_order(name):
    """A key that sorts numbers in names as numbers."""
    return [(not piece.isdigit(), int(piece) if piece.isdigit() else piece) for piece in re.split(r"(\d+)", name)]
