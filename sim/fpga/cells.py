"""What a flattened netlist takes of a device, in all and by its blocks."""

from collections import Counter

from .names import Names

__all__ = ["block_table", "by_block", "cell_counts", "tables_of"]

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
