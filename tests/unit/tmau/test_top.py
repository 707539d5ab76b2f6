"""Data path and registers together: what one does shows in the other."""

import numpy as np
import pytest
from amaranth.hdl import Module
from amaranth.lib.wiring import connect, flipped

from support.registers import Registers
from support.shared_memory import LineMemory
from tilewright.golden import Machine, Memory, TensorMap, Windows, command_word
from tilewright.hw.tmau import Tmau, front
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.hw.tmau.processors import WindowChoice
from tilewright.hw.tmau.top import TmauUnit
from tilewright.spec import BLOCK, COMMAND, COMMAND_FIELD, Element, Error, Opcode, Space
from tilewright.spec.tmau_registers import TMAU_REGISTERS, processor_registers
from tilewright.verify.pysim.axi import AxiMemory
from tilewright.verify.pysim.simulate import simulate
from tilewright.verify.pysim.streams import receive, send

SEED = 1
#: The tests of this file run on access units with no more features than they need, which are half the size.
UNIT = TMAU_PRESETS["unit"].replace(features=("stores", "windows"))


class NoChoice(WindowChoice):
    """Leaves the choice out: no rule sees a window."""

    def elaborate(self, platform):
        m = Module()
        connect(m, flipped(self.i), flipped(self.o))
        return m


def copy_block(tag, source, destination, size, **fields):
    return command_word(Opcode.COPY_BLOCK, tag=tag, source=source, destination=destination, size=size, **fields)


def test_commands_registers_and_windows():
    dut = TmauUnit(UNIT)
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

    async def execute(ctx, word):
        count = len(done)
        await send(ctx, dut.commands, [word])
        while len(done) == count:
            await ctx.tick()
        return done[-1]

    async def run(ctx):
        registers = Registers(ctx, dut.accesses, TMAU_REGISTERS)
        to_shared, to_global = {"destination_space": Space.SHARED}, {"source_space": Space.SHARED}
        assert await execute(ctx, copy_block(5, 0x210, 0x400, 208, signal=1, barrier=64, **to_shared)) == (5, 0)
        assert await execute(ctx, copy_block(6, 0x400, 0x820, 112, **to_global)) == (6, 0)
        assert landed == [(64, 208)]
        counted = {"commands": 2, "bytes": 208, "write_bytes": 112, "beats": 13, "write_beats": 7}
        for name, count in counted.items():
            assert await registers.read(name) == count, name
        assert await registers.read("status") == 1

        for name, value in (("shared_limit", 0x3FF), ("windows", 2), ("irq_enable", 1)):
            await registers.write(name, value)
        assert not ctx.get(dut.irq)
        assert await execute(ctx, copy_block(7, 0x210, 0x400, 208, **to_shared)) == (7, Error.WINDOW)
        await ctx.tick()
        assert ctx.get(dut.irq)
        field = COMMAND_FIELD + BLOCK.index("destination")
        assert await registers.read("error") == Error.WINDOW | field << 8 | 7 << 16
        assert await registers.read("error_address_lo") == 0

        ctx.set(dut.smem.bank_conflict, 1)
        ctx.set(dut.smem.refused.valid, 1)
        await ctx.tick()
        ctx.set(dut.smem.bank_conflict, 0)
        ctx.set(dut.smem.refused.valid, 0)
        assert await registers.read("error_count") == 2
        assert await registers.read("bank_conflicts") == 1, "a cycle behind its strobe"

    memory, shared = AxiMemory(dut.m_axi, gmem), LineMemory(dut.smem, smem)
    simulate(dut, run, background=[memory.serve, memory.serve_writes, shared.serve, watch])
    assert (smem[0x400:][:208] == before[0x210:][:208]).all()
    before[0x820:][:112] = before[0x210:][:112]
    assert (gmem == before).all()


def test_guards_know_the_processor(monkeypatch):
    """Without rules, which see no windows here, nothing is written outside those of the processor whose command it is.

    Each processor writes into every page of global memory, plainly, reducing, and from another place there, and into
    four lines with a barrier beside them. Those of even numbers may write one page and one line.
    """
    monkeypatch.setattr(front, "WindowChoice", NoChoice)
    dut = TmauUnit(UNIT.replace(features=("stores", "windows", "reductions_global", "local_copies"), processors=4))
    gmem, smem = (np.random.default_rng(SEED).integers(0, 256, size, np.uint8) for size in (1 << 14, 4096))
    expected, lines, errors, counted = gmem.copy(), smem.copy(), {}, []
    words, landed, done = [[] for _ in range(4)], [], {}
    for number, page in np.ndindex(4, 4):
        inside, at = number % 2 or page == number, 0x1000 * page + 0x40 * number
        sources = [smem[:64], smem[64:128], gmem[0x3F00:0x3F40]]
        sources[1] = (sources[1].view(np.uint32) + gmem[at + 0x100 :][:64].view(np.uint32)).view(np.uint8)
        kinds = [
            (0, {"source_space": 1}),
            (64, {"source_space": 1, "reduction": 1, "element": Element.U32}),
            (0x3F00, {}),
        ]
        for kind, (source, fields) in enumerate(kinds):
            tag, target = 16 * kind + page, at + 0x100 * kind
            words[number].append(copy_block(tag, source, target, 64, **fields))
            errors[number, tag] = Error.NONE if inside else Error.WRITE
            if inside:
                expected[target:][:64] = sources[kind]
        tag, line = 48 + page, 0x400 + 0x200 * page + 32 * number
        words[number].append(copy_block(tag, 0x3F80, line, 32, destination_space=1, signal=1, barrier=line))
        errors[number, tag] = Error.NONE
        if inside:
            lines[line:][:32] = gmem[0x3F80:][:32]
            counted.append(line)

    async def watch(ctx):
        ctx.set(dut.smem.landed.ready, 1)
        ends = [signal for port in dut.done for signal in (port.valid, port.tag, port.error)]
        async for _, _, has_landed, barrier, *ended in ctx.tick().sample(
            dut.smem.landed.valid, dut.smem.landed.payload.barrier, *ends
        ):
            if has_landed:
                landed.append(barrier)
            for number in range(4):
                valid, tag, error = ended[3 * number :][:3]
                if valid:
                    done[number, tag] = error

    def processor(number):
        async def testbench(ctx):
            await ctx.tick().repeat(80)  # until the windows are written
            await send(ctx, dut.commands[number], words[number])

        return testbench

    async def host(ctx):
        offsets = {register.name: register.offset for register in processor_registers(4)}
        for number in (0, 2):
            line = 0x400 + 0x200 * number
            own = Windows(global_=(0x1000 * number, 0x1000 * number + 0xFFF), shared=(line, line + 127))
            accesses = [
                {"address": offsets[name], "write": 1, "data": value, "strobe": 15}
                for name, value in own.registers(number).items()
            ]
            await send(ctx, dut.accesses.requests, accesses)
        while len(done) < len(errors):
            await ctx.tick()

    async def answers(ctx):
        await receive(ctx, dut.accesses.answers, 14)

    memory, shared = AxiMemory(dut.m_axi, gmem), LineMemory(dut.smem, smem)
    served = [memory.serve, memory.serve_writes, shared.serve, watch]
    simulate(dut, *map(processor, range(4)), host, answers, background=served)
    assert done == errors
    assert (gmem == expected).all() and (smem == lines).all()
    assert sorted(landed) == sorted(counted)


def test_prefetches_name_the_lines_of_a_load():
    """As golden reads words that hold their own addresses; what does not fit shared memory, or fails, names nothing."""
    params = UNIT.replace(features=("im2col",), prefetches=True)
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


def test_reports_of_command_and_shared_memory():
    dut = Tmau(UNIT)

    async def run(ctx):
        registers = Registers(ctx, dut.s_axil, TMAU_REGISTERS)
        await registers.write("irq_enable", 1)
        assert not ctx.get(dut.irq)
        await send(ctx, dut.commands, [command_word(descriptor=32, tag=9)])
        tag, code = await ctx.tick().sample(dut.done.tag, dut.done.error).until(dut.done.valid)
        assert (tag, code) == (9, Error.DESCRIPTOR_ALIGNMENT)
        await ctx.tick()
        assert ctx.get(dut.irq)
        field = COMMAND_FIELD + COMMAND.index("descriptor")
        assert await registers.read("error") == Error.DESCRIPTOR_ALIGNMENT | field << 8 | 9 << 16
        assert await registers.read("error_address_lo") == 0
        assert not ctx.get(dut.m_axi.arvalid) and not ctx.get(dut.m_axi.awvalid)

        ctx.set(dut.smem.refused.valid, 1)
        ctx.set(dut.smem.refused.address, 72)
        ctx.set(dut.smem.bank_conflict, 1)
        await ctx.tick()
        ctx.set(dut.smem.refused.valid, 0)
        ctx.set(dut.smem.bank_conflict, 0)
        assert await registers.read("error_count") == 2
        assert await registers.read("bank_conflicts") == 1

    simulate(dut, run)


def test_windows():
    """A window of commands lies above the registers; barriers are not in this design."""
    unit = TMAU_PRESETS["unit"]
    dut = Tmau(unit.replace(command_window=True))
    assert [(name, region.base, region.size) for name, region in dut.regions.items()] == [
        ("tmau", 0, 4096), ("commands", 4096, 128),
    ]  # fmt: skip
    with pytest.raises(
        ValueError, match=r"^barrier_window must be False: the barriers of a Tmau are in the external shared memory"
    ):
        Tmau(unit.replace(barrier_window=True))
