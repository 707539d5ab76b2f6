"""The array with floats: sums that begin with biases, in both modes, and the largest, against the golden model."""

import random
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest

from support.conv_fetch import rows_read
from support.pe_operands import dot_rows
from tilewright.golden.conv.results import largest
from tilewright.golden.conv.shape import ConvShape
from tilewright.golden.dot_product import dot
from tilewright.hw.conv.array.array import ConvArray
from tilewright.hw.conv.params import ConvUnitParams
from tilewright.hw.smem.params import SmemParams
from tilewright.spec.conv import CONV_PRESETS
from tilewright.spec.pe import MmType
from tilewright.verify.pysim.simulate import elaborated, simulate

SEED = 54
SMEM = SmemParams(4096)
TYPES = ("i8", "f16", "bf16")
PARAMS = {
    "unit": ConvUnitParams(CONV_PRESETS["unit"].replace(units=1, feature_rows=4, types=TYPES), SMEM),
    "one": ConvUnitParams(
        CONV_PRESETS["unit"].replace(row_bytes=32, slaves=1, results=4, weight_bytes=2048, types=TYPES), SMEM
    ),
    "pairs": ConvUnitParams(CONV_PRESETS["unit"].replace(slaves=1, types=TYPES), SMEM),
}
PLACES = [(bank, channel) for bank in range(2) for channel in range(4)]


class Bench:
    """A job's memories, steps and reads."""

    def __init__(self, params, dut, rng):
        self.params, self.dut, self.rng = params, dut, rng
        self.numbers = np.random.default_rng(SEED)
        self.sums, self.cycle, self.used = {}, 0, {}

    async def begin(self, ctx, kind, *, lanes, maximum=False, bias=True):
        """Random rows in the slaves' memories, and random biases of pass 0."""
        conv, dut = self.params.conv, self.dut
        most = conv.row_bytes.bit_length() - 1
        self.block = 1 << self.rng.randint(max(1, most - 4), most)
        self.kind, self.lanes, self.maximum = kind, lanes, maximum
        plan = {
            "granularity": self.block.bit_length() - 1, "wide": 1, "lanes": lanes, "maximum": maximum, "bias": bias,
            "floats": not maximum, "brain": kind == MmType.BF16, "ordered": maximum, "x_signed": 1,
        }  # fmt: skip
        ctx.set(dut.plan, plan)
        ctx.set(dut.read_plan, plan)
        self.memory = np.array([self.rows(4) for _ in range(conv.slaves)])  # (slaves, words, elements)
        for word in range(4):
            rows = [self.memory[slave, word].astype("<u2").tobytes() for slave in range(conv.slaves)]
            ctx.set(dut.writes, [
                {"word": word, "strobe": (1 << conv.row_bytes) - 1,
                 "data": [int.from_bytes(row[at : at + 16], "little") for at in range(0, len(row), 16)]}
                for row in rows
            ])  # fmt: skip
            await ctx.tick()
        ctx.set(dut.writes, [{"word": 0, "strobe": 0, "data": [0] * (conv.row_bytes // 16)}] * conv.slaves)
        self.biases = np.zeros(4 * conv.slaves + self.block, np.uint32)
        channels, many = (self.block // 2 if lanes else 4 * conv.slaves), len(dut.biases.entries)
        many = min(many, channels if lanes else min(conv.results, conv.slaves))
        given = self.numbers.integers(0, 1 << 32, channels, np.uint32)
        for first in range(0, channels, many):
            entries = [int(given[first + n % many]) for n in range(len(dut.biases.entries))]
            ctx.set(dut.biases, {"valid": 1, "half": 0, "channel": first, "entries": entries})
            await ctx.tick()
        ctx.set(dut.biases.valid, 0)
        if bias:
            self.biases[:channels] = given
        self.sums, self.used, self.cycle, self.before = {}, {}, 0, None

    def rows(self, count):
        """Rows of floats."""
        return dot_rows(self.numbers, self.kind, count, self.params.conv.row_bytes // 2)[1].astype(np.int64)

    async def step(self, ctx):
        """A step with accumulators that are not in use, if there are any; the rows of the last one."""
        conv, dut, rng = self.params.conv, self.dut, self.rng
        ready = [each for each in PLACES if self.cycle - self.used.get(each, -99) >= ConvArray.LOOP]
        ctx.set(dut.valid, 0)
        if self.before is not None:
            ctx.set(dut.rows, [int.from_bytes(row.astype("<u2").tobytes(), "little") for row in self.before])
        self.before = self.rows(conv.units)
        each = conv.units // self.params.halves
        if self.lanes:
            self.before[:] = 1 if self.maximum else np.repeat(self.before[::each], each, axis=0)
        if ready and rng.random() < 0.8:
            bank, channel = place = rng.choice(ready)
            folds = 2 * self.memory.shape[2] // self.block
            parts, turns = self.params.row_parts, self.lanes and self.params.conv.rotation
            words = [rng.randrange(4) for _ in range(parts)] if turns else [rng.randrange(4)] * parts
            read = {"words": words, "turn": rng.randrange(parts) if turns else 0}
            step = {"read": read, "part": 0 if self.lanes else rng.randrange(folds), "bank": bank,
                    "channel": 0 if self.lanes else channel, "half": 0}  # fmt: skip
            place = bank, step["channel"]
            if self.cycle - self.used.get(place, -99) >= ConvArray.LOOP:
                off = rng.getrandbits(2) * self.lanes
                begun = [(*place, half) in self.sums for half in range(2)]
                step["halves"] = {"first": (not begun[0]) | (not begun[1]) << 1, "off": off}
                self.add(place, step)
                self.used[place] = self.cycle
                ctx.set(dut.valid, 1)
                ctx.set(dut.step, step)
        self.cycle += 1
        await ctx.tick()

    def add(self, place, step):
        """What the step does to the accumulators of each slave."""
        conv, many, halves = self.params.conv, self.block // 2, range(self.params.halves if self.lanes else 1)
        self.sums[place] = True
        on = [half for half in halves if not step["halves"]["off"] >> half & 1]
        self.sums |= {(*place, half): True for half in (on if self.lanes else range(2))}
        for (slave, own), half in product(enumerate(rows_read(self.memory, **step["read"])), on):
            key = (slave, *place, half)
            if self.maximum:
                pair = np.stack([self.sums.get(key, own), own])
                shape = ConvShape.of((1, 1, 2, len(own)), len(own), (1, 2))
                self.sums[key] = largest(shape, self.kind, pair[None, None].astype(np.uint16))[0]
            elif self.lanes:
                old = self.sums.get(key, np.resize(self.biases[:many], len(own)))
                row = self.before[half * conv.units // self.params.halves]
                self.sums[key] = dot(old, own[:, None], row[:, None], self.kind)
            else:
                weights = own[step["part"] * many :][:many]
                x = self.before.reshape(-1, many)
                bias = self.biases[place[1] * conv.slaves + slave]
                old = self.sums.get(key, np.full(len(x), bias))
                self.sums[key] = dot(old, x, np.broadcast_to(weights, x.shape), self.kind)

    async def read(self, ctx):
        """All accumulators that have been begun, when all steps are done."""
        conv, dut, checked = self.params.conv, self.dut, 0
        for _ in range(2):
            ctx.set(dut.valid, 0)
            ctx.set(dut.rows, [int.from_bytes(row.astype("<u2").tobytes(), "little") for row in self.before])
            await ctx.tick()
        await ctx.tick().repeat(dut.latency)
        together = max(1, conv.results // conv.slaves)
        for slave, bank, channel, half in [key for key in self.sums if len(key) == 4]:
            wanted = self.sums[slave, bank, channel, half]
            for index in range(0, len(wanted), conv.results if self.lanes else together):
                part, place = slave if self.lanes else slave // conv.results, index + half * self.params.sums // 2
                ctx.set(dut.read, {"bank": bank, "t": channel, "index": place, "part": part})
                await ctx.tick().repeat(ConvArray.READ)
                seen = list(ctx.get(dut.sums))
                if self.lanes:
                    found, want = seen, wanted[index:][: conv.results].tolist()
                else:
                    found, want = seen[slave % conv.results :: conv.slaves], wanted[index:][:together].tolist()
                if self.maximum:  # of the same order
                    found = [each & 0xFFFF ^ (0x7FFF if each & 0x8000 else 0) for each in found]
                assert found[: len(want)] == want, (self.kind, self.block, slave, bank, channel, index)
                checked += len(want)
        return checked


# One slave differs from several in how a convolution's sums are spread and read.
@pytest.mark.parametrize(
    ("name", "mode"),
    [
        *(("unit", "convolution"), ("unit", "maximum"), ("one", "convolution"), ("pairs", "lanes")),
        *(
            pytest.param(*one, marks=pytest.mark.long)
            for one in (("unit", "lanes"), ("one", "lanes"), ("one", "maximum"), ("pairs", "maximum"))
        ),
    ],
)
def test_jobs(name, mode):
    params, rng = PARAMS[name], random.Random(SEED)
    dut = elaborated(ConvArray, params)
    world, counted = Bench(params, dut, rng), SimpleNamespace(checked=0)

    async def bench(ctx):
        for number in range(4):
            kind, lanes = (MmType.F16, MmType.BF16)[number % 2], mode != "convolution"
            await world.begin(ctx, kind, lanes=lanes, maximum=mode == "maximum", bias=number > 1)
            for _ in range(30):
                await world.step(ctx)
            counted.checked += await world.read(ctx)

    simulate(dut, bench, deadline=20_000)
    assert counted.checked > 60
