"""``tilewright bench``: measures the engines in exact cycles, and compares them with limits and targets."""

import json
from dataclasses import asdict
from importlib import import_module

import numpy as np

from tilewright.arguments import add_out
from tilewright.files import BUILD, write_atomically
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.progress import report, working
from tilewright.results import record
from tilewright.sim.bench.line import HEAD, row, rows
from tilewright.sim.bench.tmau_cases import BOXES
from tilewright.sim.hdl.build import require_tools
from tilewright.sim.hdl.settings import add_settings, require_groups

__all__ = ["configure", "run"]

#: Modules by engine; their ``measure`` yields the lines of a preset with the simulation's cycles a second so far.
_ENGINES = {name: f"tilewright.sim.bench.{name}" for name in ("tmau", "pe", "kernels", "conv", "core", "cluster")} | {
    "network": "tilewright.tools.network.bench",
    "cores": "tilewright.tools.network.cores",
}
#: Groups of parameters that a measurement takes from the preset. Layers of the convolution engine have a shared memory
#: of their own, which holds all of their operands.
_CORE = ("tmau", "pe", "conv", "program", "smem")
_GROUPS = {"tmau": ("tmau", "smem"), "pe": ("pe", "smem"), "kernels": ("pe", "smem"), "conv": ("conv",), "core": _CORE,
           "cluster": ("tmau", "smem", "l2"), "network": _CORE, "cores": _CORE}  # fmt: skip


def configure(parser):
    """Options of the command."""
    parser.add_argument("--preset", choices=sorted(TMAU_PRESETS), help="one preset instead of default and ecp5")
    parser.add_argument("--engine", choices=list(_ENGINES), help="one engine instead of all")
    add_settings(parser)
    parser.add_argument("--sim", choices=("verilator", "icarus"), default="verilator", help="simulator")
    add_out(parser, "FILE.json", "file for the table", BUILD / "bench.json")


def run(args):
    """Prints the table and writes it as JSON. The status is 0 even if a target is missed; the table shows that."""
    require_tools(args.sim)  # before minutes of elaboration
    presets = [args.preset] if args.preset else ["default", "ecp5"]
    engines = [args.engine] if args.engine else list(_ENGINES)
    groups = dict.fromkeys(group for engine in engines for group in _GROUPS[engine])
    require_groups(args.settings, groups)
    settings, lines, speeds = list(map(str, args.settings)), [], []
    if settings:
        print(f"with {', '.join(settings)}")
    print(HEAD)
    for engine in engines:
        measure = import_module(_ENGINES[engine]).measure
        for preset in presets:
            of_preset = []
            with working(f"{engine}, {preset}"):
                report("simulators")
                for line, speed in measure(preset, args.settings, simulator=args.sim):
                    of_preset.append(line)
                    speeds += [speed] if speed else []
                    print(row(line), flush=True)
                    report("lines", len(of_preset))
            if not settings:
                record(f"bench-{engine}-{preset}", command=f"tilewright bench --engine {engine} --preset {preset}",
                       lines=len(of_preset), met=sum(line.met for line in of_preset), rows=rows(of_preset))  # fmt: skip
            lines += of_preset
    missed = [line for line in lines if not line.met]
    table = {"set": settings, "boxes": BOXES, "lines": [asdict(line) for line in lines]}
    write_atomically(args.out, json.dumps(table, indent=1))
    speed = round(np.median(speeds or [0]))
    if not args.engine and not settings:
        record("bench", lines=len(lines), missed=len(missed), speed=speed)
    print(f"\n{len(lines)} lines, {len(missed)} below target; {speed:,} simulated cycles a second")
    for line in missed:
        place = line.name if line.latency is None else f"{line.name} at latency {line.latency}"
        causes = "".join(f"; {name} {count}" for name, count in line.counters.items() if count)
        print(f"  below target: {line.preset}: {place}: {line.figure}, not {line.target}{causes}")
    print(args.out)
    return 0
