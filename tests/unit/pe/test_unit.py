"""Data path, registers and pager: a page comes while an instruction waits for it."""

from tilewright.golden.pe.machine import instruction_word as word
from tilewright.golden.spec import COMMAND, Opcode
from tilewright.golden.spec.pe.instruction import Operation, Source
from tilewright.golden.spec.pe.registers import PE_REGISTERS, Put
from tilewright.golden.spec.pe.segment import PAGE_ENTRY, SEGMENT, SegmentElement
from tilewright.hw.pe.pager import PAGER_TAG
from tilewright.hw.pe.params import PE_PRESETS
from tilewright.hw.pe.unit import PeUnit
from tilewright.sim.pysim.simulate import simulate
from tilewright.sim.pysim.streams import receive, send

OFFSETS = {register.name: register.offset for register in PE_REGISTERS}
PUT = next(register for register in PE_REGISTERS if register.name == "put")
ENTRY, ADDRESS = 5, 1024
SEGMENT_WORD = SEGMENT.pack(element=SegmentElement.U32, rank=1, paged=1, first_entry=ENTRY, size=[8], page_log2=[3])
PROGRAM = [
    word(Operation.MOVU, ud=1, imm=3),
    word(Operation.MOV, rd=4, source=Source.THREAD),
    word(Operation.LD, rd=5, ur=1, rf=4, n=1),
    word(Operation.HALT),
]


def test_a_page_that_an_instruction_waits_for():
    dut = PeUnit(PE_PRESETS["unit"])
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
