"""Two sources at one tree of registers: each gets its own answers, and they take turns."""

import pytest

from tilewright.hw.core.program.access_share import AccessShare
from tilewright.sim.pysim.simulate import elaborated, simulate
from tilewright.sim.pysim.streams import STALL_MODES, receive, send, watch_stream

COUNT = 30


@pytest.mark.parametrize("mode", STALL_MODES)
def test_answers(mode):
    dut, stalls, order = elaborated(AccessShare), STALL_MODES[mode], []

    def source(number):
        async def access(ctx):
            port = dut.sources[number]
            for index in range(COUNT):
                await send(
                    ctx, port.requests, [{"address": 4 * index, "data": number}], idle=stalls["idle"], seed=index
                )
                (answer,), _ = await receive(ctx, port.answers, 1, stall=stalls["stall"], seed=index)
                assert answer.data == 1000 * number + 4 * index

        return access

    async def registers(ctx):
        for index in range(2 * COUNT):
            (access,), _ = await receive(ctx, dut.accesses.requests, 1, stall=stalls["stall"], seed=index)
            order.append(access.data)
            answer = {"data": 1000 * access.data + access.address}
            await send(ctx, dut.accesses.answers, [answer], idle=stalls["idle"], seed=~index & 0xFF)

    simulate(dut, source(0), source(1), registers, background=[watch_stream(dut.accesses.requests)])
    if mode == "none":
        assert order == COUNT * [0, 1] or order == COUNT * [1, 0]


def test_latency():
    """A cycle to decide who begins; then at once."""
    dut = elaborated(AccessShare)

    async def bench(ctx):
        ctx.set(dut.sources[1].requests.valid, 1)
        assert not ctx.get(dut.accesses.requests.valid)
        await ctx.tick()
        assert ctx.get(dut.accesses.requests.valid)
        ctx.set(dut.accesses.requests.ready, 1)
        assert ctx.get(dut.sources[1].requests.ready) and not ctx.get(dut.sources[0].requests.ready)

    simulate(dut, bench)
