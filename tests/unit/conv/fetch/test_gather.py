"""Gatherer on the banks of shared memory: every byte against a model, reads, cycles, stalls, resets."""

import random

import pytest
from amaranth.hdl import Elaboratable, Module, Signal
from amaranth.lib.wiring import connect

from support.conv import conv_unit
from support.selection import grid
from support.streams import counting, recording, transact
from tilewright.hw.conv.fetch.gather import Gatherer
from tilewright.hw.lib.routing import StreamShare
from tilewright.hw.smem.banks import Banks
from tilewright.hw.smem.chunk_ports import ConsumerPort
from tilewright.hw.smem.layouts import ReadLayout, read_data_layout
from tilewright.hw.smem.params import SmemParams
from tilewright.verify.pysim.simulate import elaborated
from tilewright.verify.pysim.streams import STALL_MODES

SEED = 23
SMEM = SmemParams(1024)
BYTES = SMEM.size_bytes
MEMORY = random.Random(SEED).randbytes(BYTES)
TAG = 12

#: By lanes: there are two ways to plan reads, one for up to four lanes and one for eight.
PARAMS = {
    1: conv_unit(smem=BYTES, units=1),
    2: conv_unit(smem=BYTES),
    4: conv_unit(smem=BYTES, units=4, feature_rows=16),
    8: conv_unit("default", BYTES),
}
#: Cycles from a request to its answer; without a read ``WAIT`` less.
LATENCY, WAIT = {1: 9, 2: 9, 4: 9, 8: 11}, 2


class GathererOnBanks(Elaboratable):
    """A gatherer whose consumer port reads banks, except in cycles in which ``busy`` says that somebody else does.

    With eight lanes there is a share between them, whose other users ask for nothing: it takes no cycle more, and there
    is room for all reads under way.
    """

    def __init__(self, lanes):
        self.busy = Signal()
        self.share = StreamShare(ReadLayout(SMEM), read_data_layout(), 2) if lanes == 8 else None
        self.banks = Banks(SMEM)
        self.consumer = ConsumerPort(SMEM)
        self.gatherer = Gatherer(PARAMS[lanes], TAG)

    def elaborate(self, platform):
        m = Module()
        m.submodules.banks, m.submodules.consumer, m.submodules.gatherer = self.banks, self.consumer, self.gatherer
        reads, read_data = self.gatherer.reads, self.gatherer.read_data
        if self.share is not None:
            m.submodules.share = self.share
            connect(m, gatherer=reads, share=self.share.requests[0])
            connect(m, share=self.share.results[0], gatherer=read_data)
            reads, read_data = self.share.merged, self.share.answers
        connect(m, reads=reads, consumer=self.consumer.reads)
        connect(m, consumer=self.consumer.read_data, read_data=read_data)
        fetches = self.consumer.fetches
        m.d.comb += [
            fetches.ready.eq(~self.busy),
            self.banks.read.rows.eq(fetches.payload.rows),
            self.consumer.fetched.eq(self.banks.read_data),
        ]
        with m.If(self.busy):
            m.d.comb += self.banks.read.enable.eq(0xFF)
            m.d.comb += self.banks.read.rows.eq(0)
        with m.Elif(fetches.valid):
            m.d.comb += self.banks.read.enable.eq(fetches.payload.enable)
        return m


def piece(address, low=0, high=16):
    return {"address": address % BYTES, "low": low, "high": high}


def request(pieces, size=4, fill=0xA55A, tag=0):
    return {"pieces": pieces, "size": size, "fill": fill, "tag": tag}


def expected(request):
    """The packed pieces."""
    fill = request["fill"].to_bytes(2, "little")
    packed = bytearray()
    for one in request["pieces"]:
        for i in range(1 << request["size"]):
            inside = one["low"] <= i < one["high"]
            packed.append(MEMORY[(one["address"] + i) % BYTES] if inside else fill[i & 1])
    return bytes(packed)


async def fill(ctx, banks):
    for chunk in range(BYTES // 16):
        value = int.from_bytes(MEMORY[16 * chunk : 16 * chunk + 16], "little")
        ctx.set(banks.memories[chunk % 8].data[chunk // 8], value)


def random_requests(lanes, count, seed=SEED):
    """Pieces in a row, at any pitch, over each other, anywhere; whole, cut, empty; often of few banks."""
    rng = random.Random(seed)
    for tag in range(count):
        size = rng.randrange(5)
        bytes_ = 1 << size
        base = rng.choice([rng.randrange(BYTES), 16 * rng.randrange(BYTES // 16), BYTES - rng.randrange(150)])
        kind = rng.choice(["row", "pitch", "pitch", "chunks", "any", "lines"])
        pitch = {"row": bytes_, "chunks": 16 * rng.randrange(20)}.get(kind, rng.randrange(-40, 200))
        jump = rng.randrange(lanes + 1) if kind == "lines" else lanes
        addresses = [
            rng.randrange(BYTES) if kind == "any" else base + n * pitch + (n >= jump) * 333 for n in range(lanes)
        ]
        full = rng.choice([0.0, 0.6, 1.0])
        pieces = []
        for address in addresses:
            low, high = (0, bytes_) if rng.random() < full else (rng.randrange(17), rng.randrange(17))
            if rng.random() < 0.1:
                low, high = rng.choice([(0, 0), (16, 16), (31, 16), (5, 5), (9, 2)])
            pieces.append(piece(address, low, min(high, 16)))
        yield request(pieces, size, rng.getrandbits(16), tag % (1 << TAG))


def run(lanes, requests, *, idle=0.0, busy=0.0):
    """Checks every answer; returns the cycles of requests, of answers, and of reads, and the bank conflicts."""
    requests = list(requests)
    dut = elaborated(GathererOnBanks, lanes)
    gatherer, counts, answers, reads = dut.gatherer, {}, [], []

    async def prepare(ctx):
        await fill(ctx, dut.banks)

    async def answered(ctx):
        while len(answers) < len(requests):
            await ctx.tick()

    async def others(ctx):
        rng = random.Random(SEED)
        async for _ in ctx.tick():
            ctx.set(dut.busy, rng.random() < busy)

    background = [
        recording(answers, gatherer.o.valid, gatherer.o.payload),
        recording(reads, gatherer.reads.valid & gatherer.reads.ready),
        counting(counts, conflicts=dut.consumer.conflict_stb),
    ]
    _, cycles = transact(
        dut, {"gatherer.i": requests}, seed=SEED, pauses={"gatherer.i": idle}, testbenches=[prepare], then=answered,
        watch=["gatherer.reads", "consumer.read_data"], background=[others, *background],
        deadline=40 * len(requests) + 100,
    )  # fmt: skip
    for wanted, (_, payload) in zip(requests, answers, strict=True):
        check(wanted, payload)
    return cycles["gatherer.i"], [cycle for cycle, _ in answers], [cycle for (cycle,) in reads], counts["conflicts"]


def check(wanted, payload):
    assert payload["tag"] == wanted["tag"]
    got = b"".join(lane.to_bytes(16, "little") for lane in payload["data"])
    assert got.startswith(expected(wanted)), f"{wanted}: {expected(wanted).hex()}, not {got.hex()}"


@grid(lambda *case: case[0] == 2 or case == (8, "both"), lanes=PARAMS, mode=STALL_MODES)
def test_random(lanes, mode):
    stalls = STALL_MODES[mode]
    run(lanes, random_requests(lanes, 120), idle=stalls["idle"], busy=stalls["stall"])


def kept(pieces, part, again=0, keep=1, **changes):
    return request(pieces, **changes) | {"reuse": {"part": part, "keep": keep, "again": again}}


def test_random_again():
    """Requests of a part near those before, now and then elsewhere, cut or empty; others between them."""
    rng, places, requests = random.Random(SEED), {}, []
    for plain in random_requests(8, 100):
        part = rng.randrange(4)
        again = part in places and rng.random() < 0.8
        if again or rng.random() < 0.5:
            near = places[part] if again else rng.randrange(BYTES)
            places[part] = near = near + rng.choice([0, 4, 4, 8, 40, 300])
            pitch = rng.choice([3, 6, 6, 14])
            pieces = [piece(near + pitch * n, *rng.choice([(0, 4), (0, 4), (1, 3), (2, 2)])) for n in range(8)]
            requests.append(kept(pieces, part, again, size=2, tag=len(requests)))
        requests.append(plain | {"tag": len(requests)})
    stalls = STALL_MODES["both"]
    reads = [run(8, requests)[2], run(8, requests, idle=stalls["idle"], busy=stalls["stall"])[2]]
    without = [{**one, "reuse": {**one["reuse"], "again": 0}} if "reuse" in one else one for one in requests]
    assert max(map(len, reads)) < len(run(8, without)[2])


#: Where requests of four bytes at a pitch of 6 begin, whether each is ``again``, and how many reads that takes.
AGAIN = {
    "blocks of pixels": ([(9, 0), (13, 1), (17, 1)], 1),
    "eight chunks": ([(0, 0), (4, 1), (82, 1)], 1),
    "beyond eight chunks": ([(0, 0), (83, 1), (87, 1)], 2),
    "before": ([(32, 0), (28, 1)], 2),
    "not the same": ([(9, 0), (9, 0)], 2),
    "over the end of memory": ([(BYTES - 20, 0), (BYTES - 16, 1), (BYTES - 12, 1)], 1),
}


@pytest.mark.parametrize("name", AGAIN)
def test_reads_again(name):
    starts, count = AGAIN[name]
    requests = [kept([piece(start + 6 * n, 0, 4) for n in range(8)], 3, again, size=2) for start, again in starts]
    taken, _, reads, _ = run(8, requests)
    assert (len(reads), taken) == (count, list(range(len(starts))))


def test_what_is_kept():
    """By part; of the request before that keeps it, and of none that read nothing or too much for one window."""

    def near(start, high=4, pitch=6):
        return [piece(start + pitch * n, 0, high) for n in range(8)]

    assert len(run(8, [kept(near(0), 0), kept(near(200), 1), kept(near(4), 0, 1), kept(near(204), 1, 1)])[2]) == 2
    assert len(run(8, [kept(near(0), 0), kept(near(200), 0, keep=0), kept(near(4), 0, 1)])[2]) == 2
    assert len(run(8, [kept(near(0), 0), kept(near(4, 0), 0), kept(near(8), 0, 1)])[2]) == 2
    assert len(run(8, [kept(near(0), 0), kept(near(4, pitch=100), 0), kept(near(8), 0, 1)])[2]) == 3


@pytest.mark.parametrize("lanes", PARAMS)
def test_latency(lanes):
    read = request([piece(32)] * lanes)
    nothing = request([piece(32, 3, 3)] * lanes)
    assert run(lanes, [read])[1] == [LATENCY[lanes]]
    assert run(lanes, [nothing])[1:3] == ([LATENCY[lanes] - WAIT], [])


#: Requests that one read each is enough for: pieces of 16 bytes, in turn.
FULL_RATE = {
    "chunks": [[piece(16 * (n + lane)) for lane in range(8)] for n in range(40)],
    "columns of chunks": [[piece(144 * lane + 16 * n) for lane in range(8)] for n in range(40)],
    "windows": [[piece(14 * lane + 16 * n + n % 3) for lane in range(8)] for n in range(40)],
    "half of a row": [[piece(5 + 20 * lane + n, 0, 16 * (lane < 4)) for lane in range(8)] for n in range(40)],
    "no read": [[piece(5, 4, 4) for lane in range(8)] for n in range(40)],
}


@pytest.mark.parametrize("lanes", PARAMS)
@pytest.mark.parametrize("name", FULL_RATE)
def test_full_rate(lanes, name):
    requests = [request(pieces[:lanes], tag=n) for n, pieces in enumerate(FULL_RATE[name])]
    taken, answered, reads, conflicts = run(lanes, requests)
    assert taken == list(range(40))
    reading = name != "no read"
    latency = LATENCY[lanes] - WAIT * (not reading)
    assert answered == list(range(latency, latency + 40))
    assert (len(reads), conflicts) == (40 * reading, 0)


def test_full_rate_of_both():
    """Requests with and without a read by turns: an empty one does not wait longer than those before it."""
    requests = [request([piece(16 * n, 0, 16 * (n & 1))] * 8, tag=n) for n in range(40)]
    taken, answered, reads, _ = run(8, requests)
    assert taken == list(range(40))
    assert answered == [LATENCY[8] - WAIT, *range(LATENCY[8] + 1, LATENCY[8] + 40)]
    assert len(reads) == 20


#: Eight pieces, as (size, addresses), and what they cost: reads, and cycles at the banks beyond.
CASES = {
    "8 bytes at a pitch of 6": ((3, [7 + 6 * n for n in range(8)]), (1, 0)),
    "a row of chunks": ((4, [48 + 16 * n for n in range(8)]), (1, 0)),
    "chunks at a pitch of 144": ((4, [32 + 144 * n for n in range(8)]), (1, 0)),
    "chunks at a pitch of 128": ((4, [128 * n for n in range(8)]), (1, 7)),
    "4 bytes at a pitch of 100": ((2, [100 * n for n in range(8)]), (1, 0)),
    "112 bytes that begin anywhere": ((4, [9 + 14 * n for n in range(8)]), (1, 0)),
    "128 bytes that begin anywhere": ((4, [9 + 16 * n for n in range(8)]), (2, 0)),
    "16 bytes at a pitch of 20": ((4, [9 + 20 * n for n in range(8)]), (2, 0)),
    "16 bytes at a pitch of 36": ((4, [9 + 36 * n for n in range(8)]), (2, 2)),
    "two lines": ((3, [3 + 6 * n + (n > 2) * 600 for n in range(8)]), (2, 0)),
    "backwards": ((3, [603 - 6 * n for n in range(8)]), (2, 0)),
    "over the end of memory": ((3, [BYTES - 11 + 6 * n for n in range(8)]), (1, 0)),
}


@pytest.mark.parametrize("name", CASES)
def test_reads(name):
    (size, addresses), cost = CASES[name]
    _, _, reads, conflicts = run(8, [request([piece(address, 0, 1 << size) for address in addresses], size)])
    assert (len(reads), conflicts) == cost


def test_what_is_not_read_costs_nothing():
    """A window that only the fourth piece lies outside of, which is empty; a half of which no byte is read."""
    inside = [piece(6 * n, 0, 8) for n in range(8)]
    inside[3] = piece(700, 8, 8)
    assert len(run(8, [request(inside, 3)])[2]) == 1
    for empty in (range(4), range(4, 8)):
        pieces = [piece(9 + 100 * n, 0, 0 if n in empty else 16) for n in range(8)]
        assert len(run(8, [request(pieces)])[2]) == 1


@pytest.mark.parametrize("lanes", [2, 8])
def test_fewer_bytes_than_chunks(lanes):
    """Bytes of one chunk only: cut pieces that would have straddled."""
    cut = [piece(16 * n + 9, *((0, 7) if n % 2 else (7, 16))) for n in range(lanes)]
    _, _, reads, conflicts = run(lanes, [request(cut)])
    assert (len(reads), conflicts) == (1, 0)


def test_two_reads_take_two_cycles():
    requests = [request([piece(9 + 16 * n + lane * 16) for lane in range(8)], tag=n) for n in range(20)]
    taken, answered, reads, conflicts = run(8, requests)
    assert taken == [0, 1, 2, *range(4, 38, 2)]
    assert answered == list(range(12, 52, 2))
    assert reads == list(range(4, 44))
    assert conflicts == 0
