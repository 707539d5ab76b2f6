"""The translator, with its page table, against the sentences of docs/pe.md."""

import random

import pytest
from amaranth.hdl import Elaboratable, Module
from amaranth.lib import wiring

from support.streams import counting
from tilewright.hw.pe.address.translate import PageTable, Translator
from tilewright.hw.pe.layouts import AccessKind
from tilewright.hw.pe.params import LANES, PE_PRESETS
from tilewright.spec.pe import PAGE_ENTRY, PeError
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import STALL_MODES, receive, send, watch_stream

PARAMS = PE_PRESETS["unit"]
SIZE = PARAMS.smem.size_bytes
#: An access takes two cycles.
PACED = PARAMS.replace(smem=PARAMS.smem.replace(chunks_a_cycle=4))
SEED = 21
#: Fields of an access that pass through.
SAME = {"last": 1, "on": 8, "register": 5, "first_member": 2, "group": 1, "slot": 1, "octet": 2, "wide": 1, "ka": 2,
        "kb": 2}  # fmt: skip


class Harness(Elaboratable):
    """A translator and its page table."""

    def __init__(self, cores=1, params=PARAMS):
        self.translator, self.table = Translator(params, cores), PageTable(params)

    def elaborate(self, platform):
        m = Module()
        m.submodules.translator, m.submodules.table = self.translator, self.table
        wiring.connect(m, a=self.translator.lookups, b=self.table.lookups)
        m.d.comb += [self.translator.page.eq(self.table.page), self.translator.page_written.eq(self.table.written)]
        return m


def entry(address, valid=1, loaded=1, on_chip=1):
    values = {"address": address, "valid": valid, "loaded": loaded, "on_chip": on_chip}
    return sum(value << PAGE_ENTRY[name].lsb for name, value in values.items())


def random_table(rng):
    """A word for each entry; no instruction waits for any of them."""
    words = []
    for _ in range(PARAMS.pages):
        address = rng.choice([rng.randrange(SIZE), SIZE - rng.randrange(256), rng.getrandbits(32)])
        loaded = rng.random() < 0.9
        words.append(entry(address, loaded and rng.random() < 0.9, loaded, rng.random() < 0.9))
    return words


def access(kind, lanes, **others):
    """An access whose lanes are equal, except for the fields in ``lanes``."""
    lanes = [{"enable": 1, "entry": 0, "offset": 0, "keep": 255, "code": 0} | lane for lane in lanes]
    return {"kind": kind, "flush": 0, "lanes": lanes, "paged": 1, "swizzle": 0, "base": 0, "number": 0, "thread": 0,
            "fault_register": 0, "data": [0] * LANES} | dict.fromkeys(SAME, 0) | others  # fmt: skip


def random_accesses(rng, count):
    accesses = []
    for _ in range(count):
        near = rng.sample(range(PARAMS.pages), rng.choice([1, 1, 2, 8]))
        lanes = [
            {
                "enable": rng.random() < 0.9,
                "entry": rng.choice(near),
                "offset": rng.choice([rng.randrange(1024), rng.getrandbits(20)]),
                "keep": rng.getrandbits(8),
                "code": rng.choice([PeError.PRODUCT, PeError.ALIGNMENT]) if rng.random() < 0.05 else 0,
            }
            for _ in range(LANES)
        ]
        others = {
            "flush": rng.random() < 0.1,
            "paged": rng.random() < 0.8,
            "swizzle": rng.randrange(4),
            "base": rng.choice([rng.randrange(SIZE // 16), rng.getrandbits(28)]),
            "number": rng.getrandbits(32),
            "thread": rng.randrange(PARAMS.threads),
            "fault_register": rng.getrandbits(16),
            "data": [rng.getrandbits(32) for _ in range(LANES)],
        }
        same = {name: rng.getrandbits(width) for name, width in SAME.items()}
        accesses.append(access(rng.choice(list(AccessKind)), lanes, **others, **same))
    return accesses


def translate(item, lane, table):
    """Address and code of a lane."""
    if lane["code"]:
        return None, lane["code"]
    if not lane["enable"] or item["kind"] in (AccessKind.PICK, AccessKind.NOTHING):
        return None, PeError.NONE
    base = item["base"] << 4
    if item["paged"]:
        word = table[lane["entry"]]
        valid, on_chip = (word >> PAGE_ENTRY[name].lsb & 1 for name in ("valid", "on_chip"))
        if not valid or not on_chip:
            return None, PeError.OFF_CHIP if valid else PeError.UNMAPPED
        base = word & 0xFFFFFFF0
    address = (base + lane["offset"]) % (1 << 32)
    for bit in range(item["swizzle"]):
        address ^= (address >> 7 + bit & 1) << 4 + bit
    return (address, PeError.NONE) if address < SIZE else (None, PeError.MEMORY)


def check(came, item, table):
    for name in ("kind", *SAME):
        assert came.access[name] == item[name], name
    assert [came.access.data[lane] for lane in range(LANES)] == item["data"]
    for name in ("number", "thread", "fault_register"):
        assert came[name] == item[name], name
    for number, lane in enumerate(item["lanes"]):
        target = came.access.lanes[number]
        address, code = translate(item, lane, table)
        assert came.codes[number] == code
        assert (target.enable, target.keep) == (lane["enable"], lane["keep"])
        if address is not None:
            assert target.chunk << 4 | target.byte == address


def run(items, table, mode="none", later=(), stopped=(), params=PARAMS):
    """Translated ``items``, the cycles at both ends after the table is written, and counted strobes.

    ``later``: pairs of a cycle and an index and a word written then. ``stopped``: cycles in which the core is stopped.
    """
    dut = elaborated(Harness, 2 if stopped else 1, params)
    translator, counts = dut.translator, {}
    idle, stall = STALL_MODES[mode]["idle"], STALL_MODES[mode]["stall"]
    result = {}

    async def prepare(ctx):
        await send(ctx, dut.table.writes, [{"index": k, "word": word} for k, word in enumerate(table)])

    async def written(ctx):
        await ctx.tick().until(dut.table.writes.ready)
        await ctx.tick().repeat(len(table))

    async def source(ctx):
        await written(ctx)
        result["accepted"] = await send(ctx, translator.i, items, idle=idle, seed=SEED)

    async def sink(ctx):
        await written(ctx)
        result["came"], result["cycles"] = await receive(ctx, translator.o, len(items), stall=stall, seed=SEED)

    async def writer(ctx):
        await written(ctx)
        now = 0
        for cycle, index, word in later:
            await ctx.tick().repeat(cycle - now)
            await send(ctx, dut.table.writes, [{"index": index, "word": word}])
            now = cycle + 1

    async def stop(ctx):
        await written(ctx)
        for cycle in range(max(stopped, default=-1) + 2):
            ctx.set(translator.stopped, cycle in stopped)
            await ctx.tick()

    strobes = counting(counts, hit=translator.hit, miss=translator.miss)
    simulate(
        dut,
        prepare,
        source,
        sink,
        writer,
        *([stop] if stopped else []),
        background=[strobes, watch_stream(translator.o), watch_stream(translator.lookups)],
        deadline=20_000,
    )
    return result | counts


@pytest.mark.parametrize(
    ("mode", "params"), [*((mode, PARAMS) for mode in STALL_MODES), ("none", PACED), ("both", PACED)]
)
def test_addresses_and_codes(mode, params):
    rng = random.Random(SEED)
    table, items = random_table(rng), random_accesses(rng, 80)
    result = run(items, table, mode, params=params)
    codes = set()
    for came, item in zip(result["came"], items, strict=True):
        check(came, item, table)
        codes |= {came.codes[lane] for lane in range(LANES)}
    assert codes == {0, *range(PeError.PRODUCT, PeError.MEMORY + 1)}


def test_latency_two_and_an_access_a_cycle_if_not_paged():
    lanes = [{"entry": lane, "offset": 16 * lane} for lane in range(LANES)]
    items = [access(AccessKind.COLUMNS, lanes, paged=0, flush=k % 3 == 0) for k in range(40)]
    result = run(items, [0] * PARAMS.pages)
    assert result["accepted"] == list(range(40))
    assert result["cycles"] == list(range(2, 42))
    assert (result["hit"], result["miss"]) == (0, 0)
    assert run(items, [0] * PARAMS.pages, params=PACED)["cycles"] == list(range(2, 82, 2))


def test_an_access_a_cycle_if_all_pages_are_in_the_cache():
    rng = random.Random(SEED)
    table = [entry(1024 * (page % 8)) for page in range(PARAMS.pages)]
    first = access(AccessKind.LOAD, [{"entry": lane % 4} for lane in range(LANES)])
    items = [first] + [access(rng.choice([AccessKind.COLUMNS, AccessKind.STORE, AccessKind.PICK]),
                              [{"entry": rng.randrange(4)} for _ in range(LANES)]) for _ in range(40)]  # fmt: skip
    result = run(items, table)
    # Four pages, two cycles each, and from then on no cycle is lost.
    assert result["cycles"] == list(range(10, 51))
    assert result["accepted"][1:] == list(range(9, 49))
    assert result["miss"] == 4
    assert result["hit"] == sum(item["kind"] != AccessKind.PICK for item in items) - 1


def test_more_pages_than_the_cache_holds():
    table = [entry(64 * page) for page in range(PARAMS.pages)]
    items = [access(AccessKind.FILL, [{"entry": lane + 8 * (k % 2)} for lane in range(LANES)]) for k in range(6)]
    result = run(items, table)
    for came, item in zip(result["came"], items, strict=True):
        check(came, item, table)
    assert result["miss"] == 6 * LANES
    assert result["cycles"] == [18 + 17 * k for k in range(6)]


def test_flush_forgets_pages():
    table = [entry(64 * page) for page in range(PARAMS.pages)]
    items = [access(AccessKind.COLUMNS, [{"entry": 3}] * LANES, flush=flush) for flush in (0, 0, 1, 0)]
    result = run(items, table)
    assert (result["hit"], result["miss"]) == (2, 2)
    assert result["cycles"] == [4, 5, 8, 9]


def test_valid_pages_that_are_not_loaded_are_waited_for():
    table = [entry(64 * page) for page in range(PARAMS.pages)]
    later = table[:2] + [entry(0x200)] + table[3:]
    table[2] = entry(0x100, loaded=0)
    items = [access(AccessKind.LOAD, [{"entry": lane % 3} for lane in range(LANES)])] * 2
    result = run(items, table, later=[(50, 7, 0), (52, 2, later[2])])
    for came, item in zip(result["came"], items, strict=True):
        check(came, item, later)
    assert 52 < result["cycles"][0] < 58


def test_a_page_that_is_written_is_looked_up_again():
    table = [entry(64 * page) for page in range(PARAMS.pages)]
    items = [access(AccessKind.LOAD, [{"entry": 5}] * LANES)] * 60
    result = run(items, table, later=[(30, 5, entry(0x300))])
    addresses = [came.access.lanes[0].chunk << 4 for came in result["came"]]
    assert set(addresses) == {5 * 64, 0x300}
    assert addresses == sorted(addresses)
    assert addresses.count(5 * 64) <= 31
    assert result["miss"] == 2


def test_a_core_that_is_stopped_waits_for_no_page():
    """A page that is not loaded is off chip then, and nothing of that is kept: afterwards it is waited for again."""
    table = [entry(64 * page) for page in range(PARAMS.pages)]
    table[2] = entry(0x100, loaded=0)
    items = [access(AccessKind.LOAD, [{"entry": 2 * (lane % 2)} for lane in range(LANES)])] * 3
    result = run(items, table, later=[(90, 2, entry(0x200))], stopped=range(30, 36))
    codes = [[came.codes[lane] for lane in range(2)] for came in result["came"]]
    assert codes == [[0, PeError.OFF_CHIP], [0, PeError.OFF_CHIP], [0, 0]] or codes[1:] == [[0, 0]] * 2
    assert codes[0] == [0, PeError.OFF_CHIP] and 30 < result["cycles"][0] < 36
    assert result["cycles"][2] > 90 and result["came"][2].access.lanes[1].chunk << 4 == 0x200
