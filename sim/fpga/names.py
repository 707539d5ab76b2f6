"""Which block of the hierarchy a cell of a flattened netlist belongs to.

Yosys keeps the names of wires with those of the blocks around them, so the block of a register, a memory, or a table
that drives a named wire is exact. Any other table is called after what it is connected to (``autoname``):
``front.queue.level_LUT4_C_Z`` has the register ``front.queue.level`` for an input. It counts for the block of that
wire, which where blocks meet may be the one before or behind. What drives a port of the top counts for the top.
"""

import re
from itertools import takewhile

__all__ = ["MARKS", "Names", "arrows"]

_MARK = "tilewright_driven"
_DEPTH = 12
#: Yosys commands that mark the wires of a design before it is flattened. A wire has a name in every block that it
#: touches, and only the one with the most attributes stays: it shall be that of the innermost block that drives it. So
#: inputs have no mark, other wires have one, and outputs one more for every block around them.
MARKS = "\n".join(
    [
        f"setattr -set {_MARK} 1 w:* i:* %d",
        *(f"setattr -set {_MARK}_{depth} 1 top{'.*' * depth}/o:*" for depth in range(1, _DEPTH)),
    ]
)
#: Where the name of a wire ends, and how a cell hangs on it begins: ``_LUT4_…``, ``_TRELLIS_FF_…``, ``_FDRE_…``.
_SUFFIX = re.compile(r"_[A-Z][A-Z0-9].*|\$(?:nextpnr|CCU2|DPRAM|TRELLIS|PACKER|tr_io).*")


class Names:
    """The blocks of a flattened netlist.

    Parameters
    ----------
    module : dict
        The top as Yosys writes it with ``write_json``. ``$scopeinfo`` cells tell which blocks there were.
    """

    def __init__(self, module):
        self._scopes = {name for name, cell in module["cells"].items() if cell["type"] == "$scopeinfo"}
        self._wires, self._blocks, best = {}, {}, {}
        for name, wire in module["netnames"].items():
            if _SUFFIX.search(name):
                continue
            self._wires[name] = wire["bits"]
            marks = sum(attribute.startswith(_MARK) for attribute in wire["attributes"])
            for bit in wire["bits"]:
                if marks >= best.get(bit, 0):
                    best[bit], self._blocks[bit] = marks, self._scope(name)
        self._outputs = {
            name: [bit for port, bits in cell["connections"].items() if cell["port_directions"][port] == "output"
                   for bit in bits]
            for name, cell in module["cells"].items()
        }  # fmt: skip

    def block(self, cell):
        """Path of the block of a cell or port, ``front.queue``; empty for the top."""
        wire = self.wire(cell)
        for bit in (*self._outputs.get(cell, ()), *self._wires.get(wire, ())):
            if bit in self._blocks:
                return self._blocks[bit]
        return self._scope(wire)

    @staticmethod
    def wire(cell):
        """The wire or memory that a cell is called after, with the path of its block."""
        return _SUFFIX.sub("", cell)

    def _scope(self, name):
        parts = name.split(".")
        # What is behind the block may have dots too: fields of a payload, rows of a memory.
        while parts and ".".join(parts) not in self._scopes:
            parts.pop()
        return ".".join(parts)


def arrows(blocks):
    """Blocks in the order of a path as one line, ``store.tracker → walk.requests``: each run of the same one once.

    What all names begin with is left out, and the top where it is no end of the path: it has hardly any logic of its
    own, but its ports have short names, and tables are called after the shortest.
    """
    inner = [block for i, block in enumerate(blocks) if block or i in (0, len(blocks) - 1)]
    crossed = [block for i, block in enumerate(inner) if i == 0 or block != inner[i - 1]]
    around = [block.split(".")[:-1] for block in crossed if block]
    shared = sum(1 for _ in takewhile(lambda level: len(set(level)) == 1, zip(*around, strict=False)))
    return " → ".join(".".join(block.split(".")[shared:]) if block else "(top)" for block in crossed)
