"""Flattened netlists of Yosys: what they take, by blocks, their longest path, and the lines of a report.

Yosys keeps the path of its block in the name of a wire, so the block of a register, a memory, or a LUT that drives a
named wire is exact. Any other LUT is named after a wire that it is connected to (``autoname``):
``front.queue.level_LUT4_C_Z`` has the register ``front.queue.level`` as an input. It counts for the block of that
wire, which may be the neighbour where blocks meet. Cells that drive a port of the top count for the top.
"""

import re
from collections import Counter
from graphlib import TopologicalSorter
from itertools import pairwise, takewhile

__all__ = ["MARKS", "Names", "arrows", "block_table", "by_block", "cell_counts", "depth_figures", "depth_lines",
           "longest_path", "luts_of", "timing_figures", "timing_lines", "use_lines"]  # fmt: skip

_MARK = "tilewright_driven"
_DEPTH = 12
#: Yosys commands that mark the wires of a design before it is flattened. A wire has a name in every block that it
#: touches, and flattening keeps the name with the most attributes, which must be the one of the innermost block that
#: drives the wire. So inputs have no mark, other wires have one, and outputs one more for every block around them.
MARKS = "\n".join(
    [f"setattr -set {_MARK} 1 w:* i:* %d"]
    + [f"setattr -set {_MARK}_{depth} 1 top{'.*' * depth}/o:*" for depth in range(1, _DEPTH)]
)
#: What follows the name of a wire in the name of a cell: ``_LUT4_…``, ``_TRELLIS_FF_…``, ``_FDRE_…``.
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
        """The wire or memory that a cell is named after, with the path of its block."""
        return _SUFFIX.sub("", cell)

    def _scope(self, name):
        parts = name.split(".")
        # The name after the block may have dots too: fields of a payload, rows of a memory.
        while parts and ".".join(parts) not in self._scopes:
            parts.pop()
        return ".".join(parts)


def arrows(blocks):
    """Blocks in the order of a path as one line, ``store.tracker → walk.requests``, without repetitions.

    The common start of all names is left out, and the top unless the path starts or ends there: it has hardly any logic
    of its own, but its ports have short names, and LUTs are named after the shortest.
    """
    inner = [block for i, block in enumerate(blocks) if block or i in (0, len(blocks) - 1)]
    crossed = [block for i, block in enumerate(inner) if i == 0 or block != inner[i - 1]]
    around = [block.split(".")[:-1] for block in crossed if block]
    shared = sum(1 for _ in takewhile(lambda level: len(set(level)) == 1, zip(*around, strict=False)))
    return " → ".join(".".join(block.split(".")[shared:]) if block else "(top)" for block in crossed)


#: Cells through which a path continues, and how many levels each counts. On an ECP5 of speed grade 8 a multiplier takes
#: 3 ns, and a LUT with its wire about 1 ns.
_LEVELS = {"LUT4": 1, "PFUMX": 0, "L6MUX21": 0, "CCU2C": 1, "TRELLIS_DPR16X4": 1, "MULT18X18D": 3}


def _passes(kind, port):
    """Whether a path continues from an input of a cell: of distributed memory, from the read address alone."""
    return kind in _LEVELS and (kind != "TRELLIS_DPR16X4" or port == "RAD")


def longest_path(module):
    """The deepest logic between registers, block memories and ports.

    A carry chain counts as one level, whatever its length, because carries have wires of their own. A read of
    distributed memory counts as one level, a multiplier as three.

    Parameters
    ----------
    module : dict
        A module as Yosys writes it with ``write_json`` after ``synth_ecp5``.

    Returns
    -------
    int, list of (str, int)
        Levels, and the cells in the order of the signal, each with the levels up to its output. The first and the last
        are the cells or ports where the path starts and ends, if there are any.
    """
    driver, inputs, outputs, sinks = {}, {}, {}, {}
    for name, cell in module["cells"].items():
        inputs[name], outputs[name] = [], []
        for port, bits in cell["connections"].items():
            if cell["port_directions"][port] == "output":
                driver.update((bit, (name, port)) for bit in bits)
                outputs[name] += bits
            elif _passes(cell["type"], port):
                inputs[name] += [(bit, port) for bit in bits if isinstance(bit, int)]
            else:
                sinks |= {bit: name for bit in bits if bit not in sinks}
    ports = {bit: name for name, port in module.get("ports", {}).items() for bit in port["bits"]}
    logic = {name: _LEVELS[cell["type"]] for name, cell in module["cells"].items() if cell["type"] in _LEVELS}
    before = {name: {driver[bit][0] for bit, _ in inputs[name] if bit in driver} & logic.keys() for name in logic}
    levels, source = {}, {}
    for name in TopologicalSorter(before).static_order():
        arrival, source[name] = 0, None
        for bit, port in inputs[name]:
            cell, output = driver.get(bit, (None, None))
            along_chain = port == "CIN" and output == "COUT"
            depth = levels.get(cell, 0) - (logic[cell] if along_chain else 0)
            # An input that starts a path is preferred to a cell of equal depth.
            if source[name] is None or depth > arrival or (depth == arrival and source[name][0] is None):
                arrival, source[name] = depth, (cell, bit)
        levels[name] = arrival + logic[name]
    if not levels:
        return 0, []
    name = last = max(levels, key=levels.get)
    steps = [(end[bit], levels[last]) for end in (sinks, ports) for bit in outputs[last] if bit in end][:1]
    while name is not None:
        steps.append((name, levels.get(name, 0)))
        cell, bit = source.get(name) or (None, None)
        name = cell or ports.get(bit)
    return levels[last], steps[::-1]


_XILINX_LUTS = {
    # Distributed memory of Xilinx: 32 × 8 or 64 × 4 … in a slice, one LUT for two bits or one.
    "RAM32M": 4, "RAM32M16": 8, "RAM64M": 4, "RAM64M8": 8, "RAM32X1D": 2, "RAM64X1D": 2, "RAM128X1D": 4,
    "RAM256X1D": 8, "SRL16E": 1, "SRLC32E": 1, "INV": 1,
}  # fmt: skip
#: Blocks with more than this share of all LUTs are shown by their parts; parts with less are summed up.
_LARGE, _SMALL = 0.1, 0.01


def cell_counts(module, family):
    """Cells of a netlist by kind: a dictionary of figures, in the order in which they are shown.

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
            "lut": sum(count * luts_of(kind) for kind, count in kinds.items()),
            "carry": kinds["CARRY4"],
            "ff": sum(count for kind, count in kinds.items() if kind.startswith("FD")),
            "bram": sum(count * (0.5 if "18" in kind else 1) for kind, count in kinds.items() if "RAMB" in kind),
            "dsp": sum(count for kind, count in kinds.items() if kind.startswith("DSP")),
        }
    return {
        "lut4": kinds["LUT4"],
        "carry": kinds["CCU2C"],
        # Cells of type TRELLIS_COMB: a carry takes two, a small memory four and two for writes. Multiplexers of wide
        # LUTs take none. nextpnr adds up to four for each carry chain, to start and to end it.
        "comb": kinds["LUT4"] + 2 * kinds["CCU2C"] + 6 * kinds["TRELLIS_DPR16X4"],
        "ff": kinds["TRELLIS_FF"],
        "dpr16x4": kinds["TRELLIS_DPR16X4"],
        "dp16kd": kinds["DP16KD"],
        "mult18x18d": kinds["MULT18X18D"],
    }


def by_block(module):
    """LUTs and flip-flops of every block, including the blocks inside it.

    Returns
    -------
    dict of str to (int, int)
        By path; the top has an empty one.
    """
    names, costs = Names(module), {}
    for name, cell in module["cells"].items():
        luts = luts_of(cell["type"])
        ffs = int(cell["type"] == "TRELLIS_FF" or cell["type"].startswith("FD"))
        if luts or ffs:
            block = names.block(name)
            for place in _around(block):
                before = costs.get(place, (0, 0))
                costs[place] = before[0] + luts, before[1] + ffs
    return costs


def block_table(blocks):
    """Lines that show :func:`by_block`, the largest first; large blocks are shown by their parts."""
    total = blocks.get("", (0, 0))[0]
    rows = sorted(_parts("", blocks, total).items(), key=lambda row: -row[1][0])
    head = f"{'block':<48} {'LUT':>7} {'FF':>7}"
    return [head, *(f"{name:<48} {luts:>7,} {ffs:>7,}" for name, (luts, ffs) in rows)]


def _parts(place, blocks, total):
    """Rows of a block: one, or for a large one a row for each part that is not small, and one for the rest."""
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


def luts_of(kind):
    """LUTs of a cell of Xilinx, or of a cell of Lattice that is not a memory."""
    return 1 if kind.startswith("LUT") else _XILINX_LUTS.get(kind, 0)


#: Kinds of cells that a device may run out of, by nextpnr's names.
_SCARCE = ("TRELLIS_COMB", "TRELLIS_FF", "TRELLIS_RAMW", "DP16KD", "MULT18X18D")
#: Blocks with late registers that a report names.
_LATE_BLOCKS = 20


def depth_figures(module):
    """The deepest path of a netlist for the ECP5: ``levels``, and ``path`` with the block and wire of every step."""
    (levels, path), names = longest_path(module), Names(module)
    steps = [{"level": level, "block": names.block(cell), "wire": names.wire(cell)} for cell, level in path]
    return {"levels": levels, "path": steps}


def depth_lines(figures):
    """Lines that show :func:`depth_figures`."""
    return [
        f"deepest path: {figures['levels']} LUT4s",
        arrows([step["block"] for step in figures["path"]]),
        *(f"{step['level']:>6}  {step['block'] or '(top)':<40} {step['wire']}" for step in figures["path"]),
    ]


def timing_figures(outcome, module, target):
    """The clock and the critical path of an :class:`~.flow.Outcome`: nanoseconds, and the block of every step.

    ``late`` has the blocks with registers or memories that are too late for ``target`` MHz, the worst first: their
    number, and nanoseconds and wire of the latest.
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
    """Lines that show :func:`timing_figures`, with the target frequency."""
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
    """The last step of each run of the same wire: a carry chain is one line."""
    ends = [a for a, b in pairwise(steps) if (a["block"], a["wire"]) != (b["block"], b["wire"])]
    return [*ends, steps[-1]]


def use_lines(used):
    """Lines that show how much of a device is used, for kinds of cells that may run out."""
    rows = [(kind, *used[kind]) for kind in _SCARCE if kind in used]
    return [f"{kind:<14} {count:>7,} of {of:>7,} {count / of:>6.1%}" for kind, count, of in rows]
