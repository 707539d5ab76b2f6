"""``ConvSubsystem``, the convolution engine with its shared memory, which a host fills and reads over AXI4-Lite.

A testbench to begin with: how to run it on a design of one's own is said in docs/cocotb.md.
"""

from types import SimpleNamespace

import cocotb
import numpy as np
from cocotb.triggers import ClockCycles

from tilewright.spec import BARRIER, BarrierOp
from tilewright.spec.conv import JOB, ConvError

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
from .shared_memory import BarrierPort

__all__ = []

allow_only_cocotbext_warnings()

#: Bytes of shared memory that jobs may take: little, because every word passes over AXI4-Lite.
_BYTES = 1024


async def _started(dut, pauses, *names):
    """The design with everything around it, out of reset. ``names`` tell its random numbers apart."""
    ports, rng = Ports(dut), random_numbers(*names)
    master = axi_lite_master(ports, rng, pauses)
    engine, barriers = Convolver(ports, master, rng, pauses), BarrierPort(ports, rng, pauses)
    start_clock(ports)
    await reset(ports)
    await engine.start()
    # Shared memory is the upper half of the addresses.
    window = 1 << len(ports["s_axil_araddr"]) - 1
    return SimpleNamespace(ports=ports, rng=rng, master=master, engine=engine, barriers=barriers, window=window)


async def _image(bench):
    """The first bytes of shared memory, as a uint8 array."""
    return np.frombuffer((await bench.master.read(bench.window, _BYTES)).data, np.uint8)


async def _convolve(bench):
    """A random job: all of its shared memory is compared."""
    (job,) = some_jobs(bench.rng, bench.engine.params, _BYTES, 1)
    await bench.master.write(bench.window, job.smem.tobytes())
    expected = job.smem.copy()
    ends = bench.engine.golden(expected, [job.word])
    assert await bench.engine.run([job.word]) == ends
    check_bytes(f"shared memory after {job.fields}", await _image(bench), expected)


@cocotb.test()
@cocotb.parametrize(pauses=list(PAUSES))
async def jobs(dut, pauses):
    """Jobs of all operations and shapes, one after the other, each compared."""
    bench = await _started(dut, PAUSES[pauses], "jobs", pauses)
    for _ in range(COUNT):
        await _convolve(bench)


@cocotb.test()
async def barrier(dut):
    """A processor waits for a barrier on which a job arrives; every result is there then."""
    bench = await _started(dut, Pauses(streams=0.3), "barrier")
    (job,) = some_jobs(bench.rng, bench.engine.params, _BYTES, 1)
    address = bench.barriers.size - BARRIER.bytes
    word = job.word & ~(((1 << JOB["barrier"].width) - 1) << JOB["barrier"].lsb | 1 << JOB["early"].lsb)
    word |= 1 << JOB["signal"].lsb | address << JOB["barrier"].lsb
    await bench.master.write(bench.window, job.smem.tobytes())
    assert await bench.barriers.operate(BarrierOp.INIT, address, 1) == (False, False)
    assert await bench.barriers.operate(BarrierOp.TRY_WAIT, address, 0) == (False, False)
    await bench.engine.jobs.send(word)
    while await bench.barriers.operate(BarrierOp.TRY_WAIT, address, 0) != (True, False):
        pass
    expected = np.zeros(bench.barriers.size, np.uint8)
    expected[:_BYTES] = job.smem
    expected[address:] = list(BARRIER.pack(pending=1, expected=1).to_bytes(BARRIER.bytes, "little"))
    ends = bench.engine.golden(expected, [word])
    check_bytes(f"shared memory after {job.fields}", await _image(bench), expected[:_BYTES])
    assert bench.engine.ends == ends == [(ConvError.NONE, 0, job.fields["tag"])]


@cocotb.test()
async def reset_in_job(dut):
    """A reset in the middle of a job: the next one is right."""
    bench = await _started(dut, Pauses(), "reset")
    convolving = cocotb.start_soon(_convolve(bench))
    while not int(bench.ports["jobs_valid"].value):
        await ClockCycles(bench.ports["clk"], 1)
    await ClockCycles(bench.ports["clk"], 150)
    assert not convolving.done(), "the job ended before the reset"
    convolving.cancel()
    bench.engine.withdraw()
    await reset(bench.ports)
    await _convolve(bench)
