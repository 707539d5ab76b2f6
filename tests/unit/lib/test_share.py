"""Two users of one port, that of barriers."""

import random

import pytest

from tilewright.hw.lib.share import StreamShare
from tilewright.hw.smem.layouts import BarrierRequestLayout, BarrierResultLayout
from tilewright.hw.smem.params import SmemParams
from tilewright.sim.pysim.simulate import elaborated, simulate
from tilewright.sim.pysim.streams import STALL_MODES, receive, send, watch_stream

SEED = 7
COUNT = 40


def two_processors():
    return StreamShare(BarrierRequestLayout(SmemParams(1024)), BarrierResultLayout(), 2)


@pytest.mark.parametrize("mode", STALL_MODES)
def test_each_gets_its_own_answers_in_order(mode):
    """The answer to an operation is made from its address here, so that a swapped one shows."""
    dut = elaborated(two_processors)
    rng = random.Random(SEED)
    asked = [
        [{"op": 4, "address": rng.randrange(0, 512) * 2 + owner, "value": 0} for _ in range(COUNT)] for owner in (0, 1)
    ]
    stalls, got, merged = STALL_MODES[mode], {}, []

    async def memory(ctx):
        for _ in range(2 * COUNT):
            (request,), _ = await receive(ctx, dut.merged, 1, stall=stalls["stall"], seed=len(merged))
            merged.append(request)
            await send(ctx, dut.answers, [answer_to(request["address"])], idle=stalls["idle"], seed=len(merged))

    def processor(owner):
        async def ask(ctx):
            await send(ctx, dut.requests[owner], asked[owner], idle=stalls["idle"], seed=SEED + owner)

        async def listen(ctx):
            got[owner], _ = await receive(ctx, dut.results[owner], COUNT, stall=stalls["stall"], seed=SEED - owner)

        return ask, listen

    watched = [dut.merged, *dut.results]
    simulate(dut, memory, *processor(0), *processor(1), background=[watch_stream(port) for port in watched])
    for owner in (0, 1):
        assert [int(answer["done"]) for answer in got[owner]] == [answer_to(a["address"])["done"] for a in asked[owner]]
        assert [r["address"] for r in merged if r["address"] % 2 == owner] == [a["address"] for a in asked[owner]]


def answer_to(address):
    return {"done": address >> 1 & 1, "error": 0}
