"""``tilewright area``: what each block costs in look-up tables, flip-flops and memories, and how deep its logic is.

Yosys maps every block by itself, for two kinds of device: six-input tables (Xilinx, 7 series) for size, four-input
tables (Lattice ECP5) for depth. Only for the 7 series Yosys gives multipliers the registers and adders that they have.
Nothing is placed or routed. The sum of the blocks leaves out what Yosys would save by looking across their edges:
``--flat`` maps a whole top, as its users do. Of the processing engine's MAC array four threads are mapped
and counted for all; what stands between its blocks, where it computes, is left out: registers, and with floats the
choice between two rows of accumulators.
Of the convolution engine one slave is mapped, and one of the units' rows of factors. The command processor is that of
a core with all engines; the blocks of a cluster are those of four access units with a second-level cache.
"""

import json
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass

from tilewright.arguments import add_out, integer
from tilewright.errors import UsageError
from tilewright.files import BUILD, write_atomically
from tilewright.hw.cluster.l2.params import L2Params
from tilewright.hw.cluster.params import ClusterParams
from tilewright.hw.conv.params import CONV_UNIT_PRESETS
from tilewright.hw.core.params import ENGINES, CoreParams, core_params
from tilewright.hw.pe.params import PE_PRESETS
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.progress import report, working
from tilewright.results import record
from tilewright.sim.hdl.settings import add_settings, changed, groups_of, require_groups
from tilewright.sim.hdl.tops import TOPS, feature_list
from tilewright.sim.hdl.verilog import run_yosys

from .blocks import (
    EACH_CORE,
    NEIGHBOURS,
    REDUCTIONS,
    ROWS,
    SHARING,
    cluster_blocks,
    conv_blocks,
    measure_flat,
    pe_blocks,
    program_blocks,
    tmau_blocks,
)
from .flow import FAMILIES, read_top, write_top
from .netlist import longest_path, luts_of

__all__ = ["Cost", "configure", "cost", "run"]

# Amaranth names wires after the fields of a port, as ``o[0]``: what the mappers call bit 0 of ``o`` too. Such wires are
# names of what is there anyhow, and go first.
_SCRIPT = "\ndesign -reset\n".join(
    f"read_rtlil top.il\nproc\nopt_clean -purge\n{mapping}\nwrite_json {family}.json"
    for family, mapping in FAMILIES.items()
)


@dataclass(frozen=True)
class Cost:
    """Cells of one block.

    Attributes
    ----------
    luts : int
        Tables of up to six inputs; those used as memory included.
    flip_flops : int
    memories : int
        Block RAMs of 36 Kib, halves counted as one.
    multipliers : int
    levels : int
        Four-input tables on the longest path, a carry chain counted as one.
    """

    luts: int
    flip_flops: int
    memories: int
    multipliers: int
    levels: int

    def times(self, count):
        """What ``count`` of them cost."""
        return Cost(*(round(count * getattr(self, name)) for name in _SUMMED), levels=self.levels)


_SUMMED = ("luts", "flip_flops", "memories", "multipliers")
#: Functions that make the blocks of an engine, by its name.
_BLOCKS = {
    "tmau": tmau_blocks,
    "pe": pe_blocks,
    "conv": conv_blocks,
    "program": program_blocks,
    "cluster": cluster_blocks,
}


def configure(parser):
    """Adds the arguments of the subcommand."""
    parser.add_argument("--preset", choices=list(TMAU_PRESETS), default="default", help="configuration (%(default)s)")
    parser.add_argument("--flat", action="store_true", help="map a whole top as one, with its deepest path")
    parser.add_argument("--top", choices=list(TOPS), help="which one, with --flat (tmau)")
    parser.add_argument("--family", choices=list(FAMILIES), help="device that --flat maps for (ecp5)")
    parser.add_argument("--without", metavar="FEATURE,...", type=feature_list, default=(),
                        help="features of the access unit that are not built, with --flat")  # fmt: skip
    add_settings(parser)
    parser.add_argument("--engine", choices=list(_BLOCKS), help="one engine; all if left out")
    parser.add_argument("--block", action="append", help="one block, may be given several times; all if left out")
    parser.add_argument("--jobs", type=integer(1, 256), help="blocks at a time (2)")
    add_out(parser, "FILE.json", "where figures go", BUILD / "area.json")


def run(args):
    """Prints a table for each engine, or of a whole top, and leaves them as JSON."""
    for name in ("engine", "block", "jobs") if args.flat else ("top", "family", "without"):
        if getattr(args, name):
            raise UsageError(f"--{name} goes {'without' if args.flat else 'with'} --flat")
    if args.flat:
        return measure_flat(
            args.top or "tmau", args.preset, args.without, args.family or "ecp5", args.out, args.settings
        )
    chosen = [args.engine] if args.engine else list(_BLOCKS)
    params = {engine: _params(engine, args.preset) for engine in chosen}
    groups = dict.fromkeys(group for name, each in params.items() for group in _groups(name, each))
    require_groups(args.settings, groups)
    params = {engine: changed(each, args.settings) for engine, each in params.items()}
    blocks = {engine: _BLOCKS[engine](each) for engine, each in params.items()}
    for name in args.block or ():
        if not any(name in made for made in blocks.values()):
            raise UsageError(
                f"there is no block {name}: {', '.join(name for made in blocks.values() for name in made)}"
            )
    tables = {}
    for engine, makes in blocks.items():
        times = _times(engine, params[engine])
        costs = tables[engine] = _measured(engine, makes, times, args)
        if engine == "tmau":
            without = sum(each.luts for name, each in costs.items() if name not in REDUCTIONS)
            print(f"without {' and '.join(REDUCTIONS)}: {without} LUTs")
        print("".join(f"{name} is {count:g} times what was mapped\n" for name, count in times.items()))
    tables = {engine: {name: asdict(each) for name, each in costs.items()} for engine, costs in tables.items()}
    write_atomically(args.out, json.dumps(tables, indent=1))
    print(args.out)
    return 0


def _params(engine, preset):
    """What the blocks of an engine are made for; of the command processor a core, of a cluster the cluster."""
    core = core_params(preset, ENGINES)
    cluster = ClusterParams(core=CoreParams(TMAU_PRESETS[preset]), l2=L2Params())
    engines = {"tmau": TMAU_PRESETS[preset], "pe": PE_PRESETS[preset], "conv": CONV_UNIT_PRESETS[preset]}
    return (engines | {"program": core, "cluster": cluster})[engine]


def _groups(engine, params):
    """Groups of parameters that the blocks of an engine depend on; a command processor has nothing of the engines."""
    return [group for group in groups_of(params) if engine != "program" or group not in ("pe", "conv")]


def _times(engine, params):
    """How often blocks count that do not count once."""
    match engine:
        case "pe":
            return dict.fromkeys(ROWS, params.threads / NEIGHBOURS) | {"DivideRow": max(1, params.threads / SHARING)}
        case "conv":
            return {"Slave": params.conv.slaves, "Factors": params.conv.units}
        case "cluster":
            return dict.fromkeys(EACH_CORE, params.cores) | {"FairArbiter": 2}
    return {}


def _measured(engine, makes, times, args):
    """The :class:`Cost` of every chosen block of an engine, printed as it is known, and then their sum."""
    chosen = {name: make for name, make in makes.items() if not args.block or name in args.block}
    print(", ".join([engine, f"preset {args.preset}", *map(str, args.settings)]))
    print(f"{'block':<34} {'LUT6':>7} {'FF':>7} {'RAM':>4} {'DSP':>4} {'levels':>6}")
    costs = {}
    with working(f"{engine}, {args.preset}"), ThreadPoolExecutor(args.jobs or 2) as pool:
        report("blocks", 0, len(chosen))
        try:
            for name, each in zip(chosen, pool.map(lambda make: cost(make()), chosen.values()), strict=True):
                costs[name] = each.times(times.get(name, 1))
                print(_row(name, costs[name]), flush=True)
                report("blocks", len(costs), len(chosen))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    total = Cost(*(sum(getattr(each, name) for each in costs.values()) for name in _SUMMED), levels=max(
        (each.levels for each in costs.values()), default=0))  # fmt: skip
    print(_row("all of them", total))
    if not args.block and not args.settings:
        record(f"area-{engine}-{args.preset}", luts=total.luts, flip_flops=total.flip_flops, levels=total.levels,
               command=f"tilewright area --engine {engine} --preset {args.preset}")  # fmt: skip
    return costs


def _row(name, each):
    return f"{name:<34} {each.luts:>7} {each.flip_flops:>7} {each.memories:>4} {each.multipliers:>4} {each.levels:>6}"


def cost(component):
    """The :class:`Cost` of a component, mapped by itself."""
    with tempfile.TemporaryDirectory(prefix="tilewright-") as folder:
        write_top(component, folder)
        run_yosys(folder, _SCRIPT, f"map {type(component).__name__}")
        cells, levels = read_top(folder, "xc7")["cells"], longest_path(read_top(folder, "ecp5"))[0]
    kinds = [cell["type"] for cell in cells.values()]
    return Cost(
        luts=sum(map(luts_of, kinds)),
        flip_flops=sum(kind.startswith("FD") for kind in kinds),
        memories=sum(kind.startswith("RAMB") for kind in kinds),
        multipliers=sum(kind.startswith("DSP") for kind in kinds),
        levels=levels,
    )
