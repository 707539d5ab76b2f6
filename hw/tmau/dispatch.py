"""The order of commands: which setup gets a command, which walker and path get its jobs, and which groups are done."""

from amaranth.hdl import Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.spec import Error, Opcode

from ..lib.layouts import command_layout
from ..lib.routing import connect_exclusive
from ..lib.stream import Queue
from .descriptor.layouts import LookupLayout
from .jobs import BlockJobLayout, JobLayout, as_job
from .layouts import ErrorLayout, prefetch_members
from .params import MAX_GROUPS
from .signatures import IssueSignature

__all__ = ["Dispatch", "GroupTracker", "Router"]

_BLOCKS = (Opcode.COPY_BLOCK, Opcode.PREFETCH_BLOCK, Opcode.COMMIT, Opcode.WAIT, Opcode.WAIT_ALL, Opcode.REPLACE)


class Router(wiring.Component):
    """Sends every command to its kind of setup. Only one setup works at a time, which keeps the order.

    Combinational, one command a cycle to the same setup. A command for another setup waits until the first is idle.
    """

    def __init__(self, params):
        super().__init__(
            {
                "i": In(stream.Signature(LookupLayout(params))),
                # Commands with a descriptor, invalidations, and commands with a known fault.
                "tensors": Out(stream.Signature(LookupLayout(params))),
                # Commands on blocks, descriptor fields and groups; LANES.
                "blocks": Out(stream.Signature(command_layout())),
                "lanes": Out(stream.Signature(command_layout())),
                # The setups of ``tensors``, ``blocks`` and ``lanes`` that hold a command.
                "busy": In(3),
            }
        )

    def elaborate(self, platform):
        m = Module()
        target = Signal(range(3))
        with m.If(self.i.payload.fault.code == Error.NONE), m.Switch(self.i.payload.command.opcode):
            with m.Case(*_BLOCKS):
                m.d.comb += target.eq(1)
            with m.Case(Opcode.LANES):
                m.d.comb += target.eq(2)
        m.d.comb += [
            self.tensors.payload.eq(self.i.payload),
            self.blocks.payload.eq(self.i.payload.command),
            self.lanes.payload.eq(self.i.payload.command),
        ]
        for number, port in enumerate((self.tensors, self.blocks, self.lanes)):
            selected = (target == number) & ~(self.busy & ~(1 << number)).any()
            m.d.comb += port.valid.eq(self.i.valid & selected)
            with m.If(selected):
                m.d.comb += self.i.ready.eq(port.ready)
        return m


class GroupTracker(wiring.Component):
    """Counts the committed groups with unfinished jobs, and the committed groups with unread sources.

    Jobs are numbered in the order in which they go to the store path. A group is stored as the number that follows its
    last job; it is finished when the store path has reached that number. So an empty group is finished together with
    the previous one. Counts are exact two cycles after a strobe, and never too small before (docs/tmau.md, "Groups and
    waits").
    """

    def __init__(self, params):
        # Bits of a job's number. The store path holds less than half as many jobs as there are numbers.
        self._width = 6 + (params.commands_in_flight + params.max_outstanding).bit_length()
        super().__init__(
            {
                "issued": In(1),  # Strobe: a job goes to the store path.
                # Strobes for each job, in order: its source has been read; the job is complete.
                "read_stb": In(1),
                "done_stb": In(1),
                # Strobe, only while not ``full``: the jobs of earlier cycles that are in no group form a group.
                "commit": In(1),
                "unfinished": Out(range(MAX_GROUPS + 1)),
                "unread": Out(range(MAX_GROUPS + 1)),
                "full": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        issued = Signal(self._width)
        m.d.sync += issued.eq(issued + self.issued)
        ready = []
        for name, strobe, level in (("read", self.read_stb, self.unread), ("done", self.done_stb, self.unfinished)):
            m.submodules[name] = boundaries = Queue(self._width, MAX_GROUPS)
            passed = Signal(self._width, name=f"jobs_{name}")
            ahead = Signal(
                self._width, name=f"ahead_{name}"
            )  # of the oldest boundary, modulo: negative if that is not reached
            m.d.sync += passed.eq(passed + strobe)
            m.d.comb += [
                ahead.eq(passed - boundaries.o.payload),
                boundaries.i.payload.eq(issued),
                boundaries.i.valid.eq(self.commit),
                boundaries.o.ready.eq(~ahead[-1]),
                level.eq(boundaries.level),
            ]
            ready.append(boundaries.i.ready)
        m.d.comb += self.full.eq(~(ready[0] & ready[1]))
        return m


class Dispatch(wiring.Component):
    """Splits every job into its transfer, for one of the paths, and its walk, for one of the walkers.

    Both parts are offered at once and leave independently, the walk not before the transfer; a prefetch has only a
    walk. The runs of both walkers share one stream, so a walk waits while the other walker is walking. A job is
    accepted in the cycle after its last part has left, one every second cycle. ``ready`` is registered.
    """

    def __init__(self, params):
        self._params = params
        # Parts of the current job that have left.
        self.transfer_sent = Signal()
        self.walk_sent = Signal()
        super().__init__(
            {
                "jobs": In(stream.Signature(JobLayout(params))),
                # At most one of ``jobs`` and ``blocks`` is valid.
                "blocks": In(stream.Signature(BlockJobLayout(params))),
                # From the setups, of which at most one is valid; without the feature ``lanes`` the third is not used.
                "refused": In(stream.Signature(ErrorLayout(params))).array(3),
                "o": Out(IssueSignature(params)),
                "store_stb": Out(1),  # Strobe: a job goes to the store path.
                # Jobs in the paths that are not quiet.
                "moving": Out(range(16 + 2 * (params.commands_in_flight + params.max_outstanding))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        refused = self.refused if self._params.has("lanes") else self.refused[:2]
        connect_exclusive(m, refused, self.o.finished.payload, self.o.finished.valid, self.o.finished.ready)
        job, valid, ready = Signal(JobLayout(self._params)), Signal(), Signal()
        m.d.comb += [
            self.jobs.ready.eq(ready),
            self.blocks.ready.eq(ready),
            valid.eq(self.jobs.valid | self.blocks.valid),
        ]
        with m.If(self.blocks.valid):
            m.d.comb += as_job(job, self.blocks.payload)
        with m.Else():
            members = ("transfer", "store", "im2col", "walk", *prefetch_members(self._params))
            m.d.comb += [job[name].eq(self.jobs.payload[name]) for name in members]
        m.d.comb += job.pixels.eq(self.jobs.payload.pixels)  # blocks have none, so this needs no multiplexer

        transfer_sent, walk_sent = self.transfer_sent, self.walk_sent
        transfer_leaves, walk_leaves = Signal(), Signal()
        walkable = Signal()  # the transfer has left or leaves now
        loads, stores, tiles, pixels = self.o.load_transfers, self.o.store_transfers, self.o.walks, self.o.pixel_walks
        m.d.comb += [
            loads.payload.eq(job.transfer),
            stores.payload.eq(job.transfer),
            tiles.payload.eq(job.walk),
            pixels.payload.eq(job.pixels),
            loads.valid.eq(valid & ~job.store & ~transfer_sent),
            stores.valid.eq(valid & job.store & ~transfer_sent),
            transfer_leaves.eq(Mux(job.store, stores.ready, loads.ready) & ~transfer_sent),
            walkable.eq(valid & (transfer_sent | transfer_leaves) & ~walk_sent),
            tiles.valid.eq(walkable & ~job.im2col & ~self.o.pixel_busy),
            pixels.valid.eq(walkable & job.im2col & ~self.o.tile_busy),
            walk_leaves.eq((tiles.valid & tiles.ready) | (pixels.valid & pixels.ready)),
            self.store_stb.eq(stores.valid & stores.ready),
        ]
        prefetch = job.prefetch if self._params.prefetches else Const(0, 1)
        with m.If(prefetch):
            m.d.comb += [loads.valid.eq(0), transfer_leaves.eq(~transfer_sent)]
        with m.If(valid):
            parts = ((transfer_sent | transfer_leaves) & ~ready, (walk_sent | walk_leaves) & ~ready)
            m.d.sync += [transfer_sent.eq(parts[0]), walk_sent.eq(parts[1]), ready.eq(parts[0] & parts[1])]
        started = valid & transfer_leaves & ~job.transfer.quiet & ~prefetch
        m.d.sync += self.moving.eq(self.moving + started - self.o.load_completed - self.o.store_completed)
        return m
