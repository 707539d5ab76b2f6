"""A block as a job: one run, all of it inside."""

from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from tilewright.hw.tmau.jobs import JobLayout, block_job
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.sim.pysim.simulate import simulate

PARAMS = TMAU_PRESETS["unit"]


class Jobs(wiring.Component):
    """A load, and a copy within shared memory."""

    load: Out(JobLayout(PARAMS))
    looped: Out(JobLayout(PARAMS))

    def elaborate(self, platform):
        m = Module()
        m.d.comb += block_job(self.load, store=0, address=0x1234, smem=0x80, size=48)
        m.d.comb += block_job(self.looped, store=1, address=0, smem=0x80, size=48, loop=1, target=0x200)
        return m


def test_one_run_that_is_inside():
    dut = Jobs()

    async def run(ctx):
        for job, address, store, target in ((ctx.get(dut.load), 0x1234, 0, 0), (ctx.get(dut.looped), 0, 1, 0x200)):
            walk, transfer = job.walk, job.transfer
            assert (job.store, walk.store, transfer.loop, job.target) == (store, store, store, target)
            assert (walk.loop, job.im2col) == (0, 0)
            assert (walk.origin, walk.data_start, walk.data_bytes, walk.outside) == (address, 0, 48, 0)
            assert (transfer.smem, transfer.run_bytes, transfer.data_start, transfer.data_end) == (0x80, 48, 0, 48)
            assert list(walk.lasts) == [0] * 5
            assert all(interval.first == 0 and interval.end == 1 for interval in walk.intervals)

    simulate(dut, run)
