"""Jobs from accumulators to shared memory: every byte of it against the golden model's post-processing."""

from functools import cache
from itertools import islice
from math import prod

import numpy as np
import pytest

from support.conv import conv_unit, conv_units
from support.conv_plan import plan_values
from support.conv_results import ResultsWorld
from support.selection import grid
from support.streams import pulse
from tilewright.golden.conv.job import parts_of
from tilewright.golden.conv.machine import job_word
from tilewright.golden.conv.results import add_residual, half_floats, requantise, requantise_zero_first
from tilewright.hw.conv.result.post import PostProcessor
from tilewright.hw.conv.result.readout import ReadOut
from tilewright.hw.conv.result.results import Results
from tilewright.spec.conv import JOB, ConvOperation, ConvOutput
from tilewright.spec.pe import MmType
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import watch_stream
from tilewright.verify.random.conv_jobs import random_jobs

BYTES = 16384
MOST_RESULTS = 1000
#: Units by name: R less than NS, equal, more; of one slave; rows of elements of 16 bits.
UNITS = conv_units("unit", "ecp5", "pairs", "default", smem=BYTES) | {
    "one": conv_unit("pairs", BYTES, slaves=1, units=1, feature_rows=4),
    "wide": conv_unit("pairs", BYTES, row_bytes=32, slaves=4),
    "floats": conv_unit("unit", BYTES, results=4, types=("i8", "f16", "bf16")),
}
#: Probabilities of pauses: none, of one side, of all.
STALLS = {
    "none": {},
    "tiles": {"tiles": 0.8},
    "gather": {"gather": 0.6},
    "scatter": {"scatter": 0.6},
    "all": {"tiles": 0.3, "gather": 0.4, "scatter": 0.4},
}


@cache
def some_jobs(name, count, seed=0):
    """Jobs with few results: one a cycle is all that some units make."""
    jobs = random_jobs(seed, UNITS[name].conv, 2 * count, most_macs=8000, smem_bytes=BYTES)
    return list(islice((job for job in jobs if prod(parts_of(job.fields)["y"].shape) <= MOST_RESULTS), count))


def some_accumulators(fields, seed):
    generator = np.random.default_rng(seed)
    points = fields["batch"] * fields["out_height"] * fields["out_width"]
    bits = generator.integers(4, 33, (points, fields["out_channels"]))
    return generator.integers(0, 1 << 32, bits.shape, np.uint64) >> (32 - bits).astype(np.uint64)


def number(bits, fields):
    return (bits ^ 0x80) - 0x80 if fields["output"] == ConvOutput.S8 else bits


def expected(fields, smem, accumulators):
    """Shared memory after the job."""
    smem = smem.copy()
    parts, acc = parts_of(fields), accumulators.astype(np.int64)
    table = parts["table"].view(smem, "<u4") if "table" in parts else None
    if MmType(fields["type"]).is_float:
        # Sums began with their biases; the largest one is kept as an integer of the same order.
        if fields["operation"] == ConvOperation.MAX_POOL:
            acc ^= np.where(acc & 0x8000, 0x7FFF, 0)
        elif ConvOutput(fields["output"]).half:
            acc = half_floats(acc, ConvOutput(fields["output"])).astype(np.int64)
    elif fields["bias"] and fields["operation"] != ConvOperation.MAX_POOL:
        acc = acc + table[0::2].astype(np.int64) & 0xFFFFFFFF
    if ConvOutput(fields["output"]).quantised:
        clamp, last = (
            tuple(number(fields[prefix + name], fields) for name in ("minimum", "maximum")) for prefix in ("", "add_")
        )
        convert = requantise_zero_first if fields["zero_first"] else requantise
        acc = convert(acc, table[1::2], number(fields["y_zero"], fields), clamp)
        if fields["add"]:
            second = parts["addend"].view(smem, "u1").reshape(acc.shape).astype(np.int64)
            acc = add_residual(acc, number(second, fields), fields["ratio"], fields["offset"], last)
    if fields["function"]:
        acc = parts["function_table"].view(smem, "u1")[acc & 0xFF]
    y = parts["y"]
    made = y.view(smem, f"<u{y.item}")
    made[...] = (acc & (1 << 8 * y.item) - 1).astype(made.dtype).reshape(made.shape)
    return smem


async def run_job(ctx, dut, world, fields, smem, seed):
    """A job from its start to ``done``; the results that it said were written."""
    accumulators = some_accumulators(fields, seed)
    world.smem[:] = smem
    world.add_job(fields, accumulators)
    ctx.set(dut.plan, plan_values(fields, world.params))
    await pulse(ctx, dut.start)
    written, done = 0, 0
    while not done:
        _, _, done, count = await ctx.tick().sample(dut.done, dut.written)
        written += count
    wanted = expected(fields, smem, accumulators)
    wrong = np.flatnonzero(world.smem != wanted)
    assert not len(wrong), f"{fields}: byte {wrong[0]} (of {len(wrong)}), y {parts_of(fields)['y']}"
    assert written == accumulators.size


def run(name, jobs, *, seed=0, deadline=200_000, **options):
    dut = elaborated(Results, UNITS[name])
    world = ResultsWorld(dut, UNITS[name], seed=seed, **options)

    async def bench(ctx):
        for turn, (fields, smem) in enumerate(jobs):
            await run_job(ctx, dut, world, fields, smem, turn)
            if turn % 3:
                await ctx.tick()

    watched = [watch_stream(getattr(dut, port), port) for port in ("scatter", "table", "addend")]
    simulate(dut, bench, background=[*world.processes, *watched], deadline=deadline)
    return world


@grid(lambda name, stall: name == "one" or (stall == "all" and name not in ("ecp5", "wide")),
      name=[name for name in UNITS if name != "default"], stall=STALLS)  # fmt: skip
def test_random_jobs(name, stall):
    jobs = [(job.fields, job.smem) for job in some_jobs(name, 4, seed=list(STALLS).index(stall))]
    run(name, jobs, stall=STALLS[stall])


# By default the preset is run by what measures its rate, which compares all bytes as well.
@pytest.mark.long
@pytest.mark.parametrize("count", [2, 8])
def test_random_jobs_of_the_default(count):
    jobs = [(job.fields, job.smem) for job in some_jobs("default", count)]
    run("default", jobs, stall={"gather": 0.1, "scatter": 0.1})


def a_job(**fields):
    """A dense job of 1 × 1 windows from ``y`` on, with a table and a second operand, and memory with any bytes."""
    element = {ConvOutput.RAW: 4}.get(fields["output"], 1)
    channels, width = fields["out_channels"], fields["out_width"]
    pitches = [channels * element, channels * width * element, channels * width * element]
    fields = {"type": "u8u8", "granularity": 5, "channels": channels, "maximum": 255, "add_maximum": 255,
              "ratio": [0x3F000000, 0x3F000000], "y": 0x2000, "addend": 0x1000, "k_pitch": 32,
              "x_pitch": [32, 32, 32], "y_pitch": pitches, "addend_pitch": pitches} | fields  # fmt: skip
    generator = np.random.default_rng(2)
    smem = generator.integers(0, 256, BYTES, np.uint8)
    table = smem[fields.get("table", 0) :][: 8 * channels].view("<u4")
    table[1::2] = generator.uniform(1e-9, 1e-7, channels).astype(np.float32).view(np.uint32)
    return JOB.unpack(job_word(**fields)), smem


def cycles_of(name, job, **options):
    """In which cycles transfers begin, and the world."""
    dut = elaborated(Results, UNITS[name])
    world = ResultsWorld(dut, UNITS[name], **options)
    begun = []

    async def bench(ctx):
        await run_job(ctx, dut, world, *job, 0)

    async def watch(ctx):
        async for _, _, begins in ctx.tick().sample(dut.readout.flushes.i.valid):
            if begins:
                begun.append(world.cycle)

    simulate(dut, bench, background=[*world.processes, watch], deadline=20_000)
    return begun, world


@grid(lambda operation, add: add, operation=["convolution", "depthwise"], add=[1, 0])
def test_full_rate(operation, add):
    """Of results of 8 bits R begin in each cycle, over ends of tiles and passes."""
    job = a_job(operation=operation, output=ConvOutput.U8, add=add, out_channels=64, out_width=16)
    begun, world = cycles_of("default", job)
    assert len(begun) == 64 * 16 // UNITS["default"].conv.results
    assert begun == list(range(begun[0], begun[0] + len(begun)))
    assert len(world.writes) == 32


@pytest.mark.parametrize("raster", [0, 1])
@pytest.mark.parametrize("operation", ["convolution", "depthwise"])
def test_full_rate_of_pairs(operation, raster):
    """Of 16 channels two points are written at once, R results begin in a cycle; lines of 7 points have one alone."""
    begun, world = cycles_of("default", a_job(operation=operation, output=ConvOutput.U8, out_channels=16, out_width=64,
                                              granularity=4))  # fmt: skip
    assert begun == list(range(begun[0], begun[0] + 32))
    cycles, counts = zip(*world.writes, strict=True)
    assert set(counts) == {32} and cycles == tuple(range(cycles[0], cycles[0] + 32))
    fields = {"out_channels": 16, "out_width": 7, "out_height": 4, "granularity": 4, "raster": raster}
    _, world = cycles_of("default", a_job(operation=operation, output=ConvOutput.U8, **fields))
    assert sorted(count for _, count in world.writes) == [16] * 4 + [32] * 12


def test_full_rate_of_raw_results():
    """These are four bytes: W bytes are written in each cycle."""
    fields = {"operation": "convolution", "output": ConvOutput.RAW, "out_channels": 64, "out_width": 16}
    _, world = cycles_of("default", a_job(**fields, bias=1))
    cycles = [cycle for cycle, _ in world.writes]
    assert cycles == list(range(cycles[0], cycles[0] + 64 * 16 * 4 // 32))


@pytest.mark.parametrize("function", [0, 1])
def test_latency(function):
    """Of the first transfer: the array, post-processing, a buffer, the writer. The LUT has come meanwhile, and costs a
    cycle."""
    fields = {"operation": "depthwise", "output": ConvOutput.U8, "out_channels": 16, "out_width": 1, "granularity": 4}
    begun, world = cycles_of("default", a_job(**fields, function=function, function_table=0x3000))
    latency = ReadOut.LATENCY + PostProcessor.QUANTISED + 2 + function
    assert [cycle - begun[0] for cycle, _ in world.writes] == [latency]


@pytest.mark.parametrize("name", ["unit", "default"])
def test_a_lut_costs_few_cycles(name):
    """From the start to the last write; without requantisation nothing hides the load of the LUT."""
    cycles = {}
    for operation, output in (("depthwise", ConvOutput.U8), ("max_pool", ConvOutput.ELEMENT)):
        fields = {"operation": operation, "output": output, "out_channels": 16, "out_width": 8, "granularity": 4}
        for function in (0, 1):
            _, world = cycles_of(name, a_job(**fields, function=function, function_table=0x3000))
            cycles[operation, function] = world.writes[-1][0]
    costs = {operation: cycles[operation, 1] - cycles[operation, 0] for operation in ("depthwise", "max_pool")}
    print(name, cycles)
    assert costs["depthwise"] <= 2 and costs["max_pool"] <= 16, costs


def test_wrong_parameters():
    with pytest.raises(ValueError, match=r"^slaves must be at most 16 in hardware, not 32$"):
        Results(conv_unit("pairs", BYTES, row_bytes=32, slaves=32, results=16))
