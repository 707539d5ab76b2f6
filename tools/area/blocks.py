"""The blocks of each engine that ``tilewright area`` maps, in the order of the data."""

import json
import tempfile
from functools import partial
from importlib import import_module

from tilewright.files import write_atomically
from tilewright.progress import working
from tilewright.results import record
from tilewright.sim.hdl.tops import top_component

from ..fpga.mapping import FREQUENCY, map_flat
from ..fpga.netlist import block_table, by_block, cell_counts, depth_figures, depth_lines

__all__ = ["EACH_CORE", "NEIGHBOURS", "REDUCTIONS", "cluster_blocks", "conv_blocks", "flat_figures", "flat_lines",
           "measure_flat", "pe_blocks", "program_blocks", "tmau_blocks"]  # fmt: skip

#: Blocks of the TMAU that only reductions need.
REDUCTIONS = ("Reducer", "SharedReducer")
#: Blocks of a cluster that every core has.
EACH_CORE = (
    "Outbox", "Inbox", "LineReducer", "Landing", "Lender", "RemoteCaller", "BarrierGate", "CoreReads", "CoreWrites"
)  # fmt: skip
#: Threads of the MAC array that is mapped: neighbours that share a product. All threads together take too long.
NEIGHBOURS = 4

#: Classes, by their modules, that are made from the parameters alone.
_TMAU = """
descriptor.cache.DescriptorCache setup.tensor.Setup setup.block.BlockSetup setup.lanes.LaneSetup
front.groups.GroupTracker front.exchange.Exchange front.dispatch.Dispatch walk.tile.TileWalker walk.pixel.PixelWalker
walk.run_router.RunRouter walk.requests.RequestGenerator load.tracker.ResponseTracker load.steps.StepGenerator
load.realign.Realigner load.shared_reduce.SharedReducer load.place.WordPlacer store.tracker.StoreTracker
store.bursts.WriteGenerator store.word_steps.WordStepGenerator store.segment_fetch.SegmentFetcher
store.word_assembler.WordAssembler store.finish.StoreFinisher front.finish.Finisher control.Control
"""
_PE = """
issue.decode.Decoder issue.issue.Issue issue.lane_ops.LaneOps issue.waits.Waits issue.scoreboard.Scoreboard
state.segments.SegmentTable state.predicates.PredicateFile address.items.Items address.bases.Bases
address.store_words.StoreWords address.columns.Columns address.block_parts.BlockParts
address.line_directory.LineDirectory address.address_lanes.AddressLanes address.pages.PageTable
address.translate.Translator address.faults.FaultCollector memory.reader.Reader memory.read_return.ReadReturn
memory.line_cache.LineCache memory.store_merger.StoreMerger compute.broadcast.Broadcaster
compute.factors.FactorFetcher compute.spread.Spread state.registers.RegisterFile control.Control pager.Pager
"""
_CONV = """
job.check.JobChecker job.setup.JobSetup job.run.JobRunner fetch.features.FeatureFetcher fetch.buffer.FeatureBuffer
array.weights.WeightLoader array.weights.WeightWriter array.sequencer.Sequencer array.lane_steps.LaneSteps
fetch.kernel.KernelRows array.memory.SlaveMemory array.slave.Slave
array.read.SumsReader result.groups.Grouper result.table.TableLoader result.addends.AddendReader
result.readout.ReadOut result.runs.RunCutter result.assembler.Assembler result.writer.Writer control.ConvControl
"""
#: Those of a second-level cache.
_L2 = """
burst_lines.BurstLines write_lines.WriteLines lookup.Lookup line_stage.LineStage write_back.WriteBack sweep.Sweep
control.L2Control
"""


def _class(place):
    module, _, name = place.rpartition(".")
    return getattr(import_module(f"tilewright.hw.{module}"), name)


def _made(engine, places, params):
    kinds = [_class(f"{engine}.{place}") for place in places.split()]
    return {kind.__name__: partial(kind, params) for kind in kinds}


def tmau_blocks(params):
    """Blocks of the TMAU's data path by name, as functions that make them."""
    bus = {"addr_width": params.addr_width, "bus_bytes": params.bus_bytes}
    flight, burst = {"max_outstanding": params.max_outstanding}, {"max_burst": params.max_burst}
    made = _made("tmau", _TMAU, params)

    def splitter():
        words = {"word_width": params.word_width, "count_width": made["RequestGenerator"]().count_width}
        return _class("bus.bursts.BurstSplitter")(**words, **burst, bus_bytes=params.bus_bytes)

    return made | {
        "BurstSplitter": splitter,
        "ReadPort": partial(_class("bus.read_port.ReadPort"), **bus, **flight, **burst),
        "Axi4ReadMux": partial(_class("bus.axi4.Axi4ReadMux"), params.addr_width, params.bus_width),
        "Reducer": partial(
            _class("reduce.unit.Reducer"),
            **bus,
            **burst,
            words=params.old_words,
            floats=params.has("reductions_float"),
        ),
        "WriteGuard": partial(_class("bus.write_port.WriteGuard"), **bus),
        "WritePort": partial(_class("bus.write_port.WritePort"), **bus, **flight, id_width=2),
    }


def pe_blocks(params):
    """Blocks of the processing engine by name, as functions that make them; the MAC array of four threads."""
    neighbours = partial(_class("pe.compute.mac.MacArray"), params.replace(threads=NEIGHBOURS))
    return _made("pe", _PE, params) | {"MacArray": neighbours}


def conv_blocks(params):
    """Blocks of the convolution engine by name, as functions that make them; one slave."""
    conv, tags = params.conv, _class("conv.datapath.gather_tags")(params)
    latency = _class("conv.array.array.array_latency")(params)
    loop = _class("conv.array.array.ConvArray").LOOP
    rotator = {"RowRotator": partial(_class("conv.array.rotator.RowRotator"), params)} if conv.rotation else {}
    return (
        _made("conv", _CONV, params)
        | rotator
        | {
            "Sequencer": partial(_class("conv.array.sequencer.Sequencer"), params, latency, loop),
            "Factors": partial(_class("conv.array.factors.Factors"), conv.row_bytes, wide=params.wide),
            "GatherShare": partial(_class("conv.fetch.share.GatherShare"), params, tags),
            "Gatherer": partial(
                _class("conv.fetch.gather.Gatherer"), params, _class("conv.fetch.share.shared_tag")(tags)
            ),
            "PointWalker": partial(_class("conv.fetch.points.PointWalker"), params, ("y", "addend")),
            "PostProcessor": partial(_class("conv.post.processor.PostProcessor"), conv),
        }
    )


def program_blocks(params):
    """Blocks of the command processor by name, as functions that make them; of a ``CoreParams`` with ``program``.

    BusShare and AccessShare stand beside it, in the core.
    """
    tmau, sizes = params.tmau, params.program
    ahead = 2 * max(sizes.words, sizes.instruction_lines)
    made = {
        "lines.LineReader": (tmau.addr_width, tmau.bus_bytes, tmau.max_burst, ahead),
        "fetch.ProgramFetcher": (tmau.addr_width, sizes.words),
        "decode.WordDecoder": (params,),
        "dispatch.Dispatcher": (params, _class("core.top.core_regions")(params)),
        "instructions.InstructionStreamer": (tmau.addr_width, sizes.instruction_lines),
        "barriers.BarrierCaller": (params.smem,),
        "ranges.RangeCheck": (tmau.addr_width,),
        "cause.StopCause": (),
        "control.ProgramControl": (params,),
        "bus_share.BusShare": (tmau.addr_width, tmau.bus_width),
        "access_share.AccessShare": (),
    }
    kinds = {_class(f"core.program.{place}"): arguments for place, arguments in made.items()}
    return {kind.__name__: partial(kind, *arguments) for kind, arguments in kinds.items()}


def cluster_blocks(params):
    """Blocks of a ``ClusterParams`` of several cores beside the cores, by name, as functions that make them.

    Of those that every core has, one; of the two sides of memory what shares them out: an arbiter of each, and the gate
    of reductions. The choice among the cores' words is left out, and of a second-level cache words that memory brought.
    """
    tmau, cores = params.tmau, params.cores
    bus = (tmau.addr_width, tmau.bus_width)
    floats, reductions = tmau.has("reductions_float"), tmau.has("reductions_global")
    made = {
        "network.outbox.Outbox": (tmau.smem, cores, 0),
        "network.inbox.Inbox": (tmau.smem, cores),
        "network.line_reducer.LineReducer": (tmau.smem, cores, floats),
        "network.landing.Landing": (tmau.smem, cores),
        "network.lender.Lender": (tmau.smem, cores),
        "barriers.caller.RemoteCaller": (tmau.smem, cores, 0),
        "barriers.gate.BarrierGate": (tmau.smem, cores),
        "memory.core_writes.CoreWrites": (*bus, 2 * tmau.max_burst, 32),
        "memory.fair.FairArbiter": (_class("cluster.memory.layouts.RequestLayout")(bus[0]), cores, tmau.max_burst),
        "memory.reductions.ReductionGate": (bus[0] - _class("cluster.memory.layouts.PAGE_LOG2"), cores, 64),
    }
    if params.l2:
        geometry = params.l2.geometry(*bus, 2 + (cores - 1).bit_length())
        made |= {f"l2.{place}": (geometry,) for place in _L2.split()}
    kinds = {_class(f"cluster.{place}"): arguments for place, arguments in made.items()}
    reads = partial(_class("cluster.memory.core_reads.CoreReads"), *bus, params.read_words, reductions=reductions)
    return {kind.__name__: partial(kind, *arguments) for kind, arguments in kinds.items()} | {"CoreReads": reads}


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
