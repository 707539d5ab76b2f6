"""Requests for feature rows: nothing is asked for before there is room for it, and no request that is made is lost.

Sets, words and rows of the kernel that are held are counted here from what leaves and what is released or freed; the
rest of the walk is anything.
"""

import pytest
from amaranth.hdl import Assert, Assume, Cover, Mux, Signal

from support.formal import Spec
from tilewright.hw.conv.fetch.features import FeatureFetcher
from tilewright.hw.conv.params import ConvUnitParams
from tilewright.hw.smem.params import SmemParams
from tilewright.spec.conv import CONV_PRESETS, KERNEL_ROWS
from tilewright.verify.formal import prove, queue_invariants

PARAMS = ConvUnitParams(CONV_PRESETS["unit"], SmemParams(1024))


class RoomSpec(Spec):
    made = "requests"

    def specify(self, m, dut):
        requests, queue = dut.requests, dut.queue

        held, begun = Signal(range(PARAMS.sets + 1)), Signal(2)
        tag = requests.p.tag
        of_slaves, of_kernel = Signal(2), Signal()
        with m.If(requests.valid & requests.ready):
            with m.If(tag.slaves | tag.kernel):
                m.d.comb += [
                    of_slaves.eq(Mux(tag.slaves & (tag.part == 0) & ~tag.turned, Mux(tag.pair, 2, 1), 0)),
                    of_kernel.eq(tag.kernel & ~tag.slaves),
                ]
            with m.Elif((tag.part == 0) & ~tag.turned):
                m.d.comb += begun.eq(Mux(tag.pair, 2, 1))
        m.d.sync += held.eq(held + begun - dut.release)
        self._freed(m, "words", of_slaves, dut.freed, dut.asked, PARAMS.words)
        self._freed(m, "kernel", of_kernel, dut.freed_kernel, dut.asked_kernel, KERNEL_ROWS)
        # Made by the walkers, proved in their tests: a request is of one kind, and kernel rows have no parts.
        m.d.comb += Assume(~(queue.o.p.tag.slaves & queue.o.p.tag.kernel))
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
            *queue_invariants(queue),
        ]
        m.d.comb += Cover((held == PARAMS.sets) & queue.level[-1])

    def _freed(self, m, name, begun, freed, asked, many):
        """Numbers before ``freed`` are free, which moves on by no more than there is."""
        held, before = Signal(range(many + 3), name=f"{name}_held"), Signal.like(freed, name=f"{name}_before")
        now, first = Signal.like(freed, name=f"{name}_now"), Signal(init=1, name=f"{name}_first")
        m.d.sync += [first.eq(0), before.eq(freed), held.eq(held - now + begun)]
        m.d.comb += [
            now.eq(freed - before),
            Assume(~first | (freed == 0)),
            Assume(now <= held),
            Assert(held - now + begun <= many),
            Assert((asked - before)[: len(freed)] == held),
        ]


def test_room():
    prove(RoomSpec(FeatureFetcher(PARAMS)), name="conv-fetch-room", depth=1)


@pytest.mark.long
@pytest.mark.parametrize("depth", [40])
def test_all_room_is_used(depth):
    prove(RoomSpec(FeatureFetcher(PARAMS)), name="conv-fetch-room-cover", mode="cover", depth=depth)
