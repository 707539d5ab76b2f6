"""``Tmau``, the access unit alone: cocotbext-axi's memory on one side, a shared memory of the testbench on the other.

A testbench to begin with: how to run it on a design of one's own is said in docs/cocotb.md.
"""

import cocotb
from cocotb.triggers import ClockCycles, RisingEdge

from tilewright.golden import ErrorRecord
from tilewright.golden.tmau.tile import tx_bytes
from tilewright.spec import BarrierOp, Error
from tilewright.spec.tmau_registers import TMAU_ID_VALUE

from .axi import AxiMemory, axi_lite_master
from .bench import Bench
from .common import COUNT, PAUSES, Pauses, Ports, allow_only_cocotbext_warnings, random_numbers
from .shared_memory import LineMemory

__all__ = []

allow_only_cocotbext_warnings()


async def _started(dut, pauses, *names):
    """The design with everything around it, out of reset: a bench. ``names`` tell its random numbers apart."""
    ports, rng = Ports(dut), random_numbers(*names)
    bench = Bench(ports, LineMemory(ports, rng, pauses), axi_lite_master(ports, rng, pauses), rng, pauses)
    AxiMemory(ports, bench.memory, rng, pauses)
    await bench.start()
    return bench


@cocotb.test()
@cocotb.parametrize(pauses=list(PAUSES))
async def transfers(dut, pauses):
    """Loads with their barrier, then stores, reductions and copies: both memories are compared after each."""
    bench = await _started(dut, PAUSES[pauses], "transfers", pauses)
    await bench.load(*bench.swizzled_tiles())
    await bench.compare()
    await bench.load_and_compare(2 * COUNT)
    for _ in range(COUNT):
        for command in (bench.store(bench.odd_tile()), bench.copy()):
            await bench.execute(command)
            await bench.compare()


@cocotb.test()
@cocotb.parametrize(moment=[3, 17, 40])
async def reset_in_transfer(dut, moment):
    """A reset so many cycles after the bus has taken the first read of a load: the next commands work."""
    bench = await _started(dut, Pauses(bus=0.3), "reset", moment)
    valid, ready = bench.ports["m_axi_arvalid"], bench.ports["m_axi_arready"]
    loading = cocotb.start_soon(bench.load(*(bench.tile() for _ in range(3))))
    while not (int(valid.value) and int(ready.value)):
        await RisingEdge(bench.ports["clk"])
    await ClockCycles(bench.ports["clk"], moment)
    assert not loading.done(), "the loads ended before the reset"
    loading.cancel()
    await bench.restart()
    await bench.load_and_compare(2)


@cocotb.test()
async def refused_command(dut):
    """A command that breaks a rule moves nothing, raises the interrupt, and leaves the record that golden has."""
    bench = await _started(dut, Pauses(), "refused")
    irq = bench.ports["irq"]
    await bench.registers.write("irq_enable", error=1)
    assert not int(irq.value)
    command = bench.command(bench.tile(), signal=False) | {"smem": 64}
    assert await bench.execute(command) is None
    await ClockCycles(bench.ports["clk"], 2)
    assert int(irq.value), "no interrupt"
    record, count = await bench.error_record()
    assert record.code == Error.SMEM_ALIGNMENT
    assert (record, count) == (bench.machine.errors.pop(), 1)
    await bench.registers.write("irq_status", error=1)
    assert not int(irq.value), "the interrupt stays"
    await bench.compare()
    await bench.load_and_compare(1)


@cocotb.test()
async def refused_barrier(dut):
    """Shared memory reports a barrier that cannot count the bytes that have landed."""
    bench = await _started(dut, Pauses(), "barrier")
    await bench.operate(BarrierOp.COMPLETE_TX, (1 << 20) - 1)
    assert await bench.execute(bench.command(bench.tile())) is not None
    await ClockCycles(bench.ports["clk"], 10)
    expected = ErrorRecord(Error.BARRIER_OPERATION, 0, 0, bench.barrier)
    assert bench.machine.errors == [expected]
    assert await bench.error_record() == (expected, 1)
    await bench.compare()


@cocotb.test()
async def registers(dut):
    """Constants, sizes, counters, and an address where nothing is."""
    bench = await _started(dut, Pauses(bus=0.3), "registers")
    assert await bench.registers.read("id") == TMAU_ID_VALUE
    sizes = await bench.registers.fields("params0")
    assert (sizes["bus_bytes"], sizes["addr_width"]) == (bench.bus_bytes, len(bench.ports["m_axi_araddr"]))
    assert await bench.registers.read("params2") == bench.shared.size
    await bench.registers.write("control", clear_counters=1)
    tile = bench.tile()
    for _ in range(2):
        await bench.execute(bench.command(tile, signal=False))
    assert await bench.registers.read("bytes") == 2 * tx_bytes(tile.tmap)
    assert await bench.registers.read("descriptor_hits") + await bench.registers.read("descriptor_misses") == 2
    assert await bench.registers.refuses(0x18)
    assert await bench.registers.refuses(0, write=True)
