"""Reads and writes of eight chunks: every lane has its chunk, in as many cycles as the worst bank takes."""

import random
from collections import Counter, defaultdict

import pytest
from amaranth.hdl import Elaboratable, Module, Signal

from support.streams import counting, transact
from tilewright.hw.smem.banks import Banks
from tilewright.hw.smem.chunk_ports import ConsumerPort, ScatterPort
from tilewright.hw.smem.layouts import scattered_chunk
from tilewright.hw.smem.params import SmemParams
from tilewright.hw.smem.top import SharedMemory
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import STALL_MODES, send

SEED = 8
PARAMS = SmemParams(4096)
HALF = SmemParams(4096, chunks_a_cycle=4)
CHUNKS = PARAMS.size_bytes // 16


class ConsumerOnBanks(Elaboratable):
    """A consumer port that reads banks, except in cycles in which ``busy`` says that another block does."""

    def __init__(self, params=PARAMS):
        self.busy = Signal()
        self.banks = Banks(params)
        self.consumer = ConsumerPort(params)

    def elaborate(self, platform):
        m = Module()
        m.submodules.banks = self.banks
        m.submodules.consumer = self.consumer
        fetches = self.consumer.fetches
        m.d.comb += [
            fetches.ready.eq(~self.busy),
            self.banks.read.rows.eq(fetches.payload.rows),
            self.consumer.fetched.eq(self.banks.read_data),
        ]
        with m.If(self.busy):
            # Another reader changes the outputs of all banks.
            m.d.comb += self.banks.read.enable.eq(0xFF)
            m.d.comb += self.banks.read.rows.eq(0)
        with m.Elif(fetches.valid):
            m.d.comb += self.banks.read.enable.eq(fetches.payload.enable)
        return m


def contents(chunk):
    return (chunk + 1) * 0x0123_4567_89AB_CDEF_0011_2233_4455_6677 % (1 << 128)


async def fill(ctx, banks):
    for chunk in range(CHUNKS):
        ctx.set(banks.memories[chunk % 8].data[chunk // 8], contents(chunk))


def bank_cycles(request, ways=8):
    """Cycles at the banks, for each part: the largest number of different chunks in a bank, at least one."""
    cycles = []
    for part in range(0, 8, ways):
        wanted = defaultdict(set)
        for lane, chunk in enumerate(request["chunks"][part : part + ways], part):
            if request["lanes"] >> lane & 1:
                wanted[chunk % 8].add(chunk)
        cycles.append(max((len(chunks) for chunks in wanted.values()), default=1))
    return cycles


def requests(kind, count):
    rng = random.Random(SEED)
    for _ in range(count):
        if kind == "lines":
            yield {"lanes": 0xFF, "chunks": [8 * rng.randrange(CHUNKS // 8) + lane for lane in rng.sample(range(8), 8)]}
        elif kind == "columns":
            yield {"lanes": 0xFF, "chunks": [(8 * lane + rng.randrange(4) * 64) % CHUNKS for lane in range(8)]}
        else:
            # Few rows, so that lanes often want the same chunk, or different ones of a bank.
            yield {"lanes": rng.getrandbits(8), "chunks": [rng.randrange(24) for _ in range(8)]}


def run(kind, *, count, mode="none", busy=0.0, params=PARAMS):
    """Checks every answer; returns the cycles of requests and answers, and the number of conflict strobes."""
    dut = elaborated(ConsumerOnBanks, params)
    sent = list(requests(kind, count))
    parts, strobes = 8 // params.chunks_a_cycle, []

    async def prepare(ctx):
        await fill(ctx, dut.banks)

    async def others(ctx):
        rng, read = random.Random(SEED), None
        sampled = (dut.consumer.conflict_stb, dut.busy, dut.consumer.other_bank, dut.consumer.other_chunk)
        async for _, _, strobe, was_busy, bank, chunk in ctx.tick().sample(*sampled):
            strobes.append(strobe)
            assert read is None or chunk == contents(read)  # of row 0
            read = bank if was_busy else None
            ctx.set(dut.busy, rng.random() < busy)
            ctx.set(dut.consumer.other_bank, rng.randrange(8))

    payloads, cycles = transact(
        dut, {"consumer.reads": sent}, {"consumer.read_data": count * parts}, mode, seed=SEED,
        watch=["consumer.fetches"], testbenches=[prepare], background=[others], deadline=50 * count + 100,
    )  # fmt: skip
    chunks = [chunk for part in payloads["consumer.read_data"] for chunk in part]
    for number, request in enumerate(sent):
        for lane, chunk in enumerate(request["chunks"]):
            if request["lanes"] >> lane & 1:
                assert chunks[8 * number + lane] == contents(chunk), f"lane {lane} of {request}"
    return cycles["consumer.reads"], cycles["consumer.read_data"][parts - 1 :: parts], sum(strobes), sent


@pytest.mark.parametrize("busy", [0.0, 0.4])
@pytest.mark.parametrize("mode", STALL_MODES)
@pytest.mark.parametrize("params", [PARAMS, HALF], ids=["eight", "four"])
def test_random(params, mode, busy):
    cycles, _, conflicts, sent = run("random", count=150, mode=mode, busy=busy, params=params)
    if mode == "none" and not busy:
        assert cycles[-1] == sum(sum(bank_cycles(request, params.chunks_a_cycle)) for request in sent[:-1])
    assert conflicts == sum(sum(bank_cycles(request, params.chunks_a_cycle)) for request in sent) - len(sent) * (
        8 // params.chunks_a_cycle
    )


@pytest.mark.parametrize(
    ("kind", "params", "first", "pace", "conflicts"),
    [("lines", PARAMS, 2, 1, 0), ("lines", HALF, 3, 2, 0), ("columns", PARAMS, 9, 8, 7)],
    ids=["lines", "lines, four chunks a cycle", "columns"],
)
def test_rate_and_latency(kind, params, first, pace, conflicts):
    cycles_in, cycles_out, strobes, _ = run(kind, count=20, params=params)
    assert cycles_in == [0, *range(pace, 20 * pace, pace)]
    assert cycles_out == list(range(first, first + 20 * pace, pace))
    assert strobes == 20 * conflicts


SCATTER_SEED = 12
SCATTER_PARAMS = SmemParams(1024)
SCATTER_HALF = SmemParams(1024, writes_a_cycle=4)
QUARTER = SmemParams(1024, writes_a_cycle=2)
ALL = 0xFFFF


def cycles_of(write, ways=8):
    """Cycles at the banks: the largest number of lanes that write one bank, at least one, summed over the parts."""
    cycles = []
    for part in (slice(first, first + ways) for first in range(0, 8, ways)):
        lanes = zip(write["chunks"][part], write["strobes"][part], strict=True)
        banks = Counter(chunk % 8 for chunk, strobe in lanes if strobe)
        cycles.append(max(banks.values(), default=0))
    while not cycles[-1] and cycles[1:]:
        cycles.pop()  # parts end with the last lane that writes
    return sum(max(1, some) for some in cycles)


def store(image, chunk, data, strobe):
    for byte in range(16):
        if strobe >> byte & 1:
            image[16 * chunk + byte] = data >> 8 * byte & 0xFF


def expected(writes):
    image = bytearray(SCATTER_PARAMS.size_bytes)
    for write in writes:
        for chunk, data, strobe in zip(write["chunks"], write["data"], write["strobes"], strict=True):
            store(image, chunk, data, strobe)
    return image


def random_writes(count):
    rng = random.Random(SCATTER_SEED)
    for _ in range(count):
        few = rng.choice([4, 16, SCATTER_PARAMS.size_bytes // 16])  # lanes often meet in a bank, or even in a chunk
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
@pytest.mark.parametrize("params", [SCATTER_PARAMS, SCATTER_HALF, QUARTER], ids=["eight", "four", "two"])
def test_scatter_random(params, mode):
    """Waiting chunks are written in all banks at once, or, while lines have the others, in random ones."""
    dut = elaborated(ScatterPort, params)
    writes, stall = list(random_writes(60)), STALL_MODES[mode]["stall"]
    cycles = [cycles_of(write, params.writes_a_cycle) for write in writes]
    image, conflicts = bytearray(SCATTER_PARAMS.size_bytes), Counter()

    async def source(ctx):
        cycles_in = await send(ctx, dut.i, writes, idle=STALL_MODES[mode]["idle"], seed=SCATTER_SEED)
        assert mode != "none" or cycles_in[-1] == sum(cycles) - 1

    async def sink(ctx):
        rng, remaining = random.Random(SCATTER_SEED), len(writes)
        while remaining or ctx.get(dut.o.banks):
            accepted = ctx.get(dut.o.banks) & sum((rng.random() >= stall) << bank for bank in range(8))
            for bank in (bank for bank in range(8) if accepted >> bank & 1):
                chunk = 8 * ctx.get(dut.o.rows[bank]) + bank
                store(image, chunk, ctx.get(scattered_chunk(dut.o, bank)), ctx.get(dut.o.strobes[bank]))
            ctx.set(dut.accepted, accepted)
            ctx.set(dut.emptied, accepted == ctx.get(dut.o.banks))
            remaining -= ctx.get(dut.i.valid & dut.i.ready)
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


def half(number):
    """One chunk in each of two banks, among those that bus words of 64 bytes write alternately."""
    chunks = [8 * (number % 8) + 2 * (number % 4) + lane for lane in range(2)]
    return {"chunks": chunks + [0] * 6, "data": [number] * 8, "strobes": [ALL] * 2 + [0] * 6}


@pytest.mark.parametrize(
    ("bytes_of_line", "scattered", "last_line", "last_write"),
    [(128, lambda number: column(True), 37, 38), (64, half, 19, 19)],
    ids=["whole lines", "words"],
)
def test_lines_and_scattered_writes(bytes_of_line, scattered, last_line, last_write):
    """Alternately where both write all banks; both in every cycle where lines write a bank every second cycle."""
    dut = elaborated(SharedMemory, SCATTER_PARAMS, stores=True)
    strobes = [((1 << bytes_of_line) - 1) << n * bytes_of_line % 128 for n in range(20)]
    lines = [{"row": n % 8, "data": n, "strobe": strobe} for n, strobe in enumerate(strobes)]
    counts, items = Counter(), {"mover.writes": lines, "scatter": [scattered(number) for number in range(20)]}
    _, cycles = transact(dut, items, background=[counting(counts, stalls=dut.stall_stb)])
    assert (cycles["mover.writes"][-1], cycles["scatter"][-1]) == (last_line, last_write)
    assert counts["stalls"] == last_line - 19
