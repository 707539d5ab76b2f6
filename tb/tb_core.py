"""``Core``, both engines and their shared memory: what the access unit brings, the processing engine multiplies.

A testbench to begin with: how to run it on a design of one's own is said in docs/cocotb.md.
"""

from types import SimpleNamespace

import cocotb
import numpy as np
from cocotb.triggers import ClockCycles

from tilewright.golden import Pe, TensorMap, command_word
from tilewright.sim.asm.pe import assemble_program
from tilewright.spec import Opcode, Space
from tilewright.spec.pe import PAGE_ENTRY, PE_ID_VALUE, SEGMENT, Put, SegmentElement
from tilewright.spec.tmau_registers import TMAU_ID_VALUE
from tilewright.verify.random.batches import Load

from .axi import AxiMemory, axi_lite_master
from .bench import Bench
from .common import COUNT, PAUSES, Pauses, Ports, allow_only_cocotbext_warnings, random_numbers
from .engine import Engine, check_integers, random_product
from .shared_memory import BarrierPort

__all__ = []

allow_only_cocotbext_warnings()

#: Byte address of the processing engine's registers.
_ENGINE = 0x1000
#: Bytes of shared memory that products take, and where in global memory they and what becomes of them lie.
_BYTES, _OPERANDS, _RESULTS = 4096, 0x4000, 0x8000


async def _started(dut, pauses, *names):
    """The design with everything around it, out of reset. ``names`` tell its random numbers apart."""
    ports, rng = Ports(dut), random_numbers(*names)
    master = axi_lite_master(ports, rng, pauses)
    tmau = Bench(ports, BarrierPort(ports, rng, pauses), master, rng, pauses)
    engine = Engine(ports, master, rng, pauses, base=_ENGINE)
    AxiMemory(ports, tmau.memory, rng, pauses)
    await tmau.start()
    await engine.start()
    return SimpleNamespace(ports=ports, rng=rng, tmau=tmau, engine=engine)


async def _store_all(bench):
    """Copies what products take of shared memory to global memory, and compares all of that."""
    copy = {"opcode": Opcode.COPY_BLOCK, "source_space": Space.SHARED, "destination_space": Space.GLOBAL}
    await bench.tmau.execute(copy | {"tag": bench.tmau.next_tag(), "size": _BYTES, "destination": _RESULTS})
    bench.tmau.compare_global()


async def _multiply(bench):
    """A random product: the program waits for its operands on a barrier, and memory is compared when it has ended."""
    tmau, engine = bench.tmau, bench.engine
    kind, a, b, program = random_product(bench.rng, engine.sizes, _BYTES)
    placement = program.placement
    tmau.memory[_OPERANDS : _OPERANDS + _BYTES] = placement.smem.tobytes()
    tmau.machine.gmem.write(_OPERANDS, placement.smem)
    segments = [segment.pack() for segment in placement.segments]
    await engine.write_tables(segments, placement.entries)

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


@cocotb.test()
@cocotb.parametrize(pauses=list(PAUSES))
async def products(dut, pauses):
    """Products whose operands come from global memory, while the program waits for them."""
    bench = await _started(dut, PAUSES[pauses], "products", pauses)
    for _ in range(COUNT):
        await _multiply(bench)


@cocotb.test()
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


@cocotb.test()
async def reset_in_product(dut):
    """A reset while operands come: the next product is right."""
    bench = await _started(dut, Pauses(bus=0.3), "reset")
    multiplying = cocotb.start_soon(_multiply(bench))
    while not int(bench.ports["m_axi_arvalid"].value):
        await ClockCycles(bench.ports["clk"], 1)
    await ClockCycles(bench.ports["clk"], 40)
    assert not multiplying.done(), "the product ended before the reset"
    multiplying.cancel()
    bench.engine.withdraw()
    await bench.tmau.restart()
    await _multiply(bench)


@cocotb.test()
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
