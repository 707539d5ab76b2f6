"""The data path on a memory model in Python: random loads against the golden model, stalls, errors, latency."""

import random
from collections import deque

import numpy as np
import pytest

from tilewright.golden import Machine, Memory, command_word
from tilewright.golden.spec import COMMAND, Error
from tilewright.hw.tmau.core import TmauCore
from tilewright.hw.tmau.params import PRESETS
from tilewright.sim.pysim import simulate
from tilewright.sim.stimulus import random_load
from tilewright.sim.streams import STALL_MODES, send, watch_stream

SEED = 20261121
GMEM_BYTES = 1 << 16


class Bench:
    """Global memory behind AXI, shared memory behind the write port, and a log of what ends."""

    def __init__(self, dut, params, gmem, *, latency=10, stall=0.0, seed=0):
        self.dut, self.params, self.gmem = dut, params, gmem
        self.latency, self.stall, self.rng = latency, stall, random.Random(seed)
        self.smem = np.full(params.smem.size_bytes, 0xCD, np.uint8)
        self.requests, self.writes, self.landed, self.done = [], [], [], []
        self.failing = set()
        self.cycle = 0
        self.last_beat = None

    async def memory(self, ctx):
        axi, bus = self.dut.axi, self.params.bus_bytes
        pending, cycle, offered = deque(), 0, None
        while True:
            ctx.set(axi.arready, self.rng.random() >= self.stall)
            if offered is None and pending and pending[0][0] <= cycle and self.rng.random() >= self.stall:
                offered = pending.popleft()
                _, burst_id, address, last = offered
                ctx.set(axi.rid, burst_id)
                ctx.set(axi.rdata, int.from_bytes(self.gmem[address : address + bus].tobytes(), "little"))
                ctx.set(axi.rresp, 2 if address in self.failing else 0)
                ctx.set(axi.rlast, last)
            ctx.set(axi.rvalid, offered is not None)
            _, _, arvalid, arready, arid, araddr, arlen, rready = await ctx.tick().sample(
                axi.arvalid, axi.arready, axi.arid, axi.araddr, axi.arlen, axi.rready
            )
            if arvalid and arready:
                self.requests.append((cycle, arid, araddr, arlen + 1))
                for beat in range(arlen + 1):
                    address = (araddr + beat * bus) % GMEM_BYTES
                    pending.append((cycle + self.latency, arid, address, beat == arlen))
            if offered is not None and rready:
                if offered[1] == 0:
                    self.last_beat = cycle
                offered = None
            cycle += 1

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


@pytest.mark.parametrize("mode", STALL_MODES)
@pytest.mark.parametrize("preset", ["unit", "default"])
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
    bench = Bench(dut, params, gmem, stall=STALL_MODES[mode]["stall"], seed=SEED)

    async def commands(ctx):
        items = [command(signal=i % 2, barrier=8 * i, **fields) for i, fields in enumerate(loads_issued)]
        await send(ctx, dut.commands, items, idle=STALL_MODES[mode]["idle"], seed=1)
        await bench.until_done(ctx, len(loads))

    print(f"seed {SEED}")
    watchers = [watch_stream(dut.writes, "writes"), watch_stream(dut.landed, "landed")]
    simulate(dut, commands, background=[bench.memory, bench.shared, *watchers], deadline=40_000)

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
