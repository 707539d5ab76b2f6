"""Registers of the cache: what was built, what is going on, what was counted; commands are strobes."""

from tilewright.golden.spec.cluster.l2 import L2_REGISTERS
from tilewright.hw.cluster.l2.control import L2Control
from tilewright.hw.cluster.l2.params import L2Params
from tilewright.sim.pysim.axi_lite import read_word, write_word
from tilewright.sim.pysim.simulate import simulate

OFFSETS = {register.name: register.offset for register in L2_REGISTERS}


def test_registers():
    dut, strobes = L2Control(L2Params(4096, 2, 32).geometry(32, 128, 3)), []

    async def count(ctx):
        async for _, _, *strobe in ctx.tick().sample(dut.flush, dut.invalidate, dut.ranged):
            if any(strobe):
                strobes.append(tuple(strobe))

    async def read(ctx, name):
        return (await read_word(ctx, dut.axil, OFFSETS[name]))[0]

    async def run(ctx):
        assert await read(ctx, "id") == int.from_bytes(b"TWL2")
        assert await read(ctx, "params0") == 4096
        assert await read(ctx, "params1") == 2 | 32 << 8
        for name, cycles in (("hits", 5), ("misses", 4), ("evictions", 3), ("prefetches", 2), ("write_errors", 1)):
            ctx.set(getattr(dut, name), 1)
            await ctx.tick().repeat(cycles)
            ctx.set(getattr(dut, name), 0)
            assert await read(ctx, name) == cycles
        ctx.set(dut.busy, 1)
        assert await read(ctx, "status") == 1
        for bits in (2, 4, 6, 10, 12, 1):
            await write_word(ctx, dut.axil, OFFSETS["control"], bits)
        assert await read(ctx, "hits") == 0
        for name, address in (("first", 0x1FF), ("last", 0xFFFF_FFFF)):
            await write_word(ctx, dut.axil, OFFSETS[f"range_{name}_lo"], address)
            await write_word(ctx, dut.axil, OFFSETS[f"range_{name}_hi"], 1)
        assert (ctx.get(dut.first), ctx.get(dut.last)) == (3, (1 << 25) - 1)

    simulate(dut, run, background=[count])
    assert strobes == [(1, 0, 0), (0, 1, 0), (1, 1, 0), (1, 0, 1), (0, 1, 1)]
