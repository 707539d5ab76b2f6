"""The burst splitter: legal bursts, as few as possible, one a cycle."""

import random

import pytest

from tilewright.hw.bus.bursts import BeatSequencer, BurstSplitter
from tilewright.verify.pysim.simulate import simulate
from tilewright.verify.pysim.streams import STALL_MODES, receive, send, watch_stream

WORD_WIDTH = 20


def expected(ranges, *, bus_bytes, max_burst):
    """The bursts of ``ranges``: each as long as the page and ``max_burst`` let it be, with the number of its range."""
    page = 4096 // bus_bytes
    bursts = []
    for number, (word, count) in enumerate(ranges):
        while count:
            beats = min(count, max_burst, page - word % page)
            bursts.append((word % (1 << WORD_WIDTH), beats, number & 7))
            word, count = word + beats, count - beats
    return bursts


def split(ranges, mode, *, bus_bytes, max_burst):
    dut = BurstSplitter(word_width=WORD_WIDTH, count_width=11, bus_bytes=bus_bytes, max_burst=max_burst, tag=3)
    bursts = expected(ranges, bus_bytes=bus_bytes, max_burst=max_burst)
    result = {}

    async def source(ctx):
        items = [{"word": word, "beyond": count - 1, "tag": n & 7} for n, (word, count) in enumerate(ranges)]
        await send(ctx, dut.i, items, idle=STALL_MODES[mode]["idle"], seed=7)

    async def sink(ctx):
        payloads, result["cycles"] = await receive(ctx, dut.o, len(bursts), stall=STALL_MODES[mode]["stall"], seed=7)
        result["bursts"] = [(payload.word, payload.beats_minus_one + 1, payload.tag) for payload in payloads]

    simulate(dut, source, sink, background=[watch_stream(dut.o)])
    assert result["bursts"] == bursts
    return result["cycles"]


def ranges_at_edges(page, max_burst, seed=11):
    """Lengths and places where splitters go wrong: around the page's end and around whole bursts."""
    rng = random.Random(seed)
    places = [*range(page - 3, page + 3), 0, 1, max_burst - 1, max_burst, (1 << WORD_WIDTH) - 2]
    lengths = [1, 2, 3, max_burst - 1 or 1, max_burst, max_burst + 1, 2 * max_burst + 1, page + 1]
    ranges = [(place, length) for place in places for length in lengths]
    return ranges + [(rng.randrange(1 << WORD_WIDTH), rng.randrange(1, 3 * max_burst)) for _ in range(40)]


@pytest.mark.parametrize("mode", STALL_MODES)
@pytest.mark.parametrize(("bus_bytes", "max_burst"), [(64, 16), (16, 4)])
def test_bursts(bus_bytes, max_burst, mode):
    ranges = ranges_at_edges(4096 // bus_bytes, max_burst)
    cycles = split(ranges, mode, bus_bytes=bus_bytes, max_burst=max_burst)
    if mode == "none":
        assert cycles == list(range(1, len(cycles) + 1)), "one cycle later, and one burst a cycle"


@pytest.mark.parametrize(("bus_bytes", "max_burst"), [(16, 1), (64, 64), (16, 256)])
def test_extreme_lengths(bus_bytes, max_burst):
    split([(5, 3), (4096 // bus_bytes - 1, 700), (0, 256), (1, 257)], "both", bus_bytes=bus_bytes, max_burst=max_burst)


@pytest.mark.parametrize(
    ("bus_bytes", "max_burst", "message"),
    [
        (24, 4, r"^bus_bytes must be a power of two from 1 to 128, not 24$"),
        (16, 512, r"^max_burst must be a power of two from 1 to 256, not 512$"),
        (64, 128, r"^max_burst of 128 words of 64 bytes is longer than 4096 bytes$"),
    ],
)
def test_refused_parameters(bus_bytes, max_burst, message):
    with pytest.raises(ValueError, match=message):
        BurstSplitter(word_width=20, count_width=8, bus_bytes=bus_bytes, max_burst=max_burst)


@pytest.mark.parametrize("mode", STALL_MODES)
def test_beats(mode):
    rng = random.Random(1)
    bursts = [(rng.choice([1, 1, 2, 3, 256]), rng.randrange(8)) for _ in range(40)]
    dut = BeatSequencer(3, 4)
    stalls = STALL_MODES[mode]
    expected = [(tag, beat == count - 1) for count, tag in bursts for beat in range(count)]

    async def source(ctx):
        items = [{"beats_minus_one": count - 1, "tag": tag} for count, tag in bursts]
        await send(ctx, dut.bursts, items, idle=stalls["idle"], seed=2)

    async def sink(ctx):
        beats, cycles = await receive(ctx, dut.beats, len(expected), stall=stalls["stall"], seed=3)
        assert [(beat.tag, beat.last) for beat in beats] == expected
        if mode == "none":
            assert cycles == list(range(1, 1 + len(expected)))

    simulate(dut, source, sink, background=[watch_stream(dut.beats)], deadline=50_000)
