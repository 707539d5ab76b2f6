"""Several cores and one memory: everybody gets what was asked for in order, bursts stay whole, all get their share."""

import random

import numpy as np
import pytest

from support.selection import cases
from tilewright.hw.cluster.memory.top import MemorySide
from tilewright.verify.pysim.axi import AxiMemory, axi_channel
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import STALL_MODES, receive, send, sender, watch_stream

BUS_BYTES = 4
MAX_BURST = 8
SHARE = 4096  # bytes of a core


def side(cores, **sizes):
    sizes = {"max_burst": MAX_BURST, "read_words": 32, "write_bursts": 4} | sizes
    return elaborated(MemorySide, cores, 16, 8 * BUS_BYTES, **sizes)


def some_requests(core, count, *, ids=(0, 1, 3), seed=0):
    """Bursts within the core's own part of memory."""
    rng = random.Random(100 * seed + core)
    requests = []
    for _ in range(count):
        beats = rng.randrange(1, MAX_BURST + 1)
        address = BUS_BYTES * rng.randrange(SHARE // BUS_BYTES - beats)
        requests.append(
            {"id": rng.choice(ids), "addr": SHARE * core + address, "len": beats - 1, "size": 2, "burst": 1}
        )
    return requests


def contents_of(cores):
    return np.random.default_rng(3).integers(256, size=cores * SHARE, dtype=np.uint8)


def words_at(contents, request):
    start = request["addr"]
    return contents[start : start + BUS_BYTES * (request["len"] + 1)].view("<u4").tolist()


def reader(port, requests, contents, *, idle=0.0, stall=0.0, seed=0):
    """Testbenches that ask for ``requests`` and check what comes: memory answers all of them in order."""
    expected = [
        (request["id"], word, last)
        for request in requests
        for word, last in zip(words_at(contents, request), [0] * request["len"] + [1], strict=True)
    ]

    async def take(ctx):
        beats, _ = await receive(ctx, axi_channel(port, "r"), len(expected), stall=stall, seed=seed)
        assert [(beat.id, beat.data, beat.last) for beat in beats] == expected

    return [sender(axi_channel(port, "ar"), requests, idle=idle, seed=seed), take]


def writer(port, requests, *, idle=0.0, stall=0.0, seed=0):
    """Testbenches that write, and the words that they write, for each request."""
    rng = random.Random(seed)
    bursts = [[rng.getrandbits(32) for _ in range(request["len"] + 1)] for request in requests]
    beats = [
        {"data": word, "strb": 15, "last": number == len(words) - 1}
        for words in bursts
        for number, word in enumerate(words)
    ]

    async def take(ctx):
        answers, _ = await receive(ctx, axi_channel(port, "b"), len(requests), stall=stall, seed=seed)
        assert [answer.id for answer in answers] == [request["id"] for request in requests]

    return [
        sender(axi_channel(port, "aw"), requests, idle=idle, seed=seed),
        sender(axi_channel(port, "w"), beats, idle=idle, seed=seed + 1),
        take,
    ], bursts


def rules(dut):
    """Everything that the memory side offers holds until it is taken."""
    outside = [watch_stream(axi_channel(dut.axi, name), name) for name in ("ar", "aw", "w")]
    return outside + [watch_stream(axi_channel(port, name), name) for port in dut.ports for name in ("r", "b")]


@pytest.mark.parametrize("mode", STALL_MODES)
@cases("cores", [3], [2])
def test_everybody_gets_its_own(cores, mode):
    dut, contents, stalls = side(cores), contents_of(cores), STALL_MODES[mode]
    memory = AxiMemory(dut.axi, contents, stall=stalls["stall"], seed=5)
    benches, written = [], contents.copy()
    for core, port in enumerate(dut.ports):
        reads = [request for request in some_requests(core, 30) if request["addr"] % SHARE < SHARE // 2 - 64]
        benches += reader(port, reads, contents.copy(), **stalls, seed=core)
        writes = [r | {"id": 0} for r in some_requests(core, 30, seed=1) if r["addr"] % SHARE >= SHARE // 2]
        own, bursts = writer(port, writes, **stalls, seed=core)
        benches += own
        for request, words in zip(writes, bursts, strict=True):
            written[request["addr"] :][: 4 * len(words)] = np.array(words, "<u4").view(np.uint8)
    simulate(dut, *benches, background=[memory.serve, memory.serve_writes, *rules(dut)])
    assert (contents == written).all()
    assert {ident >> 2 for _, ident, *_ in memory.requests} == set(range(cores))


def test_bytes_are_shared_evenly():
    """All cores stream, in bursts of different lengths; one reads single words."""
    cores, lengths = 4, (1, 3, 4, 2)
    dut, contents = side(cores, max_burst=4, write_bursts=32), contents_of(cores)
    memory = AxiMemory(dut.axi, contents)
    benches, window = [], 900

    def streams(core, port, beats):
        requests = [
            {"addr": SHARE * core + number * BUS_BYTES * beats % 2048, "len": beats - 1}
            for number in range(window // beats)
        ]

        async def give(ctx):
            beat = [{"last": number == beats - 1} for number in range(beats)]
            await send(ctx, axi_channel(port, "w"), beat * len(requests))

        async def take(ctx):
            ctx.set(port.rready, 1)
            ctx.set(port.bready, 1)

        return [sender(axi_channel(port, "ar"), requests), sender(axi_channel(port, "aw"), requests), give, take]

    for core, (port, beats) in enumerate(zip(dut.ports, lengths, strict=True)):
        benches += streams(core, port, beats)

    async def wait(ctx):
        await ctx.tick().repeat(window)

    simulate(dut, wait, background=[memory.serve, memory.serve_writes, *benches])
    for requests in (memory.requests, memory.writes):
        shares = [sum(beats for _, ident, _, beats in requests if ident >> 2 == core) for core in range(cores)]
        assert min(shares) >= 0.95 * max(shares), shares
        assert sum(shares) > 0.95 * window


def test_a_core_that_stalls_stops_nobody():
    """Core 0 takes no beat, sends no word of its burst and takes no answer; the others do not notice."""
    dut, contents = side(3), contents_of(3)
    memory = AxiMemory(dut.axi, contents)
    stuck = dut.ports[0]

    benches, ends = [], []
    for core, port in enumerate(dut.ports):
        if core:
            reads, writes = some_requests(core, 60), [r | {"id": 0} for r in some_requests(core, 60, seed=1)]
            for request in reads + writes:  # reads below, writes above
                request["addr"] = SHARE * core + request["addr"] % (SHARE // 2 - 32)
            for request in writes:
                request["addr"] += SHARE // 2
            benches += reader(port, reads, contents.copy(), seed=core)
            benches += writer(port, writes, seed=core)[0]
            ends.append(sum(request["len"] + 1 for request in reads))
    background = [
        memory.serve,
        memory.serve_writes,
        sender(axi_channel(stuck, "ar"), some_requests(0, 40)),
        sender(axi_channel(stuck, "aw"), [{"addr": 4 * n} for n in range(40)]),
        sender(axi_channel(stuck, "w"), [{"last": 1}] * 6),
        *rules(dut),
    ]
    # Time for all words of the two others, and for what core 0 may have under way.
    simulate(dut, *benches, background=background, deadline=sum(ends) + 32 + 60)
    assert sum(beats for _, ident, _, beats in memory.requests if ident < 4) <= 32
    assert sum(ident < 4 for _, ident, *_ in memory.writes) == 4


def test_a_core_alone_reads_at_full_rate():
    """Two cores are silent: the third one gets a word a cycle."""
    dut, contents, cycles = side(3), contents_of(3), []
    memory, port = AxiMemory(dut.axi, contents, latency=10), dut.ports[1]

    async def take(ctx):
        cycles.extend((await receive(ctx, axi_channel(port, "r"), 200))[1])

    simulate(dut, sender(axi_channel(port, "ar"), [{"len": 3}] * 50), take, background=[memory.serve])
    assert cycles[-1] - cycles[0] == 199


def test_one_core_is_connected_by_wires():
    dut = MemorySide(1, 16, 32)
    port, axi = dut.ports[0], dut.axi

    async def testbench(ctx):
        for name in ("araddr", "awaddr", "wdata", "arvalid", "wvalid", "rready", "bready"):
            ctx.set(getattr(port, name), 1)
            assert ctx.get(getattr(axi, name)) == 1
        for name in ("rdata", "rvalid", "bvalid", "arready", "wready", "awready"):
            ctx.set(getattr(axi, name), 1)
            assert ctx.get(getattr(port, name)) == 1

    simulate(dut, testbench)


def test_latency():
    dut = side(2)
    port, axi = dut.ports[1], dut.axi

    async def testbench(ctx):
        ctx.set(axi.arready, 1)
        ctx.set(port.arvalid, 1)
        ctx.set(port.arid, 3)
        await ctx.tick()
        ctx.set(port.arvalid, 0)
        await ctx.tick().repeat(2)
        assert (ctx.get(axi.arvalid), ctx.get(axi.arid)) == (1, 7)
        ctx.set(axi.rvalid, 1)
        ctx.set(axi.rid, 7)
        assert ctx.get(axi.rready)
        await ctx.tick()
        ctx.set(axi.rvalid, 0)
        await ctx.tick()
        assert (ctx.get(port.rvalid), ctx.get(port.rid), ctx.get(dut.ports[0].rvalid)) == (1, 3, 0)

    simulate(dut, testbench)


def test_latency_of_old_words():
    """They ask for their page first: two cycles more."""
    dut = side(2)
    port, axi = dut.ports[1], dut.axi

    async def testbench(ctx):
        ctx.set(port.arvalid, 1)
        ctx.set(port.arid, 2)
        await ctx.tick()
        ctx.set(port.arvalid, 0)
        await ctx.tick().repeat(3)
        assert not ctx.get(axi.arvalid)
        await ctx.tick()
        assert (ctx.get(axi.arvalid), ctx.get(axi.arid)) == (1, 6)

    simulate(dut, testbench)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"cores": 0}, "cores must be an int from 1 to 16, not 0"),
        ({"cores": 17}, "cores must be"),
        ({"max_burst": 12}, "max_burst must be a power of two from 1 to 256, not 12"),
        ({"read_words": 16}, "read_words must be an int of at least two bursts, 32, not 16"),
        ({"write_bursts": 64}, "depth must be a power of two from 2 to 32, not 64"),
        ({"groups": 3}, "groups must be a power of two of at least 2, not 3"),
        ({"data_width": 48}, "data_width must be"),
    ],
)
def test_refuses(arguments, message):
    with pytest.raises(ValueError, match=message):
        MemorySide(**{"cores": 2, "addr_width": 32, "data_width": 128} | arguments)
