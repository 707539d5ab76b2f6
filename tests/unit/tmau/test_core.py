"""The data path on a memory model in Python: random loads against the golden model, stalls, errors, latency."""

import random

import numpy as np
import pytest

from tilewright.golden import Machine, Memory, TensorMap, command_word
from tilewright.golden.spec import COMMAND, Error
from tilewright.hw.tmau.core import TmauCore
from tilewright.hw.tmau.params import PRESETS
from tilewright.sim.axi_memory import AxiMemory
from tilewright.sim.pysim import simulate
from tilewright.sim.stimulus import random_load
from tilewright.sim.streams import STALL_MODES, send, watch_stream

SEED = 20261121
GMEM_BYTES = 1 << 16


class Bench:
    """Shared memory behind the write port, and a log of what ends."""

    def __init__(self, dut, params, *, stall=0.0, seed=0):
        self.dut, self.stall, self.rng = dut, stall, random.Random(seed)
        self.smem = np.full(params.smem.size_bytes, 0xCD, np.uint8)
        self.writes, self.landed, self.done = [], [], []

    async def shared(self, ctx):
        dut = self.dut
        cycle = 0
        while True:
            ctx.set(dut.writes.ready, self.rng.random() >= self.stall)
            ctx.set(dut.landed.ready, self.rng.random() >= self.stall)
            _, _, valid, ready, line, landed, barrier, done = await ctx.tick().sample(
                dut.writes.valid,
                dut.writes.ready,
                dut.writes.payload,
                dut.landed.valid & dut.landed.ready,
                dut.landed.payload,
                dut.done,
            )
            if valid and ready:
                self.writes.append((cycle, line.row))
                strobe = np.array([line.strobe >> i & 1 for i in range(128)], bool)
                data = np.frombuffer(line.data.to_bytes(128, "little"), np.uint8)
                self.smem[128 * line.row : 128 * line.row + 128][strobe] = data[strobe]
            if landed:
                self.landed.append((cycle, barrier.barrier, barrier.bytes))
            if done.valid:
                self.done.append((cycle, done.record))
            cycle += 1

    async def until_done(self, ctx, count):
        while len(self.done) < count:
            await ctx.tick()


def command(**fields):
    return COMMAND.unpack(command_word(**fields))


def place_descriptors(gmem, maps):
    """Descriptors at the end of memory; the commands' descriptor addresses."""
    addresses = []
    for i, tmap in enumerate(maps):
        address = GMEM_BYTES - 128 * (i + 1)
        gmem[address : address + 128] = np.frombuffer(tmap.pack(), np.uint8)
        addresses.append(address)
    return addresses


@pytest.mark.parametrize(("preset", "mode"), [*(("unit", mode) for mode in STALL_MODES), ("default", "both")])
def test_random_loads(preset, mode):
    params = PRESETS[preset].replace(smem=PRESETS["unit"].smem)
    rng = random.Random(SEED)
    gmem = np.frombuffer(rng.randbytes(GMEM_BYTES), np.uint8).copy()
    loads = [
        random_load(rng, gmem_bytes=GMEM_BYTES - 8192, smem_bytes=4096, max_bytes=1024)
        for _ in range(40 if preset == "unit" else 12)
    ]
    addresses = place_descriptors(gmem, [tmap for tmap, _, _ in loads])
    loads_issued = [
        {"descriptor": address, "coords": coords, "smem": smem, "tag": i}
        for i, ((_, coords, smem), address) in enumerate(zip(loads, addresses, strict=True))
    ]
    dut = TmauCore(params)
    stall = STALL_MODES[mode]["stall"]
    bench = Bench(dut, params, stall=stall, seed=SEED)
    memory = AxiMemory(dut.axi, gmem, stall=stall, seed=SEED)

    async def commands(ctx):
        items = [command(signal=i % 2, barrier=8 * i, **fields) for i, fields in enumerate(loads_issued)]
        await send(ctx, dut.commands, items, idle=STALL_MODES[mode]["idle"], seed=1)
        await bench.until_done(ctx, len(loads))

    print(f"seed {SEED}")
    watchers = [watch_stream(dut.writes, "writes"), watch_stream(dut.landed, "landed")]
    simulate(dut, commands, background=[memory.serve, bench.shared, *watchers], deadline=40_000)

    expected = np.full(4096, 0xCD, np.uint8)
    machine = Machine(Memory(gmem), expected)
    # The bench has no barriers, so the machine is not to touch any.
    landed = [machine.execute(command_word(**fields)) for fields in loads_issued]
    assert [record.code for _, record in bench.done] == [Error.NONE] * len(loads)
    assert [record.tag for _, record in bench.done] == list(range(len(loads)))
    assert [(barrier, count) for _, barrier, count in bench.landed] == [
        (8 * i, landed[i]) for i in range(1, len(loads), 2)
    ]
    assert (bench.smem == expected).all()


def single_load(latency=10, failing=()):
    """One signalled load of 4 x 64 bytes by itself, twice: the descriptor misses, then hits."""
    params = PRESETS["unit"]
    gmem = np.frombuffer(random.Random(SEED).randbytes(GMEM_BYTES), np.uint8).copy()
    tmap = TensorMap(element="u8", size=(64, 4), stride=(128,), box=(64, 4), address=1024)
    (descriptor,) = place_descriptors(gmem, [tmap])
    dut = TmauCore(params)
    bench = Bench(dut, params)
    memory = AxiMemory(dut.axi, gmem, latency=latency)
    memory.failing |= set(failing)
    accepted = []

    async def commands(ctx):
        cycle = 0
        for tag in range(2):
            (offset,) = await send(
                ctx, dut.commands, [command(descriptor=descriptor, coords=(0, 0), tag=tag, signal=1)]
            )
            accepted.append(cycle + offset)
            cycle += offset + 1
            while len(bench.done) <= tag:
                await ctx.tick()
                cycle += 1

    simulate(dut, commands, background=[memory.serve, bench.shared])
    return accepted, memory, bench


def test_latencies_of_a_single_load():
    accepted, memory, bench = single_load()
    data = [cycle for cycle, burst_id, _, _ in memory.requests if burst_id == 0]
    fetch = [cycle for cycle, burst_id, _, _ in memory.requests if burst_id == 1]
    first = accepted[0] + 2
    assert fetch == [first, first + 1], "a miss asks for the descriptor two cycles later, in bursts of max_burst words"
    round_trip = 10 + 8 - 1  # latency, and the beats of a descriptor on a 16-byte bus
    assert data[0] - accepted[0] == 6 + round_trip + 4
    later = [cycle for cycle in data if cycle > accepted[1]]
    assert later[0] - accepted[1] == 6, "a hit asks for data six cycles after the command"
    assert bench.writes[-1][0] - memory.last_beat == 3, "the last line is written three cycles after the last beat"
    assert bench.landed[-1][0] == bench.writes[-1][0]
    assert bench.done[-1][0] - bench.landed[-1][0] == 1


@pytest.mark.parametrize("word", [1024, 1024 + 128 + 16, 1024 + 3 * 128 + 48])
def test_bus_error_drains_and_does_not_signal(word):
    _, memory, bench = single_load(failing=[word])
    assert [(record.code, record.value) for _, record in bench.done] == [(Error.READ, word)] * 2
    assert not bench.landed
    assert sum(beats for _, burst_id, _, beats in memory.requests if burst_id == 0) == 2 * 16
