"""Users of one consumer port: each gets its own answers in order, at full rate together or alone."""

import random

import pytest

from tilewright.hw.smem.params import SmemParams
from tilewright.hw.smem.read_share import ReadShare
from tilewright.sim.pysim.simulate import elaborated, simulate
from tilewright.sim.pysim.streams import STALL_MODES, receive, send, watch_stream

SEED = 9
USERS = 2
COUNT = 50
PARAMS = SmemParams(1024)


def answer_to(read):
    """Made from the read, so that a swapped one shows."""
    return [chunk * 3 + (read["lanes"] >> lane & 1) for lane, chunk in enumerate(read["chunks"])]


def run(asked, *, idle=0.0, stall=0.0):
    """Checks all answers; returns the cycles in which reads were accepted, by users, and those of the answers."""
    dut = elaborated(ReadShare, PARAMS, USERS)
    waiting, taken, answered, merged = [], {}, {}, []
    count = sum(map(len, asked))

    async def port(ctx):
        """A memory that takes a cycle at least, and holds two reads."""
        rng, last = random.Random(SEED), False
        for _ in range(30 * count + 60):
            ctx.set(dut.reads.ready, len(waiting) < 2 and rng.random() >= stall)
            last = last or (bool(waiting) and rng.random() >= idle)
            ctx.set(dut.read_data.valid, last)
            if last:
                ctx.set(dut.read_data.payload, answer_to(waiting[0]))
            _, _, asks, ready, payload, goes = await ctx.tick().sample(
                dut.reads.valid, dut.reads.ready, dut.reads.payload, dut.read_data.ready
            )
            if last and goes:
                waiting.pop(0)
                last = False
            if asks and ready:
                merged.append(payload)
                waiting.append(payload)

    def user(number):
        async def ask(ctx):
            taken[number] = await send(ctx, dut.i[number], asked[number], idle=idle, seed=SEED + number)

        async def listen(ctx):
            got, answered[number] = await receive(
                ctx, dut.o[number], len(asked[number]), stall=stall, seed=SEED - number
            )
            assert [list(answer) for answer in got] == [answer_to(read) for read in asked[number]]

        return ask, listen

    watched = [watch_stream(stream) for stream in (dut.reads, *dut.o)]
    users = [bench for number in range(USERS) for bench in user(number)]
    simulate(dut, *users, background=[port, *watched], deadline=30 * count + 50)
    assert len(merged) == count
    return taken, answered


def reads(seed, count=COUNT):
    rng = random.Random(seed)
    return [{"lanes": rng.getrandbits(8), "chunks": [rng.randrange(64) for _ in range(8)]} for _ in range(count)]


@pytest.mark.parametrize("mode", STALL_MODES)
def test_each_gets_its_own_answers_in_order(mode):
    run([reads(number) for number in range(USERS)], **STALL_MODES[mode])


def test_full_rate_of_one():
    taken, answered = run([reads(1), []])
    assert taken[0] == list(range(COUNT))
    assert answered[0] == list(range(2, COUNT + 2))


def test_by_turns():
    taken, _ = run([reads(1), reads(2)])
    assert (taken[0], taken[1]) == (list(range(0, 2 * COUNT, 2)), list(range(1, 2 * COUNT, 2)))


@pytest.mark.parametrize("n", [1, 0, 2.0])
def test_wrong_parameters(n):
    with pytest.raises(ValueError, match=rf"^n must be an int of at least 2, not {n!r}$"):
        ReadShare(PARAMS, n)
