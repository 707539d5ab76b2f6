"""The blocks of each engine that ``tilewright area`` maps, in the order of the data."""

import json
import tempfile
from functools import cache, partial
from importlib import import_module
from pkgutil import walk_packages

from tilewright import hw
from tilewright.files import write_atomically
from tilewright.hw.cluster.memory.layouts import PAGE_LOG2
from tilewright.hw.pe.arithmetic.division import SHARING
from tilewright.progress import working
from tilewright.results import record
from tilewright.sim.hdl.tops import top_component

from .flow import map_flat
from .netlist import block_table, by_block, cell_counts, depth_figures, depth_lines

__all__ = ["EACH_CORE", "NEIGHBOURS", "REDUCTIONS", "ROWS", "SHARING", "cluster_blocks", "conv_blocks", "flat_figures",
           "flat_lines", "measure_flat", "pe_blocks", "program_blocks", "tmau_blocks"]  # fmt: skip

#: Blocks of the TMAU that only reductions need.
REDUCTIONS = ("Reducer", "SharedReducer")
#: Blocks of a cluster that every core has.
EACH_CORE = (
    "Outbox", "Inbox", "LineReducer", "Landing", "Lender", "RemoteCaller", "BarrierGate", "CoreReads", "CoreWrites"
)  # fmt: skip
#: Threads of the MAC array, and of rows of the arithmetic, that are mapped: all threads together take too long.
NEIGHBOURS = 4

#: Blocks of the processing engine of which that many threads are mapped.
ROWS = ("MacArray", "IntegerRow", "FloatRow", "QuotientRow")

#: Classes that are made from the parameters alone.
_TMAU = """
DescriptorCache Setup BlockSetup LaneSetup
GroupTracker Exchange Dispatch TileWalker PixelWalker
RunRouter RequestGenerator ResponseTracker StepGenerator
Realigner SharedReducer WordPlacer StoreTracker
WriteGenerator WordStepGenerator SegmentFetcher
WordAssembler StoreFinisher Finisher Control
"""
_PE = """
Decoder Issue Waits
SegmentTable Items Bases
StoreWords Columns BlockParts
LineDirectory AddressLanes PageTable
Translator FaultCollector Reader ReadReturn
LineCache StoreMerger Broadcaster
FactorFetcher Spread RegisterFile Control Pager
"""
_CONV = """
JobChecker JobSetup JobRunner FeatureFetcher FeatureBuffer
WeightLoader WeightWriter Sequencer LaneSteps
KernelRows SlaveMemory Slave
SumsReader Grouper TableLoader AddendReader
ReadOut RunCutter Assembler Writer ConvControl
"""
#: Those of a second-level cache.
_L2 = """
BurstLines WriteLines Lookup LineStage WriteBack Sweep
L2Control
"""


@cache
def _modules():
    """All modules of the hardware."""
    return [import_module(module.name) for module in walk_packages(hw.__path__, "tilewright.hw.") if not module.ispkg]


def _class(name, engine=""):
    """The class or function of the hardware, or of an engine of it, called ``name``."""
    modules = [module for module in _modules() if module.__name__.startswith(f"tilewright.hw.{engine}")]
    return next(vars(module)[name] for module in modules if name in getattr(module, "__all__", ()))


def _made(engine, names, params):
    return {name: partial(_class(name, engine), params) for name in names.split()}


def tmau_blocks(params):
    """Blocks of the TMAU's data path by name, as functions that make them."""
    bus = {"addr_width": params.addr_width, "bus_bytes": params.bus_bytes}
    flight, burst = {"max_outstanding": params.max_outstanding}, {"max_burst": params.max_burst}
    made = _made("tmau", _TMAU, params)

    def splitter():
        words = {"word_width": params.word_width, "count_width": made["RequestGenerator"]().count_width}
        return _class("BurstSplitter")(**words, **burst, bus_bytes=params.bus_bytes)

    return made | {
        "BurstSplitter": splitter,
        "ReadPort": partial(_class("ReadPort"), **bus, **flight, **burst),
        "Axi4ReadMux": partial(_class("Axi4ReadMux"), params.addr_width, params.bus_width),
        "Reducer": partial(
            _class("Reducer"), **bus, **burst, words=params.old_words, floats=params.has("reductions_float")
        ),
        "WriteGuard": partial(_class("WriteGuard"), **bus),
        "WritePort": partial(_class("WritePort"), **bus, **flight, id_width=2),
    }


def pe_blocks(params):
    """Blocks of the processing engine by name, as functions that make them; those of ``NEIGHBOURS`` for few threads."""
    made = _made("pe", _PE, params) | {"MacArray": partial(_class("mac_array"), params.replace(threads=NEIGHBOURS))}
    if not params.units:
        return made | _made("pe", "LaneOps PredicateFile Scoreboard", params)
    # The cycles to a result do not matter much here.
    latency = 12
    made |= _made("pe", "Kernels Router PredicateRows", params)
    made["Scoreboard"] = partial(_class("Scoreboard", "pe"), params, latency + 1)
    made["ArithmeticStart"] = partial(_class("ArithmeticStart"), params, latency)
    lookup_words = params.lookup_words if "lookup" in params.units else None
    made["IntegerRow"] = partial(_class("IntegerRow", "pe"), NEIGHBOURS, lookup_words)
    floats, divides = "f32" in params.units, "div" in params.units
    if floats:
        made["FloatRow"] = partial(_class("FloatRow"), NEIGHBOURS)
    if divides:
        made["QuotientRow"] = partial(_class("QuotientRow"), NEIGHBOURS, _class("QUOTIENTS_EVERY"))
    if floats or divides:
        made["DivideRow"] = partial(_class("DivideRow"), min(params.threads, SHARING), integers=divides, floats=floats)
    return made


def conv_blocks(params):
    """Blocks of the convolution engine by name, as functions that make them; one slave."""
    conv, tags = params.conv, _class("gather_tags")(params)
    latency = _class("array_latency")(params)
    loop = _class("ConvArray").LOOP
    return _made("conv", _CONV, params) | {
        "Sequencer": partial(_class("Sequencer"), params, latency, loop),
        "Factors": partial(_class("Factors"), conv.row_bytes, wide=params.wide),
        "GatherShare": partial(_class("GatherShare"), params, tags),
        "Gatherer": partial(_class("Gatherer"), params, _class("shared_tag")(tags)),
        "PointWalker": partial(_class("PointWalker"), params, ("y", "addend")),
        "PostProcessor": partial(_class("PostProcessor"), conv),
    }


def program_blocks(params):
    """Blocks of the command processor by name, as functions that make them; of a ``CoreParams`` with ``program``.

    BusShare and AccessShare stand beside it, in the core.
    """
    tmau, sizes = params.tmau, params.program
    ahead = 2 * max(sizes.words, sizes.instruction_lines)
    made = {
        "LineReader": (tmau.addr_width, tmau.bus_bytes, tmau.max_burst, ahead),
        "ProgramFetcher": (tmau.addr_width, sizes.words),
        "WordDecoder": (params,),
        "Dispatcher": (params, _class("core_regions")(params)),
        "InstructionStreamer": (tmau.addr_width, sizes.instruction_lines),
        "BarrierCaller": (params.smem,),
        "RangeCheck": (tmau.addr_width,),
        "StopCause": (),
        "ProgramControl": (params,),
        "BusShare": (tmau.addr_width, tmau.bus_width),
        "AccessShare": (),
    }
    return {name: partial(_class(name, "core"), *arguments) for name, arguments in made.items()}


def cluster_blocks(params):
    """Blocks of a ``ClusterParams`` of several cores beside the cores, by name, as functions that make them.

    Of those that every core has, one; of the two sides of memory what shares them out: an arbiter of each, and the gate
    of reductions. The choice among the cores' words is left out, and of a second-level cache words that memory brought.
    """
    tmau, cores = params.tmau, params.cores
    bus = (tmau.addr_width, tmau.bus_width)
    floats, reductions = tmau.has("reductions_float"), tmau.has("reductions_global")
    made = {
        "Outbox": (tmau.smem, cores, 0),
        "Inbox": (tmau.smem, cores),
        "LineReducer": (tmau.smem, cores, floats),
        "Landing": (tmau.smem, cores),
        "Lender": (tmau.smem, cores),
        "RemoteCaller": (tmau.smem, cores, 0),
        "BarrierGate": (tmau.smem, cores),
        "CoreWrites": (*bus, 2 * tmau.max_burst, 32),
        "FairArbiter": (_class("RequestLayout")(bus[0]), cores, tmau.max_burst),
        "ReductionGate": (bus[0] - PAGE_LOG2, cores, 64),
    }
    if params.l2:
        geometry = params.l2.geometry(*bus, 2 + (cores - 1).bit_length())
        made |= dict.fromkeys(_L2.split(), (geometry,))
    reads = partial(_class("CoreReads"), *bus, params.read_words, reductions=reductions)
    return {name: partial(_class(name, "cluster"), *arguments) for name, arguments in made.items()} | {
        "CoreReads": reads
    }


#: Blocks without which a TMAU has no reductions, by the end of their paths.
_REDUCTIONS = ("reducer", "shared_reduce")


def measure_flat(top, preset, without, family, out, settings=()):
    """Maps a top, prints what came out and leaves it as JSON; returns the exit status."""
    component = top_component(top, preset, without=without, settings=settings)
    with working(f"{top}, {preset}"), tempfile.TemporaryDirectory(prefix="tilewright-") as folder:
        mapped = map_flat(component, family, folder)
    figures = flat_figures(mapped.module, family) | {
        "elaboration_seconds": round(mapped.elaboration, 1), "mapping_seconds": round(mapped.mapping, 1)}  # fmt: skip
    lacking = f", {','.join(map(str, settings))}" if settings else ""
    lacking += f" without {', '.join(without)}" if without else ""
    print(f"{top}, preset {preset}{lacking}, flattened, {family}")
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
    if not without and not settings:
        record(f"flat-{top.replace('_', '-')}-{preset}-{family}", **figures["cells"], **levels,
               command=f"tilewright area --flat --top {top} --preset {preset} --family {family}")  # fmt: skip
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
        lines.append(f"without {' and '.join(_REDUCTIONS)}: {blocks[''][0] - sum(reducing):,} LUTs")
    return [*lines, "", *depth_lines(figures)] if "path" in figures else lines
