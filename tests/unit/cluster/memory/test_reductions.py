"""The gate alone: who is held back, who gets a turn. With reducers around it: sums of several cores lose nothing."""

import random
from itertools import pairwise

import numpy as np
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from support.selection import cases
from tilewright.hw.bus.axi4 import Axi4Signature, forward_channels
from tilewright.hw.bus.bursts import WritesSignature
from tilewright.hw.bus.write_port import WritePort
from tilewright.hw.cluster.memory.reductions import ReductionGate
from tilewright.hw.cluster.memory.top import MemorySide
from tilewright.hw.reduce.unit import Reducer
from tilewright.sim.harness.axi_channels import Rule
from tilewright.sim.harness.axi_monitor import Axi4Monitor
from tilewright.spec import Element, Reduction
from tilewright.verify.pysim.axi import AxiMemory
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import STALL_MODES, receive, send, sender

BUS_BYTES = 16
MAX_BURST = 4
CORES = 2


class Cluster(wiring.Component):
    """The ends of the store paths of two cores, and their memory side, with a protocol monitor outside."""

    def __init__(self):
        self.side = MemorySide(CORES, 16, 8 * BUS_BYTES, max_burst=MAX_BURST, read_words=32, groups=2)
        self.monitor = Axi4Monitor(self.side.axi, reads=32, writes=32, max_burst=MAX_BURST)
        super().__init__(
            {"writes": In(WritesSignature(16, BUS_BYTES)).array(CORES), "axi": Out(Axi4Signature(16, 8 * BUS_BYTES, 3))}
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.side = self.side
        m.submodules.monitor = self.monitor
        forward_channels(m, self.axi, self.side.axi)
        for core, (writes, bus) in enumerate(zip(self.writes, self.side.ports, strict=True)):
            reducer = m.submodules[f"reducer{core}"] = Reducer(16, BUS_BYTES, MAX_BURST, 16, floats=False)
            port = m.submodules[f"port{core}"] = WritePort(
                addr_width=16, bus_bytes=BUS_BYTES, max_outstanding=16, id_width=2
            )
            wiring.connect(m, writes=wiring.flipped(writes), reducer=reducer.i)
            wiring.connect(m, reducer=reducer.o, port=port.writes)
            for part in (reducer.axi, port.axi):
                forward_channels(m, wiring.flipped(bus), part)
        return m


def some_bursts(core, count, *, pages, plain, seed):
    """Sums into all of ``pages``, and plain writes to bytes of the core alone."""
    rng = random.Random(10 * seed + core)
    bursts = []
    for _ in range(count):
        beats = rng.randrange(1, MAX_BURST + 1)
        if rng.random() < plain:
            word = (0x8000 + 0x1000 * core) // BUS_BYTES + rng.randrange(16)
            burst = {"word": word, "reduction": Reduction.NONE}
        else:
            word = 256 * rng.randrange(pages) + rng.randrange(8)
            burst = {"word": word, "reduction": Reduction.ADD}
        words = [{"data": rng.getrandbits(128), "strobe": rng.choice([0xFFFF, 0xF0FF])} for _ in range(beats)]
        bursts.append((burst | {"beats_minus_one": beats - 1, "element": Element.U32}, words))
    return bursts


def apply(contents, bursts, failing):
    """All of a core's bursts in order: sums of different cores may come in any order."""
    errors = []
    for burst, words in bursts:
        start, reducing = BUS_BYTES * burst["word"], burst["reduction"] != Reduction.NONE
        errors.append(reducing and any(start + BUS_BYTES * beat in failing for beat in range(len(words))))
        for beat, word in enumerate([] if errors[-1] else words):
            place = contents[start + BUS_BYTES * beat :][:BUS_BYTES].view("<u4")
            source = np.frombuffer(word["data"].to_bytes(BUS_BYTES, "little"), "<u4")
            written = np.array([word["strobe"] >> 4 * lane & 1 for lane in range(4)], bool)
            place[written] = (place + source if reducing else source)[written]
    return errors


@cases("pages, mode", [(1, "none"), (3, "both")], [(1, "idle"), (1, "stall"), (1, "both")])
def test_no_sum_is_lost(pages, mode):
    dut, stalls = elaborated(Cluster), STALL_MODES[mode]
    contents = np.random.default_rng(pages).integers(256, size=65536, dtype=np.uint8)
    memory = AxiMemory(dut.axi, contents, stall=stalls["stall"], seed=4)
    memory.failing = {16 * 5} if mode == "both" else set()
    benches, expected = [], contents.copy()
    for core, port in enumerate(dut.writes):
        bursts = some_bursts(core, 30, pages=pages, plain=0.2, seed=pages)
        errors = apply(expected, bursts, memory.failing)
        benches += core_benches(port, bursts, errors, stalls, core)

    async def rules(ctx):
        async for _, _, violations in ctx.tick().sample(dut.monitor.violations):
            assert Rule.decode(violations) == []

    simulate(dut, *benches, background=[memory.serve, memory.serve_writes, rules])
    assert (contents == expected).all()
    # Sums of both cores met: they took turns in one page.
    owners = [ident >> 2 for _, ident, address, _ in memory.requests if address < 4096]
    assert sum(a != b for a, b in pairwise(owners)) > 2


def core_benches(port, bursts, errors, stalls, seed):
    async def give(ctx):
        words = [word for _, words in bursts for word in words]
        await send(ctx, port.words, words, idle=stalls["idle"], seed=seed + 5)

    async def take(ctx):
        responses, _ = await receive(ctx, port.responses, len(bursts), stall=stalls["stall"], seed=seed)
        assert [response.error for response in responses] == errors

    return [sender(port.bursts, [burst for burst, _ in bursts], idle=stalls["idle"], seed=seed), give, take]


def gate():
    return elaborated(ReductionGate, 8, 3, 4)


class Asker:
    """Asks for pages one after the other; notes when each was granted."""

    def __init__(self, dut, core, pages):
        self.dut, self.core, self.pages, self.granted = dut, core, pages, []

    async def __call__(self, ctx):
        port, cycle = self.dut.pages[self.core], 0
        ticks = aiter(ctx.tick().sample(port.ready, self.dut.granted))
        for page in self.pages:
            ctx.set(port.valid, 1)
            ctx.set(port.payload, page)
            taken = granted = False
            while not granted:
                _, _, ready, grants = await anext(ticks)
                taken, granted, cycle = taken | ready, grants >> self.core & 1, cycle + 1
                if taken:
                    ctx.set(port.valid, 0)
            self.granted.append(cycle - 1)


def strobe(dut, name, cores, cycle):
    """A testbench that ends reductions of some cores in one cycle."""

    async def bench(ctx):
        await ctx.tick().repeat(cycle)
        ctx.set(getattr(dut, name), cores)
        await ctx.tick()
        ctx.set(getattr(dut, name), 0)

    return bench


def test_pages_are_granted_every_other_cycle():
    askers = [Asker(gate(), core, [core] * 8) for core in range(3)]
    simulate(gate(), *askers)
    assert sorted(cycle for asker in askers for cycle in asker.granted) == list(range(1, 49, 2))
    assert askers[0].granted[0] == 1


def test_own_pages_are_never_held_back():
    dut = gate()
    asker = Asker(dut, 2, [1] * 64)
    simulate(dut, asker)
    assert asker.granted == list(range(1, 129, 2))


def test_not_more_than_64_are_open():
    dut = gate()
    asker = Asker(dut, 2, [1] * 65)
    simulate(dut, asker, strobe(dut, "answered", 4, 200))
    assert asker.granted[-2:] == [127, 202]


def test_a_turn_ends_when_nothing_comes():
    dut = gate()
    askers = [Asker(dut, 0, [1, 2]), Asker(dut, 1, [1])]
    simulate(dut, *askers, strobe(dut, "answered", 1, 30))
    assert askers[1].granted == [32]
    assert askers[0].granted == [1, 32 + 17 + 1]
