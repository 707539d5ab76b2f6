"""The subsystem with protocol monitors, against AXI subordinates that do all that the specification allows.

cocotbext-axi's memory answers in order, never with an error, and takes a request before its data. Ours reorder,
interleave, answer with errors, and want data first.

The environment variable ``TILEWRIGHT_VARIANT`` names the configuration in :data:`~tilewright.tb.monitored.VARIANTS`.
"""

import os

import cocotb
import numpy as np
from cocotb.triggers import ClockCycles, RisingEdge

from tilewright.golden import ErrorRecord, TensorMap
from tilewright.golden.tmau.tile import tx_bytes, walk
from tilewright.golden.tmau.transfer import load
from tilewright.sim.harness.axi_channels import Rule, Wait
from tilewright.spec import PAGE_BYTES, BarrierOp, Error, Opcode
from tilewright.spec.tmau_registers import TMAU_ID_VALUE
from tilewright.verify.random.batches import Load

from .axi import AxiMemory, axi_lite_master
from .axi_slave import AxiReadSlave, AxiWriteSlave, Knobs, Response, serve
from .bench import Bench
from .common import PAUSES, Pauses, Ports, allow_only_cocotbext_warnings, random_numbers
from .monitored import VARIANTS
from .shared_memory import ConsumerPort

__all__ = []

allow_only_cocotbext_warnings()

PARAMS = VARIANTS[os.environ["TILEWRIGHT_VARIANT"]]

#: Probabilities of pauses: of the bus (AR, R) and of the consumer (read data, barrier results).
STALLS = {"none": (0.0, 0.0), "bus": (0.4, 0.0), "consumer": (0.0, 0.6), "both": (0.7, 0.7)}


async def _compare(bench, count):
    """``count`` random tiles, in groups, each group compared with the golden model."""
    await bench.load_and_compare(count)
    _check_bus(bench)


def _check_bus(bench):
    """The monitor has seen no violation and no endless wait."""
    violations = Rule.decode(int(bench.ports["violations"].value))
    late = Wait.decode(int(bench.ports["late"].value))
    assert not violations, f"AXI rules broken: {', '.join(rule.name for rule in violations)}"
    assert not late, f"AXI waits too long: {', '.join(wait.name for wait in late)}"


async def _with_own_slave(dut, rng, knobs, consumer=0.0):
    """A started bench whose memory answers through our slaves; returns it, and the one for reads.

    ``consumer`` is the probability of its pauses.
    """
    ports = Ports(dut)
    shared = ConsumerPort(ports, rng, Pauses())
    shared.read_data.pause = shared.results.pause = consumer
    bench = Bench(ports, shared, axi_lite_master(ports, rng, Pauses()), rng, Pauses())
    for kind in (AxiWriteSlave, AxiReadSlave):
        slave = kind(bench.memory, word_bytes=PARAMS.bus_bytes, knobs=knobs, seed=rng.random())
        cocotb.start_soon(serve(slave, lambda name: ports[f"m_axi_{name}"], ports["clk"], ports["rst"]))
    await bench.start()
    return bench, slave


@cocotb.test()
@cocotb.parametrize(pauses=list(PAUSES))
async def independent_slave(dut, pauses):
    """Tiles through a memory that is not ours; then stores, reductions and copies."""
    ports, rng, chosen = Ports(dut), random_numbers("independent", pauses), PAUSES[pauses]
    shared = ConsumerPort(ports, rng, chosen)
    bench = Bench(ports, shared, axi_lite_master(ports, rng, chosen), rng, chosen)
    AxiMemory(ports, bench.memory, rng, chosen)
    await bench.start()
    await _compare(bench, 12)
    for _ in range(6):
        for command in (bench.store(bench.odd_tile()), bench.copy()):
            await bench.execute(command)
    await bench.compare()
    _check_bus(bench)


@cocotb.test()
@cocotb.parametrize(
    reorder=[False, True], interleave=[False, True], ready_after_valid=[False, True], stall=list(STALLS)
)
async def own_slave(dut, reorder, interleave, ready_after_valid, stall):
    """Tiles through ours, in all combinations of its knobs and of back-pressure."""
    rng = random_numbers("own", reorder, interleave, ready_after_valid, stall)
    bus, consumer = STALLS[stall]
    knobs = Knobs(reorder, interleave, ready_after_valid, latency=rng.choice((0, 3, 30)), stall=bus)
    bench, _ = await _with_own_slave(dut, rng, knobs, consumer)
    await _compare(bench, 6)


@cocotb.test()
@cocotb.parametrize(data_first=[False, True], stall=list(STALLS))
async def stores(dut, data_first, stall):
    """Tiles of noise into global memory, and then loads of what is there."""
    rng = random_numbers("stores", data_first, stall)
    bus, _ = STALLS[stall]
    knobs = Knobs(reorder=True, data_first=data_first, latency=rng.choice((0, 3, 30)), stall=bus)
    bench, _ = await _with_own_slave(dut, rng, knobs)
    for tile in bench.tiles(8):
        await bench.execute(bench.command(tile, signal=False, opcode=Opcode.STORE))
    await bench.compare()
    await _compare(bench, 3)


@cocotb.test()
async def page_edges(dut):
    """Rows that begin, end and cross around the end of a page, of every length up to two lines."""
    rng = random_numbers("pages")
    bench, slave = await _with_own_slave(dut, rng, Knobs(reorder=True, interleave=True, latency=2))
    for row in range(16, 272, 16):
        before = 16 * rng.randrange(row // 16 + 1)
        tile = _plain(rng, address=PAGE_BYTES * rng.randint(1, 8) - before, row=row, rows=3)
        await bench.load(tile)
        await bench.compare()
    _check_bus(bench)
    # The monitor sees that nothing crosses; this, that the test got there.
    ends = {request.address + request.beats * PARAMS.bus_bytes for request in slave.requests}
    assert any(end % PAGE_BYTES == 0 for end in ends)


def _plain(rng, *, address, row, rows):
    """Whole rows of bytes, a page apart, without fill."""
    tmap = TensorMap(element="u8", size=(row, rows), stride=(PAGE_BYTES,), box=(row, rows), address=address)
    return Load(tmap, (0, 0), 128 * rng.randrange(8))


#: Where an error is put: which end of the descriptor, or which word of the data.
PLACES = ("descriptor first", "descriptor last", "first", "middle", "last")


@cocotb.test()
@cocotb.parametrize(response=[Response.SLVERR, Response.DECERR], place=list(PLACES), run=[1, 2, 3])
async def read_error(dut, response, place, run):
    """A bus error: the record names the address, the barrier waits for ever, the next command works."""
    rng = random_numbers("error", response, place, run)
    knobs = Knobs(reorder=True, interleave=True, latency=rng.choice((0, 20)), stall=0.2)
    bench, slave = await _with_own_slave(dut, rng, knobs)
    await bench.registers.write("irq_enable", error=1)
    tile, words = _tile_of_many_words(bench)
    command = bench.command(tile)
    address, code = _failing(place, command["descriptor"], words), Error.READ
    if place.startswith("descriptor"):
        code = Error.DESCRIPTOR_READ
    slave.faults.fail(address, 1, response)
    bytes_expected = tx_bytes(tile.tmap)
    parity = bench.golden_barrier().phase
    await bench.operate(BarrierOp.EXPECT_TX, bytes_expected)
    await bench.operate(BarrierOp.ARRIVE, 1)
    assert not int(dut.irq.value)
    await bench.issue(command)
    assert await bench.ended(command), "a failed load ended without an error"
    await ClockCycles(dut.clk, 2)
    assert int(dut.irq.value), "no interrupt"
    value = command["descriptor"] if code == Error.DESCRIPTOR_READ else address
    assert await bench.error_record() == (ErrorRecord(code, command["tag"], 0, value), 1)
    await bench.registers.write("irq_status", error=1)
    assert not int(dut.irq.value), "the interrupt stays"
    assert not await bench.operate(BarrierOp.TRY_WAIT, parity)
    # A refused descriptor moves nothing; what a failed load leaves in its box is not specified.
    await bench.compare(but=_written(bench, tile) if code == Error.READ else None)

    slave.faults.forgive()
    await bench.operate(BarrierOp.COMPLETE_TX, bytes_expected)
    await _compare(bench, 2)


def _tile_of_many_words(bench):
    """A random tile with at least three bus words of data, and their addresses in order."""
    while True:
        tile = bench.tile()
        rows = walk(tile.tmap, tile.coords)
        words = []
        for start in rows.addresses[rows.inside].tolist():
            first = start // PARAMS.bus_bytes
            last = (start + rows.stop - rows.start - 1) // PARAMS.bus_bytes
            words += [PARAMS.bus_bytes * word for word in range(first, last + 1)]
        if len(dict.fromkeys(words)) >= 3:
            return tile, list(dict.fromkeys(words))


def _failing(place, descriptor, words):
    return {
        "descriptor first": descriptor,
        "descriptor last": descriptor + 127,
        "first": words[0],
        "middle": words[len(words) // 2],
        "last": words[-1],
    }[place]


def _written(bench, tile):
    """Which bytes of shared memory a load writes: those that do not depend on what was there before."""
    size = PARAMS.smem.size_bytes
    images = [
        load(tile.tmap, tile.coords, bench.machine.gmem, np.full(size, value, np.uint8), tile.smem)
        for value in (0, 255)
    ]
    return images[0] == images[1]


@cocotb.test()
@cocotb.parametrize(moment=list(range(0, 50, 2)))
async def reset_in_transfer(dut, moment):
    """A reset when reads have been in flight for ``moment`` cycles: no rule is broken, and the next commands work."""
    rng = random_numbers("reset", moment)
    knobs = Knobs(reorder=True, interleave=True, latency=8, stall=0.2)
    bench, slave = await _with_own_slave(dut, rng, knobs)
    loading = cocotb.start_soon(bench.load(*(_tile_of_many_words(bench)[0] for _ in range(3))))
    busy = 0
    while busy <= moment:
        await RisingEdge(dut.clk)
        busy += not slave.idle
        assert not loading.done(), "the loads ended before the reset"
    loading.cancel()
    await bench.restart()
    await _compare(bench, 3)


@cocotb.test()
async def registers(dut):
    """What software sees: constants, counters that match what happened, both interrupts, and refused accesses."""
    rng = random_numbers("registers")
    bench, slave = await _with_own_slave(dut, rng, Knobs(latency=5))
    assert await bench.registers.read("id") == TMAU_ID_VALUE
    params0 = await bench.registers.fields("params0")
    assert params0 == {name: getattr(PARAMS, name) for name in params0}
    assert await bench.registers.read("params2") == PARAMS.smem.size_bytes

    await bench.registers.write("control", clear_counters=1, clear_error=1, invalidate_descriptors=1)
    await bench.registers.write("irq_status", done=1, error=1)
    await bench.registers.write("irq_enable", done=1)
    assert not int(dut.irq.value)
    before = len(slave.requests)
    tile, words = _tile_of_many_words(bench)
    await bench.load(tile)
    await bench.load(tile)
    assert int(dut.irq.value)
    status = await bench.registers.fields("status")
    assert status == {"idle": 1, "error": 0, "queue_level": 0}
    assert await bench.registers.read("irq_status") == 0b10
    assert await bench.registers.read("descriptor_hits") + await bench.registers.read("descriptor_misses") == 2
    assert await bench.registers.read("bytes") == 2 * tx_bytes(tile.tmap)
    data = [request for request in slave.requests[before:] if request.address < bench.tensor_bytes]
    assert await bench.registers.read("requests") == len(data)
    assert await bench.registers.read("beats") == sum(request.beats for request in data) >= 2 * len(words)
    await bench.registers.write("irq_status", done=1)
    assert not int(dut.irq.value)

    assert await bench.registers.refuses(0x18)
    assert await bench.registers.refuses(bench.registers.address("id"), write=True)
    assert await bench.registers.read("id") == TMAU_ID_VALUE
    _check_bus(bench)
