"""``PeSubsystem``, the processing engine with its shared memory, which a host fills and reads over AXI4-Lite.

A testbench to begin with: how to run it on a design of one's own is said in docs/cocotb.md.
"""

from types import SimpleNamespace

import cocotb
import numpy as np
from cocotb.triggers import ClockCycles

from tilewright.sim.asm.pe import assemble_program
from tilewright.spec import BARRIER, BarrierOp

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
from .engine import Engine, check_integers, random_product
from .shared_memory import BarrierPort

__all__ = []

allow_only_cocotbext_warnings()

#: Bytes of shared memory that products may take: little, because every word passes over AXI4-Lite.
_BYTES = 2048


async def _started(dut, pauses, *names):
    """The design with everything around it, out of reset. ``names`` tell its random numbers apart."""
    ports, rng = Ports(dut), random_numbers(*names)
    master = axi_lite_master(ports, rng, pauses)
    engine, barriers = Engine(ports, master, rng, pauses), BarrierPort(ports, rng, pauses)
    start_clock(ports)
    await reset(ports)
    await engine.start()
    # Shared memory is the upper half of the addresses.
    window = 1 << len(ports["s_axil_araddr"]) - 1
    return SimpleNamespace(ports=ports, rng=rng, master=master, engine=engine, barriers=barriers, window=window)


async def _multiply(bench, before=()):
    """A random product behind the instructions ``before``: all of its shared memory is compared."""
    kind, a, b, program = random_product(bench.rng, bench.engine.sizes, _BYTES)
    placement = program.placement
    await bench.master.write(bench.window, placement.smem.tobytes())
    await bench.engine.write_tables([segment.pack() for segment in placement.segments], placement.entries)
    await bench.engine.run([*before, *program.words])
    golden = program.pe()
    golden.run(program.words)
    image = np.frombuffer((await bench.master.read(bench.window, _BYTES)).data, np.uint8)
    check_bytes(f"shared memory after {program.gemm}", image, golden.smem)
    assert bench.engine.faults == golden.faults == []
    check_integers(kind, a, b, program.result(image))


@cocotb.test()
@cocotb.parametrize(pauses=list(PAUSES))
async def products(dut, pauses):
    """Products of all types and shapes, one after the other, each compared."""
    bench = await _started(dut, PAUSES[pauses], "products", pauses)
    for _ in range(COUNT):
        await _multiply(bench)


@cocotb.test()
async def barrier(dut):
    """A program waits for a barrier that lies in shared memory and on which a processor arrives."""
    bench = await _started(dut, Pauses(), "barrier")
    address = bench.barriers.size - BARRIER.bytes
    assert await bench.barriers.operate(BarrierOp.INIT, address, 1) == (False, False)
    multiplying = cocotb.start_soon(_multiply(bench, assemble_program(f"bar.wait {address}, 0")))
    while not int(bench.ports["instructions_valid"].value):
        await ClockCycles(bench.ports["clk"], 1)
    await ClockCycles(bench.ports["clk"], 2000)
    assert not multiplying.done(), "the program did not wait"
    assert await bench.barriers.operate(BarrierOp.ARRIVE, address, 1) == (True, False)
    await multiplying
    assert await bench.barriers.operate(BarrierOp.TRY_WAIT, address, 0) == (True, False)
    assert await bench.barriers.operate(BarrierOp.ARRIVE, address, 2) == (False, True)


@cocotb.test()
async def reset_in_product(dut):
    """A reset in the middle of a product: the next one is right."""
    bench = await _started(dut, Pauses(), "reset")
    multiplying = cocotb.start_soon(_multiply(bench))
    while not int(bench.ports["instructions_valid"].value):
        await ClockCycles(bench.ports["clk"], 1)
    await ClockCycles(bench.ports["clk"], 60)
    assert not multiplying.done(), "the product ended before the reset"
    multiplying.cancel()
    bench.engine.withdraw()
    await reset(bench.ports)
    await _multiply(bench)
