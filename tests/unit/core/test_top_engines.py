"""Cores of one engine: each with its barriers, and shared memory in the register window."""

import numpy as np
import pytest

from tilewright.golden import Conv, Machine, Memory, TensorMap, command_word
from tilewright.golden.conv.machine import job_word
from tilewright.golden.pe.machine import instruction_word as word
from tilewright.hw.core import Core, core_params, core_regions
from tilewright.sim.session import Session
from tilewright.spec import BARRIER, BarrierOp, Opcode
from tilewright.spec.conv import JOB
from tilewright.spec.pe import SEGMENT, Operation, SegmentElement, Source
from tilewright.verify.pysim.axi import AxiMemory, read_word
from tilewright.verify.pysim.simulate import simulate
from tilewright.verify.pysim.streams import receive, send

_BARRIER = 2048


@pytest.mark.long
def test_an_access_unit_loads_for_a_consumer_and_stores():
    """Command to consumer, with a barrier in between, and back; shared memory in the register window."""
    dut = Core(core_params("unit", ["tmau"]))
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
        await send(ctx, dut.barriers, [{"op": op, "address": _BARRIER, "value": value}])
        (result,), _ = await receive(ctx, dut.barrier_results, 1)
        assert not result.error
        return result.done

    async def run(ctx):
        await operate(ctx, BarrierOp.INIT, 1)
        await operate(ctx, BarrierOp.EXPECT_TX, 1024)
        await operate(ctx, BarrierOp.ARRIVE, 1)
        await send(ctx, dut.commands, [command_word(**load, signal=1, barrier=_BARRIER)])
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


_STORED = 512
_SEGMENT_WORD = SEGMENT.pack(element=SegmentElement.U32, rank=1, base=_STORED, size=[8], page_log2=[3])
_PROGRAM = [
    word(Operation.MOVU, ud=1, imm=3),
    word(Operation.MOV, rd=4, source=Source.THREAD),
    word(Operation.MOV, rd=5, imm=0x1234),
    word(Operation.BAR_WAIT, imm=_BARRIER, parity=0),
    word(Operation.ST, rs=5, ur=1, rf=4, n=1),
    word(Operation.HALT),
]


@pytest.mark.long
def test_a_processing_engine_waits_and_stores():
    """A program waits for a barrier of a processor, and stores what the processor reads over the window."""
    dut = Core(core_params("unit", ["pe"]))
    reports, halts = [], []

    async def operate(ctx, op, value):
        await send(ctx, dut.barriers, [{"op": op, "address": _BARRIER, "value": value}])
        (result,), _ = await receive(ctx, dut.barrier_results, 1)
        assert not result.error

    async def run(ctx):
        await operate(ctx, BarrierOp.INIT, 1)
        await send(ctx, dut.segments, [{"index": 3, "word": _SEGMENT_WORD}])
        await send(ctx, dut.instructions, _PROGRAM[:4])
        await ctx.tick().repeat(200)
        assert len(reports) == 3  # it waits
        await operate(ctx, BarrierOp.ARRIVE, 1)
        await send(ctx, dut.instructions, _PROGRAM[4:])
        while not halts:
            await ctx.tick()
        threads = dut.params.pe.threads
        first = dut.regions["smem"].base + _STORED
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


_AT = 8192  # of the barrier


def test_a_convolution_engine_arrives_at_a_barrier():
    """A processor waits for the end of a job at a barrier, and reads its results over the window."""
    word = job_word(
        operation="convolution", type="u8s8", output="raw", x=0, k=256, y=512, channels=8, width=4, height=2,
        out_channels=2, out_width=4, out_height=2, granularity=3, x_pitch=(8, 32, 64), k_pitch=8, y_pitch=(8, 32, 64),
        signal=1, barrier=_AT, tag=9,
    )  # fmt: skip
    with Session("unit", ["conv"]) as session:
        smem = np.random.default_rng(4).integers(0, 256, session.params.smem.size_bytes, np.uint8)
        smem[_AT : _AT + BARRIER.bytes] = 0
        session.run(preload=smem)
        regions = core_regions(session.params)
        first = regions["smem"].base + JOB.unpack(word)["y"]
        run = session.run(
            jobs=[word],
            barriers=[("init", _AT, 1), ("try_wait", _AT, 0, True)],
            registers=[(first + 4 * index,) for index in range(16)],
            after={"jobs": [], "registers": ["barriers"]},
        )
        golden = smem.copy()
        golden[_AT : _AT + BARRIER.bytes] = np.frombuffer(
            BARRIER.pack(expected=1, pending=1).to_bytes(8, "little"), "u1"
        )
        assert Conv(golden, session.params.conv.conv).execute(word)
        assert [end.tag for end in run.jobs] == [9]
        assert [answer.done for answer in run.barriers] == [False, True]
        assert [answer.data for answer in run.registers] == golden[512:576].view("<u4").tolist()
