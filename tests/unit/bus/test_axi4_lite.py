"""Where the parts of a top lie."""

import random
from itertools import pairwise

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from tilewright.hw.bus.axi4 import Response
from tilewright.hw.bus.axi4_lite import (
    AccessSplit,
    Axi4LiteBridge,
    Axi4LiteSignature,
    Region,
    address_map,
    map_addr_width,
)
from tilewright.hw.core.params import CORE_PRESETS, core_params
from tilewright.hw.core.top import Core
from tilewright.verify.pysim.simulate import simulate
from tilewright.verify.pysim.streams import receive, send


def test_regions_by_hand():
    assert address_map(a=12) == {"a": Region(None, 12)}
    # A small part comes right behind a larger one; a larger one at a multiple of its size.
    regions = address_map(a=12, b=9, c=17, d=17)
    assert [(region.base, region.size) for region in regions.values()] == [
        (0, 4096), (0x1000, 512), (0x20000, 1 << 17), (0x40000, 1 << 17),
    ]  # fmt: skip
    assert map_addr_width(regions) == 19
    assert map_addr_width(address_map(a=12)) == 12


@pytest.mark.parametrize("preset", CORE_PRESETS)
def test_regions_of_the_tops_do_not_overlap(preset):
    tops = (
        Core(CORE_PRESETS[preset]),
        *(Core(core_params(preset, [engine])) for engine in ("tmau", "pe", "conv")),
    )
    for top in tops:
        regions = list(top.regions.values())
        assert all(region.base % region.size == 0 for region in regions)
        assert all(low.base + low.size <= high.base for low, high in pairwise(regions))
        assert regions[-1].base + regions[-1].size <= 1 << top.s_axil.signature.addr_width
        assert regions[-1].size == top.params.smem.size_bytes


SPLIT_BIT = 7


class Target(wiring.Component):
    """A bridge and a split with both targets' streams as ports: the test plays the targets."""

    def __init__(self):
        self.bridge = Axi4LiteBridge(8)
        self.split = AccessSplit(SPLIT_BIT)
        super().__init__({"axi": In(Axi4LiteSignature(8))})

    def elaborate(self, platform):
        m = Module()
        m.submodules.bridge = bridge = self.bridge
        m.submodules.split = split = self.split
        wiring.connect(m, axi=wiring.flipped(self.axi), bridge=bridge.axi)
        wiring.connect(m, bridge=bridge.accesses, split=split.accesses)
        return m


class Manager:
    """Drives the five channels: each pauses on its own."""

    def __init__(self, axi, *, pause=0.0, seed=1):
        self._axi = axi
        self._pause = pause
        self._rng = random.Random(seed)

    async def _wait(self, ctx):
        while self._rng.random() < self._pause:
            await ctx.tick()

    async def _offer(self, ctx, channel, **values):
        await self._wait(ctx)
        for name, value in values.items():
            ctx.set(getattr(self._axi, name), value)
        ctx.set(getattr(self._axi, f"{channel}valid"), 1)
        while not (await ctx.tick().sample(getattr(self._axi, f"{channel}ready")))[2]:
            pass
        ctx.set(getattr(self._axi, f"{channel}valid"), 0)

    async def _take(self, ctx, channel, *names):
        await self._wait(ctx)
        ctx.set(getattr(self._axi, f"{channel}ready"), 1)
        signals = [getattr(self._axi, name) for name in (f"{channel}valid", *names)]
        while True:
            _, _, valid, *values = await ctx.tick().sample(*signals)
            if valid:
                ctx.set(getattr(self._axi, f"{channel}ready"), 0)
                return values

    def write_testbenches(self, writes, responses):
        """Three testbenches that make ``writes`` (address, data, strobe) and fill ``responses``."""

        async def addresses(ctx):
            for address, _, _ in writes:
                await self._offer(ctx, "aw", awaddr=address)

        async def words(ctx):
            for _, word, strobe in writes:
                await self._offer(ctx, "w", wdata=word, wstrb=strobe)

        async def answers(ctx):
            for _ in writes:
                responses.extend(await self._take(ctx, "b", "bresp"))

        return addresses, words, answers

    def read_testbenches(self, reads, responses):
        """Two testbenches that make ``reads`` (addresses) and fill ``responses`` with (data, response)."""

        async def addresses(ctx):
            for address in reads:
                await self._offer(ctx, "ar", araddr=address)

        async def answers(ctx):
            for _ in reads:
                responses.append(tuple(await self._take(ctx, "r", "rdata", "rresp")))

        return addresses, answers


def memory(accesses, answers, contents, log, seed):
    """A background target: 32 words, of which the last refuses."""

    async def serve(ctx):
        while True:
            (item,), _ = await receive(ctx, accesses, 1, stall=0.3, seed=seed)
            log.append((item.address, item.write))
            index, error = item.address // 4, item.address // 4 == 31
            if item.write and not error:
                mask = sum(0xFF << 8 * lane for lane in range(4) if item.strobe >> lane & 1)
                contents[index] = (contents[index] & ~mask) | (item.data & mask)
            await send(ctx, answers, [{"data": contents[index], "error": error}], idle=0.3, seed=seed)

    return serve


@pytest.mark.parametrize("pause", [0.0, 0.5])
def test_writes_and_reads_reach_their_target(pause):
    """Writes and reads to disjoint words at the same time: every answer belongs to its request."""
    dut = Target()
    low, high, log = [0] * 32, [100 + n for n in range(32)], []
    split = dut.split
    background = [
        memory(split.low.requests, split.low.answers, low, log, seed=2),
        memory(split.high.requests, split.high.answers, high, log, seed=3),
    ]
    writes = [(4 * n, 0x01010101 * n, 1 + n % 15) for n in range(32)]
    reads = [128 + 4 * n for n in range(32)]
    manager = Manager(dut.axi, pause=pause)
    write_responses, read_responses = [], []
    testbenches = manager.write_testbenches(writes, write_responses) + manager.read_testbenches(reads, read_responses)
    simulate(dut, *testbenches, background=background)

    assert write_responses == 31 * [Response.OKAY] + [Response.SLVERR]
    assert read_responses == [(100 + n, Response.OKAY) for n in range(31)] + [(131, Response.SLVERR)]
    for n in range(31):
        mask = sum(0xFF << 8 * lane for lane in range(4) if (1 + n % 15) >> lane & 1)
        assert low[n] == 0x01010101 * n & mask
    assert sorted(log) == [(4 * n, write) for n in range(32) for write in (0, 1)]
    if not pause:
        assert [write for _, write in log] == 32 * [1, 0], "they take turns"


def test_write_waits_for_address_and_data():
    """Data long before the address: nothing is accepted, nothing happens."""
    dut = Target()

    async def testbench(ctx):
        ctx.set(dut.axi.wvalid, 1)
        for _ in range(5):
            *_, ready, valid = await ctx.tick().sample(dut.axi.wready, dut.bridge.accesses.requests.valid)
            assert (ready, valid) == (0, 0)
        ctx.set(dut.axi.awvalid, 1)
        *_, awready, wready = await ctx.tick().sample(dut.axi.awready, dut.axi.wready)
        assert (awready, wready) == (1, 1)

    simulate(dut, testbench)


def test_latency():
    """An access is offered in the cycle after the request, the answer passed on when it comes."""
    dut = Axi4LiteBridge(8)

    async def testbench(ctx):
        ctx.set(dut.axi.arvalid, 1)
        ctx.set(dut.axi.rready, 1)
        ctx.set(dut.accesses.requests.ready, 1)
        *_, ready = await ctx.tick().sample(dut.axi.arready)
        assert ready
        ctx.set(dut.axi.arvalid, 0)
        *_, valid = await ctx.tick().sample(dut.accesses.requests.valid)
        assert valid
        ctx.set(dut.accesses.answers.valid, 1)
        ctx.set(dut.accesses.answers.payload.data, 5)
        *_, valid, word = await ctx.tick().sample(dut.axi.rvalid, dut.axi.rdata)
        assert (valid, word) == (1, 5)

    simulate(dut, testbench)


def test_refused_parameters():
    with pytest.raises(ValueError, match=r"^addr_width must be an int from 3 to 32, not 33$"):
        Axi4LiteSignature(33)
    with pytest.raises(ValueError, match=r"^bit must be an int from 2 to 31, not 1$"):
        AccessSplit(1)
