"""The subsystem: command to consumer, with a barrier in between, and back; shared memory in the register window."""

import numpy as np
import pytest

from tilewright.golden import Machine, Memory, TensorMap, command_word
from tilewright.hw.tmau import TMAU_PRESETS, TmauSubsystem
from tilewright.spec import BarrierOp, Opcode
from tilewright.verify.pysim.axi import AxiMemory
from tilewright.verify.pysim.simulate import simulate
from tilewright.verify.pysim.streams import receive, send

BARRIER = 2048


@pytest.mark.long
def test_load_wait_read_and_store():
    dut = TmauSubsystem(TMAU_PRESETS["unit"])
    gmem = np.random.default_rng(1).integers(0, 256, 8192, np.uint8)
    tmap = TensorMap(element="f16", size=(64, 8), stride=(128,), box=(64, 8), swizzle="128B", address=4096)
    gmem[:128] = np.frombuffer(tmap.pack(), np.uint8)
    expected = np.zeros(4096, np.uint8)
    stored = gmem.copy()
    load = {"descriptor": 0, "smem": 1024}
    store = {"opcode": Opcode.STORE, "descriptor": 0, "smem": 1024, "coords": (0, 3), "tag": 7}
    machine = Machine(Memory(stored), expected)
    for command in (load, store):
        machine.execute(command_word(**command))
    # Chunk 0 of each row: with the 128-byte swizzle, eight rows in eight banks.
    column = [(1024 + 128 * row + 16 * (row % 8)) // 16 for row in range(8)]
    axi = dut.s_axil

    async def operate(ctx, op, value):
        await send(ctx, dut.barriers, [{"op": op, "address": BARRIER, "value": value}])
        (result,), _ = await receive(ctx, dut.barrier_results, 1)
        assert not result.error
        return result.done

    async def run(ctx):
        await operate(ctx, BarrierOp.INIT, 1)
        await operate(ctx, BarrierOp.EXPECT_TX, 1024)
        await operate(ctx, BarrierOp.ARRIVE, 1)
        await send(ctx, dut.commands, [command_word(**load, signal=1, barrier=BARRIER)])
        while not await operate(ctx, BarrierOp.TRY_WAIT, 0):
            pass
        await send(ctx, dut.reads, [{"lanes": 255, "chunks": column}])
        (chunks,), _ = await receive(ctx, dut.read_data, 1)
        for row, chunk in enumerate(chunks):
            assert chunk.to_bytes(16, "little") == gmem[4096 + 128 * row :][:16].tobytes()

        ctx.set(axi.araddr, dut.regions["smem"].base + 1024 + 128)
        ctx.set(axi.arvalid, 1)
        ctx.set(axi.rready, 1)
        await ctx.tick().until(axi.arready)
        ctx.set(axi.arvalid, 0)
        (data,) = await ctx.tick().sample(axi.rdata).until(axi.rvalid)
        assert data.to_bytes(4, "little") == expected[1024 + 128 :][:4].tobytes()

        await send(ctx, dut.commands, [command_word(**store)])
        tag, error = await ctx.tick().sample(dut.done.tag, dut.done.error).until(dut.done.valid)
        assert (tag, error) == (7, 0)

    memory = AxiMemory(dut.m_axi, gmem)
    simulate(dut, run, background=[memory.serve, memory.serve_writes])
    assert (gmem == stored).all()
