"""The slot: order in every stall mode, latency and rate."""

import pytest

from tilewright.hw.lib.slot import Slot
from tilewright.sim.pysim.simulate import simulate
from tilewright.sim.pysim.streams import STALL_MODES, receive, send, watch_stream


@pytest.mark.parametrize("mode", STALL_MODES)
def test_an_item_every_other_cycle(mode):
    items = [(37 * n + 11) % 256 for n in range(100)]
    dut = Slot(8)

    async def source(ctx):
        await send(ctx, dut.i, items, idle=STALL_MODES[mode]["idle"], seed=3)

    async def sink(ctx):
        payloads, taken = await receive(ctx, dut.o, len(items), stall=STALL_MODES[mode]["stall"], seed=3)
        assert payloads == items
        if mode == "none":
            assert taken == list(range(1, 201, 2))

    simulate(dut, source, sink, background=[watch_stream(dut.o)])
