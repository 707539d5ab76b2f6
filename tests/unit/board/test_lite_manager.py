"""The manager of an AXI4-Lite port: accesses come through a bridge to a target of the test, and answers back."""

import random

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, flipped

from tilewright.board.lite_manager import Axi4LiteManager
from tilewright.hw.bus.axi4_lite import AccessSignature, Axi4LiteBridge, Axi4LiteSignature
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import STALL_MODES, receive, send, watch_stream

SEED = 6
ADDR_WIDTH = 12


class ThroughPort(wiring.Component):
    """Manager, port and bridge."""

    def __init__(self):
        super().__init__({"accesses": In(AccessSignature()), "target": Out(AccessSignature())})

    def elaborate(self, platform):
        m = Module()
        m.submodules.manager = manager = Axi4LiteManager(ADDR_WIDTH)
        m.submodules.bridge = bridge = Axi4LiteBridge(ADDR_WIDTH)
        wiring.connect(m, accesses=flipped(self.accesses), manager=manager.accesses)
        wiring.connect(m, manager=manager.axi, bridge=bridge.axi)
        wiring.connect(m, bridge=bridge.accesses, target=flipped(self.target))
        return m


@pytest.mark.parametrize("mode", STALL_MODES)
def test_accesses_come_through(mode):
    rng = random.Random(SEED)
    accesses = [
        {
            "address": rng.randrange(1 << ADDR_WIDTH),
            "write": rng.getrandbits(1),
            "data": rng.getrandbits(32),
            "strobe": rng.getrandbits(4),
        }
        for _ in range(200)
    ]
    replies = [{"data": rng.getrandbits(32), "error": rng.getrandbits(1)} for _ in accesses]
    dut, seen, got = elaborated(ThroughPort), [], []
    stalls = STALL_MODES[mode]

    async def source(ctx):
        await send(ctx, dut.accesses.requests, accesses, idle=stalls["idle"], seed=SEED)

    async def sink(ctx):
        answers, _ = await receive(ctx, dut.accesses.answers, len(accesses), stall=stalls["stall"], seed=SEED)
        got.extend((answer.data, answer.error) for answer in answers)

    async def target(ctx):
        for reply in replies:
            (item,), _ = await receive(ctx, dut.target.requests, 1, stall=stalls["stall"], seed=SEED)
            seen.append({name: getattr(item, name) for name in ("address", "write", "data", "strobe")})
            await send(ctx, dut.target.answers, [reply], idle=stalls["idle"], seed=SEED)

    simulate(dut, source, sink, background=[target, watch_stream(dut.accesses.answers)])
    assert seen == accesses
    assert got == [(reply["data"], reply["error"]) for reply in replies]


@pytest.mark.parametrize("first", ["aw", "w"])
def test_address_and_data_of_a_write_are_taken_one_by_one(first):
    dut, taken = Axi4LiteManager(ADDR_WIDTH), {}
    then = {"aw": "w", "w": "aw"}[first]

    async def port(ctx):
        for cycle, channel in ((2, first), (5, then)):
            await ctx.tick().repeat(cycle)
            ctx.set(getattr(dut.axi, f"{channel}ready"), 1)
            _, _, taken[channel] = await ctx.tick().sample(getattr(dut.axi, f"{channel}valid"))
            ctx.set(getattr(dut.axi, f"{channel}ready"), 0)
            # What was taken is offered no more, what was not stays.
            assert not ctx.get(getattr(dut.axi, f"{channel}valid"))
            assert ctx.get(getattr(dut.axi, f"{then}valid")) == (channel == first)
        ctx.set(dut.axi.bvalid, 1)

    async def source(ctx):
        await send(ctx, dut.accesses.requests, [{"address": 8, "write": 1, "data": 9, "strobe": 15}])

    async def sink(ctx):
        await receive(ctx, dut.accesses.answers, 1)

    simulate(dut, port, source, sink)
    assert taken == {"aw": 1, "w": 1}


def test_no_cycle_is_added():
    """A port that takes and answers at once: an access every second cycle."""
    dut, cycles = Axi4LiteManager(ADDR_WIDTH), {}

    async def source(ctx):
        for name in ("arready", "awready", "wready", "rvalid", "bvalid"):
            ctx.set(getattr(dut.axi, name), 1)
        items = [{"address": 4 * n, "write": n & 1} for n in range(8)]
        cycles["in"] = await send(ctx, dut.accesses.requests, items)

    async def sink(ctx):
        _, cycles["out"] = await receive(ctx, dut.accesses.answers, 8)

    simulate(dut, source, sink)
    assert cycles == {"in": list(range(0, 16, 2)), "out": list(range(1, 17, 2))}


@pytest.mark.parametrize("addr_width", [2, 33])
def test_wrong_parameters(addr_width):
    with pytest.raises(ValueError, match=rf"^addr_width must be an int from 3 to 32, not {addr_width}$"):
        Axi4LiteManager(addr_width)


def test_signature():
    assert Axi4LiteManager(ADDR_WIDTH).axi.signature == Axi4LiteSignature(ADDR_WIDTH)
