"""``Pe`` or ``Conv`` alone with a shared memory of the testbench, or a ``Core`` with one of them that a host fills.

A testbench to begin with: docs/cocotb.md says how to run it on a design of one's own. Which tests run depends on the
ports.
"""

from types import SimpleNamespace

import cocotb
import numpy as np
from cocotb.triggers import ClockCycles, RisingEdge

from tilewright.golden import Pe, Segment, command_word
from tilewright.sim.asm.pe import assemble_program
from tilewright.spec import BARRIER, COMMAND, LINE_BYTES, BarrierOp, Opcode
from tilewright.spec.conv import CONV_ID_VALUE, JOB, ConvError
from tilewright.spec.pe import PAGE_ENTRY, PE_ID_VALUE, MmType, PeError, Put, SegmentElement

from .axi import axi_lite_master
from .common import (
    COUNT,
    PAUSES,
    Pauses,
    Ports,
    Sink,
    allow_only_cocotbext_warnings,
    check_bytes,
    has_stream,
    random_numbers,
    reset,
    start_clock,
)
from .engines import Convolver, Multiplier, check_integers, random_product, some_jobs
from .payloads import PAGE_MOVED
from .shared_memory import ChunkMemory, HostMemory

__all__ = []

allow_only_cocotbext_warnings()

MULTIPLIES, ALONE = has_stream("instructions"), has_stream("smem_reads")
#: What tests need: a processing engine; one alone; a convolution engine.
PE, PE_ALONE, CONV = {"skip": not MULTIPLIES}, {"skip": not (MULTIPLIES and ALONE)}, {"skip": MULTIPLIES}
#: Bytes of shared memory that work takes where a host fills it: few, because every word passes over AXI4-Lite.
_HOST_BYTES = 2048 if MULTIPLIES else 1024

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

#: A kernel: sums of what a table says of each thread's bytes, in ur2 rounds of two, which are stored as bytes; then
#: which of the sums are large.
SUMS = """
    mov r0, 0
    mov r1, tid
    mov r3, 0
    loop ur2
        loop 2
            ld.e r2, ur0:rf0:0x0, 1
            and r4, r2, 7
            lookup.0 r4, r4, 0
            mad r3, r4, r2, r3
            add r0, r0, 1
        end
        min r5, r0, 6
        sar r5, r5, 1
        xor r3, r3, r5
    end
    mov r0, 1
    st.e r3, ur1:rf0:0x0, 1
    mov r0, 3
    gt p2, r3, 100
    sel r4, p2, r3, r1
    @p2, st.e r4, ur1:rf0:0x0, 1
    return
"""


async def _started(dut, pauses, *names):
    """The design with everything around it, out of reset. ``names`` tell its random numbers apart."""
    ports, rng = Ports(dut), random_numbers(*names)
    master = axi_lite_master(ports, rng, pauses)
    memory = ChunkMemory(ports, rng, pauses) if ALONE else HostMemory(ports, rng, pauses, master)
    engine = (Multiplier if MULTIPLIES else Convolver)(ports, master, rng, pauses)
    bench = SimpleNamespace(ports=ports, rng=rng, memory=memory, engine=engine)
    bench.bytes = memory.size if ALONE else _HOST_BYTES
    if MULTIPLIES and ALONE:
        bench.moves = Sink(ports, "page_moves", COMMAND, rng, pauses.streams)
        ports["page_moved"].value = 0
    start_clock(ports)
    await reset(ports)
    await engine.start()
    return bench


async def _check(bench, what, expected):
    """Shared memory holds ``expected`` from its first byte on."""
    check_bytes(f"shared memory {what}", await bench.memory.image(len(expected)), expected)


async def _multiply(bench, kind=None, before=(), room=None):
    """A random product, of any type or of ``kind``, after instructions; ``room``, or all, is compared."""
    kind, a, b, program = random_product(bench.rng, bench.engine.sizes, room or bench.bytes, kind)
    placement = program.placement
    await bench.memory.fill(placement.smem)
    await bench.engine.write_tables([segment.pack() for segment in placement.segments], placement.entries)
    await bench.engine.run([*before, *program.words])
    golden = program.pe()
    golden.run(program.words)
    await _check(bench, f"after {program.gemm}", golden.smem)
    assert bench.engine.faults == golden.faults == []
    check_integers(kind, a, b, program.result(await bench.memory.image(len(golden.smem))))


async def _convolve(bench, count=1):
    """Random jobs one after the other: shared memory is compared after each."""
    for job in some_jobs(bench.rng, bench.engine.params, bench.bytes, count):
        await bench.memory.fill(job.smem)
        expected = job.smem.copy()
        ends = bench.engine.golden(expected, [job.word])
        assert await bench.engine.run([job.word]) == ends
        await _check(bench, f"after {job.fields}", expected)


#: The stream that begins work, and cycles after which it is in the middle.
_STREAM, _MOMENTS = ("instructions", [20, 90]) if MULTIPLIES else ("jobs", [100, 500])


async def _begun(bench, working):
    """Starts a coroutine; returns its task when the engine is given its first work."""
    task = cocotb.start_soon(working)
    while not int(bench.ports[f"{_STREAM}_valid"].value):
        await RisingEdge(bench.ports["clk"])
    return task


@cocotb.test()
@cocotb.parametrize(pauses=list(PAUSES))
async def work(dut, pauses):
    """Products or jobs of all types and shapes, one after the other, each compared; alone, a product of each type."""
    bench = await _started(dut, PAUSES[pauses], "work", pauses)
    if not MULTIPLIES:
        await _convolve(bench, COUNT)
        return
    for kind in MmType if ALONE else [None] * COUNT:
        await _multiply(bench, kind)


@cocotb.test()
@cocotb.parametrize(moment=_MOMENTS)
async def reset_in_work(dut, moment):
    """A reset some cycles after a product or a job was accepted: the next one is right."""
    bench = await _started(dut, Pauses(streams=0.3), "reset", moment)
    working = await _begun(bench, _multiply(bench) if MULTIPLIES else _convolve(bench, 8))
    await ClockCycles(bench.ports["clk"], moment)
    assert not working.done(), "the work ended before the reset"
    working.cancel()
    bench.engine.withdraw()
    bench.memory.withdraw()
    await reset(bench.ports)
    bench.memory.clear()
    await (_multiply(bench) if MULTIPLIES else _convolve(bench))


async def _rows(bench):
    """Two segments of rows of 7 bytes, one for each thread, in noise; and a golden engine with the same."""
    threads = bench.engine.sizes.threads
    log2 = (4, (threads - 1).bit_length())
    segments = [Segment(SegmentElement.U8, (7, threads), log2, base=base) for base in (0, 1 << sum(log2))]
    noise = np.frombuffer(bench.rng.randbytes(bench.bytes), np.uint8)
    await bench.memory.fill(noise)
    golden = Pe(noise.copy(), bench.engine.sizes)
    words = [segment.pack() for segment in segments]
    for index, word in enumerate(words):
        golden.write_segment(index, word)
    return words, golden


@cocotb.test(**PE)
@cocotb.parametrize(pauses=["none", "streams"])
async def loads_and_stores(dut, pauses):
    """Bytes outside a segment read as zero and are not written, and neither are those of threads that take no part."""
    bench = await _started(dut, PAUSES[pauses], "rows", pauses)
    words, golden = await _rows(bench)
    await bench.engine.write_tables(words, [])
    program = assemble_program(COPY_ROWS)
    await bench.engine.run(program)
    golden.run(program)
    await _check(bench, "after rows are copied", golden.smem)


def _kernel_program(rounds):
    """Loads a table and the kernel, sets its arguments, and calls it twice."""
    kernel = assemble_program(SUMS)
    table = [sum(3 * entry**2 << 32 * (entry % 4) for entry in range(4 * n, 4 * n + 4)) for n in range(2)]
    return [
        *assemble_program("load.lookup 0, 2"),
        *table,
        *assemble_program(f"load.code 4, {len(kernel)}"),
        *kernel,
        *assemble_program(f"movu ur0, 0\nmovu ur1, 1\nmovu ur2, {rounds}\ncall 4\ncall 4\nhalt"),
    ]


async def _run_kernel(bench):
    """A kernel's results, and its errors if the engine cannot compute, as golden has them."""
    words, golden = await _rows(bench)
    await bench.engine.write_tables(words, [])
    program, before = _kernel_program(rounds=3), len(bench.engine.faults)
    await bench.engine.run(program)
    contents = golden.smem.copy()
    golden.run(program)
    if {"alu", "lookup"} <= set(bench.engine.sizes.units):
        assert not golden.faults and (golden.smem != contents).any()
    await _check(bench, "after a kernel", golden.smem)
    assert bench.engine.faults[before:] == golden.faults


@cocotb.test(**PE)
@cocotb.parametrize(pauses=["none", "streams"])
async def kernel(dut, pauses):
    """A kernel with nested loops, a table, loads and stores, called twice."""
    await _run_kernel(await _started(dut, PAUSES[pauses], "kernel", pauses))


@cocotb.test(**PE)
@cocotb.parametrize(moment=[400, 1500])
async def reset_in_kernel(dut, moment):
    """A reset in the middle of a kernel: the next one, loaded anew, is right."""
    bench = await _started(dut, Pauses(streams=0.3), "reset in a kernel", moment)
    if "alu" in bench.engine.sizes.units:
        words, _ = await _rows(bench)
        await bench.engine.write_tables(words, [])
        working = cocotb.start_soon(bench.engine.run(_kernel_program(rounds=10_000)))
        await ClockCycles(bench.ports["clk"], moment)
        assert not working.done(), "the kernel ended before the reset"
        working.cancel()
        bench.engine.withdraw()
        bench.memory.withdraw()
        await reset(bench.ports)
        bench.memory.clear()
    await _run_kernel(bench)


@cocotb.test(**PE)
async def program_waits(dut):
    """A program waits for a barrier in shared memory on which a processor arrives."""
    bench = await _started(dut, Pauses(streams=0.3), "barrier")
    memory, address = bench.memory, bench.memory.size - BARRIER.bytes
    assert await memory.operate(BarrierOp.INIT, address, 1) == (False, False)
    before = assemble_program(f"bar.wait {address}, 0")
    multiplying = await _begun(bench, _multiply(bench, before=before, room=min(bench.bytes, memory.size - LINE_BYTES)))
    await ClockCycles(bench.ports["clk"], 2000)
    assert not multiplying.done() and not bench.engine.halts, "the program did not wait"
    assert await memory.operate(BarrierOp.ARRIVE, address, 1) == (True, False)
    await multiplying
    assert await memory.operate(BarrierOp.TRY_WAIT, address, 0) == (True, False)
    assert await memory.operate(BarrierOp.ARRIVE, address, 2) == (False, True)


@cocotb.test(**PE)
async def refused_instruction(dut):
    """An instruction with an error: its record and the interrupt; the instructions after it are executed."""
    bench = await _started(dut, Pauses(bus=0.3), "refused")
    engine = bench.engine
    words, golden = await _rows(bench)
    await engine.write_tables(words, [])
    await engine.registers.write("irq_enable", error=1)
    assert not int(bench.ports["irq"].value)
    program = assemble_program(f"movu ur0, 7\nld r2, ur0:rf0:0x0, 2\n{COPY_ROWS}")
    await engine.run(program)
    golden.run(program)
    assert int(bench.ports["irq"].value), "no interrupt"
    assert [record.code for record in golden.faults] == [PeError.SEGMENT]
    assert engine.faults == golden.faults
    assert await engine.error_record() == (golden.faults[0], 1)
    await engine.registers.write("irq_status", error=1)
    assert not int(bench.ports["irq"].value), "the interrupt stays"
    await _check(bench, "after a refusal", golden.smem)


@cocotb.test(**PE_ALONE)
async def page_comes(dut):
    """A program waits for a page, which the engine asks a TMAU outside to bring."""
    bench = await _started(dut, Pauses(bus=0.3, streams=0.3), "page")
    words, golden = await _rows(bench)
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
    await _check(bench, "after rows are copied", golden.smem)


@cocotb.test(**CONV)
@cocotb.parametrize(pauses=["none", "streams"])
async def back_to_back(dut, pauses):
    """More jobs than the queue holds, issued at once, in one shared memory; one of them is refused."""
    bench = await _started(dut, PAUSES[pauses], "queue", pauses)
    made = some_jobs(bench.rng, bench.engine.params, bench.bytes, bench.engine.params.queue_depth + 2)
    words = [job.word for job in made]
    words[1] |= 0xF << JOB["operation"].lsb
    await bench.memory.fill(made[0].smem)
    expected = made[0].smem.copy()
    ends = bench.engine.golden(expected, words)
    assert ends[1][0] != ConvError.NONE
    assert await bench.engine.run(words) == ends
    await _check(bench, "after all jobs", expected)


@cocotb.test(**CONV)
async def refused_job(dut):
    """A job with an error: its record, the interrupt, and nothing is written."""
    bench = await _started(dut, Pauses(bus=0.3), "refused")
    engine = bench.engine
    (job,) = some_jobs(bench.rng, engine.params, bench.bytes, 1)
    word = job.word & ~(0xFFFF << JOB["tag"].lsb) | 77 << JOB["tag"].lsb
    await bench.memory.fill(job.smem)
    await engine.registers.write("irq_enable", error=1)
    assert not int(bench.ports["irq"].value)
    await engine.run([word ^ 1 << JOB["version"].lsb])
    await ClockCycles(bench.ports["clk"], 2)
    assert int(bench.ports["irq"].value), "no interrupt"
    record = (ConvError.VERSION, JOB.index("version"), 77)
    assert engine.ends == [record]
    assert await engine.error_record() == (record, 1)
    await engine.registers.write("irq_status", error=1)
    assert not int(bench.ports["irq"].value), "the interrupt stays"
    await _check(bench, "after a refusal", job.smem)


@cocotb.test(**CONV)
async def job_arrives(dut):
    """A processor waits for a barrier on which a job arrives; every result is there then."""
    bench = await _started(dut, Pauses(streams=0.3), "barrier")
    memory, address = bench.memory, bench.memory.size - BARRIER.bytes
    (job,) = some_jobs(bench.rng, bench.engine.params, min(bench.bytes, memory.size - LINE_BYTES), 1)
    word = job.word & ~(((1 << JOB["barrier"].width) - 1) << JOB["barrier"].lsb | 1 << JOB["early"].lsb)
    word |= 1 << JOB["signal"].lsb | address << JOB["barrier"].lsb
    await memory.fill(job.smem)
    assert await memory.operate(BarrierOp.INIT, address, 1) == (False, False)
    assert await memory.operate(BarrierOp.TRY_WAIT, address, 0) == (False, False)
    await bench.engine.jobs.send(word)
    while await memory.operate(BarrierOp.TRY_WAIT, address, 0) != (True, False):
        await RisingEdge(bench.ports["clk"])
    expected = np.zeros(memory.size, np.uint8)
    expected[: len(job.smem)] = job.smem
    expected[address:] = list(BARRIER.pack(pending=1, expected=1).to_bytes(BARRIER.bytes, "little"))
    ends = bench.engine.golden(expected, [word])
    await _check(bench, f"after {job.fields}", expected[: len(job.smem)])
    assert bench.engine.ends == ends == [(ConvError.NONE, 0, job.fields["tag"])]


@cocotb.test()
async def registers(dut):
    """Constants, counters, and an address where nothing is."""
    bench = await _started(dut, Pauses(bus=0.3), "registers")
    registers = bench.engine.registers
    if MULTIPLIES:
        assert await registers.read("id") == PE_ID_VALUE
        assert await registers.read("params3") == bench.memory.size
        await bench.engine.run(assemble_program("fence\nhalt"))
    else:
        assert await registers.read("id") == CONV_ID_VALUE
        await _convolve(bench, 2)
        assert await registers.read("results_written") > 0
        assert await registers.fields("status") == {"idle": 1, "error": 0, "queue_level": 0}
    counter = "instructions" if MULTIPLIES else "jobs"
    assert await registers.read(counter) == 2
    await registers.write("control", clear_counters=1)
    assert await registers.read(counter) == 0
    assert await registers.refuses(0x18)
    assert await registers.refuses(0, write=True)
