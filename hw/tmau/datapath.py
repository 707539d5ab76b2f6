"""The TMAU's data path: connections between the front, the walkers, the two halves and the bus, nothing else."""

from amaranth import Module, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, flipped

from tilewright.golden.spec import LINE_BYTES

from ..bus.axi4 import Axi4Signature, forward_channels
from ..bus.axi4_port import ReadPort
from ..bus.burst import BurstSplitter
from ..bus.commands import command_layout
from ..bus.read_mux import Axi4ReadMux
from ..bus.write_guard import WriteGuard
from ..bus.write_port import WritePort
from ..lib.arbiter import StreamArbiter
from ..lib.join import join
from ..lib.stream import Queue
from ..reduce.unit import Reducer
from ..smem.layouts import LandedLayout, LineLayout
from .front.finish import DoneLayout, Finisher
from .front.front import Front
from .layouts import StagedLineLayout, WindowsLayout, WordLayout
from .load.path import LoadPath
from .load.shared_guard import SharedGuard
from .store.path import StorePath
from .walk.pixel import PixelWalker
from .walk.requests import RequestGenerator
from .walk.run_router import RunRouter
from .walk.tile import TileWalker

__all__ = ["EventsLayout", "TmauDatapath"]


class EventsLayout(data.StructLayout):
    """What happened in a cycle, for the performance counters. All are strobes."""

    def __init__(self):
        super().__init__(
            {
                "command": unsigned(1),  # one was accepted
                "request": unsigned(1),  # a data burst was accepted by the bus
                "beat": unsigned(1),  # a data word came
                "write_request": unsigned(1),  # a write burst was accepted by the bus
                "write_beat": unsigned(1),  # a word was written
                "descriptor_hit": unsigned(1),
                "descriptor_miss": unsigned(1),
                "stall_credit": unsigned(1),  # a burst waited because max_outstanding were in flight
                "stall_ar": unsigned(1),  # a request waited for the bus
                "stall_data": unsigned(1),  # the load half waited for a word
                "stall_smem": unsigned(1),  # a line waited for shared memory
            }
        )


class TmauDatapath(wiring.Component):
    """The rooms of docs/architecture.md, from commands to lines of shared memory and back.

    Members
    -------
    commands : In(stream of command_layout())
    axi : Out(Axi4Signature(params.addr_width, params.bus_width, 2))
        Read ID 0 is data, 1 descriptors, 2 what a reduction changes; write ID 0.
    writes : Out(stream of LineLayout)
    fetches : Out(stream of unsigned(params.smem.row_width))
        Lines of shared memory to read, in the cycle of the handshake.
    line : In(8 * LINE_BYTES)
        In the cycle after it.
    landed : Out(stream of LandedLayout)
        Presented in the cycle of the transfer's last write, or later.
    windows : In(WindowsLayout)
    done : Out(DoneLayout)
        Strobe for each command that ends, after its last write.
    invalidate_descriptors : In(1)
        Strobe.
    events : Out(EventsLayout)
    queue_level : Out(range(params.queue_depth + 1))
        Commands that wait in the queue.
    idle : Out(1)
        No command is anywhere in here.
    """

    def __init__(self, params):
        self.params = params
        super().__init__(
            {
                "commands": In(stream.Signature(command_layout())),
                "axi": Out(Axi4Signature(params.addr_width, params.bus_width, 2)),
                "writes": Out(stream.Signature(LineLayout(params.smem))),
                "fetches": Out(stream.Signature(unsigned(params.smem.row_width))),
                "line": In(8 * LINE_BYTES),
                "landed": Out(stream.Signature(LandedLayout(params.smem))),
                "windows": In(WindowsLayout(params)),
                "done": Out(DoneLayout(params)),
                "invalidate_descriptors": In(1),
                "events": Out(EventsLayout()),
                "queue_level": Out(range(params.queue_depth + 1)),
                "idle": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        params = self.params
        m.submodules.front = front = Front(params)
        m.submodules.tiles = tiles = TileWalker(params)
        m.submodules.pixels = pixels = PixelWalker(params)
        m.submodules.router = router = RunRouter(params)
        m.submodules.requests = requests = RequestGenerator(params)
        m.submodules.splitter = splitter = BurstSplitter(
            word_width=params.word_width,
            count_width=requests.count_width,
            bus_bytes=params.bus_bytes,
            max_burst=params.max_burst,
        )
        m.submodules.port = port = ReadPort(
            addr_width=params.addr_width,
            bus_bytes=params.bus_bytes,
            max_outstanding=params.max_outstanding,
            max_burst=params.max_burst,
        )
        m.submodules.load = load = LoadPath(params)
        m.submodules.store = store = StorePath(params)
        m.submodules.loop = loop = Queue(WordLayout(params), params.loop_words)
        m.submodules.staged = staged = Queue(StagedLineLayout(params), params.stage_lines)
        m.submodules.finish = finish = Finisher(params)

        # The request half.
        join(m, commands=flipped(self.commands), front=front.commands)
        join(m, front=front.walks, tiles=tiles.i)
        join(m, front=front.pixel_walks, pixels=pixels.i)
        join(m, tiles=tiles.o, router=router.tiles)
        join(m, pixels=pixels.o, router=router.pixels)
        join(m, router=router.loads, requests=requests.i)
        join(m, requests=requests.requests, splitter=splitter.i)
        join(m, splitter=splitter.o, port=port.bursts)
        join(m, front=front.fetch, port=port.descriptors)
        join(m, port=port.descriptor_words, front=front.words)

        # The halves, and what passes between them.
        join(m, front=front.load_transfers, load=load.transfers)
        join(m, requests=requests.rows, load=load.rows)
        join(m, port=port.words, load=load.words)
        join(m, front=front.store_transfers, store=store.transfers)
        join(m, router=router.stores, store=store.runs)
        join(m, store=store.loop, loop=loop.i)
        join(m, loop=loop.o, load=load.loop)
        join(m, load=load.staged, staged=staged.i)
        join(m, staged=staged.o, store=store.staged)

        # The end.
        join(m, load=load.completions, finish=finish.completions)
        join(m, store=store.completions, finish=finish.stores)
        join(m, front=front.finished, finish=finish.finished)
        m.d.comb += [
            front.loop_level.eq(loop.level),
            front.loop_stb.eq(loop.o.valid & loop.o.ready),
            front.stage_level.eq(staged.level),
            front.stage_stb.eq(staged.o.valid & staged.o.ready),
            front.tile_busy.eq(tiles.busy),
            front.pixel_busy.eq(pixels.busy),
            front.load_completed.eq(load.completions.valid & load.completions.ready),
            front.store_completed.eq(store.completions.valid & store.completions.ready),
            front.store_read.eq(store.read_stb),
            front.store_done.eq(store.done_stb),
            front.windows.eq(self.windows),
            front.invalidate_descriptors.eq(self.invalidate_descriptors),
            self.done.eq(finish.done),
        ]
        write_port = self._bus(m, port, store)
        self._shared_memory(m, load, store, finish)
        self._observe(m, front, port, write_port, load)
        return m

    def _bus(self, m, port, store):
        """The chain of writes, and who reads; returns the write port."""
        params, bus = self.params, {"addr_width": self.params.addr_width, "bus_bytes": self.params.bus_bytes}
        m.submodules.reducer = reducer = Reducer(**bus, max_burst=params.max_burst)
        m.submodules.guard = guard = WriteGuard(**bus)
        m.submodules.write_port = write_port = WritePort(**bus, max_outstanding=params.max_outstanding, id_width=2)
        m.submodules.read_mux = read_mux = Axi4ReadMux(params.addr_width, params.bus_width)
        for source, sink in (
            ((store.bursts, store.words, store.responses), (reducer.i_bursts, reducer.i_words, reducer.i_responses)),
            ((reducer.bursts, reducer.words, reducer.responses), (guard.i_bursts, guard.i_words, guard.i_responses)),
            (
                (guard.bursts, guard.words, guard.responses),
                (write_port.bursts, write_port.words, write_port.responses),
            ),
        ):
            for one, other in zip(source, sink, strict=True):
                join(m, source=one, sink=other)
        join(m, port=port.axi, read_mux=read_mux.movers)
        join(m, reducer=reducer.axi, read_mux=read_mux.reducer)
        forward_channels(m, self.axi, read_mux.axi)
        forward_channels(m, self.axi, write_port.axi)
        m.d.comb += [
            guard.confine.eq(self.windows.confine_global),
            guard.first.eq(self.windows.global_first),
            guard.last.eq(self.windows.global_last),
        ]
        return write_port

    def _shared_memory(self, m, load, store, finish):
        m.submodules.shared_guard = guard = SharedGuard(self.params)
        m.submodules.fetch_arbiter = arbiter = StreamArbiter(unsigned(self.params.smem.row_width), 2)
        join(m, load=load.writes, guard=guard.writes)
        join(m, finish=finish.landed, guard=guard.landed)
        join(m, guard=guard.guarded_writes, writes=flipped(self.writes))
        join(m, guard=guard.guarded_landed, landed=flipped(self.landed))
        join(m, load=load.fetches, arbiter=arbiter.i[0])
        join(m, store=store.fetches, arbiter=arbiter.i[1])
        join(m, arbiter=arbiter.o, fetches=flipped(self.fetches))
        m.d.comb += [guard.windows.eq(self.windows), load.line.eq(self.line), store.line.eq(self.line)]

    def _observe(self, m, front, port, write_port, load):
        params, events = self.params, self.events
        accepted = self.commands.valid & self.commands.ready
        # Commands in the queue, in the rooms of the front, and in the two halves.
        under_way = Signal(range(params.queue_depth + 16 + 2 * (params.commands_in_flight + params.max_outstanding)))
        m.d.sync += under_way.eq(under_way + accepted - self.done.valid)
        m.d.comb += [
            self.idle.eq((under_way == 0) & ~self.done.valid),
            self.queue_level.eq(front.queue_level),
            events.command.eq(accepted),
            events.request.eq(port.ar_stb),
            events.beat.eq(port.beat_stb),
            events.write_request.eq(write_port.aw_stb),
            events.write_beat.eq(write_port.beat_stb),
            events.descriptor_hit.eq(front.hit_stb),
            events.descriptor_miss.eq(front.miss_stb),
            events.stall_credit.eq(port.stall_credit),
            events.stall_ar.eq(port.stall_ar),
            events.stall_data.eq(load.stall_data),
            events.stall_smem.eq(self.writes.valid & ~self.writes.ready),
        ]
