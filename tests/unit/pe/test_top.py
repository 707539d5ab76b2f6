"""The whole engine: a product, a page that an instruction waits for, the number of the core, registers alone."""

import numpy as np
import pytest
from amaranth.hdl import Elaboratable, Module
from amaranth.lib.wiring import connect

from support.streams import pulse, recording
from tilewright.golden import gemm_program
from tilewright.golden.pe.machine import instruction_word
from tilewright.hw.bus.axi4 import Response
from tilewright.hw.pe.pager import PAGER_TAG
from tilewright.hw.pe.params import PE_PRESETS
from tilewright.hw.pe.top import Pe, PeUnit
from tilewright.hw.smem.layouts import CHUNK_BITS
from tilewright.hw.smem.top import SharedMemory
from tilewright.sim.asm.pe import assemble_program
from tilewright.spec import BANKS, CHUNK_BYTES, COMMAND, Opcode
from tilewright.spec.pe import PAGE_ENTRY, PE_REGISTERS, SEGMENT, MmType, Operation, PeError, Put, SegmentElement
from tilewright.verify.pysim.axi import read_word, write_word
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import receive, send

SEED, PARAMS, CORES = 4, PE_PRESETS["unit"], 4
REGISTERS = {register.name: register for register in PE_REGISTERS}
ENTRY, ADDRESS = 5, 1024
WORDS = {"element": SegmentElement.U32, "rank": 1, "size": [8], "page_log2": [3]}


class OnSharedMemory(Elaboratable):
    """An engine beside the memory that its program lies in; the barriers are not used."""

    def __init__(self):
        self.pe = PeUnit(PARAMS)
        self.smem = SharedMemory(PARAMS.smem, stores=True)

    def elaborate(self, platform):
        m = Module()
        m.submodules.pe, m.submodules.smem = self.pe, self.smem
        port, smem = self.pe.smem, self.smem
        connect(m, port.reads, smem.reads)
        connect(m, smem.read_data, port.read_data)
        connect(m, port.scatter, smem.scatter)
        m.d.comb += port.scatter_idle.eq(smem.scatter_idle)
        return m


@pytest.mark.parametrize(("idle", "kind"), [(0.4, MmType.BF16), pytest.param(0, MmType.S8U8, marks=pytest.mark.long)])
def test_a_product(idle, kind):
    rng = np.random.default_rng(SEED)
    # Random bits, so that there are infinities and NaNs.
    a, b = (rng.integers(0, 1 << 8 * kind.bytes, shape).astype(f"u{kind.bytes}") for shape in ((5, 19), (19, 6)))
    program = gemm_program(a, b, kind, sizes=PARAMS, size_bytes=PARAMS.smem.size_bytes, transpose=1)
    golden = program.pe()
    golden.run(program.words)
    dut, reports = elaborated(OnSharedMemory), []
    processor, memories = dut.pe.processor, dut.smem.banks.memories

    async def drive(ctx):
        for row, line in enumerate(program.placement.smem.reshape(-1, BANKS, CHUNK_BYTES)):
            for memory, chunk in zip(memories, line, strict=True):
                ctx.set(memory.data[row], int.from_bytes(chunk.tobytes(), "little"))
        segments = [{"index": n, "word": s.pack()} for n, s in enumerate(program.placement.segments)]
        await send(ctx, processor.segments, segments)
        await send(
            ctx, processor.pages, [{"index": n, "word": word} for n, word in enumerate(program.placement.entries)]
        )
        await send(ctx, processor.instructions, program.words, idle=idle, seed=SEED)
        await ctx.tick().until(processor.halted)
        assert len(reports) >= len(program.words) - 1  # all but its own
        await ctx.tick().repeat(4)
        lines = [[ctx.get(memory.data[row]) for memory in memories] for row in range(PARAMS.smem.rows)]
        raw = b"".join(chunk.to_bytes(CHUNK_BITS // 8, "little") for line in lines for chunk in line)
        assert raw == golden.smem.tobytes()

    watch = recording(reports, processor.fault_valid, processor.fault.number, processor.fault.code)
    simulate(dut, drive, background=[watch], deadline=40_000)
    assert sorted((number, code) for _, number, code in reports) == [(n, 0) for n in range(len(program.words))]


def test_a_page_that_an_instruction_waits_for():
    dut = elaborated(PeUnit, PARAMS, CORES)
    segment = SEGMENT.pack(**WORDS, paged=1, first_entry=ENTRY)
    program = assemble_program("movu ur1, 3\nmov r4, tid\nld r5, ur1:rf4:0x0, 1\nhalt")

    async def write(ctx, name, value):
        access = {"address": REGISTERS[name].offset, "write": 1, "data": value, "strobe": 15}
        await send(ctx, dut.accesses.requests, [access])
        (answer,), _ = await receive(ctx, dut.accesses.answers, 1)
        assert not answer.error

    async def run(ctx):
        ctx.set(dut.smem.scatter_idle, 1)
        await send(ctx, dut.processor.segments, [{"index": 3, "word": segment}])
        await send(ctx, dut.processor.pages, [{"index": ENTRY, "word": PAGE_ENTRY.pack(valid=1)}])
        await send(ctx, dut.processor.instructions, program)
        await ctx.tick().repeat(100)
        assert not ctx.get(dut.smem.reads.valid)

        command = COMMAND.pack(opcode=Opcode.LOAD, smem=ADDRESS)
        await write(ctx, "page_address", ADDRESS)
        for number in range(16):
            await write(ctx, f"data{number}", command >> 32 * number & 0xFFFF_FFFF)
        await write(ctx, "put", REGISTERS["put"].format.pack(kind=Put.PAGE_IN, index=ENTRY))
        (moved,), _ = await receive(ctx, dut.page_moves, 1)
        assert (moved.tag, moved.smem) == (PAGER_TAG | ENTRY, ADDRESS)
        await ctx.tick().repeat(50)
        assert not ctx.get(dut.smem.reads.valid)
        ctx.set(dut.page_moved, {"valid": 1, "tag": PAGER_TAG | ENTRY, "error": 0})
        await ctx.tick()
        ctx.set(dut.page_moved, {"valid": 0})

        (request,), _ = await receive(ctx, dut.smem.reads, 1)
        assert request.lanes == 0b1111
        assert [request.chunks[lane] for lane in range(4)] == [ADDRESS // 16] * 4
        await send(ctx, dut.smem.read_data, [[0] * 8])
        await ctx.tick().until(dut.processor.halted)

    simulate(dut, run)


#: One program for all cores: words 0 to 3 are the number of the core, words 4 to 7 are another number in core 2 alone.
BY_NUMBER = assemble_program("""
    movu ur1, 4
    mov r4, tid
    mov r5, core
    st r5, ur1:rf4:0x0, 1
    setp.eq p1, r5, 2
    mov r6, 0x10
    @p1, mov r6, 0x20
    st r6, ur1:rf4:0x4, 1
    halt
""")


def test_one_program_acts_by_the_number_of_its_core():
    dut, written = elaborated(PeUnit, PARAMS, CORES), {}
    segment = SEGMENT.pack(**WORDS, base=ADDRESS)

    async def run(ctx):
        ctx.set(dut.smem.scatter_idle, 1)
        await send(ctx, dut.processor.segments, [{"index": 4, "word": segment}])
        for core in range(CORES):
            written.clear()
            ctx.set(dut.core_number, core)
            await send(ctx, dut.processor.instructions, BY_NUMBER)
            await ctx.tick().until(dut.processor.halted)
            results = [written[ADDRESS + byte] for byte in range(32)]
            assert results[::4] == [core] * 4 + [0x20 if core == 2 else 0x10] * 4
            assert not any(results[byte] for byte in range(32) if byte % 4)

    async def store(ctx):
        while True:
            (item,), _ = await receive(ctx, dut.smem.scatter, 1)
            for lane in range(8):
                for byte in range(16):
                    if item.strobes[lane] >> byte & 1:
                        written[16 * item.chunks[lane] + byte] = item.data[lane] >> 8 * byte & 0xFF

    simulate(dut, run, background=[store])


class Driver:
    """Reads and writes registers by name."""

    def __init__(self, ctx, axi):
        self.ctx, self.axi = ctx, axi

    async def read(self, name):
        data, response = await read_word(self.ctx, self.axi, REGISTERS[name].offset)
        assert response == Response.OKAY
        return data

    async def write(self, name, **fields):
        register = REGISTERS[name]
        await write_word(self.ctx, self.axi, register.offset, register.format.pack(**fields))


def test_a_program_over_registers_alone():
    dut = Pe(PE_PRESETS["unit"])
    program = [
        instruction_word(Operation.MOV, rd=3, imm=7),
        instruction_word(Operation.LD, rd=0, n=1, ur=5, rf=3),  # ur5 names no segment
        instruction_word(Operation.HALT),
    ]

    async def run(ctx):
        driver = Driver(ctx, dut.s_axil)
        ctx.set(dut.smem.scatter_idle, 1)
        await driver.write("irq_enable", halt=1)
        for instruction in program:
            assert not ctx.get(dut.irq)
            for number in range(4):
                await driver.write(f"data{number}", word=instruction >> 32 * number & 0xFFFF_FFFF)
            await driver.write("put", kind=Put.INSTRUCTION)
        await ctx.tick().until(dut.irq)
        assert await driver.read("error") == REGISTERS["error"].format.pack(code=PeError.UNIFORM, register=5)
        assert await driver.read("error_number") == 1
        assert await driver.read("instructions") == len(program)

        await send(ctx, dut.instructions, program[:1])
        await pulse(ctx, dut.smem.bank_conflict)
        assert await driver.read("instructions") == len(program) + 1
        assert await driver.read("bank_conflicts") == 1

    simulate(dut, run)
