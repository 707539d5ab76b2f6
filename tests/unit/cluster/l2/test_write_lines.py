"""A line is to be written when its words are here; whether all of its bytes are."""

import random

import pytest

from tilewright.hw.cluster.l2.params import Geometry
from tilewright.hw.cluster.l2.write_lines import WriteLines
from tilewright.sim.pysim.simulate import elaborated, simulate
from tilewright.sim.pysim.streams import STALL_MODES, receive, send, watch_stream

SEED = 20261124
GEOMETRY = Geometry(addr_width=16, data_width=32, id_width=3, sets=4, ways=2, misses=4, line_bytes=16)


@pytest.mark.parametrize("mode", STALL_MODES)
def test_lines_and_words(mode):
    dut, rng, stalls = elaborated(WriteLines, GEOMETRY), random.Random(SEED), STALL_MODES[mode]
    requests, beats, expected, came = [], [], [], {}
    for number in range(40):
        count, word = (
            rng.choice([1, 4, 8, rng.randint(1, 12)]),
            4 * rng.randrange(64) + rng.choice([0, 0, rng.randrange(4)]),
        )
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

    async def ask(ctx):
        await send(ctx, dut.requests, requests, idle=stalls["idle"])

    async def give(ctx):
        await send(ctx, dut.beats, beats, idle=stalls["idle"], seed=1)

    def taker(name, port, count):
        async def take(ctx):
            came[name] = (await receive(ctx, port, count, stall=stalls["stall"], seed=len(name)))[0]

        return take

    takers = taker("accesses", dut.accesses, len(expected)), taker("words", dut.words, len(beats))
    print(f"seed {SEED}")
    simulate(dut, ask, give, *takers, background=[watch_stream(dut.accesses), watch_stream(dut.words)])
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
    dut, cycles = elaborated(WriteLines, GEOMETRY), []

    async def ask(ctx):
        await send(ctx, dut.requests, [{"addr": 64 * n, "len": 7} for n in range(6)])

    async def give(ctx):
        cycles.extend(await send(ctx, dut.beats, [{"strb": 15, "last": n % 8 == 7} for n in range(48)]))

    async def take(ctx):
        ctx.set(dut.words.ready, 1)
        ctx.set(dut.accesses.ready, 1)

    simulate(dut, take, ask, give)
    assert cycles[-1] - cycles[0] == 47
