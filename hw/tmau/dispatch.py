"""From the descriptor cache to the three kinds of setup."""

from amaranth.hdl import Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.spec import Error, Opcode

from ..lib.layouts import command_layout
from ..lib.routing import pick
from ..lib.stream import Queue
from .descriptor.layouts import LookupLayout
from .jobs import BlockJobLayout, JobLayout, as_job, without_meaning
from .layouts import ErrorLayout, prefetch_members
from .params import MAX_GROUPS
from .signatures import IssueSignature

__all__ = ["Dispatch", "GroupTracker", "Router"]

_BLOCKS = (
    Opcode.COPY_BLOCK,
    Opcode.PREFETCH_BLOCK,
    Opcode.COMMIT,
    Opcode.WAIT,
    Opcode.WAIT_ALL,
    Opcode.REPLACE,
)


class Router(wiring.Component):
    """Hands every command to the kind of setup that is for it, and keeps the order: one of them works at a time.

    Combinational. Commands for the one that works follow each other one a cycle; a command for another one waits
    until that one is no longer busy.
    """

    def __init__(self, params):
        super().__init__(
            {
                "i": In(stream.Signature(LookupLayout(params))),
                # Commands with a descriptor, invalidations, and everything that is already known to be wrong.
                "tensors": Out(stream.Signature(LookupLayout(params))),
                # Commands on blocks, descriptor fields and groups; LANES.
                "blocks": Out(stream.Signature(command_layout())),
                "lanes": Out(stream.Signature(command_layout())),
                # The setups of ``tensors``, ``blocks`` and ``lanes`` with commands in them.
                "busy": In(3),
            }
        )

    def elaborate(self, platform):
        m = Module()
        target = Signal(range(3))
        with m.If(self.i.payload.fault.code == Error.NONE):
            with m.Switch(self.i.payload.command.opcode):
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
            here = (target == number) & ~(self.busy & ~(1 << number)).any()
            m.d.comb += port.valid.eq(self.i.valid & here)
            with m.If(here):
                m.d.comb += self.i.ready.eq(port.ready)
        return m


class GroupTracker(wiring.Component):
    """Counts committed groups whose jobs are not all done, and those whose sources are not all read.

    Jobs are numbered in the order in which they go to the store path. A group is known by the number that follows its
    last job, and finished when the store path has come to that number; so an empty group is finished with the one
    before it. Counts are exact two cycles after a strobe, and before that never too small.
    """

    def __init__(self, params):
        # Bits of a job's number. Half of the numbers is more than jobs can be in the store path.
        self._width = 6 + (params.commands_in_flight + params.max_outstanding).bit_length()
        super().__init__(
            {
                # Strobe: a job goes to the store path.
                "issued": In(1),
                # Strobe for each job, in order, after ``issued``: its source has been read; it is complete.
                "read_stb": In(1),
                "done_stb": In(1),
                # Strobe, only while not ``full``: jobs issued in earlier cycles and not in an earlier group are a
                # group.
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
            ahead = Signal(self._width, name=f"ahead_{name}")  # of the oldest boundary; modulo, so the sign tells
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

    Both parts are offered at once and leave independently, but the walk no earlier than the transfer; a prefetch has a
    walk only. As runs of both
    walkers meet in one stream, a walk waits while the other walker is walking. The job is accepted in the cycle after
    its last part has left: one job every second cycle, and ``ready`` is a register, so that no path from the walkers
    and the paths goes through here to the setups.
    """

    def __init__(self, params):
        self.params = params
        # A part of the job at hand that has been taken is not offered again.
        self.transfer_sent = Signal()
        self.walk_sent = Signal()
        super().__init__(
            {
                "jobs": In(stream.Signature(JobLayout(params))),
                # At most one of the two is valid.
                "blocks": In(stream.Signature(BlockJobLayout(params))),
                # Of three blocks, of which one at a time has something to offer; without the feature ``lanes`` of the
                # first two.
                "refused": In(stream.Signature(ErrorLayout(params))).array(3),
                "o": Out(IssueSignature(params)),
                # Strobe: a job goes to the store path.
                "store_stb": Out(1),
                # Jobs that are not quiet, in the paths.
                "moving": Out(range(16 + 2 * (params.commands_in_flight + params.max_outstanding))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        refused = self.refused if self.params.has("lanes") else self.refused[:2]
        pick(m, refused, self.o.finished.payload, self.o.finished.valid, self.o.finished.ready)
        job, valid, ready = Signal(JobLayout(self.params)), Signal(), Signal()
        m.d.comb += [
            self.jobs.ready.eq(ready),
            self.blocks.ready.eq(ready),
            valid.eq(self.jobs.valid | self.blocks.valid),
        ]
        with m.If(self.blocks.valid):
            m.d.comb += as_job(job, self.blocks.payload)
        with m.Else():
            kept = ("transfer", "store", "im2col", "walk", *prefetch_members(self.params))
            m.d.comb += [job[name].eq(self.jobs.payload[name]) for name in kept]
        m.d.comb += job.pixels.eq(self.jobs.payload.pixels)  # blocks have none
        if self.params.spares_tables:
            # Nor do these count for a block: there is nothing to choose.
            for part, names in without_meaning(self.params).items():
                m.d.comb += [job[part][name].eq(self.jobs.payload[part][name]) for name in names]

        transfer_sent, walk_sent = self.transfer_sent, self.walk_sent
        transfer_taken, walk_taken = Signal(), Signal()
        walkable = Signal()  # the transfer has left, or leaves now
        loads, stores, tiles, pixels = self.o.load_transfers, self.o.store_transfers, self.o.walks, self.o.pixel_walks
        m.d.comb += [
            loads.payload.eq(job.transfer),
            stores.payload.eq(job.transfer),
            tiles.payload.eq(job.walk),
            pixels.payload.eq(job.pixels),
            loads.valid.eq(valid & ~job.store & ~transfer_sent),
            stores.valid.eq(valid & job.store & ~transfer_sent),
            transfer_taken.eq(Mux(job.store, stores.ready, loads.ready) & ~transfer_sent),
            walkable.eq(valid & (transfer_sent | transfer_taken) & ~walk_sent),
            tiles.valid.eq(walkable & ~job.im2col & ~self.o.pixel_busy),
            pixels.valid.eq(walkable & job.im2col & ~self.o.tile_busy),
            walk_taken.eq((tiles.valid & tiles.ready) | (pixels.valid & pixels.ready)),
            self.store_stb.eq(stores.valid & stores.ready),
        ]
        prefetch = job.prefetch if self.params.prefetches else Const(0, 1)
        with m.If(prefetch):
            m.d.comb += [loads.valid.eq(0), transfer_taken.eq(~transfer_sent)]
        with m.If(valid):
            parts = ((transfer_sent | transfer_taken) & ~ready, (walk_sent | walk_taken) & ~ready)
            m.d.sync += [transfer_sent.eq(parts[0]), walk_sent.eq(parts[1]), ready.eq(parts[0] & parts[1])]
        started = valid & transfer_taken & ~job.transfer.quiet & ~prefetch
        m.d.sync += self.moving.eq(self.moving + started - self.o.load_completed - self.o.store_completed)
        return m
