"""Items of jobs: whole steps where they fit, words within groups; and words of STORE in the order of their items."""

import random

import pytest

from support.pe_operands import lane_registers
from support.streams import transact
from tilewright.hw.pe.address.items import WORDS_IN_FLIGHT, Items, StoreWords
from tilewright.hw.pe.layouts import LANE_READ_LATENCY, JobKind
from tilewright.hw.pe.params import LANES, PE_PRESETS
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import STALL_MODES, receive, send, watch_stream

SEED = 20261121
BUILD_CYCLES = 5


def items_of(params, job):
    """Items as ``ColumnsLayout`` says; words innermost within groups."""
    ka, kb = job["ka"] + 1, job["kb"] + 1
    items, first = [], 0
    if job["kind"] == JobKind.MULTIPLY:
        while first < params.threads:
            fit = LANES // kb
            count = fit // ka * ka if fit >= ka else min(fit, ka - first % ka)
            items.append((first, count, job["register"] + first // ka, first % ka, job["imm"]))
            first += count
    else:
        distance = 4 >> job["segment"]["element_log2"]
        for first in range(0, params.threads, LANES):
            for word in range(job["count"]):
                items.append((first, LANES, job["register"] + word, 0, (job["imm"] + word * distance) % (1 << 32)))
    wanted = []
    for position, (thread, count, register, member, imm) in enumerate(items):
        present = (1 << min(count, params.threads - thread)) - 1
        last, flush = int(position == len(items) - 1), int(job["flush"] and position == 0)
        wanted.append((job["number"], thread, present, register, member, imm, last, flush))
    return wanted


def random_job(rng, params, number):
    kind = rng.choice([JobKind.MULTIPLY, JobKind.MULTIPLY, JobKind.LOAD, JobKind.STORE])
    job = {"kind": kind, "number": number, "segment": {"element_log2": rng.randrange(3)}, "imm": rng.getrandbits(32)}
    job |= {"register": rng.choice([rng.randrange(params.regs), 65535]), "count": rng.randint(1, 4)}
    job |= {name: rng.randrange(4) for name in ("ka", "kb")}
    return job | {name: rng.randrange(2) for name in ("transpose", "rebuild", "flush")}


@pytest.mark.parametrize("mode", STALL_MODES)
@pytest.mark.parametrize("threads", [4, 11, 32])
def test_items(mode, threads):
    params = PE_PRESETS["unit"].replace(threads=threads)
    rng = random.Random(f"{SEED} {mode} {threads}")
    jobs = [random_job(rng, params, number) for number in range(40)]
    if mode == "none":
        # No gap between the jobs.
        jobs = [job | {"rebuild": int(number == 0)} for number, job in enumerate(jobs)]
    wanted = [item for job in jobs for item in items_of(params, job)]
    builds = []

    async def build(ctx):
        """Offsets take a while to be read, and how they are read is as the job says."""
        remaining = 0
        async for _, _, strobe, job in ctx.tick().sample(dut.build, dut.o.payload.job):
            remaining = max(remaining - 1, 0)
            if strobe:
                builds.append((job.number, job.transpose))
                remaining = BUILD_CYCLES
            ctx.set(dut.building, remaining > 0)

    dut = elaborated(Items, params)
    payloads, cycles = transact(dut, {"jobs": jobs}, {"o": len(wanted)}, mode, background=[build], settle=1)
    names, items = ("thread", "present", "register", "first_member", "imm", "last"), payloads["o"]
    assert [(item.job.number, *(item[name] for name in names), item.job.flush) for item in items] == wanted
    for item in items:
        if item.job.kind != JobKind.MULTIPLY:
            assert (item.job.ka, item.job.kb, item.job.transpose) == (0, 0, 0)
    if mode == "none":
        assert cycles["o"][-1] - cycles["o"][0] == len(wanted) - 1
    by_rows = [int(job["kind"] == JobKind.MULTIPLY and job["transpose"]) for job in jobs]
    assert builds == [(job["number"], by_rows[job["number"]]) for job in jobs if job["rebuild"]]


PARAMS = PE_PRESETS["unit"].replace(threads=16)
#: An access takes two cycles.
PACED = PARAMS.replace(smem=PARAMS.smem.replace(chunks_a_cycle=4))


@pytest.mark.parametrize("params", [PARAMS, PACED], ids=["eight", "four"])
@pytest.mark.parametrize("mode", STALL_MODES)
def test_words(mode, params):
    dut = elaborated(StoreWords, params)
    rng = random.Random(f"{SEED} {mode}")
    stalls = STALL_MODES[mode]
    # No more at once than may be under way: the words are taken after the last item.
    kinds = [JobKind.STORE] * WORDS_IN_FLIGHT + [JobKind.LOAD, JobKind.MULTIPLY] * 8
    rng.shuffle(kinds)
    items = [
        {"job": {"kind": kind}, "register": rng.randrange(PARAMS.regs), "thread": LANES * rng.randrange(2)}
        for kind in kinds
    ]
    stores = [(item["register"], item["thread"] // LANES) for item in items if item["job"]["kind"] == JobKind.STORE]
    contents = {read: [rng.getrandbits(32) for _ in range(LANES)] for read in stores}

    def words(register, group):
        return contents[register, group]

    async def check_reading(ctx):
        requests, reads = dut.lane_reads.requests, [0] * LANE_READ_LATENCY
        sampled = requests.valid & requests.ready, requests.valid, dut.reading
        async for _, _, read, waiting, reading in ctx.tick().sample(*sampled):
            assert reading == (any(reads) or (params.paced and waiting))
            reads = [*reads[1:], read]

    async def source(ctx):
        await send(ctx, dut.i, items, idle=stalls["idle"], seed=SEED)

    async def sink(ctx):
        # The next block stays ready until it gets an item.
        for item in items:
            while rng.random() < stalls["stall"]:
                await ctx.tick()
            (got,), _ = await receive(ctx, dut.o, 1)
            assert (got.job.kind, got.register) == (item["job"]["kind"], item["register"])
        got, cycles = await receive(ctx, dut.words, len(stores), stall=stalls["stall"], seed=SEED)
        assert [list(words) for words in got] == [contents[read] for read in stores]
        if not stalls["stall"]:
            assert cycles[-1] <= len(stores) + LANE_READ_LATENCY

    answer = lane_registers(dut.lane_reads, words, rng, busy=stalls["stall"])
    streams = (dut.words, dut.lane_reads.requests)
    simulate(dut, source, sink, background=[answer, check_reading, *map(watch_stream, streams)])
