"""Fork: every output gets every item, in order, whichever waits."""

import pytest

from tilewright.hw.lib.fork import Fork
from tilewright.sim.pysim.simulate import simulate
from tilewright.sim.pysim.streams import STALL_MODES, receive, send, watch_stream

ITEMS = [*range(100)]


@pytest.mark.parametrize("mode", STALL_MODES)
@pytest.mark.parametrize("n", [2, 3])
def test_every_output_gets_every_item(n, mode):
    dut = Fork(8, n)
    taken = {}

    async def source(ctx):
        await send(ctx, dut.i, ITEMS, idle=STALL_MODES[mode]["idle"])

    def sink(index):
        async def take(ctx):
            taken[index] = await receive(ctx, dut.o[index], len(ITEMS), stall=STALL_MODES[mode]["stall"], seed=index)

        return take

    simulate(dut, source, *map(sink, range(n)), background=[watch_stream(port) for port in dut.o])
    assert all(items == ITEMS for items, _ in taken.values())
    if mode == "none":
        assert all(cycles == ITEMS for _, cycles in taken.values())


@pytest.mark.parametrize("n", [1, 2.0])
def test_refused_parameters(n):
    with pytest.raises(ValueError, match="n must be an int of at least 2"):
        Fork(8, n)
