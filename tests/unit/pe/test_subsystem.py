"""The subsystem: a program that waits for a barrier of a processor, and stores what the processor reads."""

import pytest

from tilewright.golden.pe.machine import instruction_word as word
from tilewright.hw.pe.params import PE_PRESETS
from tilewright.hw.pe.subsystem import PeSubsystem
from tilewright.spec import BarrierOp
from tilewright.spec.pe import SEGMENT, Operation, SegmentElement, Source
from tilewright.verify.pysim.axi import read_word
from tilewright.verify.pysim.simulate import simulate
from tilewright.verify.pysim.streams import receive, send

BARRIER, STORED = 2048, 512
SEGMENT_WORD = SEGMENT.pack(element=SegmentElement.U32, rank=1, base=STORED, size=[8], page_log2=[3])
PROGRAM = [
    word(Operation.MOVU, ud=1, imm=3),
    word(Operation.MOV, rd=4, source=Source.THREAD),
    word(Operation.MOV, rd=5, imm=0x1234),
    word(Operation.BAR_WAIT, imm=BARRIER, parity=0),
    word(Operation.ST, rs=5, ur=1, rf=4, n=1),
    word(Operation.HALT),
]


@pytest.mark.long
def test_wait_store_and_read_over_the_window():
    dut = PeSubsystem(PE_PRESETS["unit"])
    reports, halts = [], []

    async def operate(ctx, op, value):
        await send(ctx, dut.barriers, [{"op": op, "address": BARRIER, "value": value}])
        (result,), _ = await receive(ctx, dut.barrier_results, 1)
        assert not result.error

    async def run(ctx):
        await operate(ctx, BarrierOp.INIT, 1)
        await send(ctx, dut.segments, [{"index": 3, "word": SEGMENT_WORD}])
        await send(ctx, dut.instructions, PROGRAM[:4])
        await ctx.tick().repeat(200)
        assert len(reports) == 3  # it waits
        await operate(ctx, BarrierOp.ARRIVE, 1)
        await send(ctx, dut.instructions, PROGRAM[4:])
        while not halts:
            await ctx.tick()
        threads = dut.params.threads
        first = dut.regions["smem"].base + STORED
        words = [(await read_word(ctx, dut.s_axil, first + 4 * index))[0] for index in range(8)]
        assert words == [0x1234] * threads + [0] * (8 - threads)

    async def watch(ctx):
        async for _, _, halted, valid, number, code in ctx.tick().sample(
            dut.halted, dut.fault_valid, dut.fault.number, dut.fault.code
        ):
            halts.extend([1] * halted)
            reports.extend([(number, code)] * valid)

    simulate(dut, run, background=[watch])
    assert sorted(reports)[:5] == [(number, 0) for number in range(5)] and len(halts) == 1
