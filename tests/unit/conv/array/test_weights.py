"""Weights on their way, and the order of work: what each step finds in the slaves' memories is the row of golden."""

import random

import numpy as np
import pytest
from amaranth.hdl import Cat, Elaboratable, Module, Value
from amaranth.lib.wiring import connect

from support.conv import conv_unit
from support.selection import grid
from support.streams import pulse
from tilewright.golden import ConvPlan, ConvShape
from tilewright.golden.conv.rows import Rows
from tilewright.hw.conv.array.sequencer import Sequencer
from tilewright.hw.conv.array.weights import WeightLoader, WeightWriter, weight_queues
from tilewright.spec.conv import CHANNELS_AT_ONCE
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import unpacker

SEED = 77
BYTES = 16384
K, FILL, LATENCY, LOOP = 3, 0x5A, 6, 5
PARAMS = {
    "unit": conv_unit("unit", BYTES),
    "four": conv_unit("ecp5", BYTES, row_bytes=32, weight_bytes=1024),
    "eight": conv_unit("ecp5", BYTES, units=8, weight_bytes=1024),  # words of four slaves at once
    "floats": conv_unit("unit", BYTES, types=("i8", "f16")),
}


class Both(Elaboratable):
    """Loader, writer and sequencer, connected."""

    def __init__(self, params):
        self.loader, self.writer = WeightLoader(params), WeightWriter(params)
        self.sequencer = Sequencer(params, LATENCY, LOOP)

    def elaborate(self, platform):
        m = Module()
        m.submodules.loader, m.submodules.writer = self.loader, self.writer
        m.submodules.sequencer = self.sequencer
        connect(m, sequencer=self.sequencer.tile, loader=self.loader.tile)
        m.d.comb += [
            self.loader.answered.eq(self.writer.answered),
            self.loader.freed.eq(self.sequencer.freed),
            self.sequencer.written.eq(self.writer.written),
            self.writer.begins.eq(self.loader.begins),
        ]
        return m


def some_plan(rng, params):
    conv = params.conv
    while True:
        kernel = rng.randrange(1, 5), rng.randrange(1, 6)
        channels, out_channels = rng.randrange(1, 40), rng.randrange(1, 9 * conv.slaves)
        merge = rng.choice([1, 1, kernel[1], rng.randrange(1, kernel[1] + 1)])
        block = conv.row_bytes >> rng.randrange(5)
        shape = ConvShape.of((1, 8, 8, channels), out_channels, kernel)
        plan = ConvPlan(shape, conv, block, merge, raster=True)
        if out_channels * channels * kernel[0] * kernel[1] + 300 < BYTES and plan.tile_cycles < 800:
            return plan


def values_of(plan, pitch):
    """What loader and sequencer need of a plan."""
    shape, conv = plan.shape, plan.params
    columns, rows = shape.kernel
    last = columns - (plan.steps - 1) * plan.merge
    bytes_of = plan.steps * shape.kernel[1] * plan.blocks * plan.block_bytes
    return {
        "granularity": plan.block_bytes.bit_length() - 1,
        "k_fill": FILL * 0x101,
        "k": K,
        "k_pitch": pitch,
        "k_step": plan.pixel_bytes,
        "k_row": columns * shape.channels,
        "pixel_bytes": plan.pixel_bytes,
        "last_bytes": last * shape.channels,
        "last_block": plan.blocks - 1,
        "last_step": plan.steps - 1,
        "last_kernel_row": rows - 1,
        "last_pass": -(-shape.out_channels // (CHANNELS_AT_ONCE * conv.slaves)) - 1,
        "stays": int(bytes_of <= conv.weight_bytes // CHANNELS_AT_ONCE),
        "out_channels": shape.out_channels,
    }


def gathered(memory, request, lanes):
    """What a request brings, as numbers of 128 bits: pieces of 16 bytes."""
    data = []
    for piece in list(request.pieces)[:lanes]:
        places = (piece.address + np.arange(16)) % len(memory)
        inside = (np.arange(16) >= piece.low) & (np.arange(16) < piece.high)
        data.append(int.from_bytes(np.where(inside, memory[places], FILL).astype(np.uint8).tobytes(), "little"))
    return data


@grid(lambda name, _: name == "unit", name=["unit", "four", "eight"], stalled=[False, True])
def test_rows_of_every_step(name, stalled):
    params, rng, pauses = PARAMS[name], random.Random(SEED), random.Random(SEED)
    conv = params.conv
    dut = elaborated(Both, params)
    loader, writer, sequencer = dut.loader, dut.writer, dut.sequencer
    memory = np.random.default_rng(SEED).integers(0, 256, BYTES, np.uint8)
    slaves = np.zeros((conv.slaves, conv.weight_bytes), np.uint8)
    asked, steps, seen = [], [], {"stays": set(), "passes": set()}
    tiles, early = 3, []
    jobs, begun = [], {"loaded": 0, "computed": 0}
    for _ in range(7):
        plan = some_plan(rng, params)
        values = values_of(plan, plan.shape.channels * plan.shape.taps)
        floats = int(params.floats and rng.random() < 0.8)  # blocks before steps; what bytes are does not matter
        jobs.append((plan, values | ({"floats": 1} if floats else {}), floats))

    async def gather(ctx):
        ready = False
        unpack = unpacker(loader.o.payload.shape())
        async for _, _, valid, bits in ctx.tick().sample(loader.o.valid, Value.cast(loader.o.payload)):
            if valid and ready:
                payload = unpack(bits)
                tag = {name: getattr(payload.tag, name) for name in ("slave", "word", "begin", "end", "bytes")}
                asked.append({"data": gathered(memory, payload, params.lanes), "tag": tag})
            ready = not stalled or pauses.random() < 0.5
            ctx.set(loader.o.ready, ready)
            answer = asked.pop(0) if asked and (not stalled or pauses.random() < 0.5) else None
            ctx.set(writer.i.valid, answer is not None)
            if answer:
                ctx.set(writer.i.payload, answer)

    async def memories(ctx):
        unpack = unpacker(writer.writes.shape())
        any_write = Cat(write.strobe.any() for write in writer.writes).any()
        async for _, _, writing, bits in ctx.tick().sample(any_write, Value.cast(writer.writes)):
            for slave, write in enumerate(unpack(bits) if writing else ()):
                raw = b"".join(int(each).to_bytes(16, "little") for each in write.data)
                for byte in range(conv.row_bytes):
                    if write.strobe >> byte & 1:
                        slaves[slave, write.word * conv.row_bytes + byte] = raw[byte]

    async def watch(ctx):
        unpack = unpacker(sequencer.step.shape())
        async for _, _, valid, bits in ctx.tick().sample(sequencer.valid, Value.cast(sequencer.step)):
            if valid:
                step = unpack(bits)
                first = step.halves.first & 1
                steps.append((step.read.words[0], step.part, step.channel, step.bank, first, slaves.copy()))

    async def results(ctx):
        async for _ in ctx.tick():
            ctx.set(sequencer.tiles.ready, not stalled or pauses.random() < 0.1)

    async def load(ctx):
        """As the runner does: the next job is loaded when all of this one has been asked for, and it has begun."""
        for number, (_, values, _) in enumerate(jobs):
            while begun["computed"] < number or ctx.get(loader.busy):
                await ctx.tick()
            early.append(ctx.get(sequencer.busy))
            ctx.set(loader.plan, values)
            await pulse(ctx, loader.start)
            begun["loaded"] += 1

    async def bench(ctx):
        for plan, values, floats in jobs:
            shape = plan.shape
            k = np.ndarray((shape.out_channels, shape.kernel[1], shape.kernel[0], shape.channels), np.uint8,
                           memory, K)  # fmt: skip
            seen["stays"].add(values["stays"])
            seen["passes"].add(values["last_pass"])
            while begun["loaded"] == begun["computed"] or ctx.get(sequencer.busy):
                await ctx.tick()
            ctx.set(sequencer.plan, values)
            await pulse(ctx, sequencer.start)
            begun["computed"] += 1
            rows = Rows(plan, np.zeros((1, 8, 8, shape.channels), np.uint8), k, (0, FILL))
            steps.clear()
            sets = shape.kernel[1] * plan.steps * plan.blocks
            for number in range(plan.channel_tiles * tiles):
                for each in range(sets):
                    flags = {"first": each == 0, "last": each == sets - 1, "final": number % tiles == tiles - 1}
                    ctx.set(sequencer.sets.payload, flags)
                    ctx.set(sequencer.sets.valid, 1)
                    await ctx.tick().until(sequencer.sets.ready)
                    ctx.set(sequencer.sets.valid, 0)
                    if stalled and pauses.random() < 0.2:
                        await ctx.tick()
            await ctx.tick().repeat(3)
            found = iter(steps)
            for first in range(0, plan.slave_channels, CHANNELS_AT_ONCE):
                channels = range(first, min(first + CHANNELS_AT_ONCE, plan.slave_channels))
                for _ in range(tiles):
                    for each in range(sets):
                        rest, inner = divmod(each, plan.steps if floats else plan.blocks)
                        kernel_row, outer = divmod(rest, plan.blocks if floats else plan.steps)
                        block, step = (outer, inner) if floats else (inner, outer)
                        for t, channel in enumerate(channels):
                            word, part, found_t, _, begins, held = next(found)
                            assert (found_t, begins) == (t, each == 0)
                            for slave in range(conv.slaves):
                                number = channel * conv.slaves + slave
                                if number >= shape.out_channels:
                                    continue
                                at = word * conv.row_bytes + part * plan.block_bytes
                                want = rows.weights(number, kernel_row, block, step)
                                assert (held[slave, at : at + plan.block_bytes] == want).all(), f"{plan} {slave} {t}"
            assert next(found, None) is None

    simulate(dut, bench, background=(gather, memories, watch, results, load), deadline=200_000)
    assert sum(early) > 2, "weights of the next job come while this one is computed"
    assert seen["stays"] == {0, 1} and max(seen["passes"]) > 0


@pytest.mark.parametrize("name", PARAMS)
def test_answers_are_written_as_they_come(name):
    """An answer a cycle for successive slaves, and all but the words of the last ones are written with the last."""
    params = PARAMS[name]
    span, answers = 16 * params.lanes, 16
    words = params.lanes // params.row_slots
    dut = elaborated(WeightWriter, params)
    left, taken = [], []

    async def watch(ctx):
        async for _, _, answered, written in ctx.tick().sample(dut.answered, dut.written):
            left.append(answered)
            taken.append(written)

    async def bench(ctx):
        for number in range(answers):
            last = number == answers - 1
            tag = {"slave": number % params.conv.slaves, "word": 0, "begin": 0, "end": span, "bytes": span * last}
            ctx.set(dut.i.payload, {"data": [0] * params.lanes, "tag": tag})
            ctx.set(dut.i.valid, 1)
            await ctx.tick()
        ctx.set(dut.i.valid, 0)
        await ctx.tick().repeat(answers * words + 4)

    simulate(dut, bench, background=(watch,))
    rate = weight_queues(params) / words  # less than an answer a cycle if there are fewer slaves than words
    assert sum(left) == answers
    assert taken[-1] == span
    assert sum(left[: answers + words + 2]) >= min(1, rate) * answers
    assert taken[np.cumsum(left).tolist().index(answers)] == 0, "not before the last word"
