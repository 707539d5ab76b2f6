"""A whole top, flattened: its size, its size by blocks, and which blocks its longest path crosses."""

import json
import tempfile

from ..files import write_atomically
from ..fpga.cells import block_table, by_block, cell_counts
from ..fpga.mapping import FREQUENCY, map_flat
from ..fpga.words import depth_figures, depth_lines
from ..hdl.export import top_component
from ..progress import working
from ..results import record

__all__ = ["flat_figures", "flat_lines", "measure_flat"]

#: Blocks without which a TMAU has no reductions, by the end of their paths.
_REDUCTIONS = ("reducer", "shared_reduce")


def measure_flat(top, preset, without, family, out, target=FREQUENCY, settings=()):
    """Maps a top, prints what came out and leaves it as JSON; returns the exit status."""
    component = top_component(top, preset, without=without, settings=settings)
    with working(f"{top}, {preset}"), tempfile.TemporaryDirectory(prefix="tilewright-") as folder:
        mapped = map_flat(component, family, folder, target)
    figures = flat_figures(mapped.module, family) | {
        "elaboration_seconds": round(mapped.elaboration, 1), "mapping_seconds": round(mapped.mapping, 1)}  # fmt: skip
    lacking = f", {','.join(map(str, settings))}" if settings else ""
    lacking += f" without {', '.join(without)}" if without else ""
    aim = f", for {target} MHz" if target != FREQUENCY else ""
    print(f"{top}, preset {preset}{lacking}, flattened, {family}{aim}")
    print("\n".join(flat_lines(figures)))
    print(f"{figures['elaboration_seconds']} s of processor time to elaborate, {figures['mapping_seconds']} s to map")
    write_atomically(
        out,
        json.dumps(
            {"top": top, "preset": preset, "set": list(map(str, settings)), "without": without, "family": family}
            | figures,
            indent=1,
        ),
    )
    # A path and a table by blocks are for readers; whoever compares needs numbers.
    levels = {"levels": figures["levels"]} if "levels" in figures else {}
    if not without and not settings and target == FREQUENCY:
        record(f"flat-{top.replace('_', '-')}-{preset}-{family}", **figures["cells"], **levels)
    print(out)
    return 0


def flat_figures(module, family):
    """Figures of a flattened netlist, as they go into the file.

    Returns
    -------
    dict
        ``cells`` by kind; ``blocks`` by paths; for ``ecp5`` also ``levels`` and ``path``.
    """
    found = {"cells": cell_counts(module, family), "blocks": by_block(module)}
    # What a table, a multiplexer and a carry of another family add to a path is not in our table of levels.
    return found | (depth_figures(module) if family == "ecp5" else {})


def flat_lines(figures):
    """Lines that show :func:`flat_figures`."""
    lines = ["  ".join(f"{name} {count:,}" for name, count in figures["cells"].items()), ""]
    blocks = figures["blocks"]
    lines += block_table(blocks)
    reducing = [cost[0] for name, cost in blocks.items() if name.rpartition(".")[2] in _REDUCTIONS]
    if reducing:
        lines.append(f"without {' and '.join(_REDUCTIONS)}: {blocks[''][0] - sum(reducing):,} tables")
    return [*lines, "", *depth_lines(figures)] if "path" in figures else lines
