"""Segments of all kinds, entries, errors and strobes; words of one or two segments, and ends; latency and rate."""

import random

import pytest

from support.streams import transact
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.hw.tmau.store.segments import ENTRIES, SegmentFetcher, WordAssembler
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import STALL_MODES, send, watch_stream

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
        fill = int.from_bytes(fetched.fill.to_bytes(8, "little") * (bus_bytes // 8), "little")
        assert fetched.segment | fill == segment and not (fetched.segment and fill)
        strobe, *others = masks(step["cut"], bus_bytes)
        assert (fetched.before, fetched.turn) == tuple(others)
        assert fetched.strobe == (0 if error is not None else strobe)
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


@pytest.mark.parametrize("prefer_bram", [False, True])
def test_latency_and_rate_of_words(prefer_bram):
    """What words are made of is simulated in test_path.py."""
    dut = elaborated(WordAssembler, PARAMS.replace(prefer_bram=prefer_bram))
    items = [WORD | {"last": n == 7, "segment": n} for n in range(8)]
    came, cycles = transact(dut, {"i": items}, {"words": 8, "ends": 1})
    assert [word.data for word in came["words"]] == [*range(8)]
    assert cycles["words"] == [*range(1 + prefer_bram, 9 + prefer_bram)]
    assert cycles["ends"] == [8 + prefer_bram]
