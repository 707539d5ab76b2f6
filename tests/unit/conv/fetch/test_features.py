"""Sets of rows of random jobs, as they lie in the first buffer and with the slaves, against the golden model's rows."""

import random
from functools import partial

import numpy as np
import pytest
from amaranth.hdl import Cat, Elaboratable, Module, ResetInserter, Signal, Value

from tilewright.golden.conv.machine import job_word
from tilewright.golden.conv.placement import parts_of
from tilewright.golden.conv.rows import Rows
from tilewright.golden.spec.conv.job import JOB, ConvOperation, ConvOutput
from tilewright.golden.spec.conv.params import CHANNELS_AT_ONCE, CONV_PRESETS, ConvParams
from tilewright.golden.spec.pe.instruction import MmType
from tilewright.hw.conv.fetch.buffer import FeatureBuffer
from tilewright.hw.conv.fetch.features import FeatureFetcher
from tilewright.hw.conv.params import ConvUnitParams
from tilewright.hw.smem.params import SmemParams
from tilewright.sim.pysim.conv_plan import plan_of, plan_values
from tilewright.sim.pysim.simulate import elaborated, simulate
from tilewright.sim.pysim.streams import packed, watch_stream
from tilewright.sim.pysim.unpacked import unpacker
from tilewright.sim.random.conv_jobs import random_jobs

SEED = 22
SMEM = SmemParams(16384)
PARAMS = {
    **{name: ConvUnitParams(CONV_PRESETS[name], SMEM) for name in ("unit", "ecp5", "default")},
    # Sets of several requests; rows of one slave that are less than a request; blocks that never come by pairs.
    "wide": ConvUnitParams(ConvParams(64, 2, 4, feature_rows=16, results=8, types=("i8", "i16")), SMEM),
    "one-slave": ConvUnitParams(ConvParams(16, 1, 8, results=4, types=("i8",)), SMEM),
    "one-unit": ConvUnitParams(ConvParams(16, 2, 1, feature_rows=4, results=4, types=("i8", "i16")), SMEM),
}
#: Probabilities, in each cycle, that a request is not taken, an answer is late, a set is not handed on or not released.
MODES = {"none": (0, 0, 0), "memory": (0.5, 0.6, 0), "array": (0, 0, 0.85), "both": (0.3, 0.5, 0.6)}


class Path(Elaboratable):
    """Both blocks; between them comes what plays the gatherer."""

    def __init__(self, params, reset):
        self.params, self.reset = params, reset
        self.fetcher, self.buffer = FeatureFetcher(params), FeatureBuffer(params)

    def elaborate(self, platform):
        m = Module()
        m.submodules.fetcher = ResetInserter(self.reset)(self.fetcher)
        m.submodules.buffer = ResetInserter(self.reset)(self.buffer)
        return m


def make_path(params):
    return Path(params, Signal())


def wanted(fields, smem, params):
    """(flags, rows, mask, rows of slaves, their mask) of each set, in bytes; without its mask a byte is anything."""
    plan, kind, conv = plan_of(fields, params.conv), MmType(fields["type"]), params.conv
    parts, operation = parts_of(fields), ConvOperation(fields["operation"])
    values = plan_values(fields, params)
    mask = (1 << 8 * kind.bytes) - 1
    k = parts["k"].view(smem, f"<u{kind.bytes}") if "k" in parts else None
    if k is not None:
        shape = plan.shape.kernel[::-1]
        k = k.reshape(*(shape if operation.lanes else (plan.shape.out_channels, *shape)), plan.shape.channels)
    x = parts["x"].view(smem, f"<u{kind.bytes}")
    rows = Rows(plan, x, k, (values["x_fill"] & mask, values["k_fill"] & mask))

    def as_bytes(elements):
        return np.ascontiguousarray(elements).astype(f"<u{kind.bytes}").view(np.uint8)

    def there(tile):
        return np.repeat(rows.points(tile) >= 0, plan.block_bytes, axis=-1)

    positions = [(row, step) for row in range(plan.shape.kernel[1]) for step in range(plan.steps)]
    if not operation.lanes:
        passes = -(-plan.slave_channels // CHANNELS_AT_ONCE)
        for tile in list(range(plan.point_tiles)) * passes:
            order = [(row, step, block) for row, step in positions for block in range(plan.blocks)]
            for number, (row, step, block) in enumerate(order):
                flags = number == 0, number == len(order) - 1, tile == plan.point_tiles - 1
                features = as_bytes(rows.features(tile, row, block, step)).reshape(conv.units, -1)
                yield flags, features, there(tile), None, None
        return
    for block in range(plan.blocks):
        for first in range(0, plan.point_tiles, conv.slaves):
            tiles = range(first, min(first + conv.slaves, plan.point_tiles))
            for number, (row, step) in enumerate(positions):
                flags = number == 0, number == len(positions) - 1, tiles[-1] == plan.point_tiles - 1
                features = np.zeros((conv.slaves, conv.row_bytes), np.uint8)
                taken = np.zeros((conv.slaves, conv.row_bytes), bool)
                for slave, tile in enumerate(tiles):
                    features[slave] = as_bytes(rows.features(tile, row, block, step)).ravel()
                    taken[slave] = there(tile)
                if values["pool"]:
                    weights = as_bytes(np.full(conv.row_bytes // kind.bytes, values["k_fill"] & mask))
                else:
                    weights = np.tile(as_bytes(rows.weights(0, row, block, step)), plan.fold)
                yield (
                    flags,
                    np.tile(weights, (conv.units, 1)),
                    np.ones((conv.units, conv.row_bytes), bool),
                    features,
                    taken,
                )


class Gatherer:
    """Takes requests and answers them in order, after a while."""

    def __init__(self, path, seed, busy, late):
        self.path, self.rng, self.busy, self.late = path, random.Random(seed), busy, late
        self.answers, self.cycles, self.cycle, self.requests = [], [], 0, []
        self.smem = None

    async def serve(self, ctx):
        i, requests = self.path.buffer.i, self.path.fetcher.requests
        offer, ready = Cat(i.valid, Value.cast(i.payload)), requests.ready
        width, unpack = len(offer), unpacker(requests.payload.shape())
        pack = partial(packed, i.payload.shape())
        ticks = aiter(ctx.tick().sample(self.path.reset, requests.valid, Value.cast(requests.payload)))
        while True:
            taking = self.rng.random() >= self.busy
            ctx.set(ready, taking)
            answering = self.answers and self.rng.random() >= self.late
            ctx.set(offer, pack(self.answers.pop(0)) << 1 | 1 if answering else self.rng.getrandbits(width) & -2)
            _, _, reset, valid, bits = await anext(ticks)
            if reset:
                self.answers.clear()
            elif valid and taking:
                self.take(unpack(bits))
                self.cycles.append(self.cycle)
            self.cycle += 1

    def take(self, request):
        size, fill = 1 << request.size, request.fill.to_bytes(2, "little")
        whole, read = bytearray(), []
        for piece in request.pieces:
            low, high, address = piece.low, piece.high, piece.address
            assert low <= 16 and high <= size, (low, high, size)
            places = [(address + index) % SMEM.size_bytes for index in range(low, high)]
            taken = bytearray(fill * 8)
            if places:
                taken[low:high] = bytes(self.smem[places])
            whole += taken[:size]
            read += places
        self.requests.append(read)
        whole += self.rng.randbytes(16 * self.path.params.lanes - len(whole))
        lanes = [int.from_bytes(whole[at : at + 16], "little") for at in range(0, len(whole), 16)]
        self.answers.append({"data": lanes, "tag": request.tag})


async def start(ctx, path, fields):
    while ctx.get(path.fetcher.busy):
        await ctx.tick()
    values = plan_values(fields, path.params)
    ctx.set(Value.cast(path.fetcher.plan), packed(path.fetcher.plan.shape(), values))
    ctx.set(path.fetcher.start, 1)
    await ctx.tick()
    ctx.set(path.fetcher.start, 0)


class Array:
    """Takes sets, and after a while looks at them and releases them."""

    def __init__(self, path, seed, late):
        self.path, self.rng, self.late = path, random.Random(seed), late
        conv, sets = path.params.conv, path.params.sets
        self.slaves = np.zeros((conv.slaves, sets, conv.row_bytes), np.uint8)
        self.expected, self.held, self.checked = [], [], 0

    def check(self, rows, number, expected):
        conv = self.path.params.conv
        _, features, mask, of_slaves, slave_mask, text = expected
        found = np.frombuffer(rows.to_bytes(conv.units * conv.row_bytes, "little"), np.uint8).reshape(conv.units, -1)
        assert (found == features)[mask].all(), f"set {self.checked} of {text}:\n{found}\n{features}\n{mask}"
        if of_slaves is not None:
            found = self.slaves[:, number]
            assert (found == of_slaves)[slave_mask].all(), f"set {self.checked} of {text}:\n{found}\n{of_slaves}"
        self.checked += 1

    async def watch_writes(self, ctx):
        ports = self.path.buffer.slave_writes
        any_write = Cat(port.strobe.any() for port in ports).any()
        writes = Cat(Cat(port.word, port.data.as_value(), port.strobe) for port in ports)
        count, row = len(Cat(ports[0].word)), self.path.params.conv.row_bytes
        async for _, _, writing, bits in ctx.tick().sample(any_write, writes):
            for slave in range(len(ports) if writing else 0):
                one = bits >> slave * (count + 9 * row) & (1 << count + 9 * row) - 1
                word, strobe = one & (1 << count) - 1, one >> count + 8 * row
                data = (one >> count & (1 << 8 * row) - 1).to_bytes(row, "little")
                for byte in range(row):
                    if strobe >> byte & 1:
                        self.slaves[slave, word, byte] = data[byte]

    async def serve(self, ctx):
        buffer, fetcher, number, oldest = self.path.buffer, self.path.fetcher, 0, 0
        rows = None  # of the oldest set, if it has been read
        driven, shown = Cat(buffer.sets.ready, fetcher.release, buffer.read), buffer.rows.as_value()
        ticks = aiter(ctx.tick().sample(self.path.reset, buffer.sets.valid, Value.cast(buffer.sets.payload)))
        while True:
            ready = self.rng.random() >= self.late
            release = rows is not None and self.rng.random() >= self.late
            # A set is read until it is released: up to then nothing may come into it.
            ctx.set(driven, ready | release << 1 | (oldest + release) % self.path.params.sets << 2)
            _, _, reset, valid, flags = await anext(ticks)
            if reset:
                self.held.clear()
                number, oldest, rows = 0, 0, None
                continue
            if release:
                self.check(rows, oldest, self.held.pop(0))
                oldest = (oldest + 1) % self.path.params.sets
            rows = ctx.get(shown) if self.held else None
            if valid and ready:
                assert self.expected, "a set too many"
                expected = self.expected.pop(0)
                assert tuple(flags >> bit & 1 for bit in range(3)) == expected[0], (number, expected[0], expected[5])
                self.held.append(expected)
                # It was readable in this cycle already, in which ``read`` may have been its number.
                number += 1
                rows = ctx.get(shown) if len(self.held) == 1 else rows


def run(params, jobs, mode="none", seed=0):
    """Jobs one after the other; requests of each, bytes read of each and cycles."""
    path = elaborated(make_path, params)
    busy, late, slow = MODES[mode]
    gatherer, array = Gatherer(path, seed, busy, late), Array(path, seed, slow)
    made = []

    async def bench(ctx):
        for fields, smem in jobs:
            gatherer.smem = smem
            sets = [(*each, f"{JOB.name} {fields}") for each in wanted(fields, smem, params)]
            array.expected += sets
            first, begun = len(gatherer.requests), gatherer.cycle
            await start(ctx, path, fields)
            while array.expected or array.held or ctx.get(path.fetcher.busy):
                await ctx.tick()
            made.append((gatherer.requests[first:], [cycle - begun for cycle in gatherer.cycles[first:]], len(sets)))
        for _ in range(20):
            await ctx.tick()
            assert not ctx.get(path.fetcher.requests.valid) and not ctx.get(path.buffer.sets.valid)

    simulate(path, bench, background=[watch_stream(path.fetcher.requests, "requests"),
                                      watch_stream(path.buffer.sets, "sets"),
                                      gatherer.serve, array.watch_writes, array.serve], deadline=20_000)  # fmt: skip
    return made


def some_jobs(preset, mode, count, *, most=300):
    """Random jobs of at most so many requests."""
    params, jobs = PARAMS[preset], []
    conv = params.conv
    for job in random_jobs(f"{SEED} {preset} {mode}", conv, 8 * count, most_macs=900, smem_bytes=SMEM.size_bytes):
        plan = plan_of(job.fields, conv)
        rows = conv.slaves if plan.shape.operation.lanes else conv.units
        requests = 1 + rows * conv.row_bytes // (params.lanes * min(16, plan.block_bytes))
        # The cycles of the array are sets, or as many for each channel of a slave.
        if plan.mac_cycles * requests <= most:
            jobs.append((job.fields, job.smem))
    return jobs[:count]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("preset", PARAMS)
def test_random_jobs(preset, mode):
    run(PARAMS[preset], some_jobs(preset, mode, 5), mode)


def a_job(params, granularity, channels, *, width=24, height=3, kernel=(3, 3), operation=ConvOperation.CONVOLUTION,
          raster=1, out_channels=1, **others):  # fmt: skip
    """Dense tensors, padding of one on all sides, 8 bits: of as many points as X has pixels."""
    out = channels if operation.lanes else out_channels
    fields = JOB.unpack(job_word(
        operation=operation, type=0, output=ConvOutput.RAW, granularity=granularity, raster=raster, channels=channels,
        width=width, height=height, out_width=width, out_height=height, out_channels=out, kernel=kernel,
        padding=[side // 2 for side in kernel], x=0x105, k=0x2C03, k_pitch=channels, x_zero=77, k_zero=11, y=0,
        x_pitch=[channels, width * channels, width * height * channels],
        y_pitch=[out, width * out, width * height * out], **others))  # fmt: skip
    rng = np.random.default_rng(SEED)
    return fields, rng.integers(256, size=SMEM.size_bytes, dtype=np.uint8)


#: Preset, granularity, channels, operation; requests that two successive sets take, and so cycles.
RATES = {
    "a row is a request": ("default", 5, 32, ConvOperation.CONVOLUTION, 2),
    "pairs": ("default", 5, 64, ConvOperation.CONVOLUTION, 2),
    "three blocks": ("default", 5, 96, ConvOperation.CONVOLUTION, 2),
    "folded twice": ("default", 4, 32, ConvOperation.CONVOLUTION, 2),
    "folded four times": ("default", 3, 16, ConvOperation.CONVOLUTION, 4),
    "folded 16 times": ("default", 1, 2, ConvOperation.CONVOLUTION, 16),
    "small": ("ecp5", 4, 16, ConvOperation.CONVOLUTION, 2),
    "small pairs": ("ecp5", 4, 32, ConvOperation.CONVOLUTION, 2),
    "lanes": ("default", 4, 16, ConvOperation.DEPTHWISE, 6),
    "small lanes": ("ecp5", 4, 16, ConvOperation.SUM_POOL, 6),
}


@pytest.mark.parametrize("name", RATES)
def test_a_request_a_cycle(name):
    """Exact numbers of requests, and no cycle without one as soon as the second tile has been walked."""
    preset, granularity, channels, operation, requests = RATES[name]
    # With room for more sets than are under way at once.
    params = ConvUnitParams(CONV_PRESETS[preset].replace(feature_rows=64), SMEM)
    job = a_job(params, granularity, channels, operation=operation)
    ((made, cycles, sets),) = run(params, [job])
    assert 2 * len(made) == requests * sets
    places = (params.conv.slaves if operation.lanes else params.conv.units) * params.conv.row_bytes >> granularity
    # The first place comes 1 cycle after the start, the first request 7 after the last place of the tile.
    assert cycles[0] == places + 8
    if places + 2 < requests * 9 * -(-channels >> granularity) // 2:
        assert cycles == list(range(cycles[0], cycles[0] + len(cycles)))


@pytest.mark.parametrize("preset", PARAMS)
def test_pairs(preset):
    """Blocks of a whole row, an even and an odd number of them, the last one cut short; merged columns; two passes."""
    params = PARAMS[preset]
    row = params.conv.row_bytes
    shape = {"width": 5, "height": 2, "out_channels": CHANNELS_AT_ONCE * params.conv.slaves + 1}
    jobs = [
        a_job(params, row.bit_length() - 1, channels, kernel=(3, 1), merge=merge, raster=raster, **shape)
        for channels, merge, raster in ((2 * row - 1, 1, 0), (2 * row + 3, 1, 1), (row // 2 + 5, 3, 1), (row - 2, 2, 0))
    ]
    run(params, jobs, "both")


def test_only_bytes_of_x_are_read():
    """A tensor at the end of memory: what lies behind the ends of lines and pixels is not asked for."""
    params = PARAMS["unit"]
    for merge in (1, 3):
        fields, smem = a_job(params, 3, 5, width=6, merge=merge)
        ((made, _, _),) = run(params, [(fields, smem)])
        x = parts_of(fields)["x"]
        assert {place for read in made for place in read} == set(range(x.address, x.end))


@pytest.mark.parametrize("cycles", [5, 23, 60, 131])
def test_reset(cycles):
    """In the middle of a job: the next one finds nothing of it, and all room."""
    params = PARAMS["unit"]
    path = elaborated(make_path, params)
    gatherer, array = Gatherer(path, cycles, 0.2, 0.3), Array(path, cycles, 0.3)
    (before, smem), after = a_job(params, 3, 16), a_job(params, 4, 32, width=5)
    gatherer.smem = smem

    async def bench(ctx):
        array.expected = [(*each, "before") for each in wanted(before, smem, params)]
        await start(ctx, path, before)
        await ctx.tick().repeat(cycles)
        ctx.set(path.reset, 1)
        await ctx.tick()
        ctx.set(path.reset, 0)
        assert not ctx.get(path.fetcher.busy)
        array.expected = [(*each, "after") for each in wanted(*after, params)]
        await start(ctx, path, after[0])
        while array.expected or array.held:
            await ctx.tick()

    simulate(path, bench, background=[gatherer.serve, array.watch_writes, array.serve])


def test_late_release():
    """Without a release as many sets are asked for as there is room for, and a pair only if there is room for both."""
    params = PARAMS["unit"]
    path = elaborated(make_path, params)
    fields, smem = a_job(params, 4, 48, kernel=(1, 1))
    gatherer = Gatherer(path, 0, 0, 0)
    gatherer.smem = smem

    async def release(ctx):
        ctx.set(path.fetcher.release, 1)
        await ctx.tick()
        ctx.set(path.fetcher.release, 0)
        await ctx.tick().repeat(20)

    async def bench(ctx):
        await start(ctx, path, fields)
        await ctx.tick().repeat(60)
        # Of four sets the first three are those of a tile: two, and one; the fourth would be the first of a pair.
        assert len(gatherer.requests) == 3
        await release(ctx)
        assert len(gatherer.requests) == 5
        await release(ctx)
        assert len(gatherer.requests) == 6

    simulate(path, bench, background=[gatherer.serve])
