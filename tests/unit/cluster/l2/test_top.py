"""The cache as its port shows it: reads find what was last written, in any traffic; memory has all after a flush."""

import random
from functools import partial

import numpy as np
import pytest

from tilewright.hw.cluster.l2.params import Geometry
from tilewright.hw.cluster.l2.top import L2
from tilewright.spec.cluster import L2_REGISTERS
from tilewright.verify.pysim.axi import AxiHistory, AxiMemory, axi_channel, read_word, write_word
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import STALL_MODES, receive, send, sender, watch_stream

BYTES = 4  # of a bus word
LINE = 16
MEMORY = 4096
OFFSETS = {register.name: register.offset for register in L2_REGISTERS}
FLUSH, INVALIDATE, RANGE = 2, 4, 8
long = partial(pytest.param, marks=pytest.mark.long)


def cache(**sizes):
    geometry = {"addr_width": 16, "data_width": 8 * BYTES, "id_width": 3, "sets": 4, "ways": 2, "misses": 4}
    return elaborated(L2, Geometry(line_bytes=LINE, **geometry | sizes), 2)


def contents_of(seed=3):
    return np.random.default_rng(seed).integers(256, size=MEMORY, dtype=np.uint8)


def burst(rng, lines, ids, most=8):
    """A request for some words of one of ``lines``, and those behind."""
    beats = rng.randrange(1, most + 1)
    address = min(LINE * rng.choice(lines) + BYTES * rng.randrange(LINE // BYTES), MEMORY - BYTES * beats)
    return {"id": rng.choice(ids), "addr": address, "len": beats - 1, "size": 2, "burst": 1}


def words_of(rng, requests, *, solid=0.5):
    """Beats of writes, some of them whole."""
    beats = []
    for request in requests:
        whole = rng.random() < solid
        beats += [
            {"data": rng.getrandbits(32), "strb": 15 if whole else rng.randrange(16), "last": number == request["len"]}
            for number in range(request["len"] + 1)
        ]
    return beats


async def control(ctx, dut, bits):
    """Does what the bits of register ``control`` say, and waits until it is done."""
    await write_word(ctx, dut.axil, OFFSETS["control"], bits)
    while await counted(ctx, dut, "status"):
        pass


async def counted(ctx, dut, name):
    """What a register holds."""
    word, _ = await read_word(ctx, dut.axil, OFFSETS[name])
    return word


def rules(dut):
    return [
        *(watch_stream(axi_channel(dut.axi, name), name) for name in ("ar", "aw", "w")),
        *(watch_stream(axi_channel(dut.port, name), name) for name in ("r", "b")),
    ]


def run_random(dut, mode, seed, *, count=80, lines=range(24), failing=(), solid=0.5):
    """Random reads, writes and prefetches; then a flush. Returns contents of memory, history, and what memory saw."""
    rng, stalls, contents = random.Random(seed), STALL_MODES[mode], contents_of()
    before = contents.copy()
    memory = AxiMemory(dut.axi, contents, latency=rng.choice([1, 9, 30]), stall=stalls["stall"], seed=seed)
    memory.failing = set(failing)
    history, port = AxiHistory(dut.port, before), dut.port
    good = [line for line in lines if not any(line == address // LINE for address in failing)]
    reads = [burst(rng, lines, range(8)) for _ in range(count)]
    writes = [burst(rng, good, [0, 3, 5], most=4 if failing else 8) for _ in range(count)]
    writes = [request for request in writes if not any(
        request["addr"] // LINE <= address // LINE <= (request["addr"] + BYTES * request["len"]) // LINE
        for address in failing)]  # fmt: skip
    words, ends = words_of(rng, writes, solid=solid), []

    async def take(ctx):
        await receive(ctx, axi_channel(port, "r"), sum(r["len"] + 1 for r in reads), stall=stalls["stall"], seed=seed)
        ends.append("r")

    async def be_told(ctx):
        await receive(ctx, axi_channel(port, "b"), len(writes), stall=stalls["stall"], seed=seed + 3)
        ends.append("b")

    async def prefetch(ctx):
        wanted = [rng.choice(lines) for _ in range(count // 4)]
        await send(ctx, dut.prefetches[seed % 2], wanted, idle=0.8, seed=seed)

    async def flush(ctx):
        while len(ends) < 2:
            await ctx.tick()
        await control(ctx, dut, FLUSH)

    background = [memory.serve, memory.serve_writes, history.watch, *rules(dut)]
    simulate(
        dut,
        sender(axi_channel(port, "ar"), reads, idle=stalls["idle"], seed=seed),
        take,
        sender(axi_channel(port, "aw"), writes, idle=stalls["idle"], seed=seed + 1),
        sender(axi_channel(port, "w"), words, idle=stalls["idle"], seed=seed + 2),
        be_told,
        prefetch,
        flush,
        background=background,
        deadline=60_000,
    )
    history.check(failing)
    return contents, history, memory


@pytest.mark.parametrize("mode", STALL_MODES)
@pytest.mark.parametrize(("ways", "seed"), [long(1, 0), long(1, 1), (2, 0), long(2, 1), long(4, 0), long(4, 1)])
def test_random_traffic(ways, seed, mode):
    contents, history, _ = run_random(cache(ways=ways), mode, seed + list(STALL_MODES).index(mode))
    assert (contents == history.final()).all()


@pytest.mark.parametrize("seed", [0, long(1)])
def test_few_places_for_many_lines(seed):
    """Every line is wanted in the same two sets: nearly all miss, and many wait for what is written back."""
    contents, history, memory = run_random(cache(sets=2), "none", seed, lines=range(0, 64, 4), solid=0.9)
    assert (contents == history.final()).all()
    assert len(memory.writes) > 20


def test_errors_reach_who_asked():
    """Words of two lines fail in memory: reads of these fail, now and again, and nothing else does."""
    failing = {5 * LINE + 8, 9 * LINE, 9 * LINE + 12}
    for mode, seed in (("none", 1), ("both", 2)):
        contents, history, memory = run_random(cache(), mode, seed, lines=range(12), failing=failing)
        assert (contents == history.final()).all()
        asked = sum(address in (5 * LINE, 9 * LINE) for _, _, address, _ in memory.requests)
        assert asked > 4  # again and again: an error is not kept


def run_script(dut, script, *, latency=10, failing=(), contents=None):
    """Runs one testbench on a cache with memory; returns what memory saw."""
    memory = AxiMemory(dut.axi, contents_of() if contents is None else contents, latency=latency)
    memory.failing = set(failing)
    simulate(dut, script, background=[memory.serve, memory.serve_writes, *rules(dut)])
    return memory


async def read(ctx, dut, address, beats=1, ident=0):
    await send(ctx, axi_channel(dut.port, "ar"), [{"id": ident, "addr": address, "len": beats - 1}])
    return await receive(ctx, axi_channel(dut.port, "r"), beats)


async def write(ctx, dut, address, words, strobe=15):
    await send(ctx, axi_channel(dut.port, "aw"), [{"addr": address, "len": len(words) - 1}])
    beats = [{"data": word, "strb": strobe, "last": n == len(words) - 1} for n, word in enumerate(words)]
    await send(ctx, axi_channel(dut.port, "w"), beats)
    (answer,), _ = await receive(ctx, axi_channel(dut.port, "b"), 1)
    return answer.resp.value


async def ready(ctx, dut):
    """Waits until a reset has dropped everything."""
    while await counted(ctx, dut, "status"):
        pass


def test_a_write_into_a_line_that_failed_is_lost_and_says_so():
    dut = cache()

    async def script(ctx):
        assert await write(ctx, dut, 4 * LINE, [1], strobe=3) == 2  # the fill of the line fails
        assert await write(ctx, dut, 4 * LINE, [1, 2, 3, 4]) == 0  # which this one does without
        assert (await read(ctx, dut, 4 * LINE, 4))[0][2].data == 3
        await control(ctx, dut, FLUSH)
        assert await counted(ctx, dut, "write_errors") == 1

    run_script(dut, script, failing=[4 * LINE])


def test_whole_lines_are_written_without_a_read():
    dut, contents = cache(), contents_of()

    async def script(ctx):
        for line in range(6):
            assert await write(ctx, dut, line * LINE, [line] * 8) == 0
        await control(ctx, dut, FLUSH)

    memory = run_script(dut, script, contents=contents)
    assert memory.requests == []
    assert (contents[: 6 * LINE].view("<u4").reshape(6, 4) == np.arange(6)[:, None]).all()


def test_flush_and_invalidate():
    """A flush keeps what was written, an invalidation does not; behind both memory is read anew."""
    dut, contents = cache(), contents_of()
    old = int(contents[64:68].view("<u4")[0])

    async def script(ctx):
        await write(ctx, dut, 64, [7])
        await control(ctx, dut, INVALIDATE)
        assert (await read(ctx, dut, 64))[0][0].data == old
        await write(ctx, dut, 64, [9], strobe=1)
        await control(ctx, dut, FLUSH | INVALIDATE)
        assert int(contents[64:68].view("<u4")[0]) == old & ~0xFF | 9
        contents[64] = 11
        assert (await read(ctx, dut, 64))[0][0].data == old & ~0xFF | 11

    memory = run_script(dut, script, contents=contents)
    assert len(memory.writes) == 1


def test_a_range_of_lines():
    """Those with a byte of it, and no others, are written back and dropped, or dropped alone."""
    dut, contents = cache(), contents_of()
    before = contents.copy()

    async def ranged(ctx, bits, first, last):
        for name, address in (("first", first), ("last", last)):
            await write_word(ctx, dut.axil, OFFSETS[f"range_{name}_lo"], address)
        await control(ctx, dut, bits | RANGE)

    async def script(ctx):
        for line in range(6):
            await write(ctx, dut, LINE * line, [line])
        await ranged(ctx, FLUSH, 2 * LINE - 1, 3 * LINE)
        assert [int(contents[LINE * line :][:4].view("<u4")[0]) for line in (1, 2, 3)] == [1, 2, 3]
        changed = [line for line in range(6) if (contents[LINE * line :][:4] != before[LINE * line :][:4]).any()]
        assert changed == [1, 2, 3]
        contents[2 * LINE] = 77  # is read anew
        assert (await read(ctx, dut, 2 * LINE))[0][0].data == 77
        assert (await read(ctx, dut, 4 * LINE))[0][0].data == 4
        await ranged(ctx, INVALIDATE, 4 * LINE, 4 * LINE)
        assert (await read(ctx, dut, 4 * LINE))[0][0].data == int(before[4 * LINE :][:4].view("<u4")[0])
        assert (await read(ctx, dut, 5 * LINE))[0][0].data == 5
        await control(ctx, dut, FLUSH)
        assert [int(contents[LINE * line :][:4].view("<u4")[0]) for line in (0, 5)] == [0, 5]
        assert (contents[4 * LINE :][:4] == before[4 * LINE :][:4]).all()

    run_script(dut, script, contents=contents)


def test_counters():
    dut, names = cache(), ("hits", "misses", "evictions", "prefetches", "write_errors")

    async def script(ctx):
        await read(ctx, dut, 0, 8)  # two lines
        await read(ctx, dut, 16)
        await send(ctx, dut.prefetches[1], [0, 2])
        await write(ctx, dut, 32, [1])
        await read(ctx, dut, 32)
        await control(ctx, dut, FLUSH)
        assert [await counted(ctx, dut, name) for name in names] == [3, 2, 1, 1, 0]
        await control(ctx, dut, 1)
        assert [await counted(ctx, dut, name) for name in names] == [0] * 5

    memory = run_script(dut, script)
    assert sorted(address for _, _, address, _ in memory.requests) == [0, 16, 32]


def test_latency():
    """From AR to the first beat: 7 cycles if the line is here, otherwise 8 and memory's own."""
    dut, cycles = cache(), []

    async def script(ctx):
        await ready(ctx, dut)
        for _ in range(2):
            cycles.append((await read(ctx, dut, 128, 4))[1])  # counted from the cycle after AR

    run_script(dut, script, latency=10)
    assert cycles == [[17, 18, 19, 20], [6, 7, 8, 9]]


def stream_of_reads(dut, requests, *, latency, before):
    """Cycles of all beats of reads that are asked for at once, when the lines of ``before`` bytes are here."""
    cycles = []

    async def script(ctx):
        await ready(ctx, dut)
        for start in range(0, before, 64):
            await read(ctx, dut, start, 16)
        cycles.append("begin")

    async def ask(ctx):
        while not cycles:
            await ctx.tick()
        await send(ctx, axi_channel(dut.port, "ar"), requests)

    async def take(ctx):
        while not cycles:
            await ctx.tick()
        beats = sum(request.get("len", 0) + 1 for request in requests)
        cycles[:] = list(zip(*await receive(ctx, axi_channel(dut.port, "r"), beats), strict=True))

    memory = AxiMemory(dut.axi, contents_of(), latency=latency)
    simulate(dut, script, ask, take, background=[memory.serve])
    return cycles


def test_hits_at_one_word_a_cycle():
    requests = [{"addr": 64 * (n % 4), "len": 15, "id": n % 8} for n in range(12)]
    cycles = [cycle for _, cycle in stream_of_reads(cache(sets=16), requests, latency=10, before=256)]
    assert cycles[-1] - cycles[0] == 191


def test_misses_at_one_word_a_cycle():
    """Memory is asked for as many lines as its latency needs; every fourth one throws out another."""
    requests = [{"addr": 64 * n, "len": 15, "id": n % 8} for n in range(12)]
    cycles = [cycle for _, cycle in stream_of_reads(cache(sets=16, misses=16), requests, latency=40, before=0)]
    assert cycles[-1] - cycles[0] == 191


def test_hits_overtake_misses_of_other_ids():
    """ID 1 hits what is here although ID 0 waits for memory; ID 0 itself gets its own in order."""
    requests = [{"addr": 1024, "id": 0}, {"addr": 0, "id": 1}, {"addr": 4, "id": 0}, {"addr": 8, "id": 1}]
    beats = stream_of_reads(cache(), requests, latency=60, before=64)
    assert [beat.id for beat, _ in beats] == [1, 1, 0, 0]
    assert beats[1][1] < 20 < 60 < beats[2][1]
