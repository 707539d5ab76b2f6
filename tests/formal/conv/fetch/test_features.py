"""Requests for feature rows: no set is asked for before there is room for it, and no request that is made is lost.

Sets that are held are counted here from what leaves and what is released; the rest of the walk is anything.
"""

import pytest
from amaranth.hdl import Assert, Assume, Cover, Elaboratable, Module, Mux, Signal

from tilewright.golden.spec.conv.params import CONV_PRESETS
from tilewright.hw.conv.fetch.features import FeatureFetcher
from tilewright.hw.conv.params import ConvUnitParams
from tilewright.hw.smem.params import SmemParams
from tilewright.sim.formal import StreamRules, prove

PARAMS = ConvUnitParams(CONV_PRESETS["unit"], SmemParams(1024))


class RoomSpec(Elaboratable):
    def __init__(self):
        self.dut = dut = FeatureFetcher(PARAMS)
        self.ports = [dut.start, dut.plan, dut.release, dut.requests.ready]

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self.dut
        requests, queue = dut.requests, dut.queue
        m.submodules.rules = StreamRules(requests)

        held, begun = Signal(range(PARAMS.sets + 1)), Signal(2)
        tag = requests.p.tag
        with m.If(requests.valid & requests.ready & (tag.part == 0) & ~tag.kernel):
            m.d.comb += begun.eq(Mux(tag.pair, 2, 1))
        m.d.sync += held.eq(held + begun - dut.release)
        m.d.comb += [
            Assume(~dut.release | (held != 0)),
            Assert(held + begun <= PARAMS.sets),
            Assert(dut.free + held == PARAMS.sets),
        ]

        # What is made fits the queue, whose places lie between its two ends.
        making = sum(dut.made[cycle] for cycle in range(len(dut.made)))
        m.d.comb += [
            Assert(~queue.i.valid | queue.i.ready),
            Assert(dut.places + making + queue.level == queue.depth),
            Assert(queue.level <= queue.depth),
            Assert(queue.tail == (queue.head + queue.level)[:3]),
        ]
        m.d.comb += Cover((held == PARAMS.sets) & queue.level[-1])
        return m


def test_room():
    spec = RoomSpec()
    prove(spec, spec.ports, name="conv-fetch-room", depth=1)


@pytest.mark.parametrize("depth", [40])
def test_all_room_is_used(depth):
    spec = RoomSpec()
    prove(spec, spec.ports, name="conv-fetch-room-cover", mode="cover", depth=depth)
