"""Scatter port: every byte is written, and a write takes as many cycles as its worst bank has lanes."""

import random
from collections import Counter

import pytest

from tilewright.hw.smem.layouts import scattered_chunk
from tilewright.hw.smem.params import SmemParams
from tilewright.hw.smem.scatter import ScatterPort
from tilewright.hw.smem.top import SharedMemory
from tilewright.sim.pysim.simulate import elaborated, simulate
from tilewright.sim.pysim.streams import STALL_MODES, send

SEED = 12
PARAMS = SmemParams(1024)
HALF = SmemParams(1024, writes_a_cycle=4)
QUARTER = SmemParams(1024, writes_a_cycle=2)
CHUNKS = PARAMS.size_bytes // 16
ALL = 0xFFFF


def cycles_of(write, ways=8):
    """Cycles at the banks: most lanes that any bank has to serve, at least one, for each part that there is."""
    cycles = []
    for part in (slice(first, first + ways) for first in range(0, 8, ways)):
        lanes = zip(write["chunks"][part], write["strobes"][part], strict=True)
        banks = Counter(chunk % 8 for chunk, strobe in lanes if strobe)
        cycles.append(max(banks.values(), default=0))
    while not cycles[-1] and cycles[1:]:
        cycles.pop()  # nothing is left behind the last lane that writes
    return sum(max(1, some) for some in cycles)


def store(image, chunk, data, strobe):
    for byte in range(16):
        if strobe >> byte & 1:
            image[16 * chunk + byte] = data >> 8 * byte & 0xFF


def expected(writes):
    image = bytearray(PARAMS.size_bytes)
    for write in writes:
        for chunk, data, strobe in zip(write["chunks"], write["data"], write["strobes"], strict=True):
            store(image, chunk, data, strobe)
    return image


def random_writes(count):
    rng = random.Random(SEED)
    for _ in range(count):
        few = rng.choice([4, 16, CHUNKS])  # lanes often meet in a bank, or even in a chunk
        yield {
            "chunks": [rng.randrange(few) for _ in range(8)],
            "data": [rng.getrandbits(128) for _ in range(8)],
            "strobes": [rng.choice([0, ALL, rng.getrandbits(16)]) for _ in range(8)],
        }


def column(swizzled):
    """One chunk in each of eight lines: with the 128-byte swizzle they are in eight banks, without in one."""
    chunks = [8 * row + (3 ^ row if swizzled else 3) for row in range(8)]
    return {"chunks": chunks, "data": [row + 1 for row in range(8)], "strobes": [ALL] * 8}


@pytest.mark.parametrize("mode", STALL_MODES)
@pytest.mark.parametrize("params", [PARAMS, HALF, QUARTER], ids=["eight", "four", "two"])
def test_random(params, mode):
    """What waits is written in all banks at once, or in some of them, any ones, while lines have the others."""
    dut = elaborated(ScatterPort, params)
    writes, stall = list(random_writes(60)), STALL_MODES[mode]["stall"]
    cycles = [cycles_of(write, params.writes_a_cycle) for write in writes]
    image, conflicts = bytearray(PARAMS.size_bytes), Counter()

    async def source(ctx):
        accepted = await send(ctx, dut.i, writes, idle=STALL_MODES[mode]["idle"], seed=SEED)
        assert mode != "none" or accepted[-1] == sum(cycles) - 1

    async def sink(ctx):
        rng, left = random.Random(SEED), len(writes)
        while left or ctx.get(dut.o.banks):
            taken = ctx.get(dut.o.banks) & sum((rng.random() >= stall) << bank for bank in range(8))
            for bank in (bank for bank in range(8) if taken >> bank & 1):
                chunk = 8 * ctx.get(dut.o.rows[bank]) + bank
                store(image, chunk, ctx.get(scattered_chunk(dut.o, bank)), ctx.get(dut.o.strobes[bank]))
            ctx.set(dut.taken, taken)
            ctx.set(dut.emptied, taken == ctx.get(dut.o.banks))
            left -= ctx.get(dut.i.valid & dut.i.ready)
            await ctx.tick()
        assert ctx.get(dut.idle)

    async def count(ctx):
        async for _, _, strobe, idle, banks in ctx.tick().sample(dut.conflict_stb, dut.idle, dut.o.banks):
            conflicts["cycles"] += strobe
            assert idle == (banks == 0)

    simulate(dut, source, sink, background=[count])
    assert image == expected(writes)
    most = sum(cycles) - len(writes)
    assert 0 < conflicts["cycles"] <= most
    assert stall or conflicts["cycles"] == most


@pytest.mark.parametrize(
    ("params", "swizzled", "cycles"),
    [(PARAMS, True, 1), (PARAMS, False, 8), (QUARTER, True, 4)],
    ids=["swizzle 128", "no swizzle", "two at once"],
)
def test_a_column_of_eight_chunks_in_shared_memory(params, swizzled, cycles):
    dut = elaborated(SharedMemory, params, stores=True)
    count = 6
    conflicts = Counter()

    async def drive(ctx):
        assert await send(ctx, dut.scatter, [column(swizzled)] * count) == [cycles * (n + 1) - 1 for n in range(count)]
        assert not ctx.get(dut.scatter_idle)
        await ctx.tick()
        assert ctx.get(dut.scatter_idle)
        for lane, chunk in enumerate(column(swizzled)["chunks"]):
            assert ctx.get(dut.banks.memories[chunk % 8].data[chunk // 8]) == lane + 1

    async def watch(ctx):
        async for _, _, strobe in ctx.tick().sample(dut.scatter_conflict_stb):
            conflicts["cycles"] += strobe

    simulate(dut, drive, background=[watch])
    assert conflicts["cycles"] == (cycles - 1) * count


def test_a_read_when_idle_sees_the_write():
    dut = elaborated(SharedMemory, PARAMS, stores=True)

    async def drive(ctx):
        ctx.set(dut.read_data.ready, 1)
        await send(ctx, dut.scatter, [{"chunks": [5] * 8, "data": [0xAB] * 8, "strobes": [1] + [0] * 7}])
        await ctx.tick().until(dut.scatter_idle)
        await send(ctx, dut.reads, [{"lanes": 1, "chunks": [5] * 8}])
        await ctx.tick()
        assert ctx.get(dut.read_data.valid)
        assert ctx.get(dut.read_data.payload[0]) == 0xAB

    simulate(dut, drive)


def half(number):
    """One chunk in each of two banks, of those that bus words of 64 bytes write by turns."""
    chunks = [8 * (number % 8) + 2 * (number % 4) + lane for lane in range(2)]
    return {"chunks": chunks + [0] * 6, "data": [number] * 8, "strobes": [ALL] * 2 + [0] * 6}


@pytest.mark.parametrize(
    ("bytes_of_line", "scattered", "last_line", "last_write"),
    [(128, lambda number: column(True), 37, 38), (64, half, 19, 19)],
    ids=["whole lines", "words"],
)
def test_lines_and_scattered_writes(bytes_of_line, scattered, last_line, last_write):
    """By turns where both write all banks; both in every cycle where each bank is left alone half of the time."""
    dut = elaborated(SharedMemory, PARAMS, stores=True)
    strobes = [((1 << bytes_of_line) - 1) << n * bytes_of_line % 128 for n in range(20)]
    lines = [{"row": n % 8, "data": n, "strobe": strobe} for n, strobe in enumerate(strobes)]
    stalls = Counter()

    async def tmau(ctx):
        cycles = await send(ctx, dut.mover.writes, lines)
        assert cycles[-1] == last_line

    async def engine(ctx):
        cycles = await send(ctx, dut.scatter, [scattered(number) for number in range(20)])
        assert cycles[-1] == last_write

    async def watch(ctx):
        async for _, _, stall in ctx.tick().sample(dut.stall_stb):
            stalls["cycles"] += stall

    simulate(dut, tmau, engine, background=[watch])
    assert stalls["cycles"] == last_line - 19
