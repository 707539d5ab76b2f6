"""F1: post-processing keeps order, loses and doubles nothing, and its queues never refuse; jobs may follow at once.

Masks stand for results: theirs is a queue of its own, and what is proved is that it goes in step with the results.
"""

import pytest
from amaranth.hdl import Assert, Assume, Cover, Elaboratable, Module, Signal

from tilewright.golden.spec.conv.job import ConvOutput
from tilewright.golden.spec.conv.params import CONV_PRESETS
from tilewright.hw.conv.post.processor import PostProcessor
from tilewright.sim.formal import StreamRules, prove, queue_invariants

ALL = CONV_PRESETS["unit"].replace(types=("i8", "f16"))


class PostSpec(Elaboratable):
    """The stage with the way of each of its transfers; a job holds while it is busy or has an input."""

    def __init__(self, params):
        self.dut = PostProcessor(params)

    @property
    def ports(self):
        dut = self.dut
        return [dut.i.valid, dut.i.payload, dut.o.ready, dut.job]

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self.dut
        m.submodules.i_rules = StreamRules(dut.i, assume=True)
        held, was_output, was_add = Signal(), Signal.like(dut.job.output), Signal()
        m.d.sync += [held.eq(dut.busy | dut.i.valid), was_output.eq(dut.job.output), was_add.eq(dut.job.add)]
        with m.If(held):
            m.d.comb += Assume((dut.job.output == was_output) & (dut.job.add == was_add))

        lanes = Signal(6)
        m.d.comb += [
            lanes.eq(sum(dut.stages)),
            Assert(~dut.results.i.valid | dut.results.i.ready),
            Assert(~dut.masks.i.valid | dut.masks.i.ready),
            Assert(dut.places == lanes + dut.results.level),
            Assert(dut.places == dut.masks.level),
            Assert(dut.places <= 32),
            *queue_invariants(dut.results),
            *queue_invariants(dut.masks),
            Assert(~dut.o.valid | dut.masks.o.valid),
            Cover((dut.results.level == 3) & (lanes == 2)),
        ]
        # Nothing is behind the stage at which the job's results leave.
        output, longest = dut.job.output, len(dut.stages)
        quantised = (output == ConvOutput.U8) | (output == ConvOutput.S8)
        half = (output == ConvOutput.F16) | (output == ConvOutput.BF16)
        for cycles, leaves in (
            (0, ~quantised & ~half),
            (dut.HALF - 1, half),
            (dut.QUANTISED - 1, quantised & ~dut.job.add),
        ):
            with m.If(leaves & dut.busy):
                m.d.comb += [Assert(~stage) for stage in dut.stages[cycles:longest]]
        return m


def test_nothing_is_lost():
    spec = PostSpec(ALL)
    prove(spec, spec.ports, name="post", depth=2, proves="F1")


@pytest.mark.long
def test_reached():
    spec = PostSpec(ALL)
    prove(spec, spec.ports, name="post-cover", mode="cover", depth=12)
