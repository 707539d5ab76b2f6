"""Arbiters and exclusive streams. Proofs show forks, gates and shared ports (tests/formal/lib/test_routing.py)."""

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from support.streams import transact
from tilewright.hw.lib.routing import Fork, RoundRobinArbiter, StreamArbiter, connect_exclusive
from tilewright.verify.pysim.simulate import simulate
from tilewright.verify.pysim.streams import STALL_MODES, send


def grants(n, steps):
    """Grants for ``steps`` of (requests, advance)."""
    dut = RoundRobinArbiter(n)
    granted = []

    async def testbench(ctx):
        for requests, advance in steps:
            ctx.set(dut.requests, requests)
            ctx.set(dut.advance, advance)
            granted.append(ctx.get(dut.grant))
            await ctx.tick()

    simulate(dut, testbench)
    return granted


@pytest.mark.parametrize(
    ("n", "steps", "expected"),
    [
        pytest.param(3, 7 * [(0b111, 1)], [1, 2, 4, 1, 2, 4, 1], id="all in turn"),
        pytest.param(4, [*3 * [(0b1010, 1)], (0, 1), (0b0001, 1)], [2, 8, 2, 0, 1], id="requests only"),
        pytest.param(3, [(0b100, 0), (0b101, 0), *2 * [(0b111, 1)]], [4, 4, 4, 1], id="a grant stays until served"),
        pytest.param(3, [(0b010, 0), (0b101, 0), *2 * [(0b111, 1)]], [2, 4, 4, 1], id="a request that ends"),
        pytest.param(1, [(1, 1), (0, 1), (1, 0), (1, 1)], [1, 0, 1, 1], id="one request"),
    ],
)
def test_grants(n, steps, expected):
    assert grants(n, steps) == expected


def merge(n, count, mode):
    """Merges ``n`` streams of ``count`` items each, item k of stream s being 256 s + k: items, cycles, winners."""
    dut, winners = StreamArbiter(16, n), []

    async def watch(ctx):
        async for *_, valid, ready, winner in ctx.tick().sample(dut.o.valid, dut.o.ready, dut.winner):
            assert bool(winner) == bool(valid)
            if valid and ready:
                winners.append(winner)

    items = {f"i.{index}": range(256 * index, 256 * index + count) for index in range(n)}
    payloads, cycles = transact(dut, items, {"o": n * count}, mode, background=[watch])
    return payloads["o"], cycles["o"], winners


@pytest.mark.parametrize("mode", STALL_MODES)
@pytest.mark.parametrize("n", [1, 3])
def test_merge(n, mode):
    items, cycles, winners = merge(n, 30, mode)
    for index in range(n):
        mine = [item for item in items if item >> 8 == index]
        assert mine == list(range(256 * index, 256 * index + 30)), "in order, nothing lost"
    assert winners == [1 << (item >> 8) for item in items]
    if mode == "none":
        assert cycles == list(range(30 * n)), "no latency, one item a cycle"
        assert winners == [1 << index for index in range(n)] * 30


@pytest.mark.parametrize(
    ("block", "n", "least"), [(RoundRobinArbiter, 0, 1), (StreamArbiter, 2.0, 1), (Fork, 1, 2), (Fork, 2.0, 2)]
)
def test_refused_n(block, n, least):
    arguments = (n,) if block is RoundRobinArbiter else (8, n)
    with pytest.raises(ValueError, match=rf"^n must be an int of at least {least}, not {n}$"):
        block(*arguments)


class Exclusive(wiring.Component):
    """Three streams, one of which is valid at a time."""

    i: In(stream.Signature(8)).array(3)
    o: Out(stream.Signature(8))

    def elaborate(self, platform):
        m = Module()
        payload, valid = Signal(8), Signal()
        connect_exclusive(m, self.i, payload, valid, self.o.ready)
        m.d.comb += [self.o.payload.eq(payload), self.o.valid.eq(valid)]
        return m


def test_connect_exclusive():
    dut = Exclusive()

    async def feed(ctx):
        for number in range(30):
            await send(ctx, dut.i[number * 7 % 3], [number], idle=0.3, seed=number)

    payloads, _ = transact(dut, receive={"o": 30}, mode="stall", testbenches=[feed])
    assert payloads["o"] == list(range(30))
