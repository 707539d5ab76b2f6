"""Segment fetcher: segments of all kinds, places that are given back, errors, the strobe; latency and rate."""

import random

import pytest

from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.hw.tmau.store.segment_fetch import ENTRIES, SegmentFetcher
from tilewright.sim.pysim.simulate import elaborated, simulate
from tilewright.sim.pysim.streams import STALL_MODES, send, watch_stream

SEED = 4
PARAMS = TMAU_PRESETS["unit"]
#: Of this core, and of two others in a cluster of three.
LINES = {owner: [random.Random(f"{owner} {row}").getrandbits(1024) for row in range(PARAMS.smem.rows)]
         for owner in (0, 0b001, 0b100)}  # fmt: skip


def segment_of(row, bank, bus_bytes, owner=0):
    """A segment of shared memory, un-swizzled."""
    chunks = [LINES[owner][row] >> 128 * (bank ^ number) & (1 << 128) - 1 for number in range(bus_bytes // 16)]
    return sum(chunk << 128 * number for number, chunk in enumerate(chunks))


def random_load(bus_bytes, count, owners=(0,), kinds=("shared", "shared", "immediate", "stage")):
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
            kind, error = rng.choice(kinds), None
            owner = rng.choice(owners) if kind == "shared" else 0
    return steps, staged, expected


def masks(cut, bus_bytes):
    """Bytes of the word, bytes of the segment that are those of the one before, and how far they are rotated."""
    strobe = sum(1 << place for place in range(cut["first"], cut["end"]))
    before = sum(1 << place for place in range(cut["turn"], bus_bytes)) if cut["straddle"] else 0
    return strobe, before, cut["turn"]


def run(steps, staged, mode="none", bus_bytes=16, cores=1, away=4, features=PARAMS.features, spares=False):
    """Returns what came out, with its cycle, and the number of strobes; other cores' lines take ``away`` cycles."""
    params = PARAMS.replace(bus_bytes=bus_bytes, cores=cores, features=features, spares_tables=spares)
    dut = elaborated(SegmentFetcher, params)
    idle, stall = STALL_MODES[mode]["idle"], STALL_MODES[mode]["stall"]
    came, counts = [], {"read": 0, "places": 0}

    async def send_steps(ctx):
        await send(ctx, dut.steps, steps, idle=idle, seed=SEED)
        while len(came) < len(steps):
            await ctx.tick()

    async def send_staged(ctx):
        await send(ctx, dut.staged, staged)  # never late: all of a transfer are there before it comes

    async def shared_memory(ctx):
        rng = random.Random(SEED)
        while True:
            ctx.set(dut.fetch.rows.ready, rng.random() >= stall)
            _, _, valid, ready, row = await ctx.tick().sample(
                dut.fetch.rows.valid, dut.fetch.rows.ready, dut.fetch.rows.p
            )
            ctx.set(dut.fetch.line, LINES[0][row] if valid and ready else rng.getrandbits(1024))

    async def others(ctx):
        rng, cycle, due, request = random.Random(SEED), 0, [], dut.loans.requests
        while True:
            ctx.set(request.ready, rng.random() >= stall)
            _, _, taken, wanted = await ctx.tick().sample(request.valid & request.ready, request.p)
            if taken:
                assert not wanted.asks and wanted.last == wanted.row
                assert all(owner == wanted.owner for _, owner, _ in due), "lines of one core at a time"
                due.append((cycle + away - 1, wanted.owner, wanted.row))
            comes = bool(due) and due[0][0] <= cycle and rng.random() >= stall
            _, owner, row = due.pop(0) if comes else (0, 0b100, 0)
            ctx.set(dut.loans.answer, {"lends": comes, "line": LINES[owner][row]})
            cycle += 1

    async def sink(ctx):
        rng, cycle = random.Random(SEED), 0
        async for _, _, valid, payload, read, left in ctx.tick().sample(dut.o.valid, dut.o.p, dut.read_stb, dut.left):
            counts["read"] += read
            counts["places"] -= left
            if valid:
                came.append((cycle, payload))
                counts["places"] += payload.word | payload.last
            assert 0 <= counts["places"] <= ENTRIES
            ctx.set(dut.left, counts["places"] != 0 and rng.random() >= stall)
            cycle += 1

    background = [shared_memory, sink, watch_stream(dut.fetch.rows)]
    background += [others, watch_stream(dut.loans.requests)] if cores > 1 else []
    simulate(dut, send_steps, send_staged, background=background)
    return came, counts["read"]


@pytest.mark.parametrize("mode", STALL_MODES)
@pytest.mark.parametrize(("bus_bytes", "cores"), [(16, 1), (32, 1), (64, 1), (32, 3)])
@pytest.mark.parametrize("spares", [False, True])
def test_segments_and_errors(bus_bytes, cores, spares, mode):
    steps, staged, expected = random_load(bus_bytes, 120, (0, 0b001, 0b100) if cores > 1 else (0,))
    came, reads = run(steps, staged, mode, bus_bytes, cores, spares=spares)
    for (_, fetched), step, (segment, error) in zip(came, steps, expected, strict=True):
        assert (fetched.tag, fetched.last) == (step["cut"]["tag"], step["cut"]["last"])
        assert fetched.segment == segment
        assert (fetched.strobe, fetched.before, fetched.turn) == masks(step["cut"], bus_bytes)
        assert fetched.complement == bus_bytes - 1 - fetched.turn
        assert fetched.error == (error is not None)
        assert error is None or fetched.address == error
    assert reads == sum(step["cut"]["last"] for step in steps)


@pytest.mark.parametrize("mode", STALL_MODES)
@pytest.mark.parametrize("bus_bytes", [16, 32, 64])
def test_without_local_copies_the_fill_stays_beside_the_segments(bus_bytes, mode):
    steps, _, expected = random_load(bus_bytes, 120, kinds=("shared", "immediate"))
    features = tuple(name for name in PARAMS.features if name != "local_copies")
    came, reads = run(steps, [], mode, bus_bytes, features=features)
    own = False  # a segment of the transfer has been taken
    for (_, fetched), step, (segment, _) in zip(came, steps, expected, strict=True):
        own |= step["cut"]["fetch"]
        assert (fetched.tag, fetched.last) == (step["cut"]["tag"], step["cut"]["last"])
        assert fetched.immediate == step["immediate"]
        if step["immediate"]:
            assert fetched.fill == step["fill"]
        elif own:
            assert fetched.segment == segment
        own &= not fetched.last
        assert (fetched.strobe, fetched.before, fetched.turn) == masks(step["cut"], bus_bytes)
    assert reads == sum(step["cut"]["last"] for step in steps)


@pytest.mark.parametrize("stage", [0, 1])
@pytest.mark.parametrize("spares", [False, True])
def test_latency_three_and_full_rate(spares, stage):
    steps = [{"cut": {"word": 1, "fetch": 1, "last": n == 19}, "row": n, "stage": stage} for n in range(20)]
    came, _ = run(steps, [{"data": n} for n in range(20 * stage)], spares=spares)
    assert [cycle for cycle, _ in came] == [*range(3, 23)]


def test_steps_that_only_take_a_segment_keep_no_place():
    steps = [{"cut": {"fetch": 1}, "row": n} for n in range(3 * ENTRIES)]
    came, _ = run(steps, [])
    assert [cycle for cycle, _ in came] == [*range(3, 3 + 3 * ENTRIES)]


def test_lines_of_another_core_at_full_rate():
    """As many are under way as there are places, which a network of four cycles just fills."""
    steps = [{"cut": {"word": 1, "fetch": 1, "last": n == 19}, "row": n, "owner": 0b100} for n in range(20)]
    came, _ = run(steps, [], cores=3)
    assert [cycle for cycle, _ in came] == [*range(6, 26)]
