"""The memory model: when answers come, in which order, and which are errors."""

import pytest

from tilewright.sim.memory_model import MemoryModel
from tilewright.sim.pysim import simulate

BYTES = 16


def _model(depth=64, outstanding=32):
    dut = MemoryModel(addr_width=20, data_width=8 * BYTES, depth=depth, outstanding=outstanding)
    for word in range(depth):
        dut.array.contents.init[word] = 0x1000 + word
    return dut


async def _request(ctx, dut, word, beats, number=0):
    """Returns after the cycle in which the request was accepted."""
    ctx.set(dut.axi.arid, number)
    ctx.set(dut.axi.araddr, word * BYTES)
    ctx.set(dut.axi.arlen, beats - 1)
    ctx.set(dut.axi.arvalid, 1)
    while not (await ctx.tick().sample(dut.axi.arready))[2]:
        pass
    ctx.set(dut.axi.arvalid, 0)


def _collector(dut, beats, stop):
    """Takes every beat until ``stop`` are there: (cycle, id, data, resp, last)."""

    async def collect(ctx):
        axi, cycle = dut.axi, 0
        ctx.set(axi.rready, 1)
        while len(beats) < stop:
            _, _, valid, *beat = await ctx.tick().sample(axi.rvalid, axi.rid, axi.rdata, axi.rresp, axi.rlast)
            if valid:
                number, word, response, last = beat
                beats.append((cycle, number, word, getattr(response, "value", response), last))
            cycle += 1

    return collect


@pytest.mark.parametrize("latency", [2, 3, 17])
def test_latency_and_full_rate(latency):
    dut, beats = _model(), []

    async def manager(ctx):
        ctx.set(dut.latency, latency)
        for word in range(20):
            await _request(ctx, dut, word, 1, number=word & 1)

    simulate(dut, manager, _collector(dut, beats, 20))
    # Requests are accepted in cycles 0 to 19.
    assert [cycle for cycle, *_ in beats] == [latency + word for word in range(20)]
    assert [(number, word) for _, number, word, *_ in beats] == [(word & 1, 0x1000 + word) for word in range(20)]
    assert all(response == 0 and last for *_, response, last in beats)


def test_bursts_follow_without_a_gap():
    dut, beats = _model(), []

    async def manager(ctx):
        ctx.set(dut.latency, 5)
        await _request(ctx, dut, 4, 7)
        await _request(ctx, dut, 40, 3)

    simulate(dut, manager, _collector(dut, beats, 10))
    assert [cycle for cycle, *_ in beats] == list(range(5, 15))
    assert [word - 0x1000 for _, _, word, *_ in beats] == [4, 5, 6, 7, 8, 9, 10, 40, 41, 42]
    assert [last for *_, last in beats] == [0] * 6 + [1, 0, 0, 1]


def test_random_pauses_keep_order_and_data():
    dut, beats = _model(), []

    async def manager(ctx):
        for name, value in {"latency": 6, "ar_stall": 128, "r_stall": 128, "seed": 7, "start": 1}.items():
            ctx.set(getattr(dut, name), value)
        await ctx.tick()
        ctx.set(dut.start, 0)
        for word in range(30):
            await _request(ctx, dut, word, 2)

    simulate(dut, manager, _collector(dut, beats, 60))
    assert [word - 0x1000 for _, _, word, *_ in beats] == [word + beat for word in range(30) for beat in range(2)]
    assert beats[-1][0] > 60 + 20  # it did pause


def test_queue_fills_and_holds():
    dut = _model(outstanding=16)

    async def manager(ctx):
        ctx.set(dut.latency, 100)
        for word in range(16):
            await _request(ctx, dut, word, 1)
        assert not ctx.get(dut.axi.arready)

    simulate(dut, manager)


def test_windows_of_errors():
    dut, beats = _model(depth=32), []

    async def manager(ctx):
        for name, value in {"latency": 2, "error_first": 105, "error_last": 106, "error_response": 2}.items():
            ctx.set(getattr(dut, name), value)
        ctx.set(dut.base, 100)
        await _request(ctx, dut, 104, 4)
        await _request(ctx, dut, 131, 2)  # the second one is behind the array
        await _request(ctx, dut, 99, 1)  # before it

    simulate(dut, manager, _collector(dut, beats, 7))
    assert [response for *_, response, _ in beats] == [0, 2, 2, 0, 0, 3, 3]
    assert [word - 0x1000 for _, _, word, *_ in beats[:5]] == [4, 5, 6, 7, 31]
