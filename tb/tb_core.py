"""``Core`` with any of its engines: with an access unit against cocotbext-axi's memory, otherwise filled by a host.

A testbench to begin with: docs/cocotb.md says how to run it on a design of one's own. Which tests run depends on the
ports that the core has.
"""

from types import SimpleNamespace

import cocotb
import numpy as np
from cocotb.triggers import ClockCycles, RisingEdge

from tilewright.golden import Pe, TensorMap, command_word
from tilewright.sim.asm.pe import assemble_program
from tilewright.spec import BANKS, BARRIER, CHUNK_BYTES, BarrierOp, Error, Opcode, Space
from tilewright.spec.conv import JOB, ConvError
from tilewright.spec.pe import PAGE_ENTRY, PE_ID_VALUE, SEGMENT, Put, SegmentElement
from tilewright.spec.tmau_registers import TMAU_ID_VALUE
from tilewright.verify.random.batches import Load

from .axi import AxiMemory, axi_lite_master
from .bench import Bench
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
from .engine import Engine, check_integers, random_product
from .shared_memory import BarrierPort, ConsumerPort

__all__ = []

allow_only_cocotbext_warnings()

#: Byte address of the processing engine's registers behind those of an access unit.
_ENGINE = 0x1000
#: Bytes of shared memory that products take, and where in global memory they and their results lie.
_BYTES, _OPERANDS, _RESULTS = 4096, 0x4000, 0x8000
#: The same of products and jobs in a core that a host fills: few, because every word passes over AXI4-Lite.
_HOST_BYTES, _JOB_BYTES = 2048, 1024


def _has(port):
    """Whether the core has a stream."""
    return cocotb.top is not None and hasattr(cocotb.top, Ports(cocotb.top).name(f"{port}_valid"))


TMAU, PE, CONV = map(_has, ("commands", "instructions", "jobs"))
#: What the tests need: an access unit alone; both engines; an engine that a host fills; each of these.
ALONE = {"skip": not _has("reads")}
BOTH = {"skip": not (TMAU and PE)}
HOST = {"skip": TMAU or not (PE or CONV)}
HOST_PE = {"skip": TMAU or not PE}
HOST_CONV = {"skip": TMAU or not CONV}


async def _started(dut, pauses, *names):
    """The design with everything around it, out of reset. ``names`` tell its random numbers apart."""
    ports, rng = Ports(dut), random_numbers(*names)
    master = axi_lite_master(ports, rng, pauses)
    barriers = (ConsumerPort if _has("reads") else BarrierPort)(ports, rng, pauses)
    bench = SimpleNamespace(ports=ports, rng=rng, master=master, barriers=barriers, tmau=None)
    # Without windows shared memory is the upper half of the addresses.
    bench.window = 1 << len(ports["s_axil_araddr"]) - 1
    if TMAU:
        bench.tmau = Bench(ports, barriers, master, rng, pauses)
        AxiMemory(ports, bench.tmau.memory, rng, pauses)
        await bench.tmau.start()
    else:
        start_clock(ports)
        await reset(ports)
    if PE:
        bench.engine = Engine(ports, master, rng, pauses, base=_ENGINE if TMAU else 0)
        await bench.engine.start()
    if CONV and not (TMAU or PE):
        bench.engine = Convolver(ports, master, rng, pauses)
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
async def consumer(dut):
    """Reads of any chunks in any lanes, with conflicts and back-pressure, come back in order."""
    bench = await _started(dut, Pauses(streams=0.5), "consumer")
    chunks = bench.tmau.machine.smem.reshape(-1, CHUNK_BYTES)
    reads = [[bench.rng.randrange(len(chunks)) for _ in range(BANKS)] for _ in range(40)]
    reads += [[bench.rng.randrange(len(chunks) // BANKS) * BANKS + 3] * BANKS for _ in range(5)]
    asking = cocotb.start_soon(bench.barriers.ask(reads))
    for lanes in reads:
        answer = (await bench.barriers.read_data.get())["chunks"]
        expected = [int.from_bytes(chunks[chunk].tobytes(), "little") for chunk in lanes]
        assert answer == expected, f"chunks {lanes}"
    await asking


@cocotb.test(**ALONE)
async def window(dut):
    """A host reads and writes shared memory over AXI4-Lite."""
    bench = await _started(dut, Pauses(bus=0.3), "window")
    smem = bench.tmau.machine.smem
    first = bench.rng.randrange(bench.tmau.tile_bytes - 64)
    assert (await bench.master.read(bench.window + first, 64)).data == smem[first : first + 64].tobytes()
    noise = bench.rng.randbytes(37)
    await bench.master.write(bench.window + first, noise)
    smem[first : first + 37] = list(noise)
    check_bytes("shared memory", await bench.barriers.image(), smem)


@cocotb.test(**ALONE)
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


async def _image(bench, count):
    """The first bytes of shared memory, which a host reads."""
    return np.frombuffer((await bench.master.read(bench.window, count)).data, np.uint8)


async def _multiply(bench, before=()):
    """A random product after the instructions ``before``: all of its shared memory is compared."""
    kind, a, b, program = random_product(bench.rng, bench.engine.sizes, _HOST_BYTES)
    placement = program.placement
    await bench.master.write(bench.window, placement.smem.tobytes())
    await bench.engine.write_tables([segment.pack() for segment in placement.segments], placement.entries)
    await bench.engine.run([*before, *program.words])
    golden = program.pe()
    golden.run(program.words)
    image = await _image(bench, _HOST_BYTES)
    check_bytes(f"shared memory after {program.gemm}", image, golden.smem)
    assert bench.engine.faults == golden.faults == []
    check_integers(kind, a, b, program.result(image))


async def _convolve(bench):
    """A random job: all of its shared memory is compared."""
    (job,) = some_jobs(bench.rng, bench.engine.params, _JOB_BYTES, 1)
    await bench.master.write(bench.window, job.smem.tobytes())
    expected = job.smem.copy()
    ends = bench.engine.golden(expected, [job.word])
    assert await bench.engine.run([job.word]) == ends
    check_bytes(f"shared memory after {job.fields}", await _image(bench, _JOB_BYTES), expected)


#: What an engine that a host fills does, the stream that begins it, and cycles after which it is in the middle.
_WORK, _STREAM, _MIDDLE = (_multiply, "instructions", 60) if PE else (_convolve, "jobs", 150)


@cocotb.test(**HOST)
@cocotb.parametrize(pauses=list(PAUSES))
async def work(dut, pauses):
    """Products or jobs of all types and shapes, one after the other, each compared."""
    bench = await _started(dut, PAUSES[pauses], "work", pauses)
    for _ in range(COUNT):
        await _WORK(bench)


@cocotb.test(**HOST)
async def reset_in_work(dut):
    """A reset in the middle of a product or a job: the next one is right."""
    bench = await _started(dut, Pauses(), "reset")
    working = cocotb.start_soon(_WORK(bench))
    while not int(bench.ports[f"{_STREAM}_valid"].value):
        await ClockCycles(bench.ports["clk"], 1)
    await ClockCycles(bench.ports["clk"], _MIDDLE)
    assert not working.done(), "the work ended before the reset"
    working.cancel()
    bench.engine.withdraw()
    await reset(bench.ports)
    await _WORK(bench)


@cocotb.test(**HOST_PE)
async def program_waits(dut):
    """A program waits for a barrier in shared memory on which a processor arrives."""
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


@cocotb.test(**HOST_CONV)
async def job_arrives(dut):
    """A processor waits for a barrier on which a job arrives; every result is there then."""
    bench = await _started(dut, Pauses(streams=0.3), "barrier")
    (job,) = some_jobs(bench.rng, bench.engine.params, _JOB_BYTES, 1)
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
    expected[:_JOB_BYTES] = job.smem
    expected[address:] = list(BARRIER.pack(pending=1, expected=1).to_bytes(BARRIER.bytes, "little"))
    ends = bench.engine.golden(expected, [word])
    check_bytes(f"shared memory after {job.fields}", await _image(bench, _JOB_BYTES), expected[:_JOB_BYTES])
    assert bench.engine.ends == ends == [(ConvError.NONE, 0, job.fields["tag"])]
