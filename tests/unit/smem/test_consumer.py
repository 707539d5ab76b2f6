"""Consumer port: every lane gets its chunk, and a request takes as many cycles as its worst bank has chunks."""

import random
from collections import defaultdict

import pytest
from amaranth.hdl import Elaboratable, Module, Signal

from tilewright.hw.smem.banks import Banks
from tilewright.hw.smem.consumer import ConsumerPort
from tilewright.hw.smem.params import SmemParams
from tilewright.sim.pysim.simulate import elaborated, simulate
from tilewright.sim.pysim.streams import STALL_MODES, receive, send, watch_stream

SEED = 8
PARAMS = SmemParams(4096)
HALF = SmemParams(4096, chunks_a_cycle=4)
CHUNKS = PARAMS.size_bytes // 16


class ConsumerOnBanks(Elaboratable):
    """A consumer port that reads banks, except in cycles in which ``busy`` says that somebody else does."""

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
    """Cycles at the banks, for each part: most different chunks that any bank has to give, at least one."""
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
            # Few rows, so that lanes often want the same chunk, also around another one of the same bank.
            yield {"lanes": rng.getrandbits(8), "chunks": [rng.randrange(24) for _ in range(8)]}


def run(kind, *, count, mode="none", busy=0.0, params=PARAMS):
    """Checks every answer; returns the cycles of requests and answers, and the number of conflict strobes."""
    dut = elaborated(ConsumerOnBanks, params)
    sent = list(requests(kind, count))
    cycles, strobes = {}, []

    async def source(ctx):
        await fill(ctx, dut.banks)
        cycles["in"] = await send(ctx, dut.consumer.reads, sent, idle=STALL_MODES[mode]["idle"], seed=SEED)

    async def sink(ctx):
        parts = 8 // params.chunks_a_cycle
        answers, times = await receive(
            ctx, dut.consumer.read_data, count * parts, stall=STALL_MODES[mode]["stall"], seed=SEED
        )
        chunks = [chunk for part in answers for chunk in part]
        answers = [chunks[n : n + 8] for n in range(0, len(chunks), 8)]
        cycles["out"] = times[parts - 1 :: parts]
        for request, answer in zip(sent, answers, strict=True):
            for lane, chunk in enumerate(request["chunks"]):
                if request["lanes"] >> lane & 1:
                    assert answer[lane] == contents(chunk), f"lane {lane} of {request}"

    async def others(ctx):
        rng, read = random.Random(SEED), None
        sampled = (dut.consumer.conflict_stb, dut.busy, dut.consumer.other_bank, dut.consumer.other_chunk)
        async for _, _, strobe, was_busy, bank, chunk in ctx.tick().sample(*sampled):
            strobes.append(strobe)
            assert read is None or chunk == contents(read)  # of row 0
            read = bank if was_busy else None
            ctx.set(dut.busy, rng.random() < busy)
            ctx.set(dut.consumer.other_bank, rng.randrange(8))

    watched = [watch_stream(dut.consumer.read_data, "read_data"), watch_stream(dut.consumer.fetches, "fetches")]
    simulate(dut, source, sink, background=[others, *watched], deadline=50 * count + 100)
    return cycles["in"], cycles["out"], sum(strobes), sent


@pytest.mark.parametrize("busy", [0.0, 0.4])
@pytest.mark.parametrize("mode", STALL_MODES)
@pytest.mark.parametrize("params", [PARAMS, HALF], ids=["eight", "four"])
def test_random(params, mode, busy):
    _, _, conflicts, sent = run("random", count=150, mode=mode, busy=busy, params=params)
    assert conflicts == sum(sum(bank_cycles(request, params.chunks_a_cycle)) for request in sent) - len(sent) * (
        8 // params.chunks_a_cycle
    )


def test_four_a_cycle():
    cycles_in, cycles_out, conflicts, _ = run("lines", count=50, params=HALF)
    assert cycles_in == [0, *range(2, 100, 2)]
    assert cycles_out == list(range(3, 103, 2))
    assert conflicts == 0


def test_full_rate_and_latency():
    cycles_in, cycles_out, conflicts, _ = run("lines", count=50)
    assert cycles_in == list(range(50))
    assert cycles_out == list(range(2, 52))
    assert conflicts == 0


def test_a_column_takes_eight_cycles():
    cycles_in, cycles_out, conflicts, _ = run("columns", count=20)
    assert cycles_in == [0, *range(8, 8 * 20, 8)]
    assert cycles_out == list(range(9, 9 + 8 * 20, 8))
    assert conflicts == 7 * 20


@pytest.mark.parametrize(
    ("chunks", "lanes", "cycles"),
    [
        ([5] * 8, 0xFF, 1),
        ([0, 8, 0, 8, 0, 8, 0, 8], 0xFF, 2),
        ([0, 8, 16, 0, 8, 16, 0, 8], 0xFF, 3),
        ([0, 8, 16, 24, 32, 40, 48, 56], 0x0F, 4),
        ([0, 1, 10, 3, 4, 5, 6, 7], 0xFF, 1),
        ([0, 8, 16, 24, 32, 40, 48, 56], 0x00, 1),
    ],
    ids=["broadcast", "two by turns", "three by turns", "four lanes", "distinct banks", "none"],
)
def test_cycles_of_a_request(chunks, lanes, cycles):
    dut = elaborated(ConsumerOnBanks)
    taken = []

    async def source(ctx):
        taken.extend(await send(ctx, dut.consumer.reads, [{"lanes": lanes, "chunks": chunks}] * 4))

    async def sink(ctx):
        await receive(ctx, dut.consumer.read_data, 4)

    simulate(dut, source, sink)
    assert taken == [0, *range(cycles, 4 * cycles, cycles)]
