"""``Pe``, the processing engine alone, with a shared memory of the testbench.

A testbench to begin with: how to run it on a design of one's own is said in docs/cocotb.md.
"""

from types import SimpleNamespace

import cocotb
import numpy as np
from cocotb.triggers import ClockCycles, RisingEdge

from tilewright.golden import Pe, Segment, command_word
from tilewright.sim.asm.pe import assemble_program
from tilewright.spec import COMMAND, BarrierOp, Opcode
from tilewright.spec.pe import PAGE_ENTRY, PE_ID_VALUE, MmType, PeError, Put, SegmentElement

from .axi import axi_lite_master
from .common import (
    PAUSES,
    Pauses,
    Ports,
    Sink,
    allow_only_cocotbext_warnings,
    check_bytes,
    random_numbers,
    reset,
    start_clock,
)
from .engine import Engine, check_integers, random_product
from .payloads import PAGE_MOVED
from .shared_memory import ChunkMemory

__all__ = []

allow_only_cocotbext_warnings()

#: Loads two words of each thread's row of segment 0, and lets threads below 3 store them to segment 1.
COPY_ROWS = """
    movu ur0, 0
    movu ur1, 1
    mov r0, 0
    mov r1, tid
    ld r2, ur0:rf0:0x0, 2
    setp.lt p1, tid, 3
    @p1, st r2, ur1:rf0:0x0, 2
    halt
"""


async def _started(dut, pauses, *names):
    """The design with everything around it, out of reset. ``names`` tell its random numbers apart."""
    ports, rng = Ports(dut), random_numbers(*names)
    memory = ChunkMemory(ports, rng, pauses)
    engine = Engine(ports, axi_lite_master(ports, rng, pauses), rng, pauses)
    moves = Sink(ports, "page_moves", COMMAND, rng, pauses.streams)
    ports["page_moved"].value = 0
    start_clock(ports)
    await reset(ports)
    await engine.start()
    return SimpleNamespace(ports=ports, rng=rng, memory=memory, engine=engine, moves=moves)


async def _multiply(bench, kind=None):
    """A random product, of any type or of ``kind``: every byte of shared memory is compared."""
    kind, a, b, program = random_product(bench.rng, bench.engine.sizes, bench.memory.size, kind)
    placement = program.placement
    bench.memory.contents[:] = placement.smem
    await bench.engine.write_tables([segment.pack() for segment in placement.segments], placement.entries)
    await bench.engine.run(program.words)
    golden = program.pe()
    golden.run(program.words)
    check_bytes(f"shared memory after {program.gemm}", bench.memory.contents, golden.smem)
    assert bench.engine.faults == golden.faults == []
    check_integers(kind, a, b, program.result(bench.memory.contents))


def _rows(bench):
    """Two segments of rows of 7 bytes, one for each thread, in noise; and a golden engine with the same."""
    threads = bench.engine.sizes.threads
    log2 = (4, (threads - 1).bit_length())
    segments = [Segment(SegmentElement.U8, (7, threads), log2, base=base) for base in (0, 1 << sum(log2))]
    bench.memory.contents[:] = np.frombuffer(bench.rng.randbytes(bench.memory.size), np.uint8)
    golden = Pe(bench.memory.contents.copy(), bench.engine.sizes)
    words = [segment.pack() for segment in segments]
    for index, word in enumerate(words):
        golden.write_segment(index, word)
    return words, golden


@cocotb.test()
@cocotb.parametrize(pauses=list(PAUSES))
async def products(dut, pauses):
    """A product of each type, of any shape, one after the other, each compared."""
    bench = await _started(dut, PAUSES[pauses], "products", pauses)
    for kind in MmType:
        await _multiply(bench, kind)


@cocotb.test()
@cocotb.parametrize(pauses=["none", "streams"])
async def loads_and_stores(dut, pauses):
    """Bytes outside a segment read as zero and are not written, and neither are those of threads that take no part."""
    bench = await _started(dut, PAUSES[pauses], "rows", pauses)
    words, golden = _rows(bench)
    await bench.engine.write_tables(words, [])
    program = assemble_program(COPY_ROWS)
    await bench.engine.run(program)
    golden.run(program)
    check_bytes("shared memory", bench.memory.contents, golden.smem)


@cocotb.test()
async def barrier(dut):
    """A program waits until a processor has completed the phase of a barrier."""
    bench = await _started(dut, Pauses(streams=0.3), "barrier")
    words, golden = _rows(bench)
    await bench.engine.write_tables(words, [])
    address = bench.memory.size - 8
    await bench.memory.operate(BarrierOp.INIT, address, 1)
    running = cocotb.start_soon(bench.engine.run(assemble_program(f"bar.wait {address}, 0\n{COPY_ROWS}")))
    await ClockCycles(bench.ports["clk"], 200)
    assert not running.done(), "the program did not wait"
    assert (bench.memory.contents[:-8] == golden.smem[:-8]).all()
    assert await bench.memory.operate(BarrierOp.ARRIVE, address, 1) == (True, False)
    await running
    golden.run(assemble_program(COPY_ROWS))
    check_bytes("shared memory", bench.memory.contents[:-8], golden.smem[:-8])


@cocotb.test()
async def refused_instruction(dut):
    """An instruction with an error: its record, the interrupt, and what is behind it is executed."""
    bench = await _started(dut, Pauses(bus=0.3), "refused")
    words, golden = _rows(bench)
    await bench.engine.write_tables(words, [])
    irq = bench.ports["irq"]
    await bench.engine.registers.write("irq_enable", error=1)
    assert not int(irq.value)
    program = assemble_program(f"movu ur0, 7\nld r2, ur0:rf0:0x0, 2\n{COPY_ROWS}")
    await bench.engine.run(program)
    golden.run(program)
    assert int(irq.value), "no interrupt"
    assert [record.code for record in golden.faults] == [PeError.SEGMENT]
    assert bench.engine.faults == golden.faults
    assert await bench.engine.error_record() == (golden.faults[0], 1)
    await bench.engine.registers.write("irq_status", error=1)
    assert not int(irq.value), "the interrupt stays"
    check_bytes("shared memory", bench.memory.contents, golden.smem)


@cocotb.test()
async def page_comes(dut):
    """A program waits for a page, which the engine asks a TMAU outside to bring."""
    bench = await _started(dut, Pauses(bus=0.3, streams=0.3), "page")
    words, golden = _rows(bench)
    paged = Segment.unpack(words[0])
    words[0] = Segment(**vars(paged) | {"paged": True, "base": 0, "first_entry": 1}).pack()
    await bench.engine.write_tables(words, [0, PAGE_ENTRY.pack(valid=1)])
    running = cocotb.start_soon(bench.engine.run(assemble_program(COPY_ROWS)))
    command = command_word(Opcode.LOAD, descriptor=0x1000, smem=0)
    for number in range(16):
        await bench.engine.registers.write(f"data{number}", word=command >> 32 * number & 0xFFFFFFFF)
    await bench.engine.registers.write("page_address", address=0)
    await bench.engine.registers.write("put", kind=Put.PAGE_IN, index=1)
    move = await bench.moves.get()
    assert move == COMMAND.unpack(command) | {"tag": 0x8001}
    assert not running.done(), "the program did not wait"
    bench.ports["page_moved"].value = PAGE_MOVED.pack(valid=1, tag=move["tag"])
    await RisingEdge(bench.ports["clk"])
    bench.ports["page_moved"].value = 0
    await running
    golden.run(assemble_program(COPY_ROWS))
    check_bytes("shared memory", bench.memory.contents, golden.smem)


@cocotb.test()
@cocotb.parametrize(moment=[20, 90])
async def reset_in_product(dut, moment):
    """A reset so many cycles after the first instruction of a product: the next product is right."""
    bench = await _started(dut, Pauses(streams=0.3), "reset", moment)
    multiplying = cocotb.start_soon(_multiply(bench))
    while not int(bench.ports["instructions_valid"].value):
        await RisingEdge(bench.ports["clk"])
    await ClockCycles(bench.ports["clk"], moment)
    assert not multiplying.done(), "the product ended before the reset"
    multiplying.cancel()
    bench.engine.withdraw()
    await reset(bench.ports)
    bench.memory.clear()
    await _multiply(bench)


@cocotb.test()
async def registers(dut):
    """Constants, counters, and an address where nothing is."""
    bench = await _started(dut, Pauses(bus=0.3), "registers")
    registers = bench.engine.registers
    assert await registers.read("id") == PE_ID_VALUE
    assert await registers.read("params3") == bench.memory.size
    await bench.engine.run(assemble_program("fence\nhalt"))
    assert await registers.read("instructions") == 2
    await registers.write("control", clear_counters=1)
    assert await registers.read("instructions") == 0
    assert await registers.refuses(0x18)
    assert await registers.refuses(0, write=True)
