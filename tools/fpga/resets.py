"""The reset of a large design on the clock network of an ECP5.

As an ordinary wire with thousands of ends it takes longer than a cycle. nextpnr takes clocks to the clock network by
itself, but no reset: for one there must be a buffer (DCCA).
"""

from collections import defaultdict
from copy import deepcopy
from itertools import count

__all__ = ["buffer_reset"]

#: What the network takes a reset to, by kinds of cells.
_ENDS = {"TRELLIS_FF": {"LSR"}, "DP16KD": {"RSTA", "RSTB"}}
#: Ends from which on there is a buffer: some hundreds are reached in time without one.
_MANY = 1000


def buffer_reset(module):
    """Puts a buffer behind the register that resets the most registers and block memories, if these are many.

    What else hangs on that register, as a table that joins two resets, gets a copy of it each, which can lie beside it.
    A reset that comes from a table has no buffer: the network would make its path longer.

    Parameters
    ----------
    module : dict
        A mapped netlist, as Yosys writes it with ``write_json``; is changed.
    """
    cells = module["cells"]
    registers = {cell["connections"]["Q"][0]: name for name, cell in cells.items() if cell["type"] == "TRELLIS_FF"}
    ends, others, known = defaultdict(list), defaultdict(list), set()
    for cell in cells.values():
        for port, bits in cell["connections"].items():
            known.update(bit for bit in bits if isinstance(bit, int))
            if cell["port_directions"][port] == "input":
                kind = ends if port in _ENDS.get(cell["type"], ()) else others
                for i, bit in enumerate(bits):
                    kind[bit].append((bits, i))
    reset = max(registers.keys() & ends.keys(), key=lambda bit: len(ends[bit]), default=None)
    if reset is None or len(ends[reset]) < _MANY:
        return
    name, free = registers[reset], count(max(known) + 1)
    for bits, i in others[reset]:
        bits[i] = next(free)
        copy = cells[f"{name}_{bits[i]}"] = deepcopy(cells[name])
        copy["connections"]["Q"] = [bits[i]]
    buffered = next(free)
    for bits, i in ends[reset]:
        bits[i] = buffered
    cells[f"{name}_DCCA"] = {
        "hide_name": 0,
        "type": "DCCA",
        "parameters": {},
        "attributes": {},
        "port_directions": {"CLKI": "input", "CE": "input", "CLKO": "output"},
        "connections": {"CLKI": [reset], "CE": ["1"], "CLKO": [buffered]},
    }
