"""Words of STORE come in the order of their items, and other items are not held up."""

import random

import pytest

from tilewright.hw.pe.address.store_words import WORDS_UNDER_WAY, StoreWords
from tilewright.hw.pe.layouts import LANE_READ_LATENCY, JobKind
from tilewright.hw.pe.params import LANES, PE_PRESETS
from tilewright.sim.pysim.lane_reads import lane_registers
from tilewright.sim.pysim.simulate import elaborated, simulate
from tilewright.sim.pysim.streams import STALL_MODES, receive, send, watch_stream

SEED = 20261121
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
    kinds = [JobKind.STORE] * WORDS_UNDER_WAY + [JobKind.LOAD, JobKind.MULTIPLY] * 8
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
        # The block behind stays ready until it is given an item.
        for item in items:
            while rng.random() < stalls["stall"]:
                await ctx.tick()
            (got,), _ = await receive(ctx, dut.o, 1)
            assert (got.job.kind, got.register) == (item["job"]["kind"], item["register"])
        got, taken = await receive(ctx, dut.words, len(stores), stall=stalls["stall"], seed=SEED)
        assert [list(words) for words in got] == [contents[read] for read in stores]
        if not stalls["stall"]:
            assert taken[-1] <= len(stores) + LANE_READ_LATENCY

    print(f"seed {SEED}")
    answer = lane_registers(dut.lane_reads, words, rng, busy=stalls["stall"])
    streams = (dut.words, dut.lane_reads.requests)
    simulate(dut, source, sink, background=[answer, check_reading, *map(watch_stream, streams)])
