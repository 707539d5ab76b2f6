"""Data path, registers and pager: a page comes while an instruction waits for it; the number of the core."""

from tilewright.golden.pe.machine import instruction_word as word
from tilewright.golden.spec import COMMAND, Opcode
from tilewright.golden.spec.pe.instruction import Operation, Source
from tilewright.golden.spec.pe.registers import PE_REGISTERS, Put
from tilewright.golden.spec.pe.segment import PAGE_ENTRY, SEGMENT, SegmentElement
from tilewright.hw.pe.pager import PAGER_TAG
from tilewright.hw.pe.params import PE_PRESETS
from tilewright.hw.pe.unit import PeUnit
from tilewright.sim.asm.pe.assembler import assemble_program
from tilewright.sim.pysim.simulate import elaborated, simulate
from tilewright.sim.pysim.streams import receive, send

OFFSETS = {register.name: register.offset for register in PE_REGISTERS}
PUT = next(register for register in PE_REGISTERS if register.name == "put")
PARAMS, CORES = PE_PRESETS["unit"], 4
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
    dut = elaborated(PeUnit, PARAMS, CORES)
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
    dut, written = elaborated(PeUnit, PARAMS, CORES), {}
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
