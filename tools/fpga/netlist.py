"""Which block of the hierarchy a cell of a flattened netlist belongs to.

Yosys keeps the names of wires with those of the blocks around them, so the block of a register, a memory, or a table
that drives a named wire is exact. Any other table is called after what it is connected to (``autoname``):
``front.queue.level_LUT4_C_Z`` has the register ``front.queue.level`` for an input. It counts for the block of that
wire, which where blocks meet may be the one before or behind. What drives a port of the top counts for the top.
"""

import re
from collections import Counter
from dataclasses import dataclass
from graphlib import TopologicalSorter
from itertools import pairwise, takewhile

__all__ = [
    "MARKS",
    "DepthPath",
    "Names",
    "arrows",
    "block_table",
    "by_block",
    "cell_counts",
    "depth_figures",
    "depth_lines",
    "longest_path",
    "tables_of",
    "timing_figures",
    "timing_lines",
    "use_lines",
]  # fmt: skip

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


_TABLES = {
    # Distributed memory of Xilinx: 32 × 8 or 64 × 4 … in a slice, that is one table for two bits or one.
    "RAM32M": 4, "RAM32M16": 8, "RAM64M": 4, "RAM64M8": 8, "RAM32X1D": 2, "RAM64X1D": 2, "RAM128X1D": 4,
    "RAM256X1D": 8, "SRL16E": 1, "SRLC32E": 1, "INV": 1,
}  # fmt: skip
#: Blocks with more than this part of all tables are shown by their parts, and parts with less are summed up.
_LARGE, _SMALL = 0.1, 0.01


def cell_counts(module, family):
    """Cells of a netlist by what they are: a dictionary of figures, in the order in which they are shown.

    Parameters
    ----------
    module : dict
        As Yosys writes it with ``write_json``.
    family : str
        ``ecp5`` or ``xc7``.
    """
    kinds = Counter(cell["type"] for cell in module["cells"].values())
    if family == "xc7":
        return {
            "lut": sum(count * tables_of(kind) for kind, count in kinds.items()),
            "carry": kinds["CARRY4"],
            "ff": sum(count for kind, count in kinds.items() if kind.startswith("FD")),
            "bram": sum(count * (0.5 if "18" in kind else 1) for kind, count in kinds.items() if "RAMB" in kind),
            "dsp": sum(count for kind, count in kinds.items() if kind.startswith("DSP")),
        }
    return {
        "lut4": kinds["LUT4"],
        "carry": kinds["CCU2C"],
        # Wider tables are made of LUT4 and multiplexers of their own; a carry takes two cells, a small memory four, and
        # two to be written.
        "comb": kinds["LUT4"] + 2 * kinds["CCU2C"] + 6 * kinds["TRELLIS_DPR16X4"],
        "ff": kinds["TRELLIS_FF"],
        "dpr16x4": kinds["TRELLIS_DPR16X4"],
        "dp16kd": kinds["DP16KD"],
        "mult18x18d": kinds["MULT18X18D"],
    }


def by_block(module):
    """Tables and flip-flops of every block, those of blocks in it included.

    Returns
    -------
    dict of str to (int, int)
        By paths; the empty one is the top.
    """
    names, found = Names(module), {}
    for name, cell in module["cells"].items():
        luts = tables_of(cell["type"])
        ffs = int(cell["type"] == "TRELLIS_FF" or cell["type"].startswith("FD"))
        if luts or ffs:
            block = names.block(name)
            for place in _around(block):
                before = found.get(place, (0, 0))
                found[place] = before[0] + luts, before[1] + ffs
    return found


def block_table(blocks):
    """Lines of a table of :func:`by_block`, the largest first: what is large is shown by its parts."""
    total = blocks.get("", (0, 0))[0]
    rows = sorted(_parts("", blocks, total).items(), key=lambda row: -row[1][0])
    head = f"{'block':<48} {'LUT':>7} {'FF':>7}"
    return [head, *(f"{name:<48} {luts:>7,} {ffs:>7,}" for name, (luts, ffs) in rows)]


def _parts(place, blocks, total):
    """Rows for a block: one, or if it is large one for each part that is not small, and one for all the rest."""
    inner = [block for block in blocks if block and _around(block)[-2] == place and blocks[block][0] > _SMALL * total]
    if not inner or (place and blocks[place][0] <= _LARGE * total):
        return {place or "(top)": blocks.get(place, (0, 0))}
    rows = {name: cost for block in inner for name, cost in _parts(block, blocks, total).items()}
    rest = tuple(blocks[place][i] - sum(blocks[block][i] for block in inner) for i in range(2))
    return rows | ({f"{place or '(top)'}, the rest": rest} if any(rest) else {})


def _around(block):
    """Paths of the blocks around one, and its own: ``a.b`` has "", ``a`` and ``a.b``."""
    parts = block.split(".") if block else []
    return [".".join(parts[:i]) for i in range(len(parts) + 1)]


def tables_of(kind):
    """Tables that a cell of Xilinx takes, or one of Lattice that is no memory."""
    return 1 if kind.startswith("LUT") else _TABLES.get(kind, 0)


#: Kinds of cells that a device runs out of, by the names that nextpnr gives them.
_SCARCE = ("TRELLIS_COMB", "TRELLIS_FF", "TRELLIS_RAMW", "DP16KD", "MULT18X18D")

#: Blocks that a report names of those with late registers.
_LATE_BLOCKS = 20


def depth_figures(module):
    """The deepest path of a netlist for the ECP5: ``levels``, and ``path`` with the block and wire of every step."""
    path, names = longest_path(module), Names(module)
    steps = [{"level": level, "block": names.block(cell), "wire": names.wire(cell)} for cell, level in path.steps]
    return {"levels": path.levels, "path": steps}


def depth_lines(figures):
    """Lines that show :func:`depth_figures`."""
    return [
        f"deepest path: {figures['levels']} four-input tables",
        arrows([step["block"] for step in figures["path"]]),
        *(f"{step['level']:>6}  {step['block'] or '(top)':<40} {step['wire']}" for step in figures["path"]),
    ]


def timing_figures(outcome, module, target):
    """The clock and the critical path of an :class:`~.nextpnr.Outcome`: nanoseconds, and the block of every step.

    ``late`` has the blocks with registers or memories that would not be ready at ``target`` MHz, the worst first: how
    many, and of the latest one the nanoseconds and the wire.
    """
    names, steps, arrival = Names(module), [], 0.0
    for cell, wire, logic in outcome.path:
        arrival += wire + logic
        steps.append({"ns": round(arrival, 2), "wire_ns": wire, "cell_ns": logic, "block": names.block(cell),
                      "wire": names.wire(cell)})  # fmt: skip
    late = {}
    for cell, ns in sorted(outcome.arrivals.items(), key=lambda item: -item[1]):
        if ns * target > 1000:
            block = names.block(cell)
            row = late.setdefault(block, {"block": block, "count": 0, "ns": round(ns, 2), "wire": names.wire(cell)})
            row["count"] += 1
    return {"clock_mhz": round(outcome.clock, 1), "path": steps, "late": list(late.values())}


def timing_lines(figures, target, routed):
    """Lines that show :func:`timing_figures`, beside the frequency that was aimed at."""
    clock, steps = figures["clock_mhz"], figures["path"]
    verdict = "met" if clock >= target else "not met"
    lines = [f"clock: {clock:g} MHz at most, {'routed' if routed else 'placed'} (target {target:g} MHz: {verdict})"]
    if steps:
        wires = sum(step["wire_ns"] for step in steps)
        blocks = [step["block"] for step in steps]
        lines += [
            f"critical path: {steps[-1]['ns']:.1f} ns, {wires:.1f} of them in wires, through {len(set(blocks))} blocks",
            arrows(blocks),
            *(f"{row['ns']:>8.2f} ns  {row['block'] or '(top)':<40} {row['wire']}" for row in _carries_once(steps)),
        ]
    if late := figures["late"]:
        lines += [
            "",
            f"{sum(row['count'] for row in late):,} registers and memories are later than {1000 / target:g} ns, in",
            *(f"{row['count']:>8,} up to {row['ns']:5.2f} ns  {row['block'] or '(top)':<40} {row['wire']}"
              for row in late[:_LATE_BLOCKS]),
        ]  # fmt: skip
        if len(late) > _LATE_BLOCKS:
            lines.append(f"     and {len(late) - _LATE_BLOCKS} more blocks")
    return lines


def _carries_once(steps):
    """Steps without those that stay in the chain of one carry: the last of each run of the same wire."""
    ends = [a for a, b in pairwise(steps) if (a["block"], a["wire"]) != (b["block"], b["wire"])]
    return [*ends, steps[-1]]


def use_lines(used):
    """Lines that show how much of a device is used, for what it may run out of."""
    rows = [(kind, *used[kind]) for kind in _SCARCE if kind in used]
    return [f"{kind:<14} {count:>7,} of {of:>7,} {count / of:>6.1%}" for kind, count, of in rows]
