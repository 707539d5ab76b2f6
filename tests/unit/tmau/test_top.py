"""The bare TMAU: what the outside sees of a refused command, of shared memory's reports, and of the interrupt."""

import pytest

from tilewright.golden import command_word
from tilewright.golden.spec import COMMAND, COMMAND_FIELD, Error
from tilewright.golden.spec.tmau.registers import TMAU_REGISTERS
from tilewright.hw.tmau import TMAU_PRESETS, Tmau
from tilewright.sim.pysim.simulate import simulate
from tilewright.sim.pysim.streams import send

OFFSETS = {register.name: register.offset for register in TMAU_REGISTERS}


async def read(ctx, axi, name):
    ctx.set(axi.araddr, OFFSETS[name])
    ctx.set(axi.arvalid, 1)
    ctx.set(axi.rready, 1)
    await ctx.tick().until(axi.arready)
    ctx.set(axi.arvalid, 0)
    (data,) = await ctx.tick().sample(axi.rdata).until(axi.rvalid)
    return data


async def write(ctx, axi, name, word):
    ctx.set(axi.awaddr, OFFSETS[name])
    ctx.set(axi.wdata, word)
    ctx.set(axi.wstrb, 15)
    ctx.set(axi.awvalid, 1)
    ctx.set(axi.wvalid, 1)
    ctx.set(axi.bready, 1)
    await ctx.tick().until(axi.awready & axi.wready)
    ctx.set(axi.awvalid, 0)
    ctx.set(axi.wvalid, 0)
    await ctx.tick().until(axi.bvalid)


def test_reports_of_command_and_shared_memory():
    dut = Tmau(TMAU_PRESETS["unit"])
    axi = dut.s_axil

    async def run(ctx):
        await write(ctx, axi, "irq_enable", 1)
        assert not ctx.get(dut.irq)
        await send(ctx, dut.commands, [command_word(descriptor=32, tag=9)])
        tag, code = await ctx.tick().sample(dut.done.tag, dut.done.error).until(dut.done.valid)
        assert (tag, code) == (9, Error.DESCRIPTOR_ALIGNMENT)
        await ctx.tick()
        assert ctx.get(dut.irq)
        field = COMMAND_FIELD + COMMAND.index("descriptor")
        assert await read(ctx, axi, "error") == Error.DESCRIPTOR_ALIGNMENT | field << 8 | 9 << 16
        assert await read(ctx, axi, "error_address_lo") == 0
        assert not ctx.get(dut.m_axi.arvalid) and not ctx.get(dut.m_axi.awvalid)

        ctx.set(dut.smem.refused.valid, 1)
        ctx.set(dut.smem.refused.address, 72)
        ctx.set(dut.smem.bank_conflict, 1)
        await ctx.tick()
        ctx.set(dut.smem.refused.valid, 0)
        ctx.set(dut.smem.bank_conflict, 0)
        assert await read(ctx, axi, "error_count") == 2
        assert await read(ctx, axi, "bank_conflicts") == 1

    simulate(dut, run)


def test_windows():
    """A window of commands lies above the registers; barriers are not in this design."""
    unit = TMAU_PRESETS["unit"]
    dut = Tmau(unit.replace(command_window=True))
    assert [(name, region.base, region.size) for name, region in dut.regions.items()] == [
        ("tmau", 0, 4096), ("commands", 4096, 128),
    ]  # fmt: skip
    with pytest.raises(
        ValueError, match=r"^barrier_window must be False: the barriers of a Tmau lie in the shared memory"
    ):
        Tmau(unit.replace(barrier_window=True))
