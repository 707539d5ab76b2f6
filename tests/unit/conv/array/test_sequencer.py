"""The order of work: steps, releases and tiles of random jobs against loops, whatever it has to wait for."""

import random
from dataclasses import dataclass
from itertools import pairwise

import pytest

from support.conv import conv_unit
from support.selection import grid
from support.streams import pulse, recording
from tilewright.hw.conv.array.sequencer import Sequencer
from tilewright.spec.conv import CHANNELS_AT_ONCE
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import STALL_MODES, watch_stream

SEED = 45

LATENCY, LOOP = 4, 7
PARAMS, FLOATS = (conv_unit(slaves=2, weight_bytes=256, types=types) for types in (("i8",), ("i8", "f16")))
ROW, RING = PARAMS.conv.row_bytes, PARAMS.conv.weight_bytes // CHANNELS_AT_ONCE


#: What LaneSteps says, by turns.
HALVES = [{"first": 1, "off": 2}, {"first": 2, "off": 0}, {"first": 0, "off": 1}]
#: In lane-private mode: words of the parts of rows, and by how many these are turned.
READS = [
    ([(word + number) % PARAMS.words for number in range(PARAMS.row_parts)], word % PARAMS.row_parts)
    for word in (3, 3, 0, PARAMS.words - 1, 7)
]


@dataclass
class Job:
    """Tiles of each pass, sets of each tile."""

    lanes: int
    stays: int
    granularity: int
    out_channels: int
    tiles: int
    sets: int
    floats: int = 0
    bias: int = 0

    @property
    def passes(self):
        """Channels of a slave in each pass, or one of each in lane-private mode."""
        if self.lanes:
            return [1, 1]
        each = -(-self.out_channels // PARAMS.conv.slaves)
        return [min(CHANNELS_AT_ONCE, each - first) for first in range(0, each, CHANNELS_AT_ONCE)]

    def flags(self):
        for _ in self.passes:
            for tile in range(self.tiles):
                for number in range(self.sets):
                    yield {"first": number == 0, "last": number == self.sets - 1, "final": tile == self.tiles - 1}

    def rows(self):
        """Of each set: the first byte of its rows, counted from the beginning of the job; and its channels."""
        begin, block = 0, 1 << self.granularity
        for channels in self.passes:
            for tile in range(self.tiles):
                first = begin + (0 if self.stays else tile * self.sets * block)
                yield from ((first + number * block, channels) for number in range(self.sets))
            begin += self.sets * block * (1 if self.stays else self.tiles)

    @property
    def bytes(self):
        """Of a quarter that the job needs."""
        return 0 if self.lanes else max(row for row, _ in self.rows()) + (1 << self.granularity)

    def steps(self, done, begin):
        """Set, and what is read, part, channel, bank, what halves of the units do in each step; ``done`` sets and tiles
        came before.

        ``begin`` is where its rows begin, which go on where those of the job before ended.
        """
        sets, tiles = done
        words = RING // ROW
        for number, ((row, channels), flags) in enumerate(zip(self.rows(), self.flags(), strict=True)):
            place, bank = (
                (sets + (0 if self.lanes else number)) % PARAMS.sets,
                (tiles + number // self.sets) % PARAMS.accumulator_banks,
            )
            for channel in range(channels):
                read = READS[number % len(READS)]
                if not self.lanes:
                    read = [(begin + row) // ROW % words + channel * words] * PARAMS.row_parts, 0
                part = 0 if self.lanes else row % ROW >> self.granularity
                halves = HALVES[number % len(HALVES)] if self.lanes else {"first": 3 * flags["first"], "off": 0}
                yield place, read, part, channel, bank, halves


def some_job(rng):
    granularity, lanes = rng.randrange(5), int(rng.random() < 0.3)
    stays = rng.getrandbits(1) & ~lanes
    most = RING >> granularity if stays else 12
    return Job(
        lanes, stays, granularity, rng.randrange(1, 20), rng.randrange(1, 4), rng.randrange(1, min(most, 12) + 1)
    )


# All modes with what has more in it, and the last one without.
@grid(lambda floats, mode: floats or mode == "both", built=[False, True], mode=STALL_MODES)
def test_jobs(mode, built):
    """In ``idle`` modes sets and weights come late, in ``stall`` modes tiles are read late.

    Floats: accumulators are not used again before their sums are there, and a pass not begun without its biases.
    """
    dut, rng = elaborated(Sequencer, FLOATS if built else PARAMS, LATENCY, LOOP), random.Random(SEED)
    idle, stall = STALL_MODES[mode]["idle"], STALL_MODES[mode]["stall"]
    jobs = [some_job(rng) for _ in range(25)]
    if built:
        for job in jobs:
            job.floats, job.bias = rng.choice([(0, 1), (1, 0), (1, 1), (1, 1)])
    steps, read, told, released = [], [], [], [0]
    begins, end = [], 0  # where rows of each job begin, counted from the first one on
    for job in jobs:
        begins.append(-(-end // ROW) * ROW)
        end = begins[-1] + job.bytes
    world = {"written": 0, "freed": 0, "rows": (), "number": 0}

    async def weights(ctx):
        """Writes rows from where they are freed on, never more than fit, and at most those of one more job."""
        number = 0  # of the job whose rows are written
        async for _, _, freed in ctx.tick().sample(dut.freed):
            world["freed"] += (freed - world["freed"]) % (2 * RING)
            job = jobs[number]
            more = rng.randrange(4) << job.granularity
            more = min(more, world["freed"] + RING - world["written"], begins[number] + job.bytes - world["written"])
            if rng.random() >= idle:
                world["written"] += max(0, more)
            over = world["written"] == begins[number] + job.bytes
            # Lines of X in place of weights: they come when nothing else is there, and go before weights come.
            alone = any(each.lanes for each in jobs[number : number + 2])
            done = world["number"] > number or (world["number"] == number and not alone)
            if number + 1 < len(jobs) and over and done:
                number += 1
                world["written"] = begins[number]
            ctx.set(dut.written, world["written"] % (2 * RING))

    def taker(port, taken):
        async def take(ctx):
            ready = 0
            async for _, _, valid, payload in ctx.tick().sample(port.valid, port.payload):
                if valid and ready:
                    taken.append(payload)
                ready = rng.random() >= stall
                ctx.set(port.ready, ready)

        return take

    async def watch(ctx):
        before = 0
        async for _, _, valid, step, number, release in ctx.tick().sample(dut.valid, dut.step, dut.set, dut.release):
            if valid:
                read = list(step.read.words), step.read.turn
                halves = {"first": step.halves.first, "off": step.halves.off}
                steps.append((number, read, step.part, step.channel, step.bank, halves))
                rows = world["rows"]
                if rows is not None and world["row"] < len(rows):
                    row, channels = rows[world["row"]]
                    assert world["job"].lanes or begins[world["number"]] + row < before, "its weights are there"
                    world["row"] += step.channel == channels - 1
            assert not release or valid
            released[0] += release
            before = world["written"]

    async def bench(ctx):
        sets = tiles = 0
        for number, job in enumerate(jobs):
            world.update(job=job, rows=list(job.rows()), row=0, number=number)
            names = ["lanes", "stays", "granularity", "out_channels", *(["floats", "bias"] if built else [])]
            # A set of this job may be there before it begins.
            ctx.set(dut.sets.payload, next(job.flags()))
            ctx.set(dut.sets.valid, rng.getrandbits(1) and not job.lanes)
            await ctx.tick().repeat(rng.randrange(1, 5))
            while ctx.get(dut.busy):
                await ctx.tick()
            ctx.set(dut.plan, {name: getattr(job, name) for name in names} | {"last_pass": len(job.passes) - 1})
            await pulse(ctx, dut.start)
            steps.clear(), read.clear(), told.clear()
            flags = list(job.flags())
            for which, each in enumerate(flags):
                while not ctx.get(dut.sets.valid) and rng.random() < idle:
                    await ctx.tick()
                ctx.set(dut.sets.payload, each)
                words, turn = READS[which % len(READS)]
                ctx.set(dut.lane_read, {"words": words, "turn": turn})
                ctx.set(dut.halves, HALVES[which % len(HALVES)])
                ctx.set(dut.sets.valid, 1)
                await ctx.tick().until(dut.sets.ready)
                ctx.set(dut.sets.valid, 0)
            made = job.tiles * len(job.passes)
            while len(read) < made:
                await ctx.tick()
            assert steps == list(job.steps((sets, tiles), begins[number])), f"seed {SEED}, {job}"
            assert read == [(tiles + tile) % PARAMS.accumulator_banks for tile in range(made)]
            finals = [tile % job.tiles == job.tiles - 1 for tile in range(made)]
            assert told == ([] if job.lanes or job.stays else finals)
            sets, tiles = sets + (0 if job.lanes else len(flags)), tiles + made
            assert released[0] == sets

    async def floats(ctx):
        """Gives biases of two passes at most that are not computed; looks at steps."""
        given = computed = cycle = 0
        used = {}
        ticks = ctx.tick().sample(dut.start, dut.valid, dut.step, dut.sets.valid & dut.sets.ready, dut.sets.payload)
        over = begun = 0  # the set of the step is the last one of its pass; passes that have ended
        async for _, _, start, valid, step, taken, flags in ticks:
            job = world.get("job")
            if start:
                given = computed = begun = 0
            if valid and job.floats:
                assert not job.bias or begun < given
                assert step.half == begun % 2
                place = step.bank, step.channel
                assert step.halves.first or cycle - used[place] >= LOOP
                used[place] = cycle
            begun += over
            over = taken and flags.last and flags.final
            computed = begun
            gives = job is not None and given < len(job.passes) and given < computed + 2 and rng.random() >= idle
            gives = gives and not start
            ctx.set(dut.biases, gives)
            given += gives
            cycle += 1

    watched = [weights, taker(dut.tiles, read), taker(dut.tile, told), watch, watch_stream(dut.tiles, "tiles"),
               watch_stream(dut.tile, "tile")]  # fmt: skip
    simulate(dut, bench, background=[*watched, *([floats] if built else [])], deadline=100_000)
    assert {(job.lanes, job.stays) for job in jobs} == {(0, 0), (0, 1), (1, 0)}


SETS, CHANNELS = 3, 3


def job_of(dut, tiles, **plan):
    """A testbench that offers the sets of so many tiles as soon as they are taken; nothing else is waited for."""

    async def bench(ctx):
        ctx.set(dut.plan, {"stays": 1, "granularity": 4, "out_channels": 2 * CHANNELS} | plan)
        ctx.set(dut.tiles.ready, 1)
        await pulse(ctx, dut.start)
        ctx.set(dut.written, RING)
        for number in range(tiles * SETS):
            ctx.set(dut.sets.payload, {"first": number % SETS == 0, "last": number % SETS == SETS - 1})
            ctx.set(dut.sets.valid, 1)
            await ctx.tick().until(dut.sets.ready)
        ctx.set(dut.sets.valid, 0)
        await ctx.tick().repeat(LATENCY + 3)

    return bench


def test_full_rate_and_latency():
    """A step a cycle, from set to set and from tile to tile, one cycle behind the set; a tile some cycles after it."""
    dut, valid, tiles = elaborated(Sequencer, PARAMS, LATENCY), [], []
    simulate(dut, job_of(dut, 3), background=[recording(valid, dut.valid), recording(tiles, dut.tiles.valid)])
    assert valid == [(cycle,) for cycle in range(2, 2 + 3 * SETS * CHANNELS)]
    assert tiles == [(2 + (tile + 1) * SETS * CHANNELS - 1 + LATENCY + 1,) for tile in range(3)]


@pytest.mark.parametrize("alike", [0, 1])
def test_when_the_next_job_may_begin(alike):
    """Two cycles behind the last step if it is alike; else when the sums of that can be read. Its weights are there."""
    dut, valid = elaborated(Sequencer, PARAMS, LATENCY), []

    async def bench(ctx):
        ctx.set(dut.plan, {"stays": 1, "granularity": 3, "out_channels": 4, "last_pass": 0})
        ctx.set(dut.tiles.ready, 1)
        ctx.set(dut.overlaps, alike)
        ctx.set(dut.written, RING)
        ctx.set(dut.sets.payload, {"first": 1, "last": 1, "final": 1})
        ctx.set(dut.sets.valid, 1)
        for _ in range(4):
            while ctx.get(dut.busy):
                await ctx.tick()
            await pulse(ctx, dut.start)
            await ctx.tick()

    simulate(dut, bench, background=[recording(valid, dut.valid, dut.step.read.words[0], dut.step.bank)])
    words = RING // ROW
    gap = 2 if alike else 2 + LATENCY + 1
    begun = [2 + job * (1 + gap) for job in range(3)]
    assert valid[:6] == [(begun[job] + step, job + step * words, job) for job in range(3) for step in range(2)]


def test_rate_of_floats():
    """A set begins ``LOOP`` cycles after the one before, or when that has ended; a tile does not wait."""
    dut, begun = elaborated(Sequencer, FLOATS, LATENCY, LOOP), []
    simulate(dut, job_of(dut, 2, floats=1), background=[recording(begun, dut.valid & (dut.step.channel == 0))])
    waits = [after - before for (before,), (after,) in pairwise(begun)]
    assert waits == [LOOP, LOOP, CHANNELS, LOOP, LOOP]


@pytest.mark.parametrize("what", ["features", "weights", "results"])
def test_what_a_step_waits_for(what):
    """One of three signals is high, and only that."""
    dut = elaborated(Sequencer, PARAMS, LATENCY)
    names = ("features", "weights", "results")

    async def bench(ctx):
        ctx.set(dut.plan, {"stays": 1, "granularity": 4, "out_channels": 1})
        await pulse(ctx, dut.start)
        ctx.set(dut.written, 0 if what == "weights" else RING)
        ctx.set(dut.sets.payload, {"first": 1, "last": 1})
        ctx.set(dut.sets.valid, what != "features")
        await ctx.tick().repeat(PARAMS.accumulator_banks)  # tiles that nobody reads
        assert [ctx.get(getattr(dut, f"stall_{name}")) for name in names] == [name == what for name in names]
        assert not ctx.get(dut.sets.ready)

    simulate(dut, bench)
