"""Line fetcher: lines of all three kinds, places that are given back, errors, the strobe; latency and rate."""

import random

import pytest

from tilewright.golden.smem.swizzle import swizzle
from tilewright.golden.spec import Swizzle
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.hw.tmau.store.line_fetch import ENTRIES, LineFetcher
from tilewright.sim.pysim.simulate import elaborated, simulate
from tilewright.sim.pysim.streams import STALL_MODES, send, watch_stream

SEED = 4
PARAMS = TMAU_PRESETS["unit"]
CHUNKS = [random.Random(chunk).getrandbits(128) for chunk in range(PARAMS.smem.size_bytes // 16)]


def line_of(row, mode=Swizzle.NONE):
    """A line of shared memory, un-swizzled."""
    places = [swizzle(128 * row + 16 * chunk, mode) // 16 for chunk in range(8)]
    return sum(CHUNKS[place] << 128 * chunk for chunk, place in enumerate(places))


def random_load(count):
    """Steps, staged lines, and what becomes of each: (line or None, address of the error or None)."""
    rng = random.Random(SEED)
    steps, staged, expected, kind, error = [], [], [], "shared", None
    for number in range(count):
        fetch, last = rng.random() < 0.6, rng.random() < 0.2
        mode = Swizzle(rng.randrange(4)) if kind == "shared" else Swizzle.NONE
        row, fill = rng.randrange(PARAMS.smem.rows), rng.getrandbits(64)
        context = {"stage": kind == "stage", "immediate": kind == "immediate", "swizzle": int(mode), "fill": fill}
        word = rng.random() < 0.8 or not (fetch or last)
        steps.append({"word": word, "fetch": fetch, "row": row, "last": last, "context": context})
        line = {"shared": line_of(row, mode), "immediate": fill * sum(1 << 64 * n for n in range(16))}.get(kind)
        if kind == "stage" and fetch:
            line = rng.getrandbits(1024)
            staged.append({"data": line, "error": rng.random() < 0.2, "address": number})
            error = number if error is None and staged[-1]["error"] else error
        expected.append((line if fetch else None, error))
        if last:
            kind, error = rng.choice(["shared", "shared", "immediate", "stage"]), None
    return steps, staged, expected


def run(steps, staged, mode="none"):
    """Returns what came out, with its cycle, and the number of strobes."""
    dut = elaborated(LineFetcher, PARAMS)
    idle, stall = STALL_MODES[mode]["idle"], STALL_MODES[mode]["stall"]
    came, counts = [], {"read": 0, "places": 0}

    async def send_steps(ctx):
        await send(ctx, dut.steps, steps, idle=idle, seed=SEED)
        while len(came) < len(steps):
            await ctx.tick()

    async def send_staged(ctx):
        await send(ctx, dut.staged, staged, idle=idle, seed=SEED + 1)

    async def shared_memory(ctx):
        rng = random.Random(SEED)
        while True:
            ctx.set(dut.fetch.rows.ready, rng.random() >= stall)
            _, _, valid, ready, row = await ctx.tick().sample(
                dut.fetch.rows.valid, dut.fetch.rows.ready, dut.fetch.rows.p
            )
            ctx.set(dut.fetch.line, line_of(row) if valid and ready else rng.getrandbits(1024))

    async def sink(ctx):
        rng, cycle = random.Random(SEED), 0
        async for _, _, valid, payload, read, left in ctx.tick().sample(dut.o.valid, dut.o.p, dut.read_stb, dut.left):
            counts["read"] += read
            counts["places"] -= left
            if valid:
                came.append((cycle, payload))
                counts["places"] += payload.step.word | payload.step.last
            assert 0 <= counts["places"] <= ENTRIES
            ctx.set(dut.left, counts["places"] != 0 and rng.random() >= stall)
            cycle += 1

    simulate(dut, send_steps, send_staged, background=[shared_memory, sink, watch_stream(dut.fetch.rows)])
    return came, counts["read"]


@pytest.mark.parametrize("mode", STALL_MODES)
def test_lines_and_errors(mode):
    steps, staged, expected = random_load(120)
    came, reads = run(steps, staged, mode)
    for (_, fetched), step, (line, error) in zip(came, steps, expected, strict=True):
        assert (fetched.step.row, fetched.step.last) == (step["row"], step["last"])
        assert line is None or fetched.line == line
        assert fetched.error == (error is not None)
        assert error is None or fetched.address == error
    assert reads == sum(step["last"] for step in steps)


def test_latency_two_and_full_rate():
    steps = [{"word": 1, "fetch": 1, "row": n, "last": n == 19} for n in range(20)]
    came, _ = run(steps, [])
    assert [cycle for cycle, _ in came] == [*range(2, 22)]


def test_a_staged_line_every_second_cycle():
    steps = [{"word": 1, "fetch": n % 2 == 0, "last": n == 19, "context": {"stage": 1}} for n in range(20)]
    came, _ = run(steps, [{"data": n} for n in range(10)])
    assert [cycle for cycle, _ in came] == [*range(2, 22)]
