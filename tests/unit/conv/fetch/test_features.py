"""Sets of rows of random jobs, as they lie in the first buffer and with the slaves, against the golden model's rows."""

import random

import numpy as np
import pytest
from amaranth.hdl import Elaboratable, Module, ResetInserter, Signal

from tilewright.golden.conv.machine import job_word
from tilewright.golden.conv.placement import parts_of
from tilewright.golden.conv.rows import Rows
from tilewright.golden.spec.conv.job import JOB, ConvOperation
from tilewright.golden.spec.conv.params import CHANNELS_AT_ONCE, CONV_PRESETS, ConvParams
from tilewright.golden.spec.pe.instruction import MmType
from tilewright.hw.conv.fetch.buffer import FeatureBuffer
from tilewright.hw.conv.fetch.features import FeatureFetcher
from tilewright.hw.conv.params import ConvUnitParams
from tilewright.hw.smem.params import SmemParams
from tilewright.sim.pysim.conv_plan import plan_of, plan_values
from tilewright.sim.pysim.simulate import elaborated, simulate
from tilewright.sim.pysim.streams import watch_stream
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
    """(flags, rows, mask, rows of slaves, their mask) of each set, in bytes; where a mask is not set they are anything."""
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
        i, requests, reset = self.path.buffer.i, self.path.fetcher.requests, self.path.reset
        ready = 0
        while True:
            ready = int(self.rng.random() >= self.busy)
            ctx.set(requests.ready, ready)
            answer = bool(self.answers) and self.rng.random() >= self.late
            ctx.set(i.valid, answer)
            if answer:
                ctx.set(i.payload, self.answers.pop(0))
            else:
                ctx.set(i.payload, {"data": [self.rng.getrandbits(128) for _ in range(self.path.params.lanes)]})
            _, _, in_reset, valid, payload = await ctx.tick().sample(reset, requests.valid, requests.payload)
            if in_reset:
                self.answers.clear()
            elif valid and ready:
                self.take(payload)
                self.cycles.append(self.cycle)
            self.cycle += 1

    def take(self, request):
        size = 1 << request.size
        whole = bytearray(16 * self.path.params.lanes)
        read = []
        for number, piece in enumerate(request.pieces):
            assert piece.low <= 16 and piece.high <= max(size, 0)
            for index in range(size):
                inside = piece.low <= index < piece.high
                place = (piece.address + index) % SMEM.size_bytes
                whole[number * size + index] = self.smem[place] if inside else request.fill >> 8 * (index % 2) & 255
                if inside:
                    read.append(place)
        self.requests.append(read)
        lanes = [int.from_bytes(whole[at : at + 16], "little") for at in range(0, len(whole), 16)]
        self.answers.append({"data": lanes, "tag": request.tag})


async def start(ctx, path, fields):
    while ctx.get(path.fetcher.busy):
        await ctx.tick()
    values = plan_values(fields, path.params)
    ctx.set(path.fetcher.plan, values)
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
        flags, features, mask, of_slaves, slave_mask, text = expected
        found = np.frombuffer(rows.to_bytes(conv.units * conv.row_bytes, "little"), np.uint8).reshape(conv.units, -1)
        assert (found == features)[mask].all(), f"set {self.checked} of {text}:\n{found}\n{features}\n{mask}"
        if of_slaves is not None:
            found = self.slaves[:, number]
            assert (found == of_slaves)[slave_mask].all(), f"set {self.checked} of {text}:\n{found}\n{of_slaves}"
        self.checked += 1

    async def watch_writes(self, ctx):
        ports = self.path.buffer.slave_writes
        sampled = [signal for port in ports for signal in (port.word, port.data.as_value(), port.strobe)]
        async for _, _, *values in ctx.tick().sample(*sampled):
            for slave in range(len(ports)):
                word, bits, strobe = values[3 * slave : 3 * slave + 3]
                for byte in range(strobe.bit_length()):
                    if strobe >> byte & 1:
                        self.slaves[slave, word, byte] = bits >> 8 * byte & 255

    async def serve(self, ctx):
        buffer, fetcher, number, oldest = self.path.buffer, self.path.fetcher, 0, 0
        rows = None  # of the oldest set, being read in this cycle
        while True:
            ready = int(self.rng.random() >= self.late)
            ctx.set(buffer.sets.ready, ready)
            release = rows is not None and self.rng.random() >= self.late
            ctx.set(fetcher.release, release)
            # Each release looks at the set once more: until then nothing may come into it.
            ctx.set(buffer.read, (oldest + release) % self.path.params.sets)
            _, _, reset, valid, payload = await ctx.tick().sample(
                self.path.reset, buffer.sets.valid, buffer.sets.payload
            )
            if reset:
                self.held.clear()
                number, oldest, rows = 0, 0, None
                continue
            seen = ctx.get(buffer.rows.as_value())
            if release:
                self.check(rows, oldest, self.held.pop(0))
                oldest = (oldest + 1) % self.path.params.sets
            # A set that has been taken in this cycle was there before.
            if valid and ready:
                assert self.expected, "a set too many"
                expected = self.expected.pop(0)
                assert (payload.first, payload.last, payload.final) == expected[0], (number, expected[0], expected[5])
                self.held.append(expected)
                number += 1
            rows = seen if self.held else None


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
                                      gatherer.serve, array.watch_writes, array.serve], deadline=300_000)  # fmt: skip
    return made


def some_jobs(preset, mode, count):
    params = PARAMS[preset]
    return [
        (job.fields, job.smem)
        for job in random_jobs(f"{SEED} {preset} {mode}", params.conv, count, smem_bytes=SMEM.size_bytes)
    ]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("preset", PARAMS)
def test_random_jobs(preset, mode):
    run(PARAMS[preset], some_jobs(preset, mode, 6), mode)
