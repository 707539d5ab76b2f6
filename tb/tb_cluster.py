"""``Cluster`` of access units, each with its shared memory: what one of them reads lands in several, in none by chance.

A testbench to begin with: how to run it on a design of one's own is said in docs/cocotb.md.
"""

from types import SimpleNamespace

import cocotb
from cocotb.triggers import ClockCycles, RisingEdge

from tilewright.golden import ErrorRecord, delivery_bits
from tilewright.golden.tmau.tile import tx_bytes
from tilewright.spec import Error, Opcode, Space
from tilewright.spec.cluster import ClusterError

from .cluster import ClusterBench
from .common import COUNT, PAUSES, Pauses, Ports, allow_only_cocotbext_warnings, random_numbers

__all__ = []

allow_only_cocotbext_warnings()


async def _started(dut, pauses, *names):
    """The design with everything around it, out of reset. ``names`` tell its random numbers apart."""
    ports, rng = Ports(dut), random_numbers(*names)
    bench = ClusterBench(ports, rng, pauses)
    await bench.start()
    return SimpleNamespace(ports=ports, rng=rng, cluster=bench, cores=bench.cores)


def _some(bench):
    """Numbers of one core or more."""
    count = len(bench.cores)
    return sorted(bench.rng.sample(range(count), bench.rng.randint(1, count)))


def _block(bench, issuer, reduction):
    """A copy of a block into shared memory, of a size that lies apart from its source there, as keywords."""
    core = bench.cores[issuer]
    size, half = 16 * bench.rng.randint(1, 20), core.tile_bytes // 2 // 128 * 128
    source = {"source_space": Space.GLOBAL, "source": 16 * bench.rng.randint(0, core.tensor_bytes // 16 - 20)}
    if reduction:
        source = {"source_space": Space.SHARED, "source": 16 * bench.rng.randint(0, (half - size) // 16)}
        source |= {"reduction": "add", "element": "u32"}
    place = half + 16 * bench.rng.randint(0, (half - size) // 16)
    destination = {"destination_space": Space.SHARED, "destination": place}
    return {"opcode": Opcode.COPY_BLOCK, "tag": core.next_tag(), "size": size} | source | destination


@cocotb.test()
@cocotb.parametrize(pauses=list(PAUSES))
async def multicast(dut, pauses):
    """Loads and copies of every core to some cores; after each, all memories are compared."""
    bench = await _started(dut, PAUSES[pauses], "multicast", pauses)
    for _ in range(COUNT):
        for issuer, core in enumerate(bench.cores):
            await bench.cluster.load(issuer, core.tile(), _some(bench))
            await bench.cluster.compare()
            for reduction in (False, True):
                command = _block(bench, issuer, reduction)
                assert await core.execute(command, delivery_bits(_some(bench))) is not None
                await bench.cluster.compare()


@cocotb.test()
@cocotb.parametrize(pauses=["none", "both"])
async def all_at_once(dut, pauses):
    """Every core multicasts to all of them, each into its own part of shared memory, and stores from there."""
    bench = await _started(dut, PAUSES[pauses], "all", pauses)
    everybody = delivery_bits(range(len(bench.cores)))
    part = bench.cores[0].tile_bytes // len(bench.cores) // 128 * 128

    async def work(number, core):
        for _ in range(COUNT):
            command = {"opcode": Opcode.COPY_BLOCK, "tag": core.next_tag(), "size": part}
            source = {"source": 16 * bench.rng.randint(0, (core.tensor_bytes // 2 - part) // 16)}
            destination = {"destination_space": Space.SHARED, "destination": number * part}
            assert await core.execute(command | source | destination, everybody) == part
        place = core.tensor_bytes // 2 // 128 * 128 + number * part
        command = {"opcode": Opcode.COPY_BLOCK, "tag": core.next_tag(), "size": part, "source_space": Space.SHARED}
        assert await core.execute(command | {"source": number * part, "destination": place}) == part

    await bench.cluster.all_at_once(*(work(number, core) for number, core in enumerate(bench.cores)))
    await bench.cluster.compare()


@cocotb.test()
async def one_read(dut):
    """A multicast reads global memory once, whoever receives it; every receiver counts all of it."""
    bench = await _started(dut, Pauses(bus=0.3), "once")
    first, *_ = bench.cores
    for core in bench.cores:
        await core.registers.write("control", clear_counters=1)
    tile = first.tile()
    await bench.cluster.load(0, tile, range(len(bench.cores)))
    await first.execute(first.command(tile, signal=False))
    beats = await first.registers.read("beats")
    await bench.cluster.load(0, tile, range(len(bench.cores)))
    # The second of the three was for this core alone.
    assert await first.registers.read("beats") * 2 == beats * 3
    for number, core in enumerate(bench.cores):
        times = 3 if number == 0 else 2
        assert await core.registers.read("bytes_received") == times * tx_bytes(tile.tmap)
        assert await core.registers.read("bytes") == (3 * tx_bytes(tile.tmap) if number == 0 else 0)


@cocotb.test()
async def reset_in_multicast(dut):
    """A reset while lines are on their way to every core: the next multicasts work."""
    bench = await _started(dut, Pauses(bus=0.3), "reset")
    valid, ready = bench.ports["m_axi_rvalid"], bench.ports["m_axi_rready"]
    everybody, core = range(len(bench.cores)), bench.cores[0]
    (tile, *_) = core.swizzled_tiles()
    loading = cocotb.start_soon(bench.cluster.load(0, tile, everybody))
    while not (int(valid.value) and int(ready.value)):
        await RisingEdge(bench.ports["clk"])
    await ClockCycles(bench.ports["clk"], 20)
    assert not loading.done(), "the load ended before the reset"
    loading.cancel()
    await bench.cluster.restart()
    for number, each in enumerate(bench.cores):
        await bench.cluster.load(number, each.tile(), everybody)
    await bench.cluster.compare()


@cocotb.test()
async def closed_core(dut):
    """A core that does not accept another one keeps its memory, and both say so; others get theirs."""
    bench = await _started(dut, Pauses(), "closed")
    first, last = bench.cores[0], bench.cores[-1]
    accepts = 0xFFFE
    await last.registers.write("isolation", reach=0xFFFF, accepts=accepts)
    last.machine.accepts = accepts
    tile = first.tile()
    assert await first.execute(first.command(tile, signal=False), delivery_bits(range(len(bench.cores)))) is None
    await bench.cluster.compare()
    for core, code in ((first, ClusterError.REMOTE), (last, Error.WINDOW)):
        assert core.machine.errors[-1].code == code
        assert await core.error_record() == (core.machine.errors.pop(), 1)
    await bench.cluster.load(len(bench.cores) - 1, last.tile(), [0])
    await bench.cluster.compare()


@cocotb.test()
async def refused_mask(dut):
    """A mask that names no core, or one that does not exist: nothing is read, and the record is that of golden."""
    bench = await _started(dut, Pauses(), "refused")
    core, count = bench.cores[-1], len(bench.cores)
    for mask in (0, 1 << count):
        command = core.command(core.tile(), signal=False)
        assert await core.execute(command, delivery_bits(mask)) is None
        expected = ErrorRecord(ClusterError.CORES, command["tag"], 0, 0)
        assert core.machine.errors == [expected]
        assert await core.error_record() == (core.machine.errors.pop(), 1)
    assert await core.registers.read("error_count") == 0
    await bench.cluster.compare()


@cocotb.test()
async def registers(dut):
    """Every core knows which one it is, behind its own port."""
    bench = await _started(dut, Pauses(bus=0.3), "registers")
    for number, core in enumerate(bench.cores):
        assert await core.registers.fields("core") == {"number": number, "cores": len(bench.cores)}
        assert await core.registers.fields("isolation") == {"reach": 0xFFFF, "accepts": 0xFFFF}
        assert await core.registers.read("params2") == core.shared.size
