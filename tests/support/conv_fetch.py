"""Rows that slaves of the convolution engine read of their memories."""

import random
from functools import partial

import numpy as np
from amaranth.hdl import Cat, Elaboratable, Module, ResetInserter, Signal, Value

from support.conv_plan import plan_of, plan_values
from support.streams import pulse
from tilewright.golden.conv.job import parts_of
from tilewright.golden.conv.machine import job_word
from tilewright.golden.conv.rows import Rows, lane_order
from tilewright.hw.conv.array.lane_steps import LaneSteps
from tilewright.hw.conv.fetch.buffer import FeatureBuffer
from tilewright.hw.conv.fetch.features import FeatureFetcher
from tilewright.spec.conv import CHANNELS_AT_ONCE, JOB, KERNEL_ROWS, ConvOperation, ConvOutput
from tilewright.spec.pe import MmType
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import packed, unpacker, watch_stream

__all__ = ["FETCH_MODES", "FetchArray", "FetchGatherer", "FetchPath", "dense_job", "make_path", "rows_read",
           "run_jobs", "start_job", "wanted_sets"]  # fmt: skip


def rows_read(memories, words, turn):
    """Elements that slaves get: an array of shape (slaves, elements of a row).

    Parameters
    ----------
    memories : array of shape (slaves, words, elements of a row)
    words : sequence of int
        See ``LaneReadLayout``: one for each half of a row of each slave, or one for all.
    turn : int
        Part p comes from part p + ``turn``.
    """
    slaves, _, elements = memories.shape
    if len(words) == 1:
        return memories[:, words[0]]
    halves = memories.reshape(slaves, -1, 2, elements // 2)
    read = np.stack([halves[part // 2, word, part % 2] for part, word in enumerate(words)])
    return np.roll(read, -turn, axis=0).reshape(slaves, elements)


#: Probabilities in each cycle that a request is not accepted, an answer is late, a set is not forwarded or released.
FETCH_MODES = {"none": (0, 0, 0), "memory": (0.5, 0.6, 0), "array": (0, 0, 0.85), "both": (0.3, 0.5, 0.6)}


class FetchPath(Elaboratable):
    """Fetcher and buffer, and what reads words in lane-private mode; between them comes what plays the gatherer.

    Parameters
    ----------
    params : ConvUnitParams
    reset : Signal
    """

    def __init__(self, params, reset):
        self.params, self.reset = params, reset
        self.fetcher, self.buffer, self.steps = FeatureFetcher(params), FeatureBuffer(params), LaneSteps(params)

    def elaborate(self, platform):
        m = Module()
        m.submodules.fetcher = ResetInserter(self.reset)(self.fetcher)
        m.submodules.buffer = ResetInserter(self.reset)(self.buffer)
        m.submodules.steps = ResetInserter(self.reset)(self.steps)
        fetcher, buffer, steps = self.fetcher, self.buffer, self.steps
        m.d.comb += [
            steps.plan.eq(fetcher.plan),
            steps.start.eq(fetcher.start & fetcher.plan.lanes),
            steps.written.eq(buffer.written),
            steps.written_kernel.eq(buffer.written_kernel),
            fetcher.freed.eq(steps.freed),
            fetcher.freed_kernel.eq(steps.freed_kernel),
        ]
        return m


def make_path(params):
    """A path with a reset of its own."""
    return FetchPath(params, Signal())


def wanted_sets(fields, smem, params):
    """(flags, rows, mask, rows of slaves, their mask) of each set, in bytes; without its mask a byte is anything.

    In lane-private mode of each step: ``rows`` are rows of the kernel, one for each half of the units, None where it is
    off; in pooling, where rows are anything, whether it is not.
    """
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
    each = plan.lane_steps
    for number, step in enumerate(lane_order(plan)):
        begins, ends = number % each == 0, number % each == each - 1
        flags = begins, ends, step.point_tiles[-1] == plan.point_tiles - 1
        features = np.zeros((conv.slaves, conv.row_bytes), np.uint8)
        taken = np.zeros((conv.slaves, conv.row_bytes), bool)
        for slave, tile in enumerate(step.point_tiles):
            features[slave] = as_bytes(rows.features(tile, step.line, step.block, step.kernel_column)).ravel()
            taken[slave] = there(tile)
        kernel = [row is not None for row in step.kernel_rows]
        if not values["pool"]:
            kernel = [None if row is None else
                      np.tile(as_bytes(rows.weights(0, row, step.block, step.kernel_column)), plan.fold)
                      for row in step.kernel_rows]  # fmt: skip
        yield flags, kernel[: params.halves], None, features, taken


class FetchGatherer:
    """Takes requests and answers them in order, after a while."""

    def __init__(self, path, seed, busy, late):
        self.path, self.rng, self.busy, self.late = path, random.Random(seed), busy, late
        self.answers, self.cycles, self.cycle, self.requests = [], [], 0, []
        self.smem = None
        self.kept, self.again = {}, 0  # by part, places and memory of the last request; how many were for them again

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
            places = [(address + index) % self.path.params.smem.size_bytes for index in range(low, high)]
            taken = bytearray(fill * 8)
            if places:
                taken[low:high] = bytes(self.smem[places])
            whole += taken[:size]
            read += places
        self.requests.append(read)
        if self.path.params.reuses_reads:
            self.keep(request, size)
        whole += self.rng.randbytes(16 * self.path.params.lanes - len(whole))
        lanes = [int.from_bytes(whole[at : at + 16], "little") for at in range(0, len(whole), 16)]
        self.answers.append({"data": lanes, "tag": request.tag})

    def keep(self, request, size):
        """What was read for a request may be used again for the next block of the same points alone."""
        kept, places = request.reuse, [piece.address for piece in request.pieces if piece.low < piece.high]
        if kept.again:
            before, memory = self.kept[kept.part]
            assert memory is self.smem
            assert all((place - size) % self.path.params.smem.size_bytes in before for place in places)
            self.again += 1
        if kept.keep:
            self.kept[kept.part] = {piece.address for piece in request.pieces}, self.smem


async def start_job(ctx, path, fields):
    """Starts a job when the one before it has been asked for."""
    while ctx.get(path.fetcher.busy):
        await ctx.tick()
    values = plan_values(fields, path.params)
    ctx.set(Value.cast(path.fetcher.plan), packed(path.fetcher.plan.shape(), values))
    await pulse(ctx, path.fetcher.start)


class FetchArray:
    """Takes sets, and after a while looks at them and releases them."""

    def __init__(self, path, seed, late):
        self.path, self.rng, self.late = path, random.Random(seed), late
        conv = path.params.conv
        self.slaves = np.zeros((conv.slaves, path.params.words, conv.row_bytes), np.uint8)
        self.kernel = np.zeros((KERNEL_ROWS, conv.row_bytes), np.uint8)
        self.expected, self.held, self.checked = [], [], 0

    def check(self, rows, number, expected):
        conv = self.path.params.conv
        _, features, mask, _, _, text = expected
        observed = np.frombuffer(rows.to_bytes(conv.units * conv.row_bytes, "little"), np.uint8).reshape(conv.units, -1)
        assert (observed == features)[mask].all(), f"set {self.checked} of {text}:\n{observed}\n{features}\n{mask}"
        self.checked += 1

    def check_step(self, step, expected):
        flags, kernel, _, features, mask, text = expected
        text = f"step {self.checked} of {text}"
        assert (step.flags.first, step.flags.last, step.flags.final) == flags, text
        observed = rows_read(self.slaves, step.read.words, step.read.turn)
        assert (observed == features)[mask].all(), f"{text}:\n{observed}\n{features}"
        for half, row in enumerate(kernel):
            off = row is None or row is False
            assert step.halves.off >> half & 1 == off, text
            if not off and row is not True:
                observed = self.kernel[step.kernel[half]]
                assert (observed == row).all(), f"{text}, half {half}:\n{observed}\n{row}"
        self.checked += 1

    async def watch_writes(self, ctx):
        ports = self.path.buffer.slave_writes
        any_write = Cat(port.strobe.any() for port in ports).any()
        writes = Cat(Cat(port.word, port.data.as_value(), port.strobe) for port in ports)
        count, row = len(Cat(ports[0].word)), self.path.params.conv.row_bytes
        kernel = self.path.buffer.kernel_write
        ticks = ctx.tick().sample(any_write, writes, kernel.enable, kernel.row, kernel.data.as_value())
        async for _, _, writing, bits, of_kernel, number, whole in ticks:
            if of_kernel:
                self.kernel[number] = np.frombuffer(whole.to_bytes(row, "little"), np.uint8)
            for slave in range(len(ports) if writing else 0):
                one = bits >> slave * (count + 9 * row) & (1 << count + 9 * row) - 1
                word, strobe = one & (1 << count) - 1, one >> count + 8 * row
                data = (one >> count & (1 << 8 * row) - 1).to_bytes(row, "little")
                for byte in range(row):
                    if strobe >> byte & 1:
                        self.slaves[slave, word, byte] = data[byte]

    async def serve(self, ctx):
        buffer, fetcher, number, oldest = self.path.buffer, self.path.fetcher, 0, 0
        steps = self.path.steps.o
        unpack = unpacker(steps.payload.shape())
        rows = None  # of the oldest set, if it has been read
        driven, shown = Cat(buffer.sets.ready, fetcher.release, buffer.read, steps.ready), buffer.rows.as_value()
        watched = buffer.sets.valid, Value.cast(buffer.sets.payload), steps.valid, Value.cast(steps.payload)
        ticks = aiter(ctx.tick().sample(self.path.reset, *watched))
        places = range(self.path.params.sets)
        while True:
            ready = self.rng.random() >= self.late
            release = rows is not None and self.rng.random() >= self.late
            # A set is read until it is released: up to then nothing may come into it.
            shown_set = (oldest + release) % len(places)
            ctx.set(driven, ready | release << 1 | shown_set << 2 | ready << len(driven) - 1)
            _, _, reset, valid, flags, stepping, step = await anext(ticks)
            if stepping and ready and not reset:
                assert self.expected, "a step too many"
                self.check_step(unpack(step), self.expected.pop(0))
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


def run_jobs(params, jobs, mode="none", seed=0):
    """Jobs one after the other; requests of each, bytes read of each and cycles."""
    path = elaborated(make_path, params)
    busy, late, slow = FETCH_MODES[mode]
    gatherer, array = FetchGatherer(path, seed, busy, late), FetchArray(path, seed, slow)
    made = []

    async def bench(ctx):
        for fields, smem in jobs:
            gatherer.smem = smem
            sets = [(*each, f"{JOB.name} {fields}") for each in wanted_sets(fields, smem, params)]
            array.expected += sets
            first, begun = len(gatherer.requests), gatherer.cycle
            await start_job(ctx, path, fields)
            while array.expected or array.held or ctx.get(path.fetcher.busy):
                await ctx.tick()
            made.append((gatherer.requests[first:], [cycle - begun for cycle in gatherer.cycles[first:]], len(sets)))
        for _ in range(20):
            await ctx.tick()
            assert not ctx.get(path.fetcher.requests.valid) and not ctx.get(path.buffer.sets.valid)
            assert not ctx.get(path.steps.o.valid)

    simulate(path, bench, background=[watch_stream(path.fetcher.requests, "requests"),
                                      watch_stream(path.buffer.sets, "sets"), watch_stream(path.steps.o, "steps"),
                                      gatherer.serve, array.watch_writes, array.serve], deadline=20_000)  # fmt: skip
    return made


def dense_job(params, granularity, channels, *, width=24, height=3, kernel=(3, 3), operation=ConvOperation.CONVOLUTION,
          raster=1, out_channels=1, **others):  # fmt: skip
    """Dense tensors, padding of one on all sides, 8 bits: of as many points as X has pixels."""
    out = channels if operation.lanes else out_channels
    fields = JOB.unpack(job_word(
        operation=operation, type=0, output=ConvOutput.RAW, granularity=granularity, raster=raster, channels=channels,
        width=width, height=height, out_width=width, out_height=height, out_channels=out, kernel=kernel,
        padding=[side // 2 for side in kernel], x=0x105, k=0x2C03, k_pitch=channels, x_zero=77, k_zero=11, y=0,
        x_pitch=[channels, width * channels, width * height * channels],
        y_pitch=[out, width * out, width * height * out], **others))  # fmt: skip
    rng = np.random.default_rng(22)
    return fields, rng.integers(256, size=params.smem.size_bytes, dtype=np.uint8)
