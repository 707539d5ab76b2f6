"""The TMAU's data path: connections between the front, the walkers, the two paths and the bus, nothing else."""

from amaranth import Module, Signal, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, flipped

from ..bus.axi4 import Axi4ReadMux, Axi4Signature, forward_channels
from ..bus.bursts import BurstSplitter, WriteBurstLayout, WriteWordLayout
from ..bus.read_port import ReadPort
from ..bus.write_port import WriteGuard, WritePort
from ..lib.component import join
from ..lib.layouts import command_layout
from ..lib.routing import StreamArbiter
from ..lib.stream import DeepQueue, ReadyBuffer, SkidBuffer
from ..reduce.unit import Reducer
from ..smem.layouts import LandedLayout, LoanRequestLayout, MoverSignature
from .finish import Finisher
from .front import Front
from .layouts import StagedWordLayout, WordLayout, windows_of
from .load.path import LoadPath, SharedGuard
from .signatures import ControlSignature
from .store.path import StorePath
from .walk.pixel import PixelWalker
from .walk.requests import LINE_LOG2, PrefetchLines, RequestGenerator, RunRouter
from .walk.tile import TileWalker

__all__ = ["TmauDatapath"]


class TmauDatapath(wiring.Component):
    """The blocks of docs/inside_tmau.md, from commands to lines of shared memory and back.

    Members
    -------
    commands : In(stream of command_layout())
    axi : Out(Axi4Signature(params.addr_width, params.bus_width, 2))
        Read ID 0 is data, 1 descriptors, 2 what a reduction changes; write ID 0.
    smem : Out(MoverSignature(params.smem, params.cores, params.line_words))
    control : Out(ControlSignature)
    prefetches : Out(stream of unsigned(params.addr_width - 7)) if params.prefetches
    """

    def __init__(self, params):
        self.params = params
        lines = unsigned(params.addr_width - LINE_LOG2)
        super().__init__(
            ({"prefetches": Out(stream.Signature(lines))} if params.prefetches else {})
            | {
                "commands": In(stream.Signature(command_layout())),
                "axi": Out(Axi4Signature(params.addr_width, params.bus_width, 2)),
                "smem": Out(MoverSignature(params.smem, params.cores, params.line_words)),
                "control": Out(ControlSignature(params)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        params = self.params
        m.submodules.front = front = Front(params)
        m.submodules.tiles = tiles = TileWalker(params)
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
            block=params.spares_tables,
        )
        m.submodules.load = load = LoadPath(params)
        m.submodules.finish = finish = Finisher(params)

        # The request path.
        issue = front.issue
        join(m, commands=flipped(self.commands), front=front.commands)
        join(m, issue=issue.walks, tiles=tiles.i)
        join(m, tiles=tiles.o, router=router.tiles)
        join(m, router=router.loads, requests=requests.i)
        join(m, requests=requests.requests, splitter=splitter.i)
        join(m, splitter=splitter.o, port=port.bursts)
        join(m, front=front.fetch, port=port.descriptors)
        join(m, port=port.descriptor_words, front=front.words)

        # The load path, and the end.
        join(m, issue=issue.load_transfers, load=load.transfers)
        join(m, requests=requests.rows, load=load.rows)
        join(m, port=port.words, load=load.words)
        join(m, load=load.completions, finish=finish.completions)
        join(m, issue=issue.finished, finish=finish.finished)
        m.d.comb += [
            issue.tile_busy.eq(tiles.busy),
            issue.load_completed.eq(load.completions.valid & load.completions.ready),
            front.windows.eq(self._windows()),
            front.invalidate_descriptors.eq(self.control.invalidate_descriptors),
            self.control.done.eq(finish.done),
        ]
        if params.has("im2col"):
            m.submodules.pixels = pixels = PixelWalker(params)
            join(m, issue=issue.pixel_walks, pixels=pixels.i)
            join(m, pixels=pixels.o, router=router.pixels)
            m.d.comb += issue.pixel_busy.eq(pixels.busy)

        if params.prefetches:
            m.submodules.prefetch_lines = lines = PrefetchLines(params)
            join(m, router=router.prefetches, lines=lines.i)
            join(m, lines=lines.o, prefetches=flipped(self.prefetches))

        m.submodules.read_mux = read_mux = Axi4ReadMux(params.addr_width, params.bus_width)
        join(m, port=port.axi, read_mux=read_mux.movers)
        forward_channels(m, self.axi, read_mux.axi)
        store = None
        if params.has("stores"):
            store, writes = self._store(m, front, router, finish)
            if params.has("reductions_global"):
                writes = self._reduce(m, writes, read_mux)
            self._write(m, writes)
        if params.has("local_copies"):
            self._exchange(m, front, load, store)
        self._shared_memory(m, front, load, store, finish)
        self._observe(m, front, port, load)
        return m

    def _store(self, m, front, router, finish):
        """The store path; returns it, and what it writes."""
        issue = front.issue
        m.submodules.store = store = StorePath(self.params)
        join(m, issue=issue.store_transfers, store=store.transfers)
        join(m, router=router.stores, store=store.runs)
        join(m, store=store.completions, finish=finish.stores)
        m.d.comb += [
            issue.store_completed.eq(store.completions.valid & store.completions.ready),
            front.store_read.eq(store.read_stb),
            front.store_done.eq(store.done_stb),
        ]
        return store, store.writes

    def _exchange(self, m, front, load, store):
        """What passes between the paths."""
        m.submodules.loop = loop = DeepQueue(WordLayout(self.params), self.params.exchange_words)
        m.submodules.staged = staged = DeepQueue(StagedWordLayout(self.params), self.params.exchange_words)
        join(m, store=store.loop, loop=loop.i)
        join(m, loop=loop.o, load=load.loop)
        join(m, load=load.staged, staged=staged.i)
        join(m, staged=staged.o, store=store.staged)
        for state, queue in ((front.loop, loop), (front.stage, staged)):
            m.d.comb += [state.level.eq(queue.level), state.taken.eq(queue.o.valid & queue.o.ready)]

    def _reduce(self, m, writes, read_mux):
        """Reductions into global memory; returns what they write."""
        params = self.params
        m.submodules.reducer = reducer = Reducer(
            params.addr_width,
            params.bus_bytes,
            params.max_burst,
            params.old_words,
            floats=params.has("reductions_float"),
            processors=params.window_owners,
        )
        join(m, store=writes, reducer=reducer.i)
        join(m, reducer=reducer.axi, read_mux=read_mux.reducer)
        return reducer.o

    def _write(self, m, writes):
        """The end of the chain of writes."""
        params, windows, events = self.params, self.control.windows, self.control.events
        bus = {"addr_width": params.addr_width, "bus_bytes": params.bus_bytes}
        # Nothing is between the store path's queue and the bus then.
        direct = not params.has("reductions_global") and not params.has("windows")
        m.submodules.write_port = port = WritePort(
            **bus, max_outstanding=params.max_outstanding, id_width=2, direct=direct, block=params.spares_tables
        )
        words = writes.words
        if params.has("reductions_global"):
            # The ready of the port goes no further: the reducer's own leads through both of its sources.
            m.submodules.reduced = reduced = ReadyBuffer(WriteWordLayout(params.bus_bytes))
            join(m, writes=words, reduced=reduced.i)
            words = reduced.o
        if params.has("windows"):
            # Pages are compared in a cycle of their own.
            m.submodules.checked = checked = SkidBuffer(WriteBurstLayout(**bus, processors=params.window_owners))
            m.submodules.guard = guard = WriteGuard(**bus)
            join(m, writes=writes.bursts, checked=checked.i)
            if params.confines_apart:
                burst = checked.o.p
                m.d.comb += [
                    guard.i.bursts.valid.eq(checked.o.valid),
                    checked.o.ready.eq(guard.i.bursts.ready),
                    *(guard.i.bursts.p[name].eq(burst[name]) for name, _ in guard.i.bursts.p.shape()),
                ]
                windows = self.control.processor_windows[burst.processor]
            else:
                join(m, checked=checked.o, guard=guard.i.bursts)
            join(m, writes=words, guard=guard.i.words)
            join(m, guard=guard.i.responses, writes=writes.responses)
            writes, words = guard.o, guard.o.words
            m.d.comb += [
                guard.confine.eq(windows.confine_global),
                guard.first.eq(windows.global_first),
                guard.last.eq(windows.global_last),
            ]
        join(m, writes=writes.bursts, port=port.writes.bursts)
        join(m, words=words, port=port.writes.words)
        join(m, port=port.writes.responses, writes=writes.responses)
        forward_channels(m, self.axi, port.axi)
        m.d.comb += [events.write_request.eq(port.aw_stb), events.write_beat.eq(port.beat_stb)]

    def _shared_memory(self, m, front, load, store, finish):
        m.submodules.fetch_arbiter = arbiter = StreamArbiter(unsigned(self.params.smem.row_width), 2)
        join(m, load=load.writes, writes=flipped(self.smem.writes))
        if self.params.cores > 1:
            self._deliver(m, front, finish)
            self._borrow(m, front, store)
        else:
            self._land(m, finish)
        join(m, load=load.fetch.rows, arbiter=arbiter.i[0])
        join(m, refused=flipped(self.smem.refused), control=flipped(self.control.refused))
        join(m, arbiter=arbiter.o, rows=flipped(self.smem.fetch.rows))
        m.d.comb += [
            load.windows.eq(self._windows()),
            load.fetch.line.eq(self.smem.fetch.line),
        ]
        if store:
            join(m, store=store.fetch.rows, arbiter=arbiter.i[1])
            m.d.comb += store.fetch.line.eq(self.smem.fetch.line)

    def _land(self, m, finish):
        m.submodules.shared_guard = guard = SharedGuard(
            self.params, LandedLayout(self.params.smem), lambda landed: landed.barrier[7:], late=True
        )
        join(m, finish=finish.landed, guard=guard.i)
        join(m, guard=guard.o, landed=flipped(self.smem.landed))
        windows = self._windows()
        if self.params.confines_apart:
            windows = windows_of(self.params, windows, finish.landed_tag)
        m.d.comb += guard.windows.eq(windows)

    def _windows(self):
        """Those that confine commands."""
        return self.control.processor_windows if self.params.confines_apart else self.control.windows

    def _deliver(self, m, front, finish):
        """The end of a transfer in a cluster, where each receiver has a guard of its own."""
        smem, windows, delivery = self.smem, self.control.windows, self.control.delivery
        join(m, finish=finish.landed, landed=flipped(smem.landed))
        m.d.comb += [
            front.stopped.eq(delivery.stop),
            finish.refusing.eq(smem.refusing),
            smem.acceptance.cores.eq(delivery.accepts | windows.own),
            smem.acceptance.confine.eq(windows.confine_shared),
            smem.acceptance.first.eq(windows.shared_first),
            smem.acceptance.last.eq(windows.shared_last),
            smem.reach.eq(windows.allowed),
            *(getattr(delivery, name).eq(getattr(smem, name)) for name in ("number", "refusal", "received")),
        ]

    def _borrow(self, m, front, store):
        """Lines of other cores: setup asks, and the store path reads."""
        readers, loans = [front.loans, *([store.loans] if store else [])], self.smem.loans
        request = LoanRequestLayout(self.params.smem, self.params.cores)
        m.submodules.loan_arbiter = arbiter = StreamArbiter(request, len(readers))
        for reader, i in zip(readers, arbiter.i, strict=True):
            join(m, requests=reader.requests, arbiter=i)
            m.d.comb += reader.answer.eq(loans.answer)
        join(m, arbiter=arbiter.o, requests=flipped(loans.requests))

    def _observe(self, m, front, port, load):
        params, control, events = self.params, self.control, self.control.events
        accepted = self.commands.valid & self.commands.ready
        # Commands in the queue, in the blocks of the front, and in the two paths.
        under_way = Signal(range(params.queue_depth + 16 + 2 * (params.commands_in_flight + params.max_outstanding)))
        m.d.sync += under_way.eq(under_way + accepted - self.control.done.valid)
        m.d.comb += [
            control.idle.eq((under_way == 0) & ~self.control.done.valid),
            control.queue_level.eq(front.queue_level),
            events.command.eq(accepted),
            events.request.eq(port.ar_stb),
            events.beat.eq(port.beat_stb),
            events.descriptor_hit.eq(front.hit_stb),
            events.descriptor_miss.eq(front.miss_stb),
            events.stall_credit.eq(port.stall_credit),
            events.stall_ar.eq(port.stall_ar),
            events.stall_data.eq(load.stall_data),
            events.stall_smem.eq(self.smem.writes.valid & ~self.smem.writes.ready),
            events.bank_conflict.eq(self.smem.bank_conflict),
        ]
