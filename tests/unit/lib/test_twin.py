"""Two registers by turns: order in every stall mode, latency, full rate, and what it holds."""

import pytest

from tilewright.hw.lib.twin import TwinBuffer
from tilewright.sim.pysim.simulate import simulate
from tilewright.sim.pysim.streams import STALL_MODES, receive, send, watch_stream


def transport(items, mode, *, wait=0):
    """Sends ``items``; what comes out, and the cycles of both ends. The sink sleeps ``wait`` cycles."""
    dut, result = TwinBuffer(8), {}

    async def source(ctx):
        result["sent"] = await send(ctx, dut.i, items, idle=STALL_MODES[mode]["idle"], seed=3)

    async def sink(ctx):
        for _ in range(wait):
            await ctx.tick()
        payloads, cycles = await receive(ctx, dut.o, len(items), stall=STALL_MODES[mode]["stall"], seed=3)
        result["came"] = payloads, [wait + cycle for cycle in cycles]

    simulate(dut, source, sink, background=[watch_stream(dut.o)])
    return result["sent"], *result["came"]


@pytest.mark.parametrize("mode", STALL_MODES)
def test_order(mode):
    items = [(37 * n + 11) % 256 for n in range(150)]
    assert transport(items, mode)[1] == items


def test_latency_one_and_full_rate():
    sent, _, taken = transport(range(100), "none")
    assert sent == list(range(100))
    assert taken == list(range(1, 101))


def test_two_items_fit_and_the_rate_is_full_behind_a_long_stall():
    sent, _, taken = transport(range(100), "none", wait=40)
    assert taken == list(range(40, 140))
    assert sent[1] == 1 and sent[2] >= 40
