"""Every part of a job leaves once, the walk no earlier than the transfer, and two walkers never walk together."""

from itertools import combinations

import pytest
from amaranth import Module, Signal
from amaranth.hdl import Assert, Assume, Cover, Elaboratable, Value

from tilewright.hw.tmau.front.dispatch import Dispatch
from tilewright.hw.tmau.jobs import as_job, without_meaning
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.sim.formal import StreamRules, prove


class DispatchSpec(Elaboratable):
    """Remembers which parts of the job at the input have left."""

    def __init__(self, spares=False):
        self.params = TMAU_PRESETS["unit"].replace(addr_width=16, spares_tables=spares)
        self.dut = Dispatch(self.params)
        self.tile_ends, self.pixel_ends = Signal(), Signal()  # the walker hands out its last run

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self.dut
        for number, port in enumerate((dut.jobs, dut.blocks, *dut.refused)):
            m.submodules[f"i_rules{number}"] = StreamRules(port, assume=True)
        outputs = (dut.o.walks, dut.o.pixel_walks, dut.o.load_transfers, dut.o.store_transfers, dut.o.finished)
        for number, port in enumerate(outputs):
            m.submodules[f"o_rules{number}"] = StreamRules(port)
        jobs = (dut.jobs, dut.blocks)
        for ports in (jobs, dut.refused):
            for one, two in combinations(ports, 2):
                m.d.comb += Assume(~(one.valid & two.valid))

        tile, pixel, load, store, _ = (port.valid & port.ready for port in outputs)
        job = Signal.like(dut.jobs.p)
        with m.If(dut.blocks.valid):
            m.d.comb += as_job(job, dut.blocks.p)
        with m.Else():
            m.d.comb += job.eq(dut.jobs.p)
        if self.params.spares_tables:
            # These are anything for a block, but hold: Setup does nothing while a block is here (Router).
            held, before = Signal(), Signal.like(dut.jobs.p)
            m.d.sync += [held.eq(dut.blocks.valid), before.eq(dut.jobs.p)]
            m.d.comb += Assume(~(held & dut.blocks.valid) | (Value.cast(before) == Value.cast(dut.jobs.p)))
            for part, names in without_meaning(self.params).items():
                m.d.comb += [job[part][name].eq(dut.jobs.p[part][name]) for name in names]
        offered = dut.jobs.valid | dut.blocks.valid
        accepted = (dut.jobs.valid & dut.jobs.ready) | (dut.blocks.valid & dut.blocks.ready)
        moved, walked = Signal(), Signal()  # the transfer has left, the walk has left
        m.d.sync += [
            moved.eq((moved | load | store) & ~accepted),
            walked.eq((walked | tile | pixel) & ~accepted),
        ]
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
            Assert(~load | (Value.cast(dut.o.load_transfers.p) == Value.cast(job.transfer))),
            Assert(~store | (Value.cast(dut.o.store_transfers.p) == Value.cast(job.transfer))),
            Assert(~tile | (Value.cast(dut.o.walks.p) == Value.cast(job.walk))),
            Assert(~pixel | (Value.cast(dut.o.pixel_walks.p) == Value.cast(job.pixels))),
            Cover(accepted & moved & tile_busy),
            Cover(pixel & moved),
        ]
        self._count(m, (load | store) & ~job.transfer.quiet)
        return m

    def _count(self, m, started):
        """``moving`` is what has started and not been completed; paths complete nothing else."""
        dut = self.dut
        moving = Signal.like(dut.moving)
        completed = dut.o.load_completed + dut.o.store_completed
        m.d.sync += moving.eq(moving + started - completed)
        m.d.comb += [Assume(completed <= moving), Assert(dut.moving == moving), Assume(moving < 8)]

    def ports(self):
        dut = self.dut
        inputs = [signal for port in (dut.jobs, dut.blocks, *dut.refused) for signal in (port.valid, port.payload)]
        outputs = (dut.o.walks, dut.o.pixel_walks, dut.o.load_transfers, dut.o.store_transfers, dut.o.finished)
        ready = [port.ready for port in outputs]
        return [*inputs, *ready, dut.o.load_completed, dut.o.store_completed, self.tile_ends, self.pixel_ends]


@pytest.mark.long
@pytest.mark.parametrize("spares", [False, True])
def test_every_part_leaves_once(spares):
    spec = DispatchSpec(spares)
    prove(spec, spec.ports(), name=f"dispatch-{int(spares)}", depth=2)


@pytest.mark.long
def test_waits_are_reached():
    spec = DispatchSpec()
    prove(spec, spec.ports(), name="dispatch-cover", mode="cover", depth=6)
