"""The order of grants. Proofs show what is read and written (tests/formal/smem/test_banks.py)."""

import pytest

from tilewright.hw.smem.banks import PATIENCE, ReadArbiter, WriteArbiter
from tilewright.hw.smem.params import SmemParams
from tilewright.verify.pysim.simulate import elaborated, simulate

PARAMS = SmemParams(1024)


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
    scattered = {"banks": sum(1 << bank for bank in scatter_banks), "strobes": [0xF0] * 8}

    async def drive(ctx):
        await offer_line(ctx, dut, line_banks)
        ctx.set(dut.scatter, scattered)
        for grant in grants:
            assert granted(ctx, dut, scatter_banks) == grant
            assert ctx.get(dut.stall_stb) == ("L" not in grant)
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
    second = scatter_banks[1:]
    scattered = {"banks": sum(1 << bank for bank in scatter_banks), "strobes": [0xF0] * 8,
                 "second": sum(1 << bank for bank in second)}  # fmt: skip

    async def drive(ctx):
        words = {"first": 1, "filled": 0xFFFF * fills, "fills": fills}
        ctx.set(dut.lines.payload, {"row": 4, "data": words, "strobe": (1 << 64) - 1})
        ctx.set(dut.lines.valid, 1)
        ctx.set(dut.scatter, scattered)
        if small_bank is not None:
            await offer_small(ctx, dut.host, bank=small_bank)
        for grant in grants:
            host = small_bank is not None and ctx.get(dut.host.ready)
            assert granted(ctx, dut, scatter_banks) + "H" * host == grant
            await ctx.tick()

    simulate(dut, drive)
