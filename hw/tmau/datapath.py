"""The data path of the TMAU: front, walkers, both paths and the bus; connections only."""

from amaranth.hdl import Module, Signal, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from ..bus.axi4 import Axi4ReadMux, Axi4Signature, forward_channels
from ..bus.bursts import BurstSplitter, WriteBurstLayout, WriteWordLayout
from ..bus.read_port import ReadPort
from ..bus.write_port import WriteGuard, WritePort
from ..lib.layouts import command_layout
from ..lib.routing import StreamArbiter
from ..lib.stream import DeepQueue, ReadyBuffer, SkidBuffer
from ..reduce.unit import Reducer
from ..smem.layouts import LandedLayout, LoanRequestLayout
from ..smem.signatures import MoverSignature
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
    """The blocks of docs/inside_tmau.md, from commands to lines of shared memory and back."""

    def __init__(self, params):
        self._params = params
        lines = unsigned(params.addr_width - LINE_LOG2)
        super().__init__(
            ({"prefetches": Out(stream.Signature(lines))} if params.prefetches else {})
            | {
                "commands": In(stream.Signature(command_layout())),
                # Read ID 0 is data, 1 descriptors, 2 what a reduction changes; write ID 0.
                "axi": Out(Axi4Signature(params.addr_width, params.bus_width, 2)),
                "smem": Out(MoverSignature(params.smem, params.cores, params.line_words)),
                "control": Out(ControlSignature(params)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        params = self._params
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
            prefer_bram=params.prefer_bram,
        )
        m.submodules.load = load = LoadPath(params)
        m.submodules.finish = finish = Finisher(params)

        # The request path.
        issue = front.issue
        connect(m, flipped(self.commands), front.commands)
        connect(m, issue.walks, tiles.i)
        connect(m, tiles.o, router.tiles)
        connect(m, router.loads, requests.i)
        connect(m, requests.requests, splitter.i)
        connect(m, splitter.o, port.bursts)
        connect(m, front.fetch, port.descriptors)
        connect(m, port.descriptor_words, front.words)

        # The load path, and the end.
        connect(m, issue.load_transfers, load.transfers)
        connect(m, requests.rows, load.rows)
        connect(m, port.words, load.words)
        connect(m, load.completions, finish.completions)
        connect(m, issue.finished, finish.finished)
        m.d.comb += [
            issue.tile_busy.eq(tiles.busy),
            issue.load_completed.eq(load.completions.valid & load.completions.ready),
            front.windows.eq(self._windows()),
            front.invalidate_descriptors.eq(self.control.invalidate_descriptors),
            self.control.done.eq(finish.done),
        ]
        if params.has("im2col"):
            m.submodules.pixels = pixels = PixelWalker(params)
            connect(m, issue.pixel_walks, pixels.i)
            connect(m, pixels.o, router.pixels)
            m.d.comb += issue.pixel_busy.eq(pixels.busy)

        if params.prefetches:
            m.submodules.prefetch_lines = lines = PrefetchLines(params)
            connect(m, router.prefetches, lines.i)
            connect(m, lines.o, flipped(self.prefetches))

        m.submodules.read_mux = read_mux = Axi4ReadMux(params.addr_width, params.bus_width)
        connect(m, port.axi, read_mux.movers)
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
        """Adds the store path; returns it and its writes."""
        issue = front.issue
        m.submodules.store = store = StorePath(self._params)
        connect(m, issue.store_transfers, store.transfers)
        connect(m, router.stores, store.runs)
        connect(m, store.completions, finish.stores)
        m.d.comb += [
            issue.store_completed.eq(store.completions.valid & store.completions.ready),
            front.store_read.eq(store.read_stb),
            front.store_done.eq(store.done_stb),
        ]
        return store, store.writes

    def _exchange(self, m, front, load, store):
        """Adds the queues between the paths."""
        m.submodules.loop = loop = DeepQueue(WordLayout(self._params), self._params.exchange_words)
        m.submodules.staged = staged = DeepQueue(StagedWordLayout(self._params), self._params.exchange_words)
        connect(m, store.loop, loop.i)
        connect(m, loop.o, load.loop)
        connect(m, load.staged, staged.i)
        connect(m, staged.o, store.staged)
        for state, queue in ((front.loop, loop), (front.stage, staged)):
            m.d.comb += [state.level.eq(queue.level), state.popped.eq(queue.o.valid & queue.o.ready)]

    def _reduce(self, m, writes, read_mux):
        """Adds reductions into global memory; returns their writes."""
        params = self._params
        m.submodules.reducer = reducer = Reducer(
            params.addr_width,
            params.bus_bytes,
            params.max_burst,
            params.old_words,
            floats=params.has("reductions_float"),
            processors=params.window_owners,
        )
        connect(m, writes, reducer.i)
        connect(m, reducer.axi, read_mux.reducer)
        return reducer.o

    def _write(self, m, writes):
        """Adds the last stages of the writes: guard and bus."""
        params, windows, events = self._params, self.control.windows, self.control.events
        bus = {"addr_width": params.addr_width, "bus_bytes": params.bus_bytes}
        # The queue of the store path drives the bus directly.
        direct = not params.has("reductions_global") and not params.has("windows")
        m.submodules.write_port = port = WritePort(
            **bus, max_outstanding=params.max_outstanding, id_width=2, direct=direct, prefer_bram=params.prefer_bram
        )
        words = writes.words
        if params.has("reductions_global"):
            # Cuts the path of the port's ready, because the reducer's ready goes through both of its sources.
            m.submodules.reduced = reduced = ReadyBuffer(WriteWordLayout(params.bus_bytes))
            connect(m, words, reduced.i)
            words = reduced.o
        if params.has("windows"):
            # Gives the comparison of pages a cycle of its own.
            m.submodules.checked = checked = SkidBuffer(WriteBurstLayout(**bus, processors=params.window_owners))
            m.submodules.guard = guard = WriteGuard(**bus)
            connect(m, writes.bursts, checked.i)
            if params.confines_apart:
                burst = checked.o.payload
                m.d.comb += [
                    guard.i.bursts.valid.eq(checked.o.valid),
                    checked.o.ready.eq(guard.i.bursts.ready),
                    *(guard.i.bursts.payload[name].eq(burst[name]) for name, _ in guard.i.bursts.payload.shape()),
                ]
                windows = self.control.processor_windows[burst.processor]
            else:
                connect(m, checked.o, guard.i.bursts)
            connect(m, words, guard.i.words)
            connect(m, guard.i.responses, writes.responses)
            writes, words = guard.o, guard.o.words
            m.d.comb += [
                guard.confine.eq(windows.confine_global),
                guard.first.eq(windows.global_first),
                guard.last.eq(windows.global_last),
            ]
        connect(m, writes.bursts, port.writes.bursts)
        connect(m, words, port.writes.words)
        connect(m, port.writes.responses, writes.responses)
        forward_channels(m, self.axi, port.axi)
        m.d.comb += [events.write_request.eq(port.aw_stb), events.write_beat.eq(port.beat_stb)]

    def _shared_memory(self, m, front, load, store, finish):
        m.submodules.fetch_arbiter = arbiter = StreamArbiter(unsigned(self._params.smem.row_width), 2)
        connect(m, load.writes, flipped(self.smem.writes))
        if self._params.cores > 1:
            self._deliver(m, front, finish)
            self._borrow(m, front, store)
        else:
            self._land(m, finish)
        connect(m, load.fetch.rows, arbiter.i[0])
        connect(m, flipped(self.smem.refused), flipped(self.control.refused))
        connect(m, arbiter.o, flipped(self.smem.fetch.rows))
        m.d.comb += [load.windows.eq(self._windows()), load.fetch.line.eq(self.smem.fetch.line)]
        if store:
            connect(m, store.fetch.rows, arbiter.i[1])
            m.d.comb += store.fetch.line.eq(self.smem.fetch.line)

    def _land(self, m, finish):
        m.submodules.shared_guard = guard = SharedGuard(
            self._params, LandedLayout(self._params.smem), lambda landed: landed.barrier[7:], late=True
        )
        connect(m, finish.landed, guard.i)
        connect(m, guard.o, flipped(self.smem.landed))
        windows = self._windows()
        if self._params.confines_apart:
            windows = windows_of(self._params, windows, finish.landed_tag)
        m.d.comb += guard.windows.eq(windows)

    def _windows(self):
        """The windows that confine commands."""
        return self.control.processor_windows if self._params.confines_apart else self.control.windows

    def _deliver(self, m, front, finish):
        """Connects the ends of transfers in a cluster, where each receiver has its own guard."""
        smem, windows, delivery = self.smem, self.control.windows, self.control.delivery
        connect(m, finish.landed, flipped(smem.landed))
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
        """Merges requests for lines of other cores: permissions from setup, reads from the store path."""
        readers, loans = [front.loans, *([store.loans] if store else [])], self.smem.loans
        request = LoanRequestLayout(self._params.smem, self._params.cores)
        m.submodules.loan_arbiter = arbiter = StreamArbiter(request, len(readers))
        for reader, i in zip(readers, arbiter.i, strict=True):
            connect(m, reader.requests, i)
            m.d.comb += reader.answer.eq(loans.answer)
        connect(m, arbiter.o, flipped(loans.requests))

    def _observe(self, m, front, port, load):
        params, control, events = self._params, self.control, self.control.events
        accepted = self.commands.valid & self.commands.ready
        # Commands in the queue, in the front, and in both paths.
        in_progress = Signal(range(params.queue_depth + 16 + 2 * (params.commands_in_flight + params.max_outstanding)))
        m.d.sync += in_progress.eq(in_progress + accepted - self.control.done.valid)
        m.d.comb += [
            control.idle.eq((in_progress == 0) & ~self.control.done.valid),
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
