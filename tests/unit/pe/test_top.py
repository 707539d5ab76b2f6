"""All blocks on a shared memory: whole programs against the golden machine, with pauses at every port."""

import numpy as np
import pytest
from amaranth.hdl import Elaboratable, Module

from tilewright.golden import gemm_program
from tilewright.golden.pe.machine import instruction_word
from tilewright.golden.pe.machine import instruction_word as word
from tilewright.hw.bus.axi4 import Response
from tilewright.hw.pe.pager import PAGER_TAG
from tilewright.hw.pe.params import PE_PRESETS
from tilewright.hw.pe.top import Pe, PeDatapath, PeUnit
from tilewright.hw.smem.layouts import CHUNK_BITS
from tilewright.hw.smem.top import SharedMemory
from tilewright.sim.asm.pe import assemble_program
from tilewright.spec import BANKS, CHUNK_BYTES, COMMAND, Opcode
from tilewright.spec.pe import (
    PAGE_ENTRY,
    PE_REGISTERS,
    SEGMENT,
    MmType,
    Operation,
    PeError,
    Put,
    SegmentElement,
    Source,
)
from tilewright.verify.pysim.axi import read_word, write_word
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import STALL_MODES, receive, send

SEED = 4
PARAMS = PE_PRESETS["unit"]


class OnSharedMemory(Elaboratable):
    """A core beside the memory that its program lies in; nothing else uses the barriers."""

    def __init__(self):
        self.core = PeDatapath(PARAMS)
        self.smem = SharedMemory(PARAMS.smem, stores=True)

    def elaborate(self, platform):
        m = Module()
        m.submodules.core = core = self.core
        m.submodules.smem = smem = self.smem
        port = core.smem
        for source, sink in ((port.reads, smem.reads), (smem.read_data, port.read_data), (port.scatter, smem.scatter)):
            m.d.comb += [sink.p.eq(source.p), sink.valid.eq(source.valid), source.ready.eq(sink.ready)]
        m.d.comb += port.scatter_idle.eq(smem.scatter_idle)
        return m


@pytest.mark.parametrize(
    ("mode", "kind"),
    [
        ("both", MmType.BF16),
        *(pytest.param(mode, MmType.S8U8, marks=pytest.mark.long) for mode in ("none", "idle", "stall")),
        pytest.param("none", MmType.BF16, marks=pytest.mark.long),
    ],
)
def test_a_product(mode, kind):
    rng = np.random.default_rng(SEED)
    a, b = (raw_elements(rng, shape, kind) for shape in ((5, 19), (19, 6)))
    program = gemm_program(a, b, kind, sizes=PARAMS, size_bytes=PARAMS.smem.size_bytes, transpose=1)
    golden = program.pe()
    golden.run(program.words)
    dut, stalls, reports = elaborated(OnSharedMemory), STALL_MODES[mode], []
    core, memories = dut.core, dut.smem.banks.memories

    async def processor(ctx):
        for row, line in enumerate(program.placement.smem.reshape(-1, BANKS, CHUNK_BYTES)):
            for memory, chunk in zip(memories, line, strict=True):
                ctx.set(memory.data[row], int.from_bytes(chunk.tobytes(), "little"))
        segments = [{"index": n, "word": s.pack()} for n, s in enumerate(program.placement.segments)]
        pages = [{"index": n, "word": word} for n, word in enumerate(program.placement.entries)]
        await send(ctx, core.segments, segments)
        await send(ctx, core.pages, pages)
        await send(ctx, core.instructions, program.words, idle=stalls["idle"], seed=SEED)
        while not ctx.get(core.idle) or len(reports) < len(program.words):
            if ctx.get(core.halted):
                await ctx.tick()  # to see what was accepted in this cycle
                assert len(reports) >= len(program.words) - 1  # all but its own
            await ctx.tick()
        lines = [[ctx.get(memory.data[row]) for memory in memories] for row in range(PARAMS.smem.rows)]
        raw = b"".join(chunk.to_bytes(CHUNK_BITS // 8, "little") for line in lines for chunk in line)
        assert raw == golden.smem.tobytes()
        assert sorted(report.number for report in reports) == list(range(len(program.words)))
        assert not any(report.code for report in reports)

    def collect(faults, seed):
        async def sink(ctx):
            while True:
                got, _ = await receive(ctx, faults, 1, stall=stalls["stall"], seed=seed + len(reports))
                reports.extend(got)

        return sink

    simulate(dut, processor, background=[collect(core.issued, 1), collect(core.collected, 2)], deadline=40_000)


def raw_elements(rng, shape, kind):
    """Random bits, so that there are infinities and NaNs among floats."""
    return rng.integers(0, 1 << 8 * kind.bytes, shape).astype(f"u{kind.bytes}")


OFFSETS = {register.name: register.offset for register in PE_REGISTERS}
PUT = next(register for register in PE_REGISTERS if register.name == "put")
UNIT_PARAMS, CORES = PE_PRESETS["unit"], 4
ENTRY, ADDRESS = 5, 1024
SEGMENT_WORD = SEGMENT.pack(element=SegmentElement.U32, rank=1, paged=1, first_entry=ENTRY, size=[8], page_log2=[3])
PROGRAM = [
    word(Operation.MOVU, ud=1, imm=3),
    word(Operation.MOV, rd=4, source=Source.THREAD),
    word(Operation.LD, rd=5, ur=1, rf=4, n=1),
    word(Operation.HALT),
]
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


def test_a_page_that_an_instruction_waits_for():
    dut = elaborated(PeUnit, UNIT_PARAMS, CORES)
    halts = []

    async def write(ctx, name, value):
        access = {"address": OFFSETS[name], "write": 1, "data": value, "strobe": 15}
        await send(ctx, dut.accesses.requests, [access])
        (answer,), _ = await receive(ctx, dut.accesses.answers, 1)
        assert not answer.error

    async def run(ctx):
        ctx.set(dut.smem.scatter_idle, 1)
        await send(ctx, dut.processor.segments, [{"index": 3, "word": SEGMENT_WORD}])
        await send(ctx, dut.processor.pages, [{"index": ENTRY, "word": PAGE_ENTRY.pack(valid=1)}])
        await send(ctx, dut.processor.instructions, PROGRAM)
        await ctx.tick().repeat(100)
        assert not ctx.get(dut.smem.reads.valid)

        command = COMMAND.pack(opcode=Opcode.LOAD, smem=ADDRESS)
        await write(ctx, "page_address", ADDRESS)
        for number in range(16):
            await write(ctx, f"data{number}", command >> 32 * number & 0xFFFF_FFFF)
        await write(ctx, "put", PUT.format.pack(kind=Put.PAGE_IN, index=ENTRY))
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
        while not halts:
            await ctx.tick()

    async def watch(ctx):
        async for _, _, halted in ctx.tick().sample(dut.processor.halted):
            halts.extend([1] * halted)

    simulate(dut, run, background=[watch])


def test_one_program_acts_by_the_number_of_its_core():
    dut, written = elaborated(PeUnit, UNIT_PARAMS, CORES), {}
    segment = SEGMENT.pack(element=SegmentElement.U32, rank=1, size=[8], page_log2=[3], base=ADDRESS)

    async def run(ctx):
        ctx.set(dut.smem.scatter_idle, 1)
        await send(ctx, dut.processor.segments, [{"index": 4, "word": segment}])
        for core in range(CORES):
            written.clear()
            ctx.set(dut.core_number, core)
            await send(ctx, dut.processor.instructions, BY_NUMBER)
            await ctx.tick().until(dut.processor.halted)
            found = [written[ADDRESS + byte] for byte in range(32)]
            assert found[::4] == [core] * 4 + [0x20 if core == 2 else 0x10] * 4
            assert not any(found[byte] for byte in range(32) if byte % 4)

    async def store(ctx):
        while True:
            (item,), _ = await receive(ctx, dut.smem.scatter, 1)
            for lane in range(8):
                for byte in range(16):
                    if item.strobes[lane] >> byte & 1:
                        written[16 * item.chunks[lane] + byte] = item.data[lane] >> 8 * byte & 0xFF

    simulate(dut, run, background=[store])


REGISTERS = {register.name: register for register in PE_REGISTERS}
PUT_BUSY = REGISTERS["status"].format.pack(put_busy=1)


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

    async def put(self, kind, word, words, index=0):
        for number in range(words):
            await self.write(f"data{number}", word=word >> 32 * number & 0xFFFF_FFFF)
        await self.write("put", kind=kind, index=index)


def test_program_and_page_over_registers_alone():
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
        for word in program:
            assert not ctx.get(dut.irq)
            await driver.put(Put.INSTRUCTION, word, 4)
        await ctx.tick().until(dut.irq)
        assert await driver.read("error") == REGISTERS["error"].format.pack(code=PeError.UNIFORM, register=5)
        assert await driver.read("error_number") == 1
        assert await driver.read("instructions") == len(program)

        await send(ctx, dut.instructions, program[:1])
        ctx.set(dut.smem.bank_conflict, 1)
        await ctx.tick()
        ctx.set(dut.smem.bank_conflict, 0)
        assert await driver.read("instructions") == len(program) + 1
        assert await driver.read("bank_conflicts") == 1

        await driver.write("page_address", address=256)
        await driver.put(Put.PAGE_IN, COMMAND.pack(opcode=Opcode.LOAD, smem=256), 16, index=9)
        (moved,), _ = await receive(ctx, dut.page_moves, 1)
        assert (moved.tag, moved.smem) == (PAGER_TAG + 9, 256)
        assert await driver.read("status") & PUT_BUSY
        ctx.set(dut.page_moved, {"valid": 1, "tag": PAGER_TAG + 9, "error": 0})
        await ctx.tick()
        ctx.set(dut.page_moved.valid, 0)
        await ctx.tick().repeat(4)
        assert not await driver.read("status") & PUT_BUSY

    simulate(dut, run)
