"""Banks: each has its own rows, byte strobes, and a read in the cycle of a write sees the bytes beside it."""

from tilewright.hw.smem.banks import Banks
from tilewright.hw.smem.params import SmemParams
from tilewright.sim.pysim.simulate import elaborated, simulate

PARAMS = SmemParams(1024)


def chunk(bank, row):
    return int.from_bytes(bytes([16 * bank + row] * 16), "little")


async def write(ctx, dut, rows, data, strobes):
    ctx.set(dut.write, {"rows": rows, "data": data, "strobes": strobes})
    await ctx.tick()
    ctx.set(dut.write.strobes, [0] * 8)


async def read(ctx, dut, rows, enable=0xFF):
    ctx.set(dut.read, {"enable": enable, "rows": rows})
    await ctx.tick()
    return [ctx.get(dut.read_data[bank]) for bank in range(8)]


def test_every_bank_has_its_own_row():
    dut = elaborated(Banks, PARAMS)

    async def check(ctx):
        for row in range(8):
            await write(ctx, dut, [row] * 8, [chunk(bank, row) for bank in range(8)], [0xFFFF] * 8)
        for shift in range(8):
            rows = [(bank * 3 + shift) % 8 for bank in range(8)]
            assert await read(ctx, dut, rows) == [chunk(bank, row) for bank, row in enumerate(rows)]
        rows = [7 - bank for bank in range(8)]
        await write(ctx, dut, rows, [chunk(bank, 9) for bank in range(8)], [0xFFFF] * 8)
        assert await read(ctx, dut, rows) == [chunk(bank, 9) for bank in range(8)]
        assert await read(ctx, dut, [0] * 8) == [chunk(bank, 0 if bank != 7 else 9) for bank in range(8)]

    simulate(dut, check)


def test_strobes():
    dut = elaborated(Banks, PARAMS)
    ones = (1 << 128) - 1

    async def check(ctx):
        await write(ctx, dut, [3] * 8, [ones] * 8, [1 << bank | 0x8000 for bank in range(8)])
        assert await read(ctx, dut, [3] * 8) == [0xFF << 8 * bank | 0xFF << 120 for bank in range(8)]

    simulate(dut, check)


def test_a_bank_that_does_not_read_keeps_its_output():
    dut = elaborated(Banks, PARAMS)

    async def check(ctx):
        await write(ctx, dut, [1] * 8, [chunk(bank, 1) for bank in range(8)], [0xFFFF] * 8)
        await read(ctx, dut, [1] * 8)
        assert await read(ctx, dut, [0] * 8, enable=0x0F) == [0] * 4 + [chunk(bank, 1) for bank in range(4, 8)]

    simulate(dut, check)


def test_read_in_the_cycle_of_the_write():
    dut = elaborated(Banks, PARAMS)

    async def check(ctx):
        await write(ctx, dut, [5] * 8, [chunk(bank, 5) for bank in range(8)], [0xFFFF] * 8)
        ctx.set(dut.write, {"rows": [5] * 8, "data": [chunk(bank, 6) for bank in range(8)], "strobes": [0x00FF] * 8})
        assert [word >> 64 for word in await read(ctx, dut, [5] * 8)] == [chunk(bank, 5) >> 64 for bank in range(8)]
        ctx.set(dut.write.strobes, [0] * 8)
        half = (1 << 64) - 1
        assert [word & half for word in await read(ctx, dut, [5] * 8)] == [chunk(bank, 6) & half for bank in range(8)]

    simulate(dut, check)
