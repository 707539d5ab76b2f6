"""Segments of all kinds, entries, errors and strobes; words of one or two segments, and ends; latency and rate."""

import random

import pytest

from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.hw.tmau.store.segments import ENTRIES, SegmentFetcher, WordAssembler
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import STALL_MODES, receive, send, watch_stream

SEED = 4
PARAMS = TMAU_PRESETS["unit"]
#: Of this core, and of two others in a cluster of three.
LINES = {owner: [random.Random(f"{owner} {row}").getrandbits(1024) for row in range(PARAMS.smem.rows)]
         for owner in (0, 0b001, 0b100)}  # fmt: skip


def segment_of(row, bank, bus_bytes, owner=0):
    """A segment of shared memory, un-swizzled."""
    chunks = [LINES[owner][row] >> 128 * (bank ^ number) & (1 << 128) - 1 for number in range(bus_bytes // 16)]
    return sum(chunk << 128 * number for number, chunk in enumerate(chunks))


def random_load(bus_bytes, count, owners=(0,)):
    """Steps, staged segments, and what becomes of each step: (segment or None, address of the error or None)."""
    rng = random.Random(SEED)
    steps, staged, expected, kind, segment, error, owner, line = [], [], [], "shared", None, None, 0, None
    for number in range(count):
        fetch, last = segment is None or rng.random() < 0.6, rng.random() < 0.2
        bank, fill = rng.randrange(8), rng.getrandbits(64)
        again = line is not None and rng.random() < 0.5
        row = line if again else rng.randrange(PARAMS.smem.rows)
        word = rng.random() < 0.8 or not (fetch or last)
        step = {"row": row, "bank": bank, "again": again, "fill": fill}
        step |= {"stage": kind == "stage", "immediate": kind == "immediate"}
        first, end, turn, straddle = (rng.randrange(high) for high in (bus_bytes, bus_bytes + 1, bus_bytes, 2))
        cut = {"word": word, "fetch": fetch, "last": last, "tag": number}
        steps.append(step | {"cut": cut | {"first": first, "end": end, "turn": turn, "straddle": straddle}})
        steps[-1] |= {"owner": owner} if owner else {}
        line = None if last else row if fetch else line
        if fetch and kind == "shared":
            segment = segment_of(row, bank, bus_bytes, owner)
        elif fetch and kind == "immediate":
            segment = int.from_bytes(fill.to_bytes(8, "little") * (bus_bytes // 8), "little")
        elif fetch:
            segment = rng.getrandbits(8 * bus_bytes)
            staged.append({"data": segment, "error": rng.random() < 0.2, "address": number})
            error = number if error is None and staged[-1]["error"] else error
        expected.append((segment, error))
        if last:
            kind, error = rng.choice(("shared", "shared", "immediate", "stage")), None
            owner = rng.choice(owners) if kind == "shared" else 0
    return steps, staged, expected


def masks(cut, bus_bytes):
    """Bytes of the word, bytes of the segment that are those of the one before, and how far they are rotated."""
    strobe = sum(1 << place for place in range(cut["first"], cut["end"]))
    before = sum(1 << place for place in range(cut["turn"], bus_bytes)) if cut["straddle"] else 0
    return strobe, before, cut["turn"]


def run(steps, staged, mode="none", bus_bytes=16, cores=1, away=4, prefer_bram=False):
    """Returns what came out, with its cycle, and the number of strobes; other cores' lines take ``away`` cycles."""
    dut = elaborated(SegmentFetcher, PARAMS.replace(bus_bytes=bus_bytes, cores=cores, prefer_bram=prefer_bram))
    idle, stall = STALL_MODES[mode]["idle"], STALL_MODES[mode]["stall"]
    came, counts = [], {"read": 0, "entries": 0}

    async def send_steps(ctx):
        await send(ctx, dut.steps, steps, idle=idle, seed=SEED)
        while len(came) < len(steps):
            await ctx.tick()

    async def send_staged(ctx):
        await send(ctx, dut.staged, staged)  # never late: all of a transfer are there before it comes

    async def shared_memory(ctx):
        rng, rows = random.Random(SEED), dut.fetch.rows
        while True:
            ctx.set(rows.ready, rng.random() >= stall)
            _, _, fetches, row = await ctx.tick().sample(rows.valid & rows.ready, rows.payload)
            ctx.set(dut.fetch.line, LINES[0][row] if fetches else rng.getrandbits(1024))

    async def others(ctx):
        rng, cycle, due, request = random.Random(SEED), 0, [], dut.loans.requests
        while True:
            ctx.set(request.ready, rng.random() >= stall)
            _, _, accepted, wanted = await ctx.tick().sample(request.valid & request.ready, request.payload)
            if accepted:
                assert not wanted.asks and wanted.last == wanted.row
                assert all(owner == wanted.owner for _, owner, _ in due), "lines of one core at a time"
                due.append((cycle + away - 1, wanted.owner, wanted.row))
            arrives = bool(due) and due[0][0] <= cycle and rng.random() >= stall
            _, owner, row = due.pop(0) if arrives else (0, 0b100, 0)
            ctx.set(dut.loans.answer, {"lends": arrives, "line": LINES[owner][row]})
            cycle += 1

    async def sink(ctx):
        rng, cycle = random.Random(SEED), 0
        signals = (dut.o.valid, dut.o.payload, dut.read_stb, dut.left)
        async for _, _, valid, payload, read, left in ctx.tick().sample(*signals):
            counts["read"] += read
            counts["entries"] -= left
            if valid:
                came.append((cycle, payload))
                counts["entries"] += payload.word | payload.last
            assert 0 <= counts["entries"] <= ENTRIES
            ctx.set(dut.left, counts["entries"] != 0 and rng.random() >= stall)
            cycle += 1

    background = [shared_memory, sink, watch_stream(dut.fetch.rows)]
    background += [others, watch_stream(dut.loans.requests)] if cores > 1 else []
    simulate(dut, send_steps, send_staged, background=background)
    return came, counts["read"]


@pytest.mark.parametrize("mode", STALL_MODES)
@pytest.mark.parametrize(
    ("bus_bytes", "cores", "prefer_bram"), [(16, 1, False), (32, 1, True), (64, 1, False), (32, 3, False)]
)
def test_segments_and_errors(bus_bytes, cores, prefer_bram, mode):
    steps, staged, expected = random_load(bus_bytes, 120, (0, 0b001, 0b100) if cores > 1 else (0,))
    came, reads = run(steps, staged, mode, bus_bytes, cores, prefer_bram=prefer_bram)
    for (_, fetched), step, (segment, error) in zip(came, steps, expected, strict=True):
        assert (fetched.tag, fetched.last) == (step["cut"]["tag"], step["cut"]["last"])
        assert fetched.segment == segment
        assert (fetched.strobe, fetched.before, fetched.turn) == masks(step["cut"], bus_bytes)
        assert fetched.error == (error is not None)
        assert error is None or fetched.address == error
    assert reads == sum(step["cut"]["last"] for step in steps)


WORD = {"word": 1, "fetch": 1}


@pytest.mark.parametrize("stage", [0, 1])
@pytest.mark.parametrize("prefer_bram", [False, True])
def test_latency_three_and_full_rate(prefer_bram, stage):
    steps = [{"cut": WORD | {"last": n == 19}, "row": n, "stage": stage} for n in range(20)]
    came, _ = run(steps, [{"data": n} for n in range(20 * stage)], prefer_bram=prefer_bram)
    assert [cycle for cycle, _ in came] == [*range(3, 23)]


def test_steps_that_only_take_a_segment_release_their_entry():
    came, _ = run([{"cut": {"fetch": 1}, "row": n} for n in range(3 * ENTRIES)], [])
    assert [cycle for cycle, _ in came] == [*range(3, 3 + 3 * ENTRIES)]


def test_lines_of_another_core_at_full_rate():
    """As many are requested as there are entries, which a network of four cycles just fills."""
    steps = [{"cut": WORD | {"last": n == 19}, "row": n, "owner": 0b100} for n in range(20)]
    came, _ = run(steps, [], cores=3)
    assert [cycle for cycle, _ in came] == [*range(6, 26)]


WORD_ASSEMBLER_SEED = 6


def word_assembler_random_load(bus_bytes, count):
    """Steps with segments; words for the bus (bytes by place, None where nothing is written), for the loop; ends."""
    rng = random.Random(WORD_ASSEMBLER_SEED)
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
        item |= {"bytes": 3 * tag, "loop": loop, "error": error, "address": tag}
        items.append(item | {"segment": int.from_bytes(segment, "little")})
        data = before + segment if straddle else segment
        if word:
            placed = [None] * first + [*data[source : source + size]] + [None] * (bus_bytes - first - size)
            (looped if loop else words).append((placed, error))
        if last:
            ends.append((tag, tag & 1, 3 * tag, loop, error))
            tag, loop, error = tag + 1, rng.randrange(2), 0
    return items, words, looped, ends


def word_assembler_run(bus_bytes, items, counts, mode="none", prefer_bram=False):
    """Returns what came out of ``words``, ``loop`` and ``ends``, with the cycles (of ``ends``: of the last one)."""
    params = TMAU_PRESETS["unit"].replace(bus_bytes=bus_bytes, prefer_bram=prefer_bram)
    dut = elaborated(WordAssembler, params)
    idle, stall = STALL_MODES[mode]["idle"], STALL_MODES[mode]["stall"]
    result = {}
    places = {"used": 0}

    async def source(ctx):
        rng = random.Random(WORD_ASSEMBLER_SEED)
        for item in items:
            takes = item["word"] or item["last"]
            while rng.random() < idle or (takes and places["used"] == ENTRIES):
                await ctx.tick()
            ctx.set(dut.i.payload, item)
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
            result[name] = await receive(ctx, getattr(dut, name), count, stall=stall, seed=WORD_ASSEMBLER_SEED)

        return take

    async def take_ends(ctx):
        """Ready before it sees valid, and from then on until it does: as the ends ask for."""
        rng, taken = random.Random(WORD_ASSEMBLER_SEED), []
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
@pytest.mark.parametrize(("bus_bytes", "prefer_bram"), [(16, False), (32, True), (64, False)])
def test_words(bus_bytes, prefer_bram, mode):
    items, words, looped, ends = word_assembler_random_load(bus_bytes, 100)
    items = [*items, {"word": 0, "last": 1, "tag": 99}]
    counts = {"words": len(words), "loop": len(looped), "ends": len(ends) + 1}
    result = word_assembler_run(bus_bytes, items, counts, mode, prefer_bram)
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


@pytest.mark.parametrize("prefer_bram", [False, True])
def test_latency_and_full_rate(prefer_bram):
    items = [WORD | {"last": n == 19, "segment": n} for n in range(20)]
    result = word_assembler_run(16, items, {"words": 20, "loop": 0, "ends": 1}, prefer_bram=prefer_bram)
    assert [word.data for word in result["words"][0]] == [*range(20)]
    assert result["words"][1] == [*range(1 + prefer_bram, 21 + prefer_bram)]
    assert result["ends"][1] == [20 + prefer_bram]
