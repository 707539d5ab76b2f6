"""Word assembler: bytes from two segments, strobes, the two ways out, ends; latency and rate."""

import random

import pytest

from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.hw.tmau.store.segment_fetch import ENTRIES
from tilewright.hw.tmau.store.word_assembler import WordAssembler
from tilewright.sim.pysim.simulate import elaborated, simulate
from tilewright.sim.pysim.streams import STALL_MODES, receive, watch_stream

SEED = 6


def random_load(bus_bytes, count):
    """Steps with segments; words for the bus (bytes by place, None where nothing is written), for the loop; ends."""
    rng = random.Random(SEED)
    items, words, looped, ends = [], [], [], []
    before, segment, tag, loop, error = None, None, 0, 0, 0
    for _ in range(count):
        fetch = segment is None or rng.random() < 0.5
        if fetch:
            before, segment = segment, rng.randbytes(bus_bytes)
        last = rng.random() < 0.2
        word = rng.random() < 0.8
        first = rng.randrange(bus_bytes)
        size = rng.randrange(bus_bytes - first) + 1
        straddle = fetch and before is not None and size > 1 and rng.random() < 0.5
        source = bus_bytes - rng.randrange(1, size) if straddle else rng.randrange(bus_bytes - size + 1)
        error |= rng.random() < 0.1
        turn = (source - first) % bus_bytes
        item = {"word": word, "fetch": fetch, "last": last, "turn": turn, "strobe": (1 << size) - 1 << first}
        item |= {"before": straddle and (1 << bus_bytes) - (1 << turn), "tag": tag, "quiet": tag & 1}
        item |= {"complement": ~turn % bus_bytes, "bytes": 3 * tag, "loop": loop, "error": error, "address": tag}
        items.append(item | {"segment": int.from_bytes(segment, "little")})
        data = before + segment if straddle else segment
        if word:
            placed = [None] * first + [*data[source : source + size]] + [None] * (bus_bytes - first - size)
            (looped if loop else words).append((placed, error))
        if last:
            ends.append((tag, tag & 1, 3 * tag, loop, error))
            tag, loop, error = tag + 1, rng.randrange(2), 0
    return items, words, looped, ends


def run(bus_bytes, items, counts, mode="none", features=TMAU_PRESETS["unit"].features, spares=False):
    """Returns what came out of ``words``, ``loop`` and ``ends``, with the cycles (of ``ends``: of the last one)."""
    params = TMAU_PRESETS["unit"].replace(bus_bytes=bus_bytes, features=features, spares_tables=spares)
    dut = elaborated(WordAssembler, params)
    idle, stall = STALL_MODES[mode]["idle"], STALL_MODES[mode]["stall"]
    result = {}
    places = {"used": 0}

    async def source(ctx):
        rng = random.Random(SEED)
        for item in items:
            takes = item["word"] or item["last"]
            while rng.random() < idle or (takes and places["used"] == ENTRIES):
                await ctx.tick()
            ctx.set(dut.i.p, item)
            ctx.set(dut.i.valid, 1)
            places["used"] += takes
            await ctx.tick()
            ctx.set(dut.i.valid, 0)

    async def count_places(ctx):
        async for _, _, left in ctx.tick().sample(dut.left):
            places["used"] -= left
            assert places["used"] >= 0

    def sink(name, count):
        async def take(ctx):
            result[name] = await receive(ctx, getattr(dut, name), count, stall=stall, seed=SEED)

        return take

    async def take_ends(ctx):
        """Ready before it sees valid, and from then on until it does: as the ends ask for."""
        rng, taken = random.Random(SEED), []
        for _ in range(counts["ends"]):
            while rng.random() < stall:
                await ctx.tick()
            end, cycle = await receive(ctx, dut.ends, 1)
            taken += end
        result["ends"] = taken, cycle

    sinks = [take_ends, *(sink(name, counts[name]) for name in ("words", "loop"))]
    watched = [watch_stream(getattr(dut, name), name) for name in counts]
    simulate(dut, source, *sinks, background=[count_places, *watched])
    assert places["used"] == 0
    return result


@pytest.mark.parametrize("mode", STALL_MODES)
@pytest.mark.parametrize("bus_bytes", [16, 32, 64])
@pytest.mark.parametrize("spares", [False, True])
def test_words(bus_bytes, spares, mode):
    items, words, looped, ends = random_load(bus_bytes, 100)
    items = [*items, {"word": 0, "last": 1, "tag": 99}]
    counts = {"words": len(words), "loop": len(looped), "ends": len(ends) + 1}
    result = run(bus_bytes, items, counts, mode, spares=spares)
    for came, (placed, error) in zip(result["words"][0], words, strict=True):
        strobe = sum((byte is not None) << place for place, byte in enumerate(placed))
        assert came.strobe == (0 if error else strobe)
        assert all(byte is None or came.data >> 8 * place & 0xFF == byte for place, byte in enumerate(placed))
    for came, (placed, _) in zip(result["loop"][0], looped, strict=True):
        assert (came.error, came.address) == (0, 0)
        assert all(byte is None or came.data >> 8 * place & 0xFF == byte for place, byte in enumerate(placed))
    for came, (tag, quiet, size, loop, error) in zip(result["ends"][0][:-1], ends, strict=True):
        assert (came.tag, came.quiet, came.bytes, came.loop, came.error) == (tag, quiet, size, loop, error)
        assert not error or came.address == tag


@pytest.mark.parametrize("bus_bytes", [16, 64])
def test_without_local_copies_fill_takes_the_place_of_segments(bus_bytes):
    """Words of eight bytes again and again, turned as their place in global memory wants it, beside others."""
    rng, items, expected = random.Random(SEED), [], []
    for number in range(60):
        fill, segment, immediate = rng.randbytes(8), rng.randbytes(bus_bytes), rng.randrange(2)
        turn = rng.randrange(bus_bytes)
        item = {"word": 1, "fetch": 1, "last": number == 59, "turn": turn, "complement": ~turn % bus_bytes}
        item |= {"segment": int.from_bytes(segment, "little"), "strobe": number, "immediate": immediate}
        items.append(item | {"fill": int.from_bytes(fill, "little"), "before": immediate * rng.getrandbits(bus_bytes)})
        source = fill * (bus_bytes // 8) if immediate else segment
        expected.append((int.from_bytes(source[turn:] + source[:turn], "little"), number))
    features = tuple(name for name in TMAU_PRESETS["unit"].features if name != "local_copies")
    words, _ = run(bus_bytes, items, {"words": 60, "loop": 0, "ends": 1}, features=features)["words"]
    assert [(word.data, word.strobe) for word in words] == expected


@pytest.mark.parametrize("spares", [False, True])
def test_latency_and_full_rate(spares):
    items = [{"word": 1, "fetch": 1, "last": n == 19, "complement": 15, "segment": n} for n in range(20)]
    result = run(16, items, {"words": 20, "loop": 0, "ends": 1}, spares=spares)
    assert [word.data for word in result["words"][0]] == [*range(20)]
    assert result["words"][1] == [*range(1 + spares, 21 + spares)]
    assert result["ends"][1] == [20 + spares]
