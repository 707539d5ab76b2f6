"""``TmauSubsystem``, the access unit with its shared memory, against cocotbext-axi's memory.

A testbench to begin with: how to run it on a design of one's own is said in docs/cocotb.md.
"""

from types import SimpleNamespace

import cocotb
from cocotb.triggers import ClockCycles, RisingEdge

from tilewright.spec import BANKS, CHUNK_BYTES, Error

from .axi import AxiMemory, axi_lite_master
from .bench import Bench
from .common import COUNT, PAUSES, Pauses, Ports, allow_only_cocotbext_warnings, check_bytes, random_numbers
from .shared_memory import ConsumerPort

__all__ = []

allow_only_cocotbext_warnings()


async def _started(dut, pauses, *names):
    """The design with everything around it, out of reset. ``names`` tell its random numbers apart."""
    ports, rng = Ports(dut), random_numbers(*names)
    master = axi_lite_master(ports, rng, pauses)
    consumer = ConsumerPort(ports, rng, pauses)
    bench = Bench(ports, consumer, master, rng, pauses)
    AxiMemory(ports, bench.memory, rng, pauses)
    await bench.start()
    return SimpleNamespace(ports=ports, rng=rng, master=master, consumer=consumer, tmau=bench)


@cocotb.test()
@cocotb.parametrize(pauses=list(PAUSES))
async def transfers(dut, pauses):
    """Loads with their barrier, then stores, reductions and copies: both memories are compared after each."""
    tmau = (await _started(dut, PAUSES[pauses], "transfers", pauses)).tmau
    await tmau.load(*tmau.swizzled_tiles())
    await tmau.compare()
    await tmau.load_and_compare(2 * COUNT)
    for _ in range(COUNT):
        for command in (tmau.store(tmau.odd_tile()), tmau.copy()):
            await tmau.execute(command)
            await tmau.compare()


@cocotb.test()
async def consumer(dut):
    """Reads of any chunks in any lanes, with conflicts and back-pressure, come back in order."""
    bench = await _started(dut, Pauses(streams=0.5), "consumer")
    chunks = bench.tmau.machine.smem.reshape(-1, CHUNK_BYTES)
    wanted = [[bench.rng.randrange(len(chunks)) for _ in range(BANKS)] for _ in range(40)]
    wanted += [[bench.rng.randrange(len(chunks) // BANKS) * BANKS + 3] * BANKS for _ in range(5)]
    asking = cocotb.start_soon(bench.consumer.ask(wanted))
    for lanes in wanted:
        answer = (await bench.consumer.read_data.get())["chunks"]
        expected = [int.from_bytes(chunks[chunk].tobytes(), "little") for chunk in lanes]
        assert answer == expected, f"chunks {lanes}"
    await asking


@cocotb.test()
async def window(dut):
    """A host reads and writes shared memory over AXI4-Lite, in the upper half of its addresses."""
    bench = await _started(dut, Pauses(bus=0.3), "window")
    smem, base = bench.tmau.machine.smem, 1 << len(bench.ports["s_axil_araddr"]) - 1
    first = bench.rng.randrange(bench.tmau.tile_bytes - 64)
    assert (await bench.master.read(base + first, 64)).data == smem[first : first + 64].tobytes()
    noise = bench.rng.randbytes(37)
    await bench.master.write(base + first, noise)
    smem[first : first + 37] = list(noise)
    check_bytes("shared memory", await bench.consumer.image(), smem)


@cocotb.test()
async def flips(dut):
    """``flip`` tells of every phase that is complete."""
    bench = await _started(dut, Pauses(streams=0.3), "flips")
    seen = []

    async def watch():
        while True:
            await RisingEdge(bench.ports["clk"])
            if int(bench.ports["flip_valid"].value):
                seen.append(int(bench.ports["flip_address"].value))

    cocotb.start_soon(watch())
    for _ in range(3):
        await bench.tmau.load(bench.tmau.tile())
    assert seen == [bench.tmau.barrier] * 3


@cocotb.test()
async def refused_command(dut):
    """A command that breaks a rule moves nothing, raises the interrupt, and leaves the record that golden has."""
    bench = await _started(dut, Pauses(), "refused")
    tmau, irq = bench.tmau, bench.ports["irq"]
    await tmau.registers.write("irq_enable", error=1)
    assert not int(irq.value)
    assert await tmau.execute(tmau.command(tmau.tile(), signal=False) | {"smem": 64}) is None
    await ClockCycles(bench.ports["clk"], 2)
    assert int(irq.value), "no interrupt"
    record, count = await tmau.error_record()
    assert record.code == Error.SMEM_ALIGNMENT
    assert (record, count) == (tmau.machine.errors.pop(), 1)
    await tmau.registers.write("irq_status", error=1)
    assert not int(irq.value), "the interrupt stays"
    await tmau.compare()
    await tmau.load_and_compare(1)
