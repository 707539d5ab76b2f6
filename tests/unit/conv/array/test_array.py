"""The array: sums of rows in all folds, types and modes against numpy, and reading of accumulators."""

import random
from dataclasses import dataclass

import numpy as np

from support.conv import conv_unit
from support.conv_fetch import rows_read
from support.selection import cases
from tilewright.hw.conv.array.array import ConvArray
from tilewright.verify.pysim.simulate import elaborated, simulate

SEED = 31
PARAMS = {
    "unit": conv_unit(),
    "wide": conv_unit(results=4, rotation=False, types=("i8", "i16")),
    "two": conv_unit(row_bytes=32, slaves=4, weight_bytes=2048, types=("i8", "i16")),
}


@dataclass
class Job:
    """What a plan says to the array."""

    granularity: int
    wide: int = 0
    lanes: int = 0
    maximum: int = 0
    x_signed: int = 0
    k_signed: int = 0
    x_zero: int = 0
    k_zero: int = 0

    def numbers(self, row, which):
        """A row of bytes as distances from its zero point."""
        signed, zero = (self.x_signed, self.x_zero) if which == "x" else (self.k_signed, self.k_zero)
        elements = row.view(np.uint16 if self.wide else np.uint8)
        return (elements.view(elements.dtype.str.replace("u", "i")) if signed else elements).astype(np.int64) - zero


def some_job(rng, params, lanes):
    wide = int("i16" in params.conv.types and rng.random() < 0.5)
    x_signed, k_signed = rng.randrange(2), rng.randrange(2)

    def zero(signed):
        bits = 16 if wide else 8
        return rng.randrange(1 << bits) - (signed << bits - 1)

    low = params.conv.row_bytes.bit_length() - 5
    granularity = rng.randrange(max(low, wide), low + 5)
    maximum = int(lanes and rng.random() < 0.5)
    zeros = (0, 0) if maximum else (zero(x_signed), zero(k_signed))
    return Job(granularity, wide, lanes, maximum, x_signed, k_signed, *zeros)


class Model:
    """Accumulators by slave, bank, channel, half of the units and place, or element in lane-private mode."""

    def __init__(self, params, job, memories):
        self.params, self.job, self.memories = params, job, memories
        self.acc = {}

    def step(self, step, rows):
        params, job, halves = self.params, self.job, step["halves"]
        row_bytes, block = params.conv.row_bytes, 1 << job.granularity
        for slave, own in enumerate(rows_read(self.memories, **step["read"])):
            if job.lanes:
                x, ks = job.numbers(own, "x"), [job.numbers(row, "k") for row in rows[:: len(rows) // params.halves]]
                sums = [x if job.maximum else x * k for k in ks]
            else:
                own = np.tile(own[step["part"] * block :][:block], row_bytes // block)
                k = job.numbers(own, "k")
                products = [job.numbers(row, "x") * k for row in rows]
                sums = np.concatenate([product.reshape(row_bytes // block, -1).sum(1) for product in products])
                sums = np.split(sums, params.halves)
            for half, added in enumerate(sums):
                place = slave, step["bank"], step["channel"], half
                old = self.acc.get(place)
                if halves["off"] >> half & 1:
                    continue
                if halves["first"] >> half & 1:
                    self.acc[place] = added
                else:
                    self.acc[place] = np.maximum(old, added) if job.maximum else old + added

    def read(self, read):
        conv, halves = self.params.conv, self.params.halves
        for number in range(conv.results):
            if self.job.lanes:
                slave, index = read["part"], read["index"] + number
                each = self.params.sums // halves
            else:
                slave = (read["part"] * conv.results + number) % conv.slaves
                index = read["index"] + number // conv.slaves
                each = conv.units * (conv.row_bytes >> self.job.granularity) // halves
            half, index = divmod(index, each)
            sums = self.acc.get((slave, read["bank"], read["t"], half))
            yield None if sums is None or index >= len(sums) else int(sums[index]) & 0xFFFFFFFF


def some_read(rng, params, lanes):
    """Words of each part in lane-private mode, and by how many they are turned; else of all of them the same."""
    parts = params.row_parts
    if lanes:
        return {"words": [rng.randrange(4) for _ in range(parts)], "turn": rng.randrange(parts)}
    return {"words": [rng.randrange(4)] * parts, "turn": 0}


def some_halves(rng, params, lanes, seen):
    """In lane-private mode each half begins, or is off, by itself, once both have begun."""
    every = (1 << params.halves) - 1
    if not seen or not lanes:
        return {"first": every * (not seen or rng.random() < 0.1), "off": 0}
    return {"first": every & rng.getrandbits(2) & rng.getrandbits(2), "off": every & rng.getrandbits(2)}


def some_reads(rng, params, job):
    conv = params.conv
    if job.lanes:
        index = rng.randrange((conv.row_bytes >> job.wide) // conv.results) * conv.results
        index += rng.randrange(params.halves) * params.sums // 2
        return {"bank": 0, "t": 0, "index": index, "part": rng.randrange(conv.slaves)}
    group = max(1, conv.results // conv.slaves)
    places = conv.units * (conv.row_bytes >> job.granularity)
    index = rng.randrange(max(1, places // group)) * group
    part = rng.randrange(max(1, conv.slaves // conv.results))
    return {"bank": rng.randrange(params.accumulator_banks), "t": rng.randrange(4), "index": index, "part": part}


@cases("name, lanes", [("unit", 0), ("unit", 1), ("wide", 1)], [("wide", 0), ("two", 0), ("two", 1)])
def test_sums(name, lanes):
    params, rng = PARAMS[name], random.Random(SEED)
    conv = params.conv
    dut = elaborated(ConvArray, params)
    numbers = np.random.default_rng(SEED)
    jobs = [some_job(rng, params, lanes) for _ in range(8)]
    checked = 0

    async def bench(ctx):
        nonlocal checked
        for job in jobs:
            # Meanwhile sums of another job may be read, and then steps of another one be made.
            ctx.set(dut.plan, vars(job))
            ctx.set(dut.read_plan, vars(some_job(rng, params, 1 - lanes)))
            memories = numbers.integers(0, 256, (conv.slaves, 4, conv.row_bytes), np.uint8)
            for word in range(4):
                writes = [
                    {"word": word, "strobe": (1 << conv.row_bytes) - 1,
                     "data": list(memory[word].tobytes())}
                    for memory in memories
                ]  # fmt: skip
                for write in writes:
                    raw = bytes(write["data"])
                    write["data"] = [int.from_bytes(raw[at : at + 16], "little") for at in range(0, len(raw), 16)]
                ctx.set(dut.writes, writes)
                await ctx.tick()
            ctx.set(dut.writes, [{"strobe": 0}] * conv.slaves)
            model, rows, seen = Model(params, job, memories), None, set()
            for _ in range(40):
                valid = rng.random() < 0.8
                place = (0, 0) if lanes else (rng.randrange(params.accumulator_banks), rng.randrange(4))
                step = {"read": some_read(rng, params, lanes), "channel": place[1], "bank": place[0]}
                step["part"] = 0 if lanes else rng.randrange(conv.row_bytes >> job.granularity)
                step["halves"] = some_halves(rng, params, lanes, place in seen)
                ctx.set(dut.valid, valid)
                ctx.set(dut.step, step)
                if rows is not None:
                    ctx.set(dut.rows, rows)
                one = numbers.integers(0, 256, (params.halves if lanes else conv.units, conv.row_bytes), np.uint8)
                if job.maximum:  # rows of ones, so that products are the elements
                    ones = np.full(conv.row_bytes >> job.wide, 1, np.uint16 if job.wide else np.uint8)
                    one[:] = ones.view(np.uint8)
                found = np.repeat(one, conv.units // len(one), axis=0)
                rows = [int.from_bytes(row.tobytes(), "little") for row in found]
                if valid:
                    seen.add(place)
                    model.step(step, found)
                await ctx.tick()
            ctx.set(dut.valid, 0)
            ctx.set(dut.rows, rows)
            await ctx.tick().repeat(dut.latency)
            ctx.set(dut.plan, vars(some_job(rng, params, 1 - lanes)))
            ctx.set(dut.read_plan, vars(job))
            reads = [some_reads(rng, params, job) for _ in range(30)]
            for cycle in range(len(reads) + ConvArray.READ):
                if cycle < len(reads):
                    ctx.set(dut.read, reads[cycle])
                if cycle >= ConvArray.READ:
                    for have, want in zip(ctx.get(dut.sums), model.read(reads[cycle - ConvArray.READ]), strict=True):
                        if want is not None:
                            assert have == want, f"{job} {reads[cycle - ConvArray.READ]}"
                            checked += 1
                await ctx.tick()

    simulate(dut, bench)
    assert checked > 200
