"""Bursts split into lines, words gathered to lines, and lines written back."""

import random

import numpy as np
import pytest

from support.streams import recording, transact
from tilewright.hw.cluster.l2.bursts import BurstLines, WriteBack, WriteLines
from tilewright.hw.cluster.l2.params import Geometry
from tilewright.verify.pysim.axi import AxiMemory, axi_channel
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import STALL_MODES, send, watch_stream

SEED = 20261124
GEOMETRY = Geometry(addr_width=16, data_width=32, id_width=3, sets=4, ways=2, misses=4, line_bytes=16)


def lines_of(request):
    """Lines of a burst, in order, each with the first and last of its words."""
    first = request["addr"] // 4
    last = first + request["len"]
    for line in range(first // 4, last // 4 + 1):
        yield line, max(first - 4 * line, 0), min(last - 4 * line, 3), line == last // 4


@pytest.mark.parametrize("mode", STALL_MODES)
def test_every_word_is_in_its_line(mode):
    rng, requests = random.Random(SEED), []
    for _ in range(60):
        beats = rng.choice([1, rng.randint(1, 16), rng.randint(1, 256)])
        word = rng.randrange(1024 - beats + 1)  # of a page
        requests.append({"id": rng.randrange(8), "addr": 4096 * rng.randrange(16) + 4 * word, "len": beats - 1})
    expected = [(request["id"], *line) for request in requests for line in lines_of(request)]

    print(f"seed {SEED}")
    came, _ = transact(elaborated(BurstLines, GEOMETRY), {"i": requests}, {"o": len(expected)}, mode)
    assert [(part.id, part.line, part.first, part.last, bool(part.end)) for part in came["o"]] == expected


def test_one_line_a_cycle_one_cycle_later():
    requests = [{"addr": 0, "len": 15}, {"addr": 64}, {"addr": 128, "len": 7}]
    _, cycles = transact(elaborated(BurstLines, GEOMETRY), {"i": requests}, {"o": 7})
    assert cycles["o"] == list(range(1, 8))


@pytest.mark.parametrize("mode", STALL_MODES)
def test_lines_and_words(mode):
    rng, requests, beats, expected = random.Random(SEED), [], [], []
    for number in range(40):
        count = rng.choice([1, 4, 8, rng.randint(1, 12)])
        word = 4 * rng.randrange(64) + rng.choice([0, 0, rng.randrange(4)])
        requests.append({"id": rng.randrange(8), "addr": 4 * word, "len": count - 1})
        words = [
            {"data": 256 * number + n, "strb": rng.choice([15, 15, 15, 7]), "last": n == count - 1}
            for n in range(count)
        ]
        beats += words
        for line in range(word // 4, (word + count - 1) // 4 + 1):
            first, last = max(4 * line, word), min(4 * line + 3, word + count - 1)
            strobes = [words[n - word]["strb"] for n in range(first, last + 1)]
            expected.append(
                (requests[-1]["id"], line, first % 4, last % 4, last == word + count - 1, strobes == [15] * 4)
            )

    print(f"seed {SEED}")
    counts = {"accesses": len(expected), "words": len(beats)}
    came, _ = transact(elaborated(WriteLines, GEOMETRY), {"requests": requests, "beats": beats}, counts, mode)
    assert [
        (a.part.id, a.part.line, a.part.first, a.part.last, bool(a.part.end), bool(a.full)) for a in came["accesses"]
    ] == expected
    assert [(word.data, word.strb) for word in came["words"]] == [(word["data"], word["strb"]) for word in beats]


def test_words_come_before_their_line():
    """An access is offered two cycles after the last word of its line has come, which is at the output by then."""
    dut = elaborated(WriteLines, GEOMETRY)

    async def run(ctx):
        await send(ctx, dut.requests, [{"addr": 0, "len": 3}])
        for number in range(4):
            assert not ctx.get(dut.accesses.valid)
            await send(ctx, dut.beats, [{"strb": 15, "last": number == 3}])
        assert ctx.get(dut.accesses.valid)
        assert ctx.get(dut.words.valid)

    simulate(dut, run)


def test_one_word_a_cycle():
    items = {"requests": [{"addr": 64 * n, "len": 7} for n in range(6)],
             "beats": [{"strb": 15, "last": n % 8 == 7} for n in range(48)]}  # fmt: skip
    _, cycles = transact(elaborated(WriteLines, GEOMETRY), items, inputs={"words.ready": 1, "accesses.ready": 1})
    assert cycles["beats"][-1] - cycles["beats"][0] == 47


@pytest.mark.parametrize("mode", STALL_MODES)
def test_lines_reach_memory(mode):
    dut, rng, stalls = elaborated(WriteBack, GEOMETRY), random.Random(SEED), STALL_MODES[mode]
    contents = np.zeros(4096, np.uint8)
    expected, told = contents.copy(), []
    memory = AxiMemory(dut.axi, contents, stall=stalls["stall"])
    memory.failing = {16 * 7}
    lines = [rng.randrange(32) for _ in range(40)] + [7]

    async def source(ctx):
        for line in lines:
            for number in range(4):
                # A word may come in a cycle in which there was room two cycles before: one step is under way.
                while not ctx.get(dut.room) or rng.random() < stalls["idle"]:
                    ctx.set(dut.victims.valid, 0)
                    await ctx.tick()
                word, strobe, place = rng.getrandbits(32), rng.randrange(16), 16 * line + 4 * number
                ctx.set(dut.victims.valid, 1)
                ctx.set(
                    dut.victims.payload,
                    {"data": word, "strb": strobe, "line": line, "first": number == 0, "last": number == 3},
                )
                for byte in range(4):
                    if strobe >> byte & 1 and place != 16 * 7:
                        expected[place + byte] = word >> 8 * byte & 0xFF
                await ctx.tick()
        ctx.set(dut.victims.valid, 0)
        while len(told) < len(lines):
            await ctx.tick()

    print(f"seed {SEED}")
    rules = [watch_stream(axi_channel(dut.axi, name), name) for name in ("aw", "w")]
    simulate(dut, source, background=[memory.serve_writes, recording(told, dut.arrived, dut.failed), *rules])
    assert (contents == expected).all()
    assert [address // 16 for _, _, address, _ in memory.writes] == lines
    assert [failed for _, failed in told] == [int(line == 7) for line in lines]


def test_write_back_one_word_a_cycle():
    dut, cycles = elaborated(WriteBack, GEOMETRY), []

    async def run(ctx):
        ctx.set(dut.axi.awready, 1)
        ctx.set(dut.axi.wready, 1)
        await ctx.tick()
        for number in range(40):
            assert ctx.get(dut.room)
            ctx.set(dut.victims.valid, 1)
            ctx.set(dut.victims.payload, {"first": number % 4 == 0, "last": number % 4 == 3})
            cycles.append(ctx.get(dut.axi.wvalid))
            await ctx.tick()

    simulate(dut, run)
    assert cycles == [0] + [1] * 39


def test_no_more_room_than_there_is():
    """Memory takes nothing: words come while there is room, and two more; every one of them has a place."""
    dut = elaborated(WriteBack, GEOMETRY)

    async def run(ctx):
        await ctx.tick()
        count, more = 0, 3
        while more:
            more -= not ctx.get(dut.room)
            ctx.set(dut.victims.valid, 1)
            ctx.set(dut.victims.payload, {"first": count % 4 == 0, "last": count % 4 == 3})
            assert ctx.get(dut.words.i.ready)
            assert count % 4 or ctx.get(dut.lines.i.ready)
            count += 1
            await ctx.tick()
        assert count >= 8

    simulate(dut, run)
