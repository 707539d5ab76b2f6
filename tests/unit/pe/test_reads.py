"""Reader: every access goes where it belongs; reads and stores wait for one another."""

import random

import pytest

from support.cases import cases
from support.streams import pulse, transact
from tilewright.hw.pe.layouts import AccessKind
from tilewright.hw.pe.line_cache import PlaceLayout
from tilewright.hw.pe.params import PeParams
from tilewright.hw.pe.reads import Reader, ReadReturn
from tilewright.hw.smem.params import SmemParams
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import STALL_MODES, send

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
def test_random_accesses(mode, params):
    rng = random.Random(SEED)
    sent = [access(rng, rng.choice(list(AccessKind))) for _ in range(250)]
    stores = [item for item in sent if item["kind"] == AccessKind.STORE]
    tagged = [item for item in sent if item["kind"] != AccessKind.STORE]
    reads = [item for item in sent if reads_of(item)]
    payloads, _ = transact(
        elaborated(Reader, params),
        send={"accesses": sent},
        receive={"reads": len(reads), "tags": len(tagged), "stores": len(stores)},
        mode=mode,
        inputs={"stores_idle": 1},
    )
    for payload, item in zip(payloads["reads"], reads, strict=True):
        assert payload.lanes == enabled(item)
        assert list(payload.chunks) == [lane["chunk"] for lane in item["lanes"]]
    for payload, item in zip(payloads["tags"], tagged, strict=True):
        check_tag(payload, item)
    for payload, item in zip(payloads["stores"], stores, strict=True):
        check_words(payload, item)


@pytest.mark.parametrize(("params", "latency"), [(PARAMS, 1), (PACED, 3)], ids=["eight", "four"])
def test_latency_and_rate_of_the_reader(params, latency):
    rng, count = random.Random(SEED), 30
    items = [access(rng, AccessKind.COLUMNS, lanes=[{"enable": 1}] * 8) for _ in range(count)]
    _, cycles = transact(
        elaborated(Reader, params),
        send={"accesses": items},
        receive={"reads": count, "tags": count},
        inputs={"stores_idle": 1},
    )
    starts = {"accesses": 0, "reads": 1, "tags": latency}
    assert cycles == {port: list(range(start, start + count)) for port, start in starts.items()}


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

    simulate(dut, drive)


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
            await pulse(ctx, dut.tags.ready)
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


KINDS = [kind for kind in AccessKind if kind != AccessKind.STORE]
#: What the line cache answers in every cycle, from the lower and from the upper positions; bytes that do not count. If
#: it answers for four lanes, the first four.
UNITS = [[0x1111 * (lane + 1), 0x1001 * (lane + 1)] for lane in range(8)]
_OUTSIDE = 0xAB00_0000


def random_tag(rng, params, kind=None):
    kind = rng.choice(KINDS) if kind is None else kind
    size = 4 if kind == AccessKind.LOAD else params.unit_bytes
    reads = kind in (AccessKind.COLUMNS, AccessKind.FILL, AccessKind.LOAD) and rng.random() < 0.9
    place = {name: 1 << field.width for name, field in PlaceLayout(params)}
    lanes = []
    for _ in range(8):
        enable, byte = int(reads and rng.random() < 0.8), rng.randrange(0, 16, size)
        lane = {"enable": enable, "byte": byte, "lower": int(byte < 8), "keep": rng.choice([0xFF, rng.getrandbits(8)])}
        lanes.append(lane)
    return {
        "reads": int(reads),
        "picks": int(kind == AccessKind.PICK),
        "kind": int(kind),
        "last": rng.getrandbits(1),
        "lanes": lanes,
        "on": rng.choice([0, 0xFF, rng.getrandbits(8)]),
        "register": rng.randrange(params.regs),
        "first_member": rng.randrange(4),
        "group": rng.randrange(params.groups),
        "slot": rng.randrange(2),
        "octet": rng.randrange(4),
        "wide": rng.randrange(2),
        "place": rng.randrange(16),
        "kb": rng.randrange(4),
        "places": [{name: rng.randrange(values) for name, values in place.items()} for _ in range(8)],
    }


def cut(lane, chunk, size):
    mask = sum(0xFF << 8 * byte for byte in range(size) if lane["enable"] and lane["keep"] >> byte & 1)
    return chunk >> 8 * lane["byte"] & mask


def expected(tags, answers, params):
    """Columns, words to registers, and rows for the line cache, as tuples; and the number of loads that end."""
    columns, loads, fills, ends = [], [], [], 0
    answers, unit_bytes, ways = iter(answers), params.unit_bytes, params.smem.chunks_a_cycle
    units_of = [UNITS[lane % ways] for lane in range(8)]
    for tag in tags:
        chunks = next(answers) if tag["reads"] else [0] * 8
        lanes = list(zip(tag["lanes"], chunks, strict=True))
        if tag["kind"] in (AccessKind.COLUMNS, AccessKind.PICK):
            picked = [halves[lane["byte"] >> 3] for halves, lane in zip(units_of, tag["lanes"], strict=True)]
            units = picked if tag["kind"] == AccessKind.PICK else [cut(*lane, unit_bytes) for lane in lanes]
            columns.append((tag["on"], tag["register"], tag["first_member"], tag["last"], units))
        elif tag["kind"] == AccessKind.FILL:
            enable = sum(lane["enable"] << n for n, lane in enumerate(tag["lanes"]))
            where = tag["slot"], tag["octet"], tag["wide"]
            fills.append((*where, enable, chunks if tag["reads"] else None))
        else:
            ends += tag["last"]
            if tag["kind"] == AccessKind.LOAD and tag["on"]:
                loads.append((tag["register"], tag["group"], tag["on"], [cut(*lane, 4) for lane in lanes]))
    return columns, loads, fills, ends


@cases("params", [PARAMS, PACED], [PARAMS.replace(factor_regs=1)], ids=["eight", "four", "narrow"])
@pytest.mark.parametrize("mode", STALL_MODES)
def test_random_tags(mode, params):
    rng = random.Random(SEED)
    dut, ways = elaborated(ReadReturn, params), params.smem.chunks_a_cycle
    tags = [random_tag(rng, params) for _ in range(120)]
    answers = [[rng.getrandbits(128) for _ in range(8)] for tag in tags if tag["reads"]]
    want_columns, want_loads, want_fills, want_ends = expected(tags, answers, params)
    fills, picks, ends = [], [], []

    async def line_cache(ctx):
        """The line cache is not always ready."""
        cycles, stall = random.Random(5), STALL_MODES[mode]["stall"]
        while True:
            ctx.set(dut.fill.ready, cycles.random() >= stall)
            ctx.set(dut.pickable, cycles.random() >= stall)
            await ctx.tick()

    async def watch(ctx):
        signals = (
            dut.fill.valid & dut.fill.ready,
            dut.fill.payload,
            dut.read_data.valid & dut.read_data.ready,
            dut.tags.valid & dut.tags.ready,
            dut.tags.payload,
            dut.pick,
        )
        loaded = 0
        async for _, _, valid, fill, was_read, landed, tag, pick, done, loads in ctx.tick().sample(
            *signals, dut.load_done, dut.loads.valid & dut.loads.ready
        ):
            if valid:
                where = fill.slot, fill.octet, fill.wide
                fills.append((*where, fill.enable, list(fill.rows) if was_read else None))
            if landed and tag.kind == AccessKind.PICK:
                places = [{"share": place.share, "octet": place.octet} for place in pick.places]
                picks.append((pick.slot, pick.kb, pick.wide, pick.place, list(pick.positions), places))
            loaded += loads
            if done:
                ends.append(loaded)

    payloads, _ = transact(
        dut,
        send={
            "tags": tags,
            "read_data": [answer[first : first + ways] for answer in answers for first in range(0, 8, ways)],
        },
        receive={"columns": len(want_columns), "loads": len(want_loads)},
        mode=mode,
        inputs={"units": [[unit | _OUTSIDE for unit in halves] for halves in UNITS[:ways]], "inside": [0b0111] * ways},
        background=[watch, line_cache],
        settle=10,
    )
    names = ("on", "register", "first_member", "last")
    columns = [(*(int(c[name]) for name in names), list(c.units)) for c in payloads["columns"]]
    assert columns == want_columns
    loads = [(int(w.register), int(w.group), int(w.lanes), list(w.data)) for w in payloads["loads"]]
    assert loads == want_loads
    assert fills == want_fills
    where = ("slot", "kb", "wide", "place")
    assert picks == [
        (*(tag[name] for name in where), [lane["byte"] >> 1 for lane in tag["lanes"][-ways:]], tag["places"])
        for tag in tags
        if tag["kind"] == AccessKind.PICK
    ]
    # Each load ends when as many words have been taken as precede its end.
    assert len(ends) == want_ends
    assert ends == words_before_ends(tags)


def words_before_ends(tags):
    words, ends = 0, []
    for tag in tags:
        words += tag["kind"] == AccessKind.LOAD and tag["on"] != 0
        if tag["kind"] in (AccessKind.LOAD, AccessKind.NOTHING) and tag["last"]:
            ends.append(words)
    return ends


def test_picks_pass_a_fill():
    """Chunks stay until the line cache has accepted them: picks proceed meanwhile, reads wait."""
    rng = random.Random(SEED)
    dut = elaborated(ReadReturn, PARAMS)
    kinds = [AccessKind.FILL, AccessKind.PICK, AccessKind.NOTHING, AccessKind.COLUMNS, AccessKind.PICK]
    reading = (AccessKind.FILL, AccessKind.COLUMNS)
    tags = [{**random_tag(rng, PARAMS, kind), "reads": int(kind in reading)} for kind in kinds]

    async def source(ctx):
        ctx.set(dut.pickable, 1)
        ctx.set(dut.columns.ready, 1)
        ctx.set(dut.read_data.valid, 1)
        assert await send(ctx, dut.tags, tags) == [0, 1, 2, 6, 7]

    async def line_cache(ctx):
        await ctx.tick().repeat(5)
        ctx.set(dut.fill.ready, 1)

    simulate(dut, source, line_cache)


@pytest.mark.parametrize("kind", [AccessKind.COLUMNS, AccessKind.PICK, AccessKind.LOAD])
def test_latency_and_rate_of_the_read_return(kind):
    rng, count = random.Random(SEED), 20
    reads, output = int(kind != AccessKind.PICK), "loads" if kind == AccessKind.LOAD else "columns"
    tags = [{**random_tag(rng, PARAMS, kind), "on": 1, "reads": reads} for _ in range(count)]
    _, cycles = transact(
        elaborated(ReadReturn, PARAMS),
        send={"tags": tags, "read_data": [[0] * 8] * (count * reads)},
        receive={output: count},
        inputs={"pickable": 1},
    )
    assert cycles["tags"] == list(range(count))
    assert cycles[output] == list(range(1, 1 + count))
