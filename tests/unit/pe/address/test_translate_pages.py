"""The page table and the translation cache, against a dictionary and a list."""

import random

import pytest
from amaranth.hdl import ResetInserter, Signal

from support.streams import pulse
from tilewright.hw.pe.address.translate import CACHE_ENTRIES, PageTable, TranslationCache
from tilewright.hw.pe.params import LANES, PE_PRESETS
from tilewright.spec.pe import MAX_PAGE_LOG2
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import STALL_MODES, send

PARAMS = PE_PRESETS["unit"]
SEED = 8


def begins(chunk):
    """Where a page lies in memory, and how often memory lies past its end from there on; or that no offset reaches."""
    size, reach = 1 << PARAMS.chunk_width, 1 << MAX_PAGE_LOG2 - 4
    turns = (-(chunk // size)) % ((1 << 28) // size)
    return chunk % size, turns if turns <= reach // size else 4 * reach // size - 1


@pytest.mark.parametrize("mode", STALL_MODES)
def test_lookups_find_what_was_written(mode):
    dut = elaborated(PageTable, PARAMS)
    rng = random.Random(SEED)
    table = dict.fromkeys(range(PARAMS.pages), 0)
    writes = [
        {"index": rng.randrange(PARAMS.pages), "word": rng.getrandbits(64) | rng.choice([0, 0xFFF << 20])}
        for _ in range(300)
    ]

    async def writer(ctx):
        await send(ctx, dut.writes, writes, idle=0.6 + STALL_MODES[mode]["idle"] / 2, seed=SEED)

    async def reader(ctx):
        # No look-up goes while a write is in its register, so that the order is clear.
        pause = random.Random(SEED + 1)
        lookups, waits = 0, 0
        number, expected, came = None, None, None
        while lookups < 600:
            if number is None and pause.random() >= STALL_MODES[mode]["stall"]:
                number = pause.randrange(PARAMS.pages)
            ctx.set(dut.lookups.valid, number is not None)
            ctx.set(dut.lookups.payload, number or 0)
            _, _, ready, written, accepted, word, index = await ctx.tick().sample(
                dut.lookups.ready,
                dut.written,
                dut.writes.valid & dut.writes.ready,
                dut.writes.payload.word,
                dut.writes.payload.index,
            )
            assert not (ready and written)
            assert written == (came is not None)  # in the cycle after it was taken
            if came:
                table[came[0]] = came[1]
            came = (index, word) if accepted else None
            waits += bool(number is not None and not ready)
            if number is not None and ready:
                expected = table[number]
                lookups += 1
                number = None
                page = ctx.get(dut.page)
                flags = page.valid | page.loaded << 1 | page.on_chip << 2
                assert (page.chunk, page.turns) == begins(expected >> 4 & (1 << 28) - 1)
                assert flags == expected >> 32 & 7
        assert waits > PARAMS.pages

    simulate(dut, writer, reader)


def test_no_page_is_valid_after_a_reset():
    reset = Signal()
    table = PageTable(PARAMS)

    async def bench(ctx):
        for _ in range(2):
            cycles = await send(ctx, table.writes, [{"index": k, "word": (1 << 64) - 1} for k in (0, 7, 31)])
            assert cycles == [PARAMS.pages, PARAMS.pages + 1, PARAMS.pages + 2]
            ctx.set(table.lookups.valid, 1)
            for number in range(PARAMS.pages):
                ctx.set(table.lookups.payload, number)
                await ctx.tick()
                assert ctx.get(table.page.valid) == (number in (0, 7, 31))
            await pulse(ctx, reset)
            assert not ctx.get(table.lookups.ready)

    simulate(ResetInserter(reset)(table), bench)


def test_cache_keeps_the_pages_that_came_last():
    dut = elaborated(TranslationCache, PARAMS)
    entries = CACHE_ENTRIES
    rng = random.Random(SEED)
    places = [None] * entries

    async def bench(ctx):
        victim, hits = 0, 0
        for _ in range(500):
            numbers = [rng.randrange(entries + 3) for _ in range(LANES)]
            ctx.set(dut.numbers, numbers)
            here = dict(place for place in places if place)
            new = rng.choice([number for number in range(entries + 3) if number not in here])
            insert, flush = rng.random() < 0.3, rng.random() < 0.04
            page = {"chunk": rng.getrandbits(8), "turns": rng.getrandbits(4), "code": rng.getrandbits(4)}
            ctx.set(dut.insert, insert)
            ctx.set(dut.flush, flush)
            ctx.set(dut.number, new)
            ctx.set(dut.page, page)
            for lane, number in enumerate(numbers):
                assert ctx.get(dut.hits[lane]) == (number in here)
                cached = here.get(number, {"chunk": 0, "turns": 0, "code": 0})
                assert {name: ctx.get(dut.pages[lane][name]) for name in cached} == cached
                hits += number in here
            if flush:
                places[:] = [None] * entries
            elif insert:
                places[victim] = (new, page)
                victim = (victim + 1) % entries
            await ctx.tick()
        assert hits > 300

    simulate(dut, bench)
