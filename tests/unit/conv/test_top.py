"""The engine as a whole: random jobs one after the other, all of memory and all ends against golden; AXI4-Lite."""

from functools import cache

import numpy as np
import pytest

from support.conv import conv_unit
from support.registers import Registers
from support.selection import cases
from support.shared_memory import EngineMemory
from tilewright.golden import Conv as GoldenConv
from tilewright.golden import job_word
from tilewright.hw.conv.params import CONV_UNIT_PRESETS
from tilewright.hw.conv.top import Conv, ConvUnit
from tilewright.hw.smem.params import SmemParams
from tilewright.spec.conv import CONV_ID_VALUE, CONV_REGISTERS, JOB, ConvError, ConvOperation, ConvOutput
from tilewright.spec.pe import MmType
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import send
from tilewright.verify.random.conv_jobs import garbage_jobs, random_jobs

SEED, SIZE = 5, 4096
PARAMS = CONV_UNIT_PRESETS["unit"].replace(smem=SmemParams(SIZE))


@cache
def some_jobs(count=4):
    """Legal jobs and refused ones in turn, all in the memory of the first one."""
    legal = list(random_jobs(SEED, PARAMS.conv, count, most_macs=400, smem_bytes=SIZE))
    wrong = list(garbage_jobs(SEED, PARAMS.conv, count, smem_bytes=SIZE))
    return legal[0].smem, [word for pair in zip((job.word for job in legal), wrong, strict=True) for word in pair]


def golden_of(words, smem):
    """Memory after the jobs, and how each ended."""
    engine, ends = GoldenConv(smem.copy(), PARAMS.conv), []
    for word in words:
        before = len(engine.errors)
        engine.execute(word)
        end = engine.errors[-1] if len(engine.errors) > before else (ConvError.NONE, 0, None)
        ends.append(tuple(end[:2]))
    return engine.smem, ends


def run(words, smem):
    """How jobs ended, and whether the engine was idle before and after; ``smem`` is changed."""
    dut = elaborated(ConvUnit, PARAMS)
    port, ends, idle = dut.processor, [], []

    async def watch(ctx):
        async for _, _, ended, end in ctx.tick().sample(port.job_ended, port.job_end):
            if ended:
                ends.append((end.code, end.field))

    async def bench(ctx):
        idle.append(ctx.get(dut.state.idle))

        await send(ctx, port.jobs, words)
        idle.append(ctx.get(dut.state.idle))
        while len(ends) < len(words):
            await ctx.tick()
        await ctx.tick().repeat(2)
        idle.append(ctx.get(dut.state.idle))

    memory = EngineMemory(dut.smem, smem)
    simulate(dut, bench, background=[watch, *memory.processes], deadline=60_000)
    return ends, idle


@pytest.mark.long
def test_a_set_a_cycle():
    """With one channel a slave a set serves one step: the first buffer holds all sets that are under way."""
    # X of 5 x 5 pixels of 512 bytes: seven tiles of four points and 16 blocks, 112 sets.
    job = job_word(operation=ConvOperation.CONVOLUTION, type=MmType.U8S8, output=ConvOutput.RAW, raster=1,
                   granularity=5, channels=512, out_channels=2, width=5, height=5, out_width=5, out_height=5, x=0,
                   k=0x3200, y=0x3600, x_pitch=(512, 2560, 12800), k_pitch=512, y_pitch=(8, 40, 200))  # fmt: skip
    # The preset default with fewer slaves.
    dut = elaborated(ConvUnit, conv_unit("default", 4 * SIZE, slaves=2, weight_bytes=4096, results=2, types=("i8",)))
    steps = []

    async def watch(ctx):
        async for _, _, step in ctx.tick().sample(dut.events.step):
            steps.append(step)

    async def bench(ctx):
        await send(ctx, dut.processor.jobs, [job])
        while not ctx.get(dut.processor.job_ended):
            await ctx.tick()

    memory = EngineMemory(dut.smem, np.zeros(4 * SIZE, np.uint8))
    simulate(dut, bench, background=[watch, *memory.processes], deadline=5_000)
    made = "".join(map(str, steps)).strip("0")
    assert made.count("1") == 112
    # The first sets take turns with weights.
    assert made.endswith("1" * 80), made


@cases("count", [2], [8])
def test_jobs_behind_each_other(count):
    contents, words = some_jobs(count)
    smem = contents.copy()
    ends, idle = run(words, smem)
    expected, codes = golden_of(words, contents)
    assert ends == codes
    assert {code for code, _ in ends} > {ConvError.NONE}
    assert (smem == expected).all()
    assert idle == [1, 0, 1]


def test_a_job_and_a_refused_one():
    dut = Conv(PARAMS)
    (job,) = random_jobs(3, PARAMS.conv, 1, most_macs=300, smem_bytes=SIZE)
    smem = job.smem.copy()
    golden = GoldenConv(job.smem.copy(), PARAMS.conv)
    golden.execute(job.word)
    reserved = job.word | 1 << next(bit for bit in range(JOB.bits) if JOB.reserved_mask >> bit & 1)

    async def bench(ctx):
        registers = Registers(ctx, dut.s_axil, CONV_REGISTERS)
        assert await registers.read("id") == CONV_ID_VALUE
        await registers.write("irq_enable", error=1)
        await send(ctx, dut.jobs, [job.word, reserved])
        assert await registers.read("status") & 1 == 0
        await ctx.tick().until(dut.irq)
        assert await registers.read("irq_status") == registers.named["irq_status"].format.pack(error=1, done=1)
        error = registers.named["error"].format.unpack(await registers.read("error"))
        assert error == {"code": ConvError.RESERVED, "field": 0, "tag": job.fields["tag"]}
        await registers.write("irq_status", error=1)
        assert not ctx.get(dut.irq)
        assert await registers.read("jobs") == 2
        assert await registers.read("results_written") > 0
        assert await registers.read("status") & 1

    simulate(dut, bench, background=EngineMemory(dut.smem, smem).processes, deadline=20_000)
    assert (smem == golden.smem).all()
