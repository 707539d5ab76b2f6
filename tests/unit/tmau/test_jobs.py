"""A block as a job: one run, all of it inside."""

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from tilewright.hw.tmau.jobs import BlockJobLayout, JobLayout, as_job
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.verify.pysim.simulate import simulate
from tilewright.verify.pysim.streams import packed

PARAMS = TMAU_PRESETS["unit"]
LOAD = {"tag": 7, "address": 0x1234, "smem": 0x80, "size": 48, "bytes": 96, "quiet": 1, "barrier": 8}
STORE = {"store": 1, "address": 0x1234, "size": 8, "fill": 0x1122334455667788, "immediate": 1, "reduction": 3}
LOOPED = {"store": 1, "smem": 0x80, "size": 48, "loop": 1}
LOOPED_ON = {"store": 0, "smem": 0x200, "size": 48, "loop": 1, "signal": 1}


class Widened(wiring.Component):
    """A block, and what it is as a job."""

    def __init__(self, params):
        super().__init__({"block": In(BlockJobLayout(params)), "job": Out(JobLayout(params))})

    def elaborate(self, platform):
        m = Module()
        m.d.comb += as_job(self.job, self.block)
        return m


def test_a_block_is_one_run_that_is_inside():
    dut = Widened(PARAMS)

    async def run(ctx):
        for fields in (LOAD, STORE, LOOPED, LOOPED_ON):
            ctx.set(dut.block.as_value(), packed(dut.block.shape(), fields))
            job, size = ctx.get(dut.job), fields["size"]
            walk, transfer = job.walk, job.transfer
            assert (job.store, walk.store, job.im2col) == (fields.get("store", 0), fields.get("store", 0), 0)
            assert (walk.origin, walk.data_bytes, walk.outside) == (fields.get("address", 0), size, 0)
            assert (transfer.run_bytes, transfer.data_start, transfer.data_end) == (size, 0, size)
            assert (transfer.gap, transfer.swizzle, transfer.tf32) == (0, 0, 0)
            assert list(walk.lasts) == [0] * 5
            assert all(interval.first == 0 and interval.end == 1 for interval in walk.intervals)
            same = ("tag", "quiet", "signal", "barrier", "smem", "fill", "immediate", "loop", "stage", "reduction",
                    "element", "bytes")  # fmt: skip
            assert {name: transfer[name] for name in same} == {name: fields.get(name, 0) for name in same}
            assert walk.loop == (fields is LOOPED_ON), "the load path gets its words from the store path"

    simulate(dut, run)


@pytest.mark.parametrize("name", ["prefetches", "prefer_bram", "command_window", "barrier_window"])
def test_switches_are_bools(name):
    with pytest.raises(TypeError, match=f"^{name} must be True or False, not 1$"):
        TMAU_PRESETS["unit"].replace(**{name: 1})


def test_a_command_window_is_of_one_processor():
    with pytest.raises(ValueError, match=r"^command_window needs one processor, not 2$"):
        TMAU_PRESETS["unit"].replace(command_window=True, processors=2)
