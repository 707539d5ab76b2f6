"""What was measured of a netlist, as figures for a file and as lines for a reader."""

from itertools import pairwise

from .depth import longest_path
from .names import Names, arrows

__all__ = ["depth_figures", "depth_lines", "timing_figures", "timing_lines", "use_lines"]

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
