"""Banks, and the order of grants. Proofs show what is read and written (tests/formal/smem/test_banks.py)."""

import pytest

from tilewright.hw.smem.banks import PATIENCE, Banks, ReadArbiter, WriteArbiter
from tilewright.hw.smem.params import SmemParams
from tilewright.verify.pysim.simulate import elaborated, simulate

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


def test_rows():
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


def test_output_without_a_read():
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


def read_grants(cycles, *, barrier, host=True, lines=False, consumer=True):
    """One letter a cycle, of the granted reader; ``barrier`` says in which cycles the barrier unit reads."""
    dut = elaborated(ReadArbiter, PARAMS)
    grants = []

    async def drive(ctx):
        ctx.set(dut.host.valid, host)
        ctx.set(dut.lines.valid, lines)
        ctx.set(dut.consumer.valid, consumer)
        for cycle in range(cycles):
            reads = bool(barrier and barrier(cycle))
            ctx.set(dut.barrier.valid, reads)
            ready = [ctx.get(reader.ready) for reader in (dut.host, dut.lines, dut.consumer)]
            granted = [reads, host and ready[0], lines and ready[1], consumer and ready[2]]
            grants.append("BHLC"[granted.index(True)] if any(granted) else "-")
            await ctx.tick()

    simulate(dut, drive)
    return "".join(grants)


@pytest.mark.parametrize(
    ("barrier", "host", "lines", "consumer", "grants"),
    [
        (None, False, False, True, "CCCCCC"),
        (None, True, False, False, "HHHHHH"),
        (None, False, True, False, "LLLLLL"),
        (None, True, False, True, "HCHCHC"),
        (None, True, True, False, "HLHLHL"),
        (None, False, True, True, "CLCLCL"),
        (None, True, True, True, "HCHLHC"),
        (lambda cycle: cycle % 3 != 2, True, False, True, "BBHBBCBBHBBC"),
        (lambda cycle: cycle % 2 == 0, False, False, False, "B-B-B-"),
    ],
)
def test_read_order(barrier, host, lines, consumer, grants):
    assert read_grants(len(grants), barrier=barrier, host=host, lines=lines, consumer=consumer) == grants


async def offer_line(ctx, dut, banks):
    strobe = sum(0xFFFF << 16 * bank for bank in banks)
    ctx.set(dut.lines.payload, {"row": 4, "data": sum((bank + 1) << 128 * bank for bank in range(8)), "strobe": strobe})
    ctx.set(dut.lines.valid, 1)


async def offer_small(ctx, port, *, bank):
    ctx.set(port.payload, {"chunk": 0o60 + bank, "data": 0xABC, "strobe": 0x0FF0})
    ctx.set(port.valid, 1)


@pytest.mark.parametrize("writer", ["host", "write_back"])
def test_small_writer_waits_and_then_goes_first(writer):
    dut = elaborated(WriteArbiter, PARAMS)

    async def drive(ctx):
        await offer_line(ctx, dut, range(8))
        await offer_small(ctx, getattr(dut, writer), bank=3)
        stalls = []
        for _ in range(PATIENCE + 1):
            stalls.append(ctx.get(dut.stall_stb))
            assert ctx.get(dut.lines.ready) == (not stalls[-1])
            assert ctx.get(dut.host.ready if writer == "host" else dut.write_back.accepted) == stalls[-1]
            await ctx.tick()
        assert stalls == [0] * PATIENCE + [1]

    simulate(dut, drive)


def granted(ctx, dut, banks):
    """ "L" if the line is written, and "S" or the banks if all or some of the scattered chunks are."""
    written = [bank for bank in range(8) if ctx.get(dut.scattered) >> bank & 1]
    scattered = "S" if written == sorted(banks) else "".join(map(str, written))
    return "L" * ctx.get(dut.lines.ready) + scattered


@pytest.mark.parametrize(
    ("line_banks", "scatter_banks", "grants"),
    [
        (range(4), range(4, 8), ["LS"] * 4),
        (range(4), (3, 4), ["L4", "S", "L4", "S"]),
        (range(8), (6,), ["L", "S", "L", "S"]),
    ],
    ids=["apart", "one in common", "one of all"],
)
def test_lines_and_scattered_writes(line_banks, scatter_banks, grants):
    """Simultaneous in different banks, alternating in the same bank; both are offered in every cycle."""
    dut = elaborated(WriteArbiter, PARAMS, stores=True)
    scattered = {"banks": sum(1 << bank for bank in scatter_banks), "rows": [7] * 8,
                 "data": [40 + bank for bank in range(8)], "strobes": [0xF0] * 8}  # fmt: skip

    async def drive(ctx):
        await offer_line(ctx, dut, line_banks)
        ctx.set(dut.scatter, scattered)
        for grant in grants:
            assert granted(ctx, dut, scatter_banks) == grant
            assert ctx.get(dut.stall_stb) == ("L" not in grant)
            for bank in range(8):
                by_line = bank in line_banks and "L" in grant
                by_scatter = bank in scatter_banks and ("S" in grant or str(bank) in grant)
                written = tuple(ctx.get(getattr(dut.banks, name)[bank]) for name in ("rows", "data", "strobes"))
                if by_line or by_scatter:
                    assert written == ((4, bank + 1, 0xFFFF) if by_line else (7, 40 + bank, 0xF0))
                else:
                    assert written[2] == 0
            await ctx.tick()

    simulate(dut, drive)


@pytest.mark.parametrize(
    ("fills", "scatter_banks", "small_bank", "grants"),
    [
        (0, (4, 5), None, ["LS"] * 3),
        (1, (4,), None, ["LS"] * 3),
        (1, (4, 5), None, ["L4", "S", "L4", "S"]),
        (0, (4,), 7, ["LSH"] * 3),
        (0, (4, 5), 7, ["LS"] * PATIENCE + ["H", "LS"]),
    ],
    ids=["two chunks", "fill", "fill and two", "small", "small and two"],
)
def test_second_chunk(fills, scatter_banks, small_bank, grants):
    """The second scattered chunk, the fill and a small write wait for each other."""
    dut = elaborated(WriteArbiter, SmemParams(1024, writes_a_cycle=2), True, 16)
    first, *second = scatter_banks
    scattered = {"banks": sum(1 << bank for bank in scatter_banks), "rows": [7] * 8, "data": [40, 41],
                 "strobes": [0xF0] * 8, "second": sum(1 << bank for bank in second)}  # fmt: skip

    async def drive(ctx):
        words = {"word": 50, "first_word": 51, "first": 1, "filled": 0xFFFF * fills, "fills": fills, "fill": 52}
        ctx.set(dut.lines.payload, {"row": 4, "data": words, "strobe": (1 << 64) - 1})
        ctx.set(dut.lines.valid, 1)
        ctx.set(dut.scatter, scattered)
        if small_bank is not None:
            await offer_small(ctx, dut.host, bank=small_bank)
        for grant in grants:
            host = small_bank is not None and ctx.get(dut.host.ready)
            assert granted(ctx, dut, scatter_banks) + "H" * host == grant
            written = [[ctx.get(getattr(dut.banks, name)[b]) for b in range(8)] for name in ("strobes", "data")]
            by_line = dict.fromkeys(range(4), 0xFFFF) if "L" in grant else {}
            by_scatter = {bank: 0xF0 for bank in scatter_banks if "S" in grant or str(bank) in grant}
            by_host = {small_bank: 0x0FF0} if "H" in grant else {}
            strobes = by_line | by_scatter | by_host
            assert written[0] == [strobes.get(b, 0) for b in range(8)]
            fill = sum(52 << 32 * n for n in range(4))
            values = {0: fill if fills else 51, 1: 50, 2: 50, 3: 50, first: 40, **dict.fromkeys(second, 41)}
            values |= {small_bank: 0xABC}
            assert all(written[1][b] == values[b] for b in strobes)
            await ctx.tick()

    simulate(dut, drive)
