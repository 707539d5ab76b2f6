"""The order of work: steps, releases and tiles of random jobs against loops, whatever it has to wait for."""

import random
from dataclasses import dataclass

import pytest

from tilewright.golden.spec.conv.params import CHANNELS_AT_ONCE, CONV_PRESETS
from tilewright.hw.conv.array.sequencer import Sequencer
from tilewright.hw.conv.layouts import ACCUMULATOR_BANKS
from tilewright.hw.conv.params import ConvUnitParams
from tilewright.hw.smem.params import SmemParams
from tilewright.sim.pysim.simulate import elaborated, simulate
from tilewright.sim.pysim.streams import STALL_MODES, watch_stream

SEED = 45
LATENCY = 4
PARAMS = ConvUnitParams(CONV_PRESETS["unit"].replace(slaves=2, weight_bytes=256), SmemParams(4096))
ROW, RING = PARAMS.conv.row_bytes, PARAMS.conv.weight_bytes // CHANNELS_AT_ONCE


@dataclass
class Job:
    """Tiles of each pass, sets of each tile."""

    lanes: int
    stays: int
    granularity: int
    out_channels: int
    tiles: int
    sets: int

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

    def steps(self, done):
        """Set, and word, part, channel, bank, first of each step; ``done`` sets and tiles came before."""
        sets, tiles = done
        words = RING // ROW
        for number, ((row, channels), flags) in enumerate(zip(self.rows(), self.flags(), strict=True)):
            place, bank = (sets + number) % PARAMS.sets, (tiles + number // self.sets) % ACCUMULATOR_BANKS
            for channel in range(channels):
                word = place if self.lanes else row // ROW % words + channel * words
                part = 0 if self.lanes else row % ROW >> self.granularity
                yield place, word, part, channel, bank, int(flags["first"])


def some_job(rng):
    granularity, lanes = rng.randrange(5), int(rng.random() < 0.3)
    stays = rng.getrandbits(1) & ~lanes
    most = RING >> granularity if stays else 12
    return Job(
        lanes, stays, granularity, rng.randrange(1, 20), rng.randrange(1, 4), rng.randrange(1, min(most, 12) + 1)
    )


@pytest.mark.parametrize("mode", STALL_MODES)
def test_jobs(mode):
    """In ``idle`` modes sets and weights come late, in ``stall`` modes tiles are read late."""
    dut, rng = elaborated(Sequencer, PARAMS, LATENCY), random.Random(SEED)
    idle, stall = STALL_MODES[mode]["idle"], STALL_MODES[mode]["stall"]
    jobs = [some_job(rng) for _ in range(25)]
    steps, read, told, released = [], [], [], [0]
    world = {"written": 0, "freed": 0, "begun": 0, "rows": ()}

    async def weights(ctx):
        """Writes rows from where they are freed on, and never more than fit."""
        async for _, _, start, freed in ctx.tick().sample(dut.start, dut.freed):
            if start:
                world["written"] = world["freed"] = 0
            else:
                world["freed"] += (freed - world["freed"]) % (2 * RING)
                job = world["job"]
                more = rng.randrange(4) << job.granularity
                total = max((row for row, _ in job.rows()), default=0) + (1 << job.granularity)
                more = min(more, world["freed"] + RING - world["written"], total - world["written"])
                if not job.lanes and rng.random() >= idle:
                    world["written"] += max(0, more)
            ctx.set(dut.written, world["written"] % (2 * RING))

    async def results(ctx):
        ready = 0
        async for _, _, valid, bank in ctx.tick().sample(dut.tiles.valid, dut.tiles.payload):
            if valid and ready:
                read.append(bank)
            ready = rng.random() >= stall
            ctx.set(dut.tiles.ready, ready)

    async def loader(ctx):
        ready = 0
        async for _, _, valid, final in ctx.tick().sample(dut.tile.valid, dut.tile.payload):
            if valid and ready:
                told.append(final)
            ready = rng.random() >= stall
            ctx.set(dut.tile.ready, ready)

    async def watch(ctx):
        before = 0
        async for _, _, valid, step, number, release in ctx.tick().sample(dut.valid, dut.step, dut.set, dut.release):
            if valid:
                steps.append((number, step.word, step.part, step.channel, step.bank, step.first))
                rows = world["rows"]
                if rows is not None and world["row"] < len(rows):
                    row, channels = rows[world["row"]]
                    assert world["job"].lanes or row < before, "its weights are there"
                    world["row"] += step.channel == channels - 1
            assert not release or valid
            released[0] += release
            before = world["written"]

    async def bench(ctx):
        sets = tiles = 0
        for job in jobs:
            world.update(job=job, rows=list(job.rows()), row=0)
            ctx.set(dut.plan, {name: getattr(job, name) for name in ("lanes", "stays", "granularity", "out_channels")})
            ctx.set(dut.start, 1)
            ctx.set(dut.active, 1)
            await ctx.tick()
            ctx.set(dut.start, 0)
            steps.clear(), read.clear(), told.clear()
            flags = list(job.flags())
            for each in flags:
                while rng.random() < idle:
                    await ctx.tick()
                ctx.set(dut.sets.payload, each)
                ctx.set(dut.sets.valid, 1)
                await ctx.tick().until(dut.sets.ready)
                ctx.set(dut.sets.valid, 0)
            made = job.tiles * len(job.passes)
            while len(read) < made:
                await ctx.tick()
            ctx.set(dut.active, 0)
            assert steps == list(job.steps((sets, tiles))), f"seed {SEED}, {job}"
            assert read == [(tiles + number) % ACCUMULATOR_BANKS for number in range(made)]
            finals = [number % job.tiles == job.tiles - 1 for number in range(made)]
            assert told == ([] if job.lanes or job.stays else finals)
            sets, tiles = sets + len(flags), tiles + made
            assert released[0] == sets

    watched = [weights, results, loader, watch, watch_stream(dut.tiles, "tiles"), watch_stream(dut.tile, "tile")]
    simulate(dut, bench, background=watched, deadline=100_000)
    assert {(job.lanes, job.stays) for job in jobs} == {(0, 0), (0, 1), (1, 0)}


def test_full_rate_and_latency():
    """A step a cycle, from set to set and from tile to tile, one cycle behind the set; a tile some cycles after it."""
    dut = elaborated(Sequencer, PARAMS, LATENCY)
    valid, tiles = [], []
    sets, channels = 3, 3

    async def bench(ctx):
        ctx.set(dut.plan, {"stays": 1, "granularity": 4, "out_channels": 2 * channels})
        ctx.set(dut.start, 1)
        ctx.set(dut.tiles.ready, 1)
        await ctx.tick()
        ctx.set(dut.start, 0)
        ctx.set(dut.written, RING)
        for number in range(3 * sets):
            ctx.set(dut.sets.payload, {"first": number % sets == 0, "last": number % sets == sets - 1})
            ctx.set(dut.sets.valid, 1)
            await ctx.tick().until(dut.sets.ready)
        ctx.set(dut.sets.valid, 0)
        await ctx.tick().repeat(LATENCY + 3)

    async def watch(ctx):
        cycle = 0
        async for _, _, is_valid, tile in ctx.tick().sample(dut.valid, dut.tiles.valid):
            valid.extend([cycle] * is_valid)
            tiles.extend([cycle] * tile)
            cycle += 1

    simulate(dut, bench, background=[watch])
    assert valid == list(range(2, 2 + 3 * sets * channels))
    assert tiles == [2 + (tile + 1) * sets * channels - 1 + LATENCY + 1 for tile in range(3)]


@pytest.mark.parametrize("what", ["features", "weights", "results"])
def test_what_a_step_waits_for(what):
    """One of three signals is high, and only that."""
    dut = elaborated(Sequencer, PARAMS, LATENCY)
    names = ("features", "weights", "results")

    async def bench(ctx):
        ctx.set(dut.plan, {"stays": 1, "granularity": 4, "out_channels": 1})
        ctx.set(dut.start, 1)
        await ctx.tick()
        ctx.set(dut.start, 0)
        ctx.set(dut.active, 1)
        ctx.set(dut.written, 0 if what == "weights" else RING)
        ctx.set(dut.sets.payload, {"first": 1, "last": 1})
        ctx.set(dut.sets.valid, what != "features")
        await ctx.tick().repeat(ACCUMULATOR_BANKS)  # tiles that nobody reads
        assert [ctx.get(getattr(dut, f"stall_{name}")) for name in names] == [name == what for name in names]
        assert not ctx.get(dut.sets.ready)

    simulate(dut, bench)
