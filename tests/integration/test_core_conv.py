"""All three engines at once: the TMAU brings what the convolution engine reads, the processing engine what it wrote."""

import numpy as np
import pytest

from support.sessions import session_fixture
from tilewright.golden import Conv, ConvLayer, Machine, Memory, Pe, PostProcessing, Segment, TensorMap, command_word
from tilewright.hw.core.params import ENGINES, core_params
from tilewright.sim.asm.pe import assemble_program
from tilewright.spec import BarrierOp, Error, Opcode, Space
from tilewright.spec.conv import CONV_ID_VALUE, JOB, ConvError
from tilewright.spec.pe import SegmentElement

#: With a command processor that has nothing to do: it is the model that other tests need too.
PARAMS = core_params("unit", ENGINES)
SEED = 6
LINE = 128
#: Barriers of the loads and of the job, and where the processing engine copies results to.
LOADED, CONVOLVED, COPIED = 8192, 8200, 12288
#: Copies 32 words of results, a word of each thread at a time, when the job has arrived.
PROGRAM = f"""
    bar.wait {CONVOLVED}, 0
    movu ur0, 0
    movu ur1, 1
    mov r0, tid
    ld r2, ur0:rf0:0x0, 1
    st r2, ur1:rf0:0x0, 1
    halt
"""


shared_session = session_fixture(params=PARAMS, latency=20, memory_bytes=1 << 16)


@pytest.fixture
def session(shared_session):
    shared_session.clear()
    shared_session.configure(latency=20, stall=0.0, issue_stall=0.0, seed=1)
    size = len(shared_session.shared_memory)
    shared_session.shared_memory.write(0, np.random.default_rng(SEED).integers(0, 256, size, np.uint8))
    return shared_session


def layer():
    """A requantised convolution with bias."""
    rng = np.random.default_rng(SEED)
    x = rng.integers(0, 256, (1, 6, 6, 8), np.uint8)
    k = rng.integers(-128, 128, (8, 3, 3, 8), np.int8)
    bias = rng.integers(-1000, 1000, 8)
    post = PostProcessing(bias=bias, scale=np.full(8, 2.0**-10, np.float32), output="u8")
    return ConvLayer(x, k, "u8s8", padding=(1, 1, 1, 1), post=post, params=PARAMS.conv.conv)


@pytest.mark.parametrize("stall", [0.0, 0.4])
def test_operands_come_results_are_waited_for_and_taken_away(session, stall):
    session.configure(stall=stall, issue_stall=stall, seed=7)
    made = layer()
    fields = JOB.unpack(made.word)
    word = made.word | 1 << JOB["signal"].lsb | CONVOLVED << JOB["barrier"].lsb
    rows = -(-len(made.smem) // LINE)
    image = np.zeros((rows, LINE), np.uint8)
    image.reshape(-1)[: len(made.smem)] = made.smem
    tmap = TensorMap.tiled(image, box=(LINE, rows // 2))
    loads = [session.command(tmap, (0, row), row * LINE, barrier=LOADED) for row in range(0, rows, rows // 2)]
    inits = [
        (BarrierOp.INIT, LOADED, 1), (BarrierOp.EXPECT_TX, LOADED, rows * LINE), (BarrierOp.ARRIVE, LOADED, 1),
        (BarrierOp.INIT, CONVOLVED, 1),
    ]  # fmt: skip
    segments = [Segment(SegmentElement.U32, (32,), (5,), base=base).pack() for base in (fields["y"], COPIED)]
    program = assemble_program(PROGRAM)
    place = session.place(np.zeros(6 * LINE, np.uint8))
    spaces = {"source_space": Space.SHARED, "destination_space": Space.GLOBAL}
    stores = [
        {"opcode": Opcode.COPY_BLOCK, "source": source, "destination": place + at, "size": 3 * LINE, "tag": at} | spaces
        for at, source in ((0, fields["y"]), (3 * LINE, COPIED))
    ]

    smem = session.shared_memory.read(0, len(session.shared_memory)).copy()
    gmem = session.global_memory.read(0, len(session.global_memory)).copy()
    machine, conv, pe = Machine(Memory(gmem), smem), Conv(smem, PARAMS.conv.conv), Pe(smem, PARAMS.pe)
    for operation in inits:
        machine.barrier(*operation)
    for tag, load in enumerate(loads):
        machine.execute(command_word(**{"tag": tag} | load))
    assert conv.execute(word)
    for index, segment in enumerate(segments):
        pe.write_segment(index, segment)
    pe.run(program)
    for store in stores:
        machine.execute(command_word(**store))
    assert machine.errors == [] and pe.faults == []

    run = session.run(barriers=inits, segments=dict(enumerate(segments)))
    assert not any(answer.error for answer in run.barriers)
    waits = [(BarrierOp.TRY_WAIT, LOADED, 0, True)]
    run = session.run(loads, program=program, jobs=[word], barriers=waits, after={"jobs": ["barriers"]})
    (end,) = run.jobs
    assert (end.code, end.tag) == (ConvError.NONE, fields["tag"])
    assert [address for _, address in run.flips] == [LOADED, CONVOLVED]
    assert run.flips[0][0] < end.cycle < run.halts[0]
    assert run.faults == [] and run.violations == () and run.late == ()
    run = session.run(stores)
    assert [stamp.error for stamp in run.commands] == [Error.NONE] * len(stores)
    assert (session.shared_memory.read(0, len(smem)) == smem).all()
    assert (session.global_memory.read(0, len(gmem)) == gmem).all()
    result = made.result(smem).reshape(-1)
    assert (session.global_memory.read(place, len(result)) == result).all()


def test_engines_side_by_side(session):
    """A job, a program and copies at the same time, far from each other."""
    made, program = layer(), assemble_program(PROGRAM.replace(f"bar.wait {CONVOLVED}, 0", ""))
    source = session.place(np.random.default_rng(SEED).integers(0, 256, 2048, np.uint8))
    spaces = {"source_space": Space.GLOBAL, "destination_space": Space.SHARED}
    copies = [
        {"opcode": Opcode.COPY_BLOCK, "source": source, "destination": 6144, "size": 2048, "tag": tag} | spaces
        for tag in range(8)
    ]
    segments = [Segment(SegmentElement.U32, (32,), (5,), base=base).pack() for base in (LOADED, COPIED)]
    session.shared_memory.write(0, made.smem)
    smem = session.shared_memory.read(0, len(session.shared_memory)).copy()
    gmem = session.global_memory.read(0, len(session.global_memory)).copy()
    machine, conv, pe = Machine(Memory(gmem), smem), Conv(smem, PARAMS.conv.conv), Pe(smem, PARAMS.pe)
    assert conv.execute(made.word) and conv.execute(made.word)
    for index, segment in enumerate(segments):
        pe.write_segment(index, segment)
    pe.run(program)
    for copy in copies:
        machine.execute(command_word(**copy))
    run = session.run(copies, program=program, segments=dict(enumerate(segments)), jobs=[made.word] * 2)
    assert [end.code for end in run.jobs] == [ConvError.NONE] * 2
    assert (session.shared_memory.read(0, len(smem)) == smem).all()


def test_registers_and_interrupt(session):
    assert session.read_register("conv", "id") == CONV_ID_VALUE
    assert session.registers("conv")["params2"] == PARAMS.conv.conv.weight_bytes
    session.write_register("conv", "irq_enable", 1)
    run = session.run(jobs=[0])
    assert [end.code for end in run.jobs] == [ConvError.VERSION]
    assert session.run(registers=[("conv", "status")]).irq
    session.write_register("conv", "irq_status", 1)
    assert not session.run(registers=[("conv", "status")]).irq
