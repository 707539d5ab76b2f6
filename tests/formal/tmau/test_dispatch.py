"""Every command goes to one setup, its own, and to none while another one is at work."""

from itertools import combinations

import pytest
from amaranth.hdl import Assert, Assume, Cover, Mux, Signal, Value

from support.formal import Spec, proved_and_covered
from tilewright.hw.tmau.dispatch import Dispatch, GroupTracker, Router
from tilewright.hw.tmau.jobs import as_job
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.spec import BLOCK, FORMATS, GROUP, REPLACE, Error, Opcode
from tilewright.verify.formal import prove


class RouterSpec(Spec):
    """The router keeps nothing: what holds in a cycle holds for ever."""

    given, made = "i", "tensors blocks lanes"

    def specify(self, m, dut):
        ports = (dut.tensors, dut.blocks, dut.lanes)
        busy = [dut.busy[number] for number in range(3)]
        for number, port in enumerate(ports):
            others = [bit for other, bit in enumerate(busy) if other != number]
            m.d.comb += Assert(~port.valid | ~(others[0] | others[1]))
            m.d.comb += Cover(port.valid & port.ready)
        command, fault = dut.i.payload.command, dut.i.payload.fault.code
        of_blocks = 0
        for opcode, fmt in FORMATS.items():
            if fmt in (BLOCK, REPLACE) or (fmt is GROUP and opcode != Opcode.INVALIDATE_ALL):
                of_blocks |= command.opcode == opcode
        sound = fault == Error.NONE
        wanted = Mux(sound & of_blocks, 1, Mux(sound & (command.opcode == Opcode.LANES), 2, 0))
        taken = [port.valid & port.ready for port in ports]
        m.d.comb += [
            # A setup that gets nothing does not become busy: then an offer stays.
            Assert((dut.i.valid & dut.i.ready) == (taken[0] | taken[1] | taken[2])),
            Assert(Value.cast(dut.tensors.payload) == Value.cast(dut.i.payload)),
            Assert(Value.cast(dut.blocks.payload) == Value.cast(command)),
            Assert(Value.cast(dut.lanes.payload) == Value.cast(command)),
        ]
        for number, port in enumerate(ports):
            m.d.comb += Assert(~port.valid | (dut.i.valid & (wanted == number)))
            others = [bit for other, bit in enumerate(busy) if other != number]
            m.d.comb += Assert(~dut.i.valid | (wanted != number) | others[0] | others[1] | port.valid)
            # Of the environment: a setup becomes busy only with a command.
            before, took = self._before(m, busy[number]), self._before(m, taken[number])
            m.d.comb += Assume(~busy[number] | before | took)

    @staticmethod
    def _before(m, bit):
        last = Signal()
        m.d.sync += last.eq(bit)
        return last


@proved_and_covered(2, 3)
def test_every_command_goes_to_its_room(mode, depth):
    prove(RouterSpec(Router(TMAU_PRESETS["unit"])), name=f"router-{mode}", mode=mode, depth=depth)


IN_FLIGHT = 3  # jobs in the store path that the proof allows


class GroupSpec(Spec):
    """Any one group is followed: the solver chooses the commit that makes it."""

    def __init__(self):
        self.dut = GroupTracker(TMAU_PRESETS["unit"])
        self.choose = Signal()

    def specify(self, m, dut):
        unread = self._follow(m, dut.read_stb, dut.unread, "unread")
        undone = self._follow(m, dut.done_stb, dut.unfinished, "undone")
        m.d.comb += [
            Assume(~dut.commit | ~dut.full),
            Assume(unread <= undone),  # a job is read before it is done
            Cover((dut.unread == 0) & (dut.unfinished == 2)),
        ]

    def _follow(self, m, strobe, counted, name):
        """What holds of one of the counts; returns the jobs that wait for the strobe."""
        dut = self.dut
        waiting = Signal(range(IN_FLIGHT + 1), name=f"{name}_waiting")
        chosen = Signal(name=f"{name}_chosen")
        left = Signal(range(IN_FLIGHT + 1), name=f"{name}_left")  # of the group and of those before it
        still = Signal(name=f"{name}_still")  # no job waited in the cycle before: all groups may go, one a cycle
        expected = Signal.like(counted, name=f"{name}_expected")
        m.d.sync += waiting.eq(waiting + dut.issued - strobe)
        m.d.comb += [
            Assume(~strobe | (waiting != 0)),
            Assume(~dut.issued | (waiting != IN_FLIGHT)),
            Assert(~chosen | (left == 0) | (counted != 0)),
            Assert(~still | (counted == expected)),
        ]
        with m.If(~chosen & dut.commit & self.choose):
            m.d.sync += [chosen.eq(1), left.eq(waiting - strobe)]
        with m.Elif(chosen & strobe & (left != 0)):
            m.d.sync += left.eq(left - 1)
        m.d.sync += [still.eq(waiting == 0), expected.eq(counted - (counted != 0) + dut.commit)]
        return waiting


@pytest.mark.parametrize("depth", [7, pytest.param(10, marks=pytest.mark.long)])
def test_a_group_is_counted_until_its_jobs_are_done(depth):
    """From reset, for as many cycles as it takes to commit, end and let go of a few groups."""
    prove(GroupSpec(), name="groups", mode="bmc", depth=depth)


@pytest.mark.long
def test_groups_that_are_read_and_not_done_are_reached():
    prove(GroupSpec(), name="groups-cover", mode="cover", depth=8)


class DispatchSpec(Spec):
    """Remembers which parts of the job at the input have left."""

    given = "jobs blocks refused"
    made = "o.walks o.pixel_walks o.load_transfers o.store_transfers o.finished"

    def __init__(self):
        self.dut = Dispatch(TMAU_PRESETS["unit"].replace(addr_width=16))
        self.tile_ends, self.pixel_ends = Signal(), Signal()  # the walker hands out its last run

    def specify(self, m, dut):
        outputs = (dut.o.walks, dut.o.pixel_walks, dut.o.load_transfers, dut.o.store_transfers, dut.o.finished)
        jobs = (dut.jobs, dut.blocks)
        for ports in (jobs, dut.refused):
            for one, two in combinations(ports, 2):
                m.d.comb += Assume(~(one.valid & two.valid))

        tile, pixel, load, store, _ = (port.valid & port.ready for port in outputs)
        job = Signal.like(dut.jobs.payload)
        with m.If(dut.blocks.valid):
            m.d.comb += as_job(job, dut.blocks.payload)
        with m.Else():
            m.d.comb += job.eq(dut.jobs.payload)
        offered = dut.jobs.valid | dut.blocks.valid
        accepted = (dut.jobs.valid & dut.jobs.ready) | (dut.blocks.valid & dut.blocks.ready)
        moved, walked = Signal(), Signal()  # the transfer has left, the walk has left
        m.d.sync += [moved.eq((moved | load | store) & ~accepted), walked.eq((walked | tile | pixel) & ~accepted)]
        tile_busy, pixel_busy = Signal(), Signal()
        for busy, port, taken, ends in (
            (tile_busy, dut.o.walks, tile, self.tile_ends),
            (pixel_busy, dut.o.pixel_walks, pixel, self.pixel_ends),
        ):
            m.d.sync += busy.eq(taken | (busy & ~ends))
            m.d.comb += Assume(~busy | ends | ~port.ready)
        m.d.comb += [
            dut.o.tile_busy.eq(tile_busy),
            dut.o.pixel_busy.eq(pixel_busy),
            Assert(dut.transfer_sent == moved),
            Assert(dut.jobs.ready == (dut.transfer_sent & dut.walk_sent)),
            Assert(dut.walk_sent == walked),
            Assert(moved | ~walked),
            Assert(offered | ~moved),
            Assert(~(tile_busy & pixel_busy)),
            Assert(~(tile | pixel | load | store) | offered),
            Assert(accepted == (offered & moved & walked)),
            Assert(~((load | store) & moved) & ~((tile | pixel) & walked)),
            Assert(~(load & store) & ~(tile & pixel)),
            Assert(~(tile | pixel) | moved | load | store),
            Assert(~load | ~job.store),
            Assert(~store | job.store),
            Assert(~tile | ~job.im2col),
            Assert(~pixel | job.im2col),
            Assert(dut.store_stb == store),
            Assert(~load | (Value.cast(dut.o.load_transfers.payload) == Value.cast(job.transfer))),
            Assert(~store | (Value.cast(dut.o.store_transfers.payload) == Value.cast(job.transfer))),
            Assert(~tile | (Value.cast(dut.o.walks.payload) == Value.cast(job.walk))),
            Assert(~pixel | (Value.cast(dut.o.pixel_walks.payload) == Value.cast(job.pixels))),
            Cover(accepted & moved & tile_busy),
            Cover(pixel & moved),
        ]
        self._count(m, (load | store) & ~job.transfer.quiet)

    def _count(self, m, started):
        """``moving`` is what has started and not been completed; paths complete nothing else."""
        dut = self.dut
        moving = Signal.like(dut.moving)
        completed = dut.o.load_completed + dut.o.store_completed
        m.d.sync += moving.eq(moving + started - completed)
        m.d.comb += [Assume(completed <= moving), Assert(dut.moving == moving), Assume(moving < 8)]


@pytest.mark.long
@pytest.mark.parametrize(("mode", "depth"), [("prove", 2), ("cover", 6)])
def test_every_part_leaves_once(mode, depth):
    prove(DispatchSpec(), name=f"dispatch-{mode}", mode=mode, depth=depth)
