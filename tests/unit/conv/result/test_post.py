"""Post-processing as a stream: every output against the golden model, stalls, rate, latency, jobs in turn, resets."""

import random

import numpy as np
import pytest

from support.streams import pulse, transact
from tilewright.golden.conv.results import add_residual, half_floats, requantise, requantise_zero_first
from tilewright.hw.conv.result.post import PostProcessor
from tilewright.spec.conv import CONV_PRESETS, ConvOutput
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import STALL_MODES, receive, send, watch_stream

SEED = 19
LANES = 2
ALL = CONV_PRESETS["ecp5"].replace(results=LANES, types=("i8", "f16"))
INTEGERS = ALL.replace(types=("i8", "i16"))
NONE = INTEGERS.replace(function_table=False, zero_first=False)
FLOATS = ALL.replace(types=("f16", "bf16"))
SIGNED = {ConvOutput.S8}
LUT = random.Random(SEED).randbytes(256)

#: Jobs by name, and the cycles from an input to its output.
JOBS = {
    "raw": ({"output": ConvOutput.RAW, "add": 1}, 1),
    "element": ({"output": ConvOutput.ELEMENT}, 1),
    "f16": ({"output": ConvOutput.F16}, PostProcessor.HALF),
    "bf16": ({"output": ConvOutput.BF16, "add": 1}, PostProcessor.HALF),
    "u8": ({"output": ConvOutput.U8, "y_zero": 9, "minimum": 5, "maximum": 250}, PostProcessor.QUANTISED),
    "s8": ({"output": ConvOutput.S8, "y_zero": -7 & 255, "minimum": -100 & 255, "maximum": 127},
           PostProcessor.QUANTISED),
    "add-u8": ({"output": ConvOutput.U8, "y_zero": 128, "maximum": 255, "add": 1, "add_minimum": 3, "add_maximum": 240,
                "ratio": [0x3F400000, 0x3F19999A], "offset": 0xC1A00000}, PostProcessor.ADDED),
    "add-s8": ({"output": ConvOutput.S8, "minimum": 128, "maximum": 127, "add": 1, "add_minimum": 128,
                "add_maximum": 127, "ratio": [0xBF8CCCCD, 0x3F333333], "offset": 0x40500000}, PostProcessor.ADDED),
    "first-u8": ({"output": ConvOutput.U8, "y_zero": 129, "maximum": 255, "zero_first": 1}, PostProcessor.QUANTISED),
    "function-s8": ({"output": ConvOutput.S8, "y_zero": 3, "minimum": 128, "maximum": 127, "zero_first": 1,
                     "function": 1}, PostProcessor.QUANTISED + 1),
    "function-element": ({"output": ConvOutput.ELEMENT, "function": 1}, 2),
}  # fmt: skip


def number(bits, job):
    return bits - 256 if job["output"] in SIGNED and bits >> 7 else bits


def some_items(count, seed=SEED):
    """Accumulators with scales that bring them near to 8 bits; as floats they are any."""
    rng = random.Random(seed)
    items = []
    for _ in range(count):
        acc = [rng.getrandbits(rng.randrange(1, 33)) for _ in range(LANES)]
        scale = [rng.getrandbits(24) | max(127 + 7 - each.bit_length(), 0) << 23 for each in acc]
        items.append({"acc": acc, "scale": scale, "addend": [rng.getrandbits(8) for _ in range(LANES)]})
    return items


def expected(job, item):
    """The low bits of the results, and how many they are."""
    if job.get("function"):
        results, _ = expected(job | {"function": 0}, item)
        return [LUT[each & 255] for each in results], 8
    output, acc = job["output"], np.array(item["acc"])
    if output.half:
        return half_floats(acc, output).tolist(), 16
    if not output.quantised:
        return acc.tolist(), 32

    def clamp(names):
        return tuple(number(job.get(name, 0), job) for name in names)

    scale, zero = np.array(item["scale"], np.uint32), number(job.get("y_zero", 0), job)
    convert = requantise_zero_first if job.get("zero_first") else requantise
    results = convert(acc[None], scale, zero, clamp(("minimum", "maximum")))[0]
    if job.get("add"):
        second = [number(each, job) for each in item["addend"]]
        results = add_residual(results, second, job["ratio"], job["offset"], clamp(("add_minimum", "add_maximum")))
    return (results & 255).tolist(), 8


def check(job, items, payloads):
    for item, payload in zip(items, payloads, strict=True):
        results, bits = expected(job, item)
        assert [each & (1 << bits) - 1 for each in payload] == results, f"{job}: {item}"


async def begin(ctx, dut, job):
    """Sets the job; one with a function brings its LUT."""
    ctx.set(dut.job, job)
    if job.get("function"):
        await pulse(ctx, dut.start)
        for row in range(16):
            ctx.set(dut.function_row, {"valid": 1, "bytes": list(LUT[16 * row :][:16])})
            await ctx.tick()
        ctx.set(dut.function_row.valid, 0)


def run(dut, work, *, mode="none"):
    """Jobs one after the other, ``work`` of (job, items); what came and in which cycles, and when items were taken."""
    stalls, came, times, sent = STALL_MODES[mode], [], [], []

    async def source(ctx):
        for number, (job, items) in enumerate(work):
            await begin(ctx, dut, job)
            sent.append(await send(ctx, dut.i, items, idle=stalls["idle"], seed=number))
            while ctx.get(dut.busy):
                await ctx.tick()

    async def sink(ctx):
        for number, (_, items) in enumerate(work):
            payloads, cycles = await receive(ctx, dut.o, len(items), stall=stalls["stall"], seed=number)
            came.append(payloads)
            times.append(cycles)

    simulate(dut, source, sink, background=[watch_stream(dut.lookup.o if dut.lookup else dut.o, "o")])
    return came, times, sent


@pytest.mark.parametrize("mode", STALL_MODES)
@pytest.mark.parametrize("name", ["raw", "bf16", "s8", "add-u8", "function-s8"])
def test_results(name, mode):
    job, items = JOBS[name][0], some_items(40)
    (came,), *_ = run(elaborated(PostProcessor, ALL), [(job, items)], mode=mode)
    check(job, items, came)


@pytest.mark.parametrize("name", JOBS)
def test_full_rate_and_latency(name):
    job, latency = JOBS[name]
    items = some_items(60, seed=1)
    (came,), (times,), (sent,) = run(elaborated(PostProcessor, ALL), [(job, items)])
    check(job, items, came)
    assert sent == list(range(60))
    before = 17 * job.get("function", 0)  # the start, and rows of the LUT
    assert times == [before + latency + n for n in range(60)]


@pytest.mark.parametrize(("params", "names"), [
    (ALL, ["add-s8", "raw", "add-u8", "u8", "f16", "s8", "add-s8", "element", "bf16", "add-u8", "bf16"]),
    (ALL, ["function-s8", "u8", "function-element", "raw", "first-u8", "add-u8", "function-s8"]),
    (INTEGERS, ["add-s8", "u8", "raw", "add-u8"]), (NONE, ["add-s8", "u8", "raw", "add-u8"]),
    (FLOATS, ["f16", "raw", "bf16"]),
])  # fmt: skip
def test_jobs_in_turn(params, names):
    """Nothing of a job comes out in the next one, which takes another way and begins as soon as none is busy."""
    work = [(JOBS[name][0], some_items(5, seed)) for seed, name in enumerate(names)]
    came, *_ = run(elaborated(PostProcessor, params), work)
    for (job, items), payloads in zip(work, came, strict=True):
        check(job, items, payloads)


def test_busy_and_places():
    """With a sink that takes nothing, 32 items are taken, and no more; it is busy until the last one has gone."""
    dut, job, items = elaborated(PostProcessor, ALL), JOBS["add-u8"][0], some_items(40)

    async def look(ctx):
        assert not ctx.get(dut.busy)
        await ctx.tick().repeat(100)
        assert ctx.get(dut.places) == 32 and not ctx.get(dut.i.ready) and ctx.get(dut.busy)

    async def idle(ctx):
        assert not ctx.get(dut.busy)

    payloads, _ = transact(dut, {"i": items}, {"o": len(items)}, inputs={"job": job}, starts={"o": 100},
                           testbenches=[look], then=idle)  # fmt: skip
    check(job, items, payloads["o"])
