"""Arbiters: turns, steadiness and merged streams."""

import pytest
from amaranth.lib import data

from tilewright.hw.lib.arbiter import RoundRobinArbiter, StreamArbiter
from tilewright.sim.pysim.simulate import simulate
from tilewright.sim.pysim.streams import STALL_MODES, receive, send, watch_stream


def grants(n, steps):
    """Grants for ``steps`` of (requests, advance)."""
    dut = RoundRobinArbiter(n)
    seen = []

    async def testbench(ctx):
        for requests, advance in steps:
            ctx.set(dut.requests, requests)
            ctx.set(dut.advance, advance)
            seen.append(ctx.get(dut.grant))
            await ctx.tick()

    simulate(dut, testbench)
    return seen


def test_everybody_in_turn():
    assert grants(3, 7 * [(0b111, 1)]) == [1, 2, 4, 1, 2, 4, 1]


def test_only_who_asks():
    assert grants(4, [(0b1010, 1), (0b1010, 1), (0b1010, 1), (0, 1), (0b0001, 1)]) == [2, 8, 2, 0, 1]


def test_a_grant_stays_until_it_is_served():
    """Request 2 is granted and waits; request 0, which would come first, does not push in."""
    assert grants(3, [(0b100, 0), (0b101, 0), (0b111, 1), (0b111, 1)]) == [4, 4, 4, 1]


def test_a_request_that_ends_loses_its_turn():
    assert grants(3, [(0b010, 0), (0b101, 0), (0b111, 1), (0b111, 1)]) == [2, 4, 4, 1]


def test_one_request():
    assert grants(1, [(1, 1), (0, 1), (1, 0), (1, 1)]) == [1, 0, 1, 1]


def merge(n, count, mode, *, shape=16):
    """Merges ``n`` streams of ``count`` items each, item k of stream s being 256 s + k."""
    dut = StreamArbiter(shape, n)
    stalls = STALL_MODES[mode]
    result = {"winners": []}

    def source(index):
        async def testbench(ctx):
            await send(ctx, dut.i[index], range(256 * index, 256 * index + count), idle=stalls["idle"], seed=index)

        return testbench

    async def sink(ctx):
        result["items"], result["cycles"] = await receive(ctx, dut.o, n * count, stall=stalls["stall"], seed=9)

    async def winners(ctx):
        async for *_, valid, ready, winner in ctx.tick().sample(dut.o.valid, dut.o.ready, dut.winner):
            assert bool(winner) == bool(valid)
            if valid and ready:
                result["winners"].append(winner)

    simulate(dut, *map(source, range(n)), sink, background=[watch_stream(dut.o), winners])
    return result


@pytest.mark.parametrize("mode", STALL_MODES)
@pytest.mark.parametrize("n", [1, 2, 3, 8])
def test_merge(n, mode):
    result = merge(n, 30, mode)
    for index in range(n):
        mine = [item for item in result["items"] if item >> 8 == index]
        assert mine == list(range(256 * index, 256 * index + 30)), "in order, nothing lost"
    assert result["winners"] == [1 << (item >> 8) for item in result["items"]]
    if mode == "none":
        assert result["cycles"] == list(range(30 * n)), "no latency, one item a cycle"
        assert result["winners"] == [1 << index for index in range(n)] * 30


def test_structures_pass():
    shape = data.StructLayout({"a": 3, "b": 5})
    dut = StreamArbiter(shape, 2)

    async def source(ctx):
        await send(ctx, dut.i[1], [{"a": 5, "b": 17}])

    async def sink(ctx):
        items, _ = await receive(ctx, dut.o, 1)
        assert items == [shape.const({"a": 5, "b": 17})]

    simulate(dut, source, sink)


def test_refused_n():
    with pytest.raises(ValueError, match=r"^n must be an int of at least 1, not 0$"):
        RoundRobinArbiter(0)
    with pytest.raises(ValueError, match=r"^n must be an int of at least 1, not 2\.0$"):
        StreamArbiter(8, 2.0)
