"""Data path and registers together: what one does shows in the other."""

import numpy as np

from tilewright.golden import Machine, Memory, TensorMap, command_word
from tilewright.golden.spec import BLOCK, COMMAND_FIELD, Error, Opcode, Space
from tilewright.golden.spec.tmau.registers import TMAU_REGISTERS
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.hw.tmau.unit import TmauUnit
from tilewright.sim.pysim.axi_memory import AxiMemory
from tilewright.sim.pysim.line_memory import LineMemory
from tilewright.sim.pysim.simulate import simulate
from tilewright.sim.pysim.streams import receive, send

SEED = 1
OFFSETS = {register.name: register.offset for register in TMAU_REGISTERS}


def copy_block(tag, source, destination, size, **fields):
    return command_word(Opcode.COPY_BLOCK, tag=tag, source=source, destination=destination, size=size, **fields)


def test_commands_registers_and_windows():
    params = TMAU_PRESETS["unit"]
    dut = TmauUnit(params)
    gmem, smem = np.random.default_rng(SEED).integers(0, 256, (2, 4096), np.uint8)
    before = gmem.copy()
    done, landed = [], []

    async def watch(ctx):
        ctx.set(dut.smem.landed.ready, 1)
        async for *_, valid, tag, error, has_landed, bytes_landed in ctx.tick().sample(
            dut.done.valid, dut.done.tag, dut.done.error, dut.smem.landed.valid, dut.smem.landed.payload
        ):
            if valid:
                done.append((tag, error))
            if has_landed:
                landed.append((bytes_landed.barrier, bytes_landed.bytes))

    async def access(ctx, name, **fields):
        await send(ctx, dut.accesses.requests, [{"address": OFFSETS[name], **fields}])
        (answer,), _ = await receive(ctx, dut.accesses.answers, 1)
        return answer.data

    async def write(ctx, name, data):
        await access(ctx, name, write=1, data=data, strobe=15)

    async def execute(ctx, word):
        count = len(done)
        await send(ctx, dut.commands, [word])
        while len(done) == count:
            await ctx.tick()
        return done[-1]

    async def run(ctx):
        to_shared, to_global = {"destination_space": Space.SHARED}, {"source_space": Space.SHARED}
        assert await execute(ctx, copy_block(5, 0x210, 0x400, 208, signal=1, barrier=64, **to_shared)) == (5, 0)
        assert await execute(ctx, copy_block(6, 0x400, 0x820, 112, **to_global)) == (6, 0)
        assert landed == [(64, 208)]
        counted = {"commands": 2, "bytes": 208, "write_bytes": 112, "beats": 13, "write_beats": 7}
        for name, count in counted.items():
            assert await access(ctx, name) == count, name
        assert await access(ctx, "status") == 1

        await write(ctx, "shared_limit", 0x3FF)
        await write(ctx, "windows", 2)
        await write(ctx, "irq_enable", 1)
        assert not ctx.get(dut.irq)
        assert await execute(ctx, copy_block(7, 0x210, 0x400, 208, **to_shared)) == (7, Error.WINDOW)
        await ctx.tick()
        assert ctx.get(dut.irq)
        field = COMMAND_FIELD + BLOCK.index("destination")
        assert await access(ctx, "error") == Error.WINDOW | field << 8 | 7 << 16
        assert await access(ctx, "error_address_lo") == 0

        ctx.set(dut.smem.bank_conflict, 1)
        ctx.set(dut.smem.refused.valid, 1)
        await ctx.tick()
        ctx.set(dut.smem.bank_conflict, 0)
        ctx.set(dut.smem.refused.valid, 0)
        assert await access(ctx, "error_count") == 2
        assert await access(ctx, "bank_conflicts") == 1, "a cycle behind its strobe"

    memory, shared = AxiMemory(dut.m_axi, gmem), LineMemory(dut.smem, smem)
    simulate(dut, run, background=[memory.serve, memory.serve_writes, shared.serve, watch])
    assert (smem[0x400:][:208] == before[0x210:][:208]).all()
    before[0x820:][:112] = before[0x210:][:112]
    assert (gmem == before).all()


def test_prefetches_name_the_lines_of_a_load():
    """As golden reads words that hold their own addresses; what does not fit shared memory, or fails, names nothing."""
    params = TMAU_PRESETS["unit"].replace(prefetches=True)
    dut, gmem = TmauUnit(params), (4 * np.arange(4096, dtype=np.uint32)).view(np.uint8).copy()
    maps = [
        TensorMap(element="u32", size=(72, 9), stride=(320,), box=(40, 5), address=0x1030),
        TensorMap.im2col((1, 6, 7, 16), element="f32", address=0x2040, pixels=9, lower=(-1, -1), upper=(-1, -1)),
        TensorMap(element="u32", size=(256, 16), stride=(1024,), box=(256, 8), address=0),  # as large as two
    ]
    starts = [(0, (-4, -1)), (0, (20, 6)), (0, (80, 0)), (1, (0, -1, -1, 0)), (2, (0, 0))]
    expected, words = [], []
    for number, coords in starts:
        smem = np.zeros(8192 if number == 2 else 4096, np.uint8)
        machine = Machine(Memory(gmem.copy()), smem, params.bus_bytes, params.addr_width)
        where = 0x3800 + 128 * number
        machine.gmem.data[where:][:128] = gmem[where:][:128] = np.frombuffer(maps[number].pack(), np.uint8)
        assert machine.execute(command_word(Opcode.LOAD, descriptor=where, coords=coords)) is not None
        if number != 2:
            expected += sorted(set((smem.view(np.uint32)[smem.view(np.uint32) != 0] >> 7).tolist()))
        words.append(command_word(Opcode.PREFETCH, descriptor=where, coords=coords, tag=len(words)))
    for source, size in ((0x90, 304), (0x400, 4112), (0x500, 0), (0x608, 16)):
        words.append(command_word(Opcode.PREFETCH_BLOCK, source=source, size=size, tag=len(words)))
    expected += [1, 2, 3]
    words.append(copy_block(len(words), 0x1000, 0, 64, destination_space=Space.SHARED))
    named, done = [], []

    async def watch(ctx):
        ctx.set(dut.smem.landed.ready, 1)
        ctx.set(dut.prefetches.ready, 1)
        async for *_, valid, line, ended, tag, error in ctx.tick().sample(
            dut.prefetches.valid, dut.prefetches.payload, dut.done.valid, dut.done.tag, dut.done.error
        ):
            if valid:
                named.append(line)
            if ended:
                done.append((tag, error))

    async def run(ctx):
        await send(ctx, dut.commands, words)
        while len(done) < len(words):
            await ctx.tick()

    smem = np.zeros(4096, np.uint8)
    memory, shared = AxiMemory(dut.m_axi, gmem), LineMemory(dut.smem, smem)
    simulate(dut, run, background=[memory.serve, memory.serve_writes, shared.serve, watch])
    assert done == [(tag, Error.BLOCK_ALIGNMENT if tag == 8 else Error.NONE) for tag in range(len(words))]
    assert named == expected
    assert sum(beats for _, ident, _, beats in memory.requests if ident == 0) == 4, "nothing but the copy is read"
    assert (smem[:64] == gmem[0x1000:][:64]).all()
