"""The core: operands by the TMAU, a product by the processing engine, and back; pages by request; registers."""

import numpy as np
import pytest

from tilewright import golden
from tilewright.golden import GlobalMemory, Machine, Memory, Pe, command_word, instruction_word
from tilewright.hw.bus.axi4 import Response
from tilewright.hw.conv.params import CONV_UNIT_PRESETS
from tilewright.hw.core import CORE_PRESETS, Core
from tilewright.sim.asm.pe import assemble_program
from tilewright.sim.session.products import CoreProduct
from tilewright.spec import BarrierOp, Opcode
from tilewright.spec.pe import PAGE_ENTRY, PE_ID_VALUE, PE_REGISTERS, SEGMENT, MmType, Operation, Put, SegmentElement
from tilewright.spec.tmau import Space
from tilewright.spec.tmau_registers import TMAU_ID_VALUE
from tilewright.verify.pysim.axi import AxiMemory, read_word, write_word
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import receive, send, sender

PARAMS = CORE_PRESETS["unit"]
BARRIER = PARAMS.smem.size_bytes - 8
#: Reads the first words of a page, one a thread, and writes them behind the sixteenth.
PROGRAM = """
    movu ur0, 0
    mov r0, tid
    ld r4, ur0:rf0:0x0, 1
    st r4, ur0:rf0:0x10, 1
    halt
"""
#: With the convolution engine too, which tests/integration/test_core_conv.py runs.
THREE = PARAMS.replace(conv=CONV_UNIT_PRESETS["unit"])
OFFSETS = {register.name: register.offset for register in PE_REGISTERS}


def test_a_convolution_engine_has_registers_and_ports_of_its_own():
    two, three = Core(PARAMS), Core(THREE)
    assert [(name, region.base, region.size) for name, region in three.regions.items()] == [
        ("tmau", 0, 4096), ("pe", 0x1000, 512), ("conv", 0x2000, 128), ("smem", 0x4000, 0x4000),
    ]  # fmt: skip
    assert "conv" not in two.regions
    assert set(three.signature.members) - set(two.signature.members) == {"jobs", "job_ended", "job_end"}


def test_windows_move_nothing():
    """They are the last regions; all others stay where they are."""
    tmau = PARAMS.tmau.replace(command_window=True, barrier_window=True)
    two, more = Core(PARAMS), Core(PARAMS.replace(tmau=tmau))
    assert dict(list(more.regions.items())[:-2]) == two.regions
    assert [(name, region.size) for name, region in more.regions.items()][-2:] == [("commands", 128), ("barriers", 16)]
    assert set(more.signature.members) == set(two.signature.members)


@pytest.mark.long
def test_registers_and_window():
    dut = elaborated(Core, PARAMS)
    beyond = dut.regions["pe"].base | 1 << 11

    async def processor(ctx):
        axi = dut.s_axil
        assert await read_word(ctx, axi, 0) == (TMAU_ID_VALUE, Response.OKAY)
        assert await read_word(ctx, axi, dut.regions["pe"].base) == (PE_ID_VALUE, Response.OKAY)
        assert (await read_word(ctx, axi, dut.regions["pe"].base + OFFSETS["params3"]))[0] == PARAMS.smem.size_bytes
        assert (await read_word(ctx, axi, beyond))[1] == Response.SLVERR
        last = dut.regions["smem"].base + PARAMS.smem.size_bytes - 4
        await write_word(ctx, axi, last, 0x12345678)
        assert await read_word(ctx, axi, last) == (0x12345678, Response.OKAY)

    simulate(dut, processor)


def shared_memory(ctx, dut):
    """All bytes."""
    lines = [[ctx.get(bank.data[row]) for bank in dut.smem.banks.memories] for row in range(PARAMS.smem.rows)]
    return np.frombuffer(b"".join(chunk.to_bytes(16, "little") for line in lines for chunk in line), np.uint8)


@pytest.mark.long
def test_operands_product_and_result():
    """The program waits for the barrier that its operands complete; the golden models agree on every byte."""
    dut = elaborated(Core, PARAMS)
    memory = GlobalMemory(1 << 14)
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-128, 128, shape, np.int8) for shape in ((4, 32), (32, 4)))
    product = CoreProduct(a, b, MmType.S8S8, PARAMS, memory.place)
    operands = [move for segment in (0, 1, 3) for move in product.moves[segment]]
    loads = [
        command_word(**move.command(memory.place(move.tmap.pack()), signal=1, barrier=BARRIER, tag=tag))
        for tag, move in enumerate(operands)
    ]
    (result,) = product.moves[2]
    store = command_word(**result.command(memory.place(result.tmap.pack()), store=True, tag=len(loads)))
    total = sum(golden.tx_bytes(move.tmap) for move in operands)
    operations = [(BarrierOp.INIT, 1), (BarrierOp.EXPECT_TX, total), (BarrierOp.ARRIVE, 1)]
    words = [instruction_word(Operation.BAR_WAIT, imm=BARRIER), *product.program.words]

    expected, smem = memory.data.copy(), np.zeros(PARAMS.smem.size_bytes, np.uint8)
    machine, pe = Machine(Memory(expected), smem), Pe(smem, PARAMS.pe)
    for op, value in operations:
        machine.barrier(op, BARRIER, value)
    for load in loads:
        machine.execute(load)
    product.program.placement.load(pe)
    pe.run(words)
    machine.execute(store)
    assert pe.faults == [] and machine.errors == []
    c = expected[product.c_address :][:64].view(np.int32).reshape(4, 4)
    assert (c == a.astype(np.int32) @ b.astype(np.int32)).all()
    done = []

    async def processor(ctx):
        segments = [segment.pack() for segment in product.program.placement.segments]
        await send(ctx, dut.segments, [{"index": index, "word": word} for index, word in enumerate(segments)])
        for op, value in operations:
            await send(ctx, dut.barriers, [{"op": op, "address": BARRIER, "value": value}])
            (answer,), _ = await receive(ctx, dut.barrier_results, 1)
            assert not answer.error
        await send(ctx, dut.commands, loads)

    async def store_at_halt(ctx):
        await ctx.tick().until(dut.halted)
        assert done == [(tag, 0) for tag in range(len(loads))]
        await send(ctx, dut.commands, [store])
        while len(done) == len(loads):
            await ctx.tick()
        assert done[-1] == (len(loads), 0)
        assert (shared_memory(ctx, dut) == smem).all()

    async def listen(ctx):
        async for _, _, valid, tag, error in ctx.tick().sample(dut.done.valid, dut.done.tag, dut.done.error):
            if valid:
                done.append((tag, error))

    async def no_faults(ctx):
        async for _, _, valid, code in ctx.tick().sample(dut.fault_valid, dut.fault.code):
            assert not (valid and code)

    bus = AxiMemory(dut.m_axi, memory.data)
    simulate(
        dut,
        processor,
        sender(dut.instructions, [*words, instruction_word(Operation.HALT)]),
        store_at_halt,
        background=[listen, no_faults, bus.serve, bus.serve_writes],
    )
    assert (memory.data == expected).all()


@pytest.mark.long
def test_page_comes_by_request():
    """A load waits for its page, which the pager has the TMAU bring; a processor does not see that command end."""
    dut = elaborated(Core, PARAMS)
    contents = np.random.default_rng(2).integers(1, 256, 1024, np.uint8)
    page = contents[256:384].copy()
    page[64:80] = page[:16]
    spaces = {"source_space": Space.GLOBAL, "destination_space": Space.SHARED}
    move = command_word(Opcode.COPY_BLOCK, source=256, destination=512, size=128, **spaces)
    segment = SEGMENT.pack(element=SegmentElement.U32, rank=1, size=[32], page_log2=[5], paged=1, first_entry=3)

    async def program(ctx):
        await send(ctx, dut.segments, [{"index": 0, "word": segment}])
        await send(ctx, dut.pages, [{"index": 3, "word": PAGE_ENTRY.pack(valid=1)}])
        await send(ctx, dut.instructions, assemble_program(PROGRAM))

    async def processor(ctx):
        axi = dut.s_axil
        pe = dut.regions["pe"].base
        await write_word(ctx, axi, pe + OFFSETS["page_address"], 512)
        for index in range(16):
            await write_word(ctx, axi, pe + OFFSETS[f"data{index}"], move >> 32 * index & 0xFFFFFFFF)
        assert not shared_memory(ctx, dut).any()
        await write_word(ctx, axi, pe + OFFSETS["put"], Put.PAGE_IN | 3 << 16)
        await ctx.tick().until(dut.halted)
        assert (shared_memory(ctx, dut)[512:640] == page).all()
        await send(ctx, dut.commands, [command_word(Opcode.WAIT_ALL, tag=5)])
        assert await ctx.tick().sample(dut.done.tag).until(dut.done.valid) == (5,)

    async def silence(ctx):
        async for _, _, valid, tag in ctx.tick().sample(dut.done.valid, dut.done.tag):
            assert not valid or tag == 5

    bus = AxiMemory(dut.m_axi, contents)
    simulate(dut, program, processor, background=[silence, bus.serve], deadline=2000)
