"""Reader: every access goes where it belongs; reads and stores wait for one another."""

import random

import pytest

from tilewright.hw.pe.layouts import AccessKind
from tilewright.hw.pe.memory.reader import Reader
from tilewright.hw.pe.params import PeParams
from tilewright.hw.smem.params import SmemParams
from tilewright.sim.pysim.simulate import elaborated, simulate
from tilewright.sim.pysim.streams import STALL_MODES, receive, send, watch_stream

SEED = 23
PARAMS = PeParams(smem=SmemParams(1024))
PACED = PARAMS.replace(smem=SmemParams(1024, chunks_a_cycle=4))
READ = (AccessKind.COLUMNS, AccessKind.FILL, AccessKind.LOAD)
SAME = ("kind", "last", "on", "register", "first_member", "group", "slot", "octet", "wide", "place", "kb")


def access(rng, kind, **fields):
    lanes = [
        {
            "enable": rng.getrandbits(1),
            "chunk": rng.randrange(64),
            "byte": rng.randrange(16),
            "keep": rng.randrange(256),
        }
        for _ in range(8)
    ]
    if kind == AccessKind.NOTHING or rng.random() < 0.1:
        lanes = [{**lane, "enable": 0} for lane in lanes]
    return {
        "kind": int(kind),
        "last": rng.getrandbits(1),
        "lanes": lanes,
        "on": rng.getrandbits(8),
        "register": rng.randrange(PARAMS.regs),
        "first_member": rng.randrange(4),
        "group": rng.randrange(PARAMS.groups),
        "slot": rng.randrange(2),
        "octet": rng.randrange(4),
        "wide": rng.randrange(2),
        "place": rng.randrange(16),
        "kb": rng.randrange(4),
        "data": [rng.getrandbits(32) for _ in range(8)],
        **fields,
    }


def enabled(item):
    return sum(lane["enable"] << n for n, lane in enumerate(item["lanes"]))


def reads_of(item):
    return item["kind"] in READ and enabled(item) != 0


def check_tag(tag, item):
    assert {name: int(tag[name]) for name in SAME} == {name: int(item[name]) for name in SAME}
    assert (tag.reads, tag.picks) == (reads_of(item), item["kind"] == AccessKind.PICK)
    assert tag.complement == 7 ^ (item["octet"] | item["wide"] << 2)
    first, kb, size = item["place"] >> item["wide"], item["kb"] + 1, item["wide"] + 1
    for number in range(8 // kb * kb):  # in the line cache
        column, unit = divmod(number, kb)
        octet, share = divmod(unit, size)
        if size == 1:
            share = (item["place"] + column) % 16 >> 3
        place = tag.places[(first + column + (0, 4, 2, 6)[unit]) % 8]
        assert (place.share, place.octet) == (share, octet)
    for number, (got, lane) in enumerate(zip(tag.lanes, item["lanes"], strict=True)):
        position = (first + number // kb + (0, 4, 2, 6)[number % kb]) % 8  # in the line cache
        byte = 2 * position if tag.picks else lane["byte"]
        assert (got.enable, got.byte, got.lower, got.keep) == (lane["enable"], byte, byte < 8, lane["keep"])


def check_words(words, item):
    assert words.last == item["last"]
    for got, lane, value in zip(words.lanes, item["lanes"], item["data"], strict=True):
        strobe = lane["keep"] & 0xF if lane["enable"] else 0
        assert (got.chunk, got.word, got.data, got.strobe) == (lane["chunk"], lane["byte"] >> 2, value, strobe)


@pytest.mark.parametrize("params", [PARAMS, PACED], ids=["eight", "four"])
@pytest.mark.parametrize("mode", STALL_MODES)
def test_random(mode, params):
    rng = random.Random(SEED)
    dut = elaborated(Reader, params)
    sent = [access(rng, rng.choice(list(AccessKind))) for _ in range(250)]
    stores = [item for item in sent if item["kind"] == AccessKind.STORE]
    tagged = [item for item in sent if item["kind"] != AccessKind.STORE]
    read = [item for item in sent if reads_of(item)]
    stall = STALL_MODES[mode]["stall"]

    async def source(ctx):
        ctx.set(dut.stores_idle, 1)
        await send(ctx, dut.accesses, sent, idle=STALL_MODES[mode]["idle"], seed=SEED)

    async def reads(ctx):
        payloads, _ = await receive(ctx, dut.reads, len(read), stall=stall, seed=1)
        for payload, item in zip(payloads, read, strict=True):
            assert payload.lanes == enabled(item)
            assert list(payload.chunks) == [lane["chunk"] for lane in item["lanes"]]

    async def tags(ctx):
        payloads, _ = await receive(ctx, dut.tags, len(tagged), stall=stall, seed=2)
        for payload, item in zip(payloads, tagged, strict=True):
            check_tag(payload, item)

    async def words(ctx):
        payloads, _ = await receive(ctx, dut.stores, len(stores), stall=stall, seed=3)
        for payload, item in zip(payloads, stores, strict=True):
            check_words(payload, item)

    watched = [watch_stream(stream) for stream in (dut.reads, dut.tags, dut.stores)]
    simulate(dut, source, reads, tags, words, background=watched)


@pytest.mark.parametrize(("params", "latency"), [(PARAMS, 1), (PACED, 3)], ids=["eight", "four"])
def test_latency_and_rate(params, latency):
    rng = random.Random(SEED)
    dut = elaborated(Reader, params)
    items = [access(rng, AccessKind.COLUMNS, lanes=[{"enable": 1}] * 8) for _ in range(30)]

    async def source(ctx):
        ctx.set(dut.stores_idle, 1)
        assert await send(ctx, dut.accesses, items) == list(range(30))

    async def reads(ctx):
        _, cycles = await receive(ctx, dut.reads, 30)
        assert cycles == list(range(1, 31))

    async def tags(ctx):
        _, cycles = await receive(ctx, dut.tags, 30)
        assert cycles == list(range(latency, latency + 30))

    simulate(dut, source, reads, tags)


@pytest.mark.parametrize("kind", [kind for kind in AccessKind if kind != AccessKind.STORE])
def test_only_reads_wait_for_stores(kind):
    rng = random.Random(SEED)
    dut = elaborated(Reader, PARAMS)
    item = access(rng, kind, lanes=[{"enable": kind in READ or kind == AccessKind.PICK}] * 8)

    async def drive(ctx):
        ctx.set(dut.reads.ready, 1)
        await ctx.tick()
        ctx.set(dut.accesses.payload, item)
        assert ctx.get(dut.accesses.ready) == (kind not in READ)
        ctx.set(dut.stores_idle, 1)
        await ctx.tick()
        assert ctx.get(dut.accesses.ready)
        ctx.set(dut.accesses.valid, 1)
        await ctx.tick()
        ctx.set(dut.accesses.valid, 0)


def test_a_read_waits_from_the_cycle_behind_a_store_on():
    rng = random.Random(SEED)
    dut = elaborated(Reader, PARAMS)

    async def drive(ctx):
        ctx.set(dut.stores_idle, 1)
        ctx.set(dut.stores.ready, 1)
        await send(ctx, dut.accesses, [access(rng, AccessKind.STORE)])
        ctx.set(dut.stores_idle, 0)
        ctx.set(dut.accesses.payload, access(rng, AccessKind.LOAD, lanes=[{"enable": 1}] * 8))
        for idle in (0, 0, 1):
            assert not ctx.get(dut.accesses.ready)
            ctx.set(dut.stores_idle, idle)
            await ctx.tick()
        assert ctx.get(dut.accesses.ready)

    simulate(dut, drive)


@pytest.mark.parametrize("params", [PARAMS, PACED], ids=["eight", "four"])
def test_a_store_waits_until_all_tags_are_taken(params):
    rng = random.Random(SEED)
    dut = elaborated(Reader, params)

    async def drive(ctx):
        ctx.set(dut.stores_idle, 1)
        ctx.set(dut.stores.ready, 1)
        await send(ctx, dut.accesses, [access(rng, AccessKind.LOAD, lanes=[{"enable": 1}] * 8)] * 2)
        ctx.set(dut.accesses.payload, access(rng, AccessKind.STORE))
        ctx.set(dut.accesses.valid, 1)
        for _ in range(2):
            await ctx.tick().repeat(3)
            assert not ctx.get(dut.accesses.ready)
            assert not ctx.get(dut.stores.valid)
            ctx.set(dut.tags.ready, 1)
            await ctx.tick()
            ctx.set(dut.tags.ready, 0)
        assert ctx.get(dut.idle)
        assert ctx.get(dut.accesses.ready)
        assert ctx.get(dut.stores.valid)

    simulate(dut, drive)


def test_rows_that_are_filled_are_counted():
    rng = random.Random(SEED)
    dut = elaborated(Reader, PARAMS)
    items = [access(rng, rng.choice([AccessKind.FILL, AccessKind.COLUMNS])) for _ in range(60)]
    counted = []

    async def drive(ctx):
        ctx.set(dut.stores_idle, 1)
        ctx.set(dut.reads.ready, 1)
        ctx.set(dut.tags.ready, 1)
        await send(ctx, dut.accesses, items)
        await ctx.tick()

    async def count(ctx):
        async for _, _, rows in ctx.tick().sample(dut.line_fill):
            counted.append(rows)

    simulate(dut, drive, background=[count])
    assert counted[1:] == [enabled(item).bit_count() * (item["kind"] == AccessKind.FILL) for item in items]
