"""``Tmau`` alone, or a ``Core`` with an access unit, with or without a processing engine, at cocotbext-axi's memory.

A testbench to begin with: docs/cocotb.md says how to run it on a design of one's own. Which tests run depends on the
ports.
"""

from types import SimpleNamespace

import cocotb
import numpy as np
from cocotb.triggers import ClockCycles, RisingEdge

from tilewright.golden import ErrorRecord, Pe, TensorMap, command_word
from tilewright.golden.tmau.tile import tx_bytes
from tilewright.sim.asm.pe import assemble_program
from tilewright.spec import BANKS, CHUNK_BYTES, BarrierOp, Error, Opcode, Space
from tilewright.spec.pe import PAGE_ENTRY, PE_ID_VALUE, SEGMENT, Put, SegmentElement
from tilewright.spec.tmau_registers import TMAU_ID_VALUE
from tilewright.verify.random.batches import Load

from .axi import AxiMemory, axi_lite_master
from .bench import Bench
from .common import COUNT, PAUSES, Pauses, Ports, allow_only_cocotbext_warnings, check_bytes, has_stream, random_numbers
from .engines import Multiplier, check_integers, random_product
from .shared_memory import BarrierPort, ConsumerPort, LineMemory

__all__ = []

allow_only_cocotbext_warnings()

#: Byte address of the processing engine's registers, after those of the access unit.
_ENGINE = 0x1000
#: Bytes of shared memory that products take, and where in global memory they and their results lie.
_BYTES, _OPERANDS, _RESULTS = 4096, 0x4000, 0x8000

PE, CONSUMER, OUTSIDE = map(has_stream, ("instructions", "reads", "smem_writes"))
#: What tests need: an access unit without other engines; shared memory with a consumer; a processing engine.
ALONE, READ, BOTH = ({"skip": not has} for has in (not PE, CONSUMER, PE))


async def _started(dut, pauses, *names):
    """The design with everything around it, out of reset. ``names`` tell its random numbers apart."""
    ports, rng = Ports(dut), random_numbers(*names)
    master = axi_lite_master(ports, rng, pauses)
    shared = (LineMemory if OUTSIDE else ConsumerPort if CONSUMER else BarrierPort)(ports, rng, pauses)
    tmau = Bench(ports, shared, master, rng, pauses)
    AxiMemory(ports, tmau.memory, rng, pauses)
    await tmau.start()
    bench = SimpleNamespace(ports=ports, rng=rng, master=master, tmau=tmau)
    if PE:
        bench.engine = Multiplier(ports, master, rng, pauses, base=_ENGINE)
        await bench.engine.start()
    return bench


@cocotb.test(**ALONE)
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


@cocotb.test(**ALONE)
@cocotb.parametrize(moment=[3, 17, 40])
async def reset_in_transfer(dut, moment):
    """A reset some cycles after the bus has accepted the first read of a load: the next commands work."""
    tmau = (await _started(dut, Pauses(bus=0.3), "reset", moment)).tmau
    valid, ready = tmau.ports["m_axi_arvalid"], tmau.ports["m_axi_arready"]
    loading = cocotb.start_soon(tmau.load(*(tmau.tile() for _ in range(3))))
    while not (int(valid.value) and int(ready.value)):
        await RisingEdge(tmau.ports["clk"])
    await ClockCycles(tmau.ports["clk"], moment)
    assert not loading.done(), "the loads ended before the reset"
    loading.cancel()
    await tmau.restart()
    await tmau.load_and_compare(2)


@cocotb.test(**ALONE)
async def refused_barrier(dut):
    """Shared memory reports a barrier that cannot count the bytes that have landed."""
    tmau = (await _started(dut, Pauses(), "barrier")).tmau
    await tmau.operate(BarrierOp.COMPLETE_TX, (1 << 20) - 1)
    assert await tmau.execute(tmau.command(tmau.tile())) is not None
    await ClockCycles(tmau.ports["clk"], 10)
    expected = ErrorRecord(Error.BARRIER_OPERATION, 0, 0, tmau.barrier)
    assert tmau.machine.errors == [expected]
    assert await tmau.error_record() == (expected, 1)
    await tmau.compare()


@cocotb.test(**ALONE)
async def unit_registers(dut):
    """Constants, sizes, counters, and an address where nothing is."""
    tmau = (await _started(dut, Pauses(bus=0.3), "registers")).tmau
    assert await tmau.registers.read("id") == TMAU_ID_VALUE
    sizes = await tmau.registers.fields("params0")
    assert (sizes["bus_bytes"], sizes["addr_width"]) == (tmau.bus_bytes, len(tmau.ports["m_axi_araddr"]))
    assert await tmau.registers.read("params2") == tmau.shared.size
    await tmau.registers.write("control", clear_counters=1)
    tile = tmau.tile()
    for _ in range(2):
        await tmau.execute(tmau.command(tile, signal=False))
    assert await tmau.registers.read("bytes") == 2 * tx_bytes(tile.tmap)
    assert await tmau.registers.read("descriptor_hits") + await tmau.registers.read("descriptor_misses") == 2
    assert await tmau.registers.refuses(0x18)
    assert await tmau.registers.refuses(0, write=True)


@cocotb.test(**READ)
@cocotb.parametrize(pause=[0.0, 0.5, 0.9])
async def consumer(dut, pause):
    """Reads of any chunks in any lanes, with conflicts and back-pressure, come back in order."""
    bench = await _started(dut, Pauses(streams=pause), "consumer", pause)
    shared, chunks = bench.tmau.shared, bench.tmau.machine.smem.reshape(-1, CHUNK_BYTES)
    reads = [[bench.rng.randrange(len(chunks)) for _ in range(BANKS)] for _ in range(100)]
    reads += [[bench.rng.randrange(len(chunks) // BANKS) * BANKS + 3 for _ in range(BANKS)] for _ in range(10)]
    asking = cocotb.start_soon(shared.ask(reads))
    for lanes in reads:
        answer = (await shared.read_data.get())["chunks"]
        expected = [int.from_bytes(chunks[chunk].tobytes(), "little") for chunk in lanes]
        assert answer == expected, f"chunks {lanes}"
    await asking


@cocotb.test(**READ)
async def window(dut):
    """A host reads and writes shared memory over AXI4-Lite."""
    bench = await _started(dut, Pauses(bus=0.3), "window")
    smem = bench.tmau.machine.smem
    # Without windows shared memory is the upper half of the addresses.
    first = bench.rng.randrange(bench.tmau.tile_bytes - 64)
    base = (1 << len(bench.ports["s_axil_araddr"]) - 1) + first
    assert (await bench.master.read(base, 64)).data == smem[first : first + 64].tobytes()
    noise = bench.rng.randbytes(37)
    await bench.master.write(base, noise)
    smem[first : first + 37] = list(noise)
    check_bytes("shared memory", await bench.tmau.shared.image(), smem)


@cocotb.test(**READ)
async def flips(dut):
    """``flip`` reports every phase that is complete."""
    bench = await _started(dut, Pauses(streams=0.3), "flips")
    addresses = []

    async def watch():
        while True:
            await RisingEdge(bench.ports["clk"])
            if int(bench.ports["flip_valid"].value):
                addresses.append(int(bench.ports["flip_address"].value))

    cocotb.start_soon(watch())
    for _ in range(3):
        await bench.tmau.load(bench.tmau.tile())
    assert addresses == [bench.tmau.barrier] * 3


@cocotb.test(**ALONE)
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


async def _store_all(bench):
    """Copies what products take of shared memory to global memory, and compares all of that."""
    copy = {"opcode": Opcode.COPY_BLOCK, "source_space": Space.SHARED, "destination_space": Space.GLOBAL}
    await bench.tmau.execute(copy | {"tag": bench.tmau.next_tag(), "size": _BYTES, "destination": _RESULTS})
    bench.tmau.compare_global()


async def _multiply_tiles(bench):
    """A random product: the program waits for its operands on a barrier, and memory is compared when it has ended."""
    tmau, engine = bench.tmau, bench.engine
    kind, a, b, program = random_product(bench.rng, engine.sizes, _BYTES)
    placement = program.placement
    tmau.memory[_OPERANDS : _OPERANDS + _BYTES] = placement.smem.tobytes()
    tmau.machine.gmem.write(_OPERANDS, placement.smem)
    await engine.write_tables([segment.pack() for segment in placement.segments], placement.entries)

    parity = tmau.golden_barrier().phase
    words = [*assemble_program(f"bar.wait {tmau.barrier}, {parity}"), *program.words]
    running = cocotb.start_soon(engine.run(words))
    box = TensorMap(element="u8", size=(128, 32), stride=(128,), box=(128, 32), address=_OPERANDS)
    await ClockCycles(bench.ports["clk"], 50)
    assert not running.done(), "the program did not wait"
    await tmau.load(Load(box, (0, 0), 0))
    await running

    golden = Pe(tmau.machine.smem, engine.sizes)
    placement.load(golden)
    golden.run(words)
    assert engine.faults == golden.faults == []
    await _store_all(bench)
    result = np.frombuffer(tmau.memory[_RESULTS : _RESULTS + _BYTES], np.uint8)
    check_integers(kind, a, b, program.result(result))


@cocotb.test(**BOTH)
@cocotb.parametrize(pauses=list(PAUSES))
async def products(dut, pauses):
    """Products whose operands come from global memory, while the program waits for them."""
    bench = await _started(dut, PAUSES[pauses], "products", pauses)
    for _ in range(COUNT):
        await _multiply_tiles(bench)


@cocotb.test(**BOTH)
async def page_comes(dut):
    """A program waits for a page that the processing engine has the access unit bring."""
    bench = await _started(dut, Pauses(bus=0.3), "page")
    tmau, engine = bench.tmau, bench.engine
    program = assemble_program("movu ur0, 0\nmov r0, tid\nld r1, ur0:rf0:0x0, 1\nst r1, ur0:rf0:0x10, 1\nhalt")
    segment = {"element": SegmentElement.U32, "rank": 1, "paged": 1, "size": [32], "page_log2": [5]}
    await engine.write_tables([SEGMENT.pack(**segment)], [PAGE_ENTRY.pack(valid=1)])
    running = cocotb.start_soon(engine.run(program))
    box = TensorMap(element="u8", size=(128,), stride=(), box=(128,), address=_OPERANDS)
    fields = tmau.command(Load(box, (0,), 0x100), signal=False)
    command = command_word(**fields)
    for number in range(16):
        await engine.registers.write(f"data{number}", word=command >> 32 * number & 0xFFFFFFFF)
    assert not running.done(), "the program did not wait"
    await engine.registers.write("page_address", address=0x100)
    await engine.registers.write("put", kind=Put.PAGE_IN, index=0)
    await running
    assert fields["tag"] not in tmau.done, "processors see no end of page moves"

    tmau.machine.execute(command)
    golden = Pe(tmau.machine.smem, engine.sizes)
    golden.write_segment(0, SEGMENT.pack(**segment))
    golden.write_page(0, PAGE_ENTRY.pack(address=0x100, valid=1, loaded=1, on_chip=1))
    golden.run(program)
    assert engine.faults == golden.faults == []
    await _store_all(bench)


@cocotb.test(**BOTH)
async def reset_in_product(dut):
    """A reset while operands come: the next product is right."""
    bench = await _started(dut, Pauses(bus=0.3), "reset")
    multiplying = cocotb.start_soon(_multiply_tiles(bench))
    while not int(bench.ports["m_axi_arvalid"].value):
        await ClockCycles(bench.ports["clk"], 1)
    await ClockCycles(bench.ports["clk"], 40)
    assert not multiplying.done(), "the product ended before the reset"
    multiplying.cancel()
    bench.engine.withdraw()
    await bench.tmau.restart()
    await _multiply_tiles(bench)


@cocotb.test(**BOTH)
async def registers(dut):
    """Both engines are found at their addresses; an interrupt of either is one of the core."""
    bench = await _started(dut, Pauses(), "registers")
    tmau, engine = bench.tmau.registers, bench.engine.registers
    assert (await tmau.read("id"), await engine.read("id")) == (TMAU_ID_VALUE, PE_ID_VALUE)
    assert await tmau.read("params2") == await engine.read("params3") == bench.tmau.shared.size
    irq = bench.ports["irq"]
    await engine.write("irq_enable", halt=1)
    assert not int(irq.value)
    await bench.engine.run(assemble_program("halt"))
    await ClockCycles(bench.ports["clk"], 2)
    assert int(irq.value), "no interrupt of the processing engine"
    await engine.write("irq_status", halt=1)
    assert not int(irq.value)
    await tmau.write("irq_enable", error=1)
    assert await bench.tmau.execute({"opcode": Opcode.COPY_BLOCK, "tag": bench.tmau.next_tag(), "size": 1}) is None
    await ClockCycles(bench.ports["clk"], 2)
    assert int(irq.value), "no interrupt of the access unit"
