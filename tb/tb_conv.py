"""``Conv``, the convolution engine alone, with a shared memory of the testbench.

A testbench to begin with: how to run it on a design of one's own is said in docs/cocotb.md.
"""

from types import SimpleNamespace

import cocotb
from cocotb.triggers import ClockCycles, RisingEdge

from tilewright.spec.conv import CONV_ID_VALUE, JOB, ConvError

from .axi import axi_lite_master
from .common import (
    COUNT,
    PAUSES,
    Pauses,
    Ports,
    allow_only_cocotbext_warnings,
    check_bytes,
    random_numbers,
    reset,
    start_clock,
)
from .convolver import Convolver, some_jobs
from .shared_memory import ChunkMemory

__all__ = []

allow_only_cocotbext_warnings()


async def _started(dut, pauses, *names):
    """The design with everything around it, out of reset. ``names`` tell its random numbers apart."""
    ports, rng = Ports(dut), random_numbers(*names)
    memory = ChunkMemory(ports, rng, pauses)
    engine = Convolver(ports, axi_lite_master(ports, rng, pauses), rng, pauses)
    start_clock(ports)
    await reset(ports)
    await engine.start()
    return SimpleNamespace(ports=ports, rng=rng, memory=memory, engine=engine)


async def _convolve(bench, count=1):
    """Random jobs one after the other: every byte of shared memory is compared after each."""
    for job in some_jobs(bench.rng, bench.engine.params, bench.memory.size, count):
        bench.memory.contents[:] = job.smem
        expected = job.smem.copy()
        ends = bench.engine.golden(expected, [job.word])
        assert await bench.engine.run([job.word]) == ends
        check_bytes(f"shared memory after {job.fields}", bench.memory.contents, expected)


@cocotb.test()
@cocotb.parametrize(pauses=list(PAUSES))
async def jobs(dut, pauses):
    """Jobs of all operations and shapes, one after the other, each compared."""
    bench = await _started(dut, PAUSES[pauses], "jobs", pauses)
    await _convolve(bench, COUNT)


@cocotb.test()
@cocotb.parametrize(pauses=["none", "streams"])
async def back_to_back(dut, pauses):
    """More jobs than the queue holds, issued at once, in one shared memory; one of them is refused."""
    bench = await _started(dut, PAUSES[pauses], "queue", pauses)
    made = some_jobs(bench.rng, bench.engine.params, bench.memory.size, bench.engine.params.queue_depth + 2)
    words = [job.word for job in made]
    words[1] |= 0xF << JOB["operation"].lsb
    contents = bench.memory.contents
    contents[:] = made[0].smem
    expected = contents.copy()
    ends = bench.engine.golden(expected, words)
    assert ends[1][0] != ConvError.NONE
    assert await bench.engine.run(words) == ends
    check_bytes("shared memory", contents, expected)


@cocotb.test()
async def refused_job(dut):
    """A job with an error: its record, the interrupt, and nothing is written."""
    bench = await _started(dut, Pauses(bus=0.3), "refused")
    engine, irq = bench.engine, bench.ports["irq"]
    (job,) = some_jobs(bench.rng, engine.params, bench.memory.size, 1)
    word = job.word & ~(0xFFFF << JOB["tag"].lsb) | 77 << JOB["tag"].lsb
    bench.memory.contents[:] = job.smem
    await engine.registers.write("irq_enable", error=1)
    assert not int(irq.value)
    await engine.run([word ^ 1 << JOB["version"].lsb])
    await ClockCycles(bench.ports["clk"], 2)
    assert int(irq.value), "no interrupt"
    record = (ConvError.VERSION, JOB.index("version"), 77)
    assert engine.ends == [record]
    assert await engine.error_record() == (record, 1)
    await engine.registers.write("irq_status", error=1)
    assert not int(irq.value), "the interrupt stays"
    check_bytes("shared memory", bench.memory.contents, job.smem)


@cocotb.test()
@cocotb.parametrize(moment=[100, 500])
async def reset_in_job(dut, moment):
    """A reset so many cycles after a job came: the next one is right."""
    bench = await _started(dut, Pauses(streams=0.3), "reset", moment)
    convolving = cocotb.start_soon(_convolve(bench, 8))
    while not int(bench.ports["jobs_valid"].value):
        await RisingEdge(bench.ports["clk"])
    await ClockCycles(bench.ports["clk"], moment)
    assert not convolving.done(), "the jobs ended before the reset"
    convolving.cancel()
    bench.engine.withdraw()
    await reset(bench.ports)
    bench.memory.clear()
    await _convolve(bench)


@cocotb.test()
async def registers(dut):
    """Constants, counters, and an address where nothing is."""
    bench = await _started(dut, Pauses(bus=0.3), "registers")
    registers = bench.engine.registers
    assert await registers.read("id") == CONV_ID_VALUE
    await _convolve(bench, 2)
    assert await registers.read("jobs") == 2
    assert await registers.read("results_written") > 0
    assert await registers.fields("status") == {"idle": 1, "error": 0, "queue_level": 0}
    await registers.write("control", clear_counters=1)
    assert await registers.read("jobs") == 0
    assert await registers.refuses(0x18)
    assert await registers.refuses(0, write=True)
