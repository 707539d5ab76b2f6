"""The bare engine: jobs at its port, registers over AXI4-Lite, and shared memory outside."""

from tilewright.golden import Conv as GoldenConv
from tilewright.golden.spec.conv.errors import ConvError
from tilewright.golden.spec.conv.job import JOB
from tilewright.golden.spec.conv.registers import CONV_ID_VALUE, CONV_REGISTERS
from tilewright.hw.bus.axi4 import Response
from tilewright.hw.conv.params import CONV_UNIT_PRESETS
from tilewright.hw.conv.top import Conv
from tilewright.hw.smem.params import SmemParams
from tilewright.sim.pysim.axi_lite import read_word, write_word
from tilewright.sim.pysim.engine_memory import EngineMemory
from tilewright.sim.pysim.simulate import simulate
from tilewright.sim.pysim.streams import send
from tilewright.sim.random.conv_jobs import random_jobs

PARAMS = CONV_UNIT_PRESETS["unit"].replace(smem=SmemParams(4096))
REGISTERS = {register.name: register for register in CONV_REGISTERS}


def test_a_job_and_a_refused_one():
    dut = Conv(PARAMS)
    (job,) = random_jobs(3, PARAMS.conv, 1, most_macs=300, smem_bytes=4096)
    smem = job.smem.copy()
    golden = GoldenConv(job.smem.copy(), PARAMS.conv)
    golden.execute(job.word)
    reserved = job.word | 1 << next(bit for bit in range(JOB.bits) if JOB.reserved_mask >> bit & 1)

    async def read(ctx, name):
        word, response = await read_word(ctx, dut.s_axil, REGISTERS[name].offset)
        assert response == Response.OKAY
        return word

    async def write(ctx, name, **fields):
        await write_word(ctx, dut.s_axil, REGISTERS[name].offset, REGISTERS[name].format.pack(**fields))

    async def bench(ctx):
        assert await read(ctx, "id") == CONV_ID_VALUE
        await write(ctx, "irq_enable", error=1)
        await send(ctx, dut.jobs, [job.word, reserved])
        assert await read(ctx, "status") & 1 == 0
        await ctx.tick().until(dut.irq)
        assert await read(ctx, "irq_status") == REGISTERS["irq_status"].format.pack(error=1, done=1)
        error = REGISTERS["error"].format.unpack(await read(ctx, "error"))
        assert error == {"code": ConvError.RESERVED, "field": 0, "tag": job.fields["tag"]}
        await write(ctx, "irq_status", error=1)
        assert not ctx.get(dut.irq)
        assert await read(ctx, "jobs") == 2
        assert await read(ctx, "results_written") > 0
        assert await read(ctx, "status") & 1

    simulate(dut, bench, background=EngineMemory(dut.smem, smem).processes, deadline=20_000)
    assert (smem == golden.smem).all()
