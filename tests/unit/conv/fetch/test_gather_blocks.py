"""Packing of pieces: every offset, cut, size and fill; answers in two halves; latency."""

import random

import pytest

from tilewright.hw.conv.fetch.gather import GatherShare, PiecePacker
from tilewright.hw.conv.params import ConvUnitParams
from tilewright.hw.smem.params import SmemParams
from tilewright.spec.conv import CONV_PRESETS
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import STALL_MODES, receive, send, watch_stream

SEED = 41
SMEM = SmemParams(1024)
PARAMS = {2: ConvUnitParams(CONV_PRESETS["unit"], SMEM), 8: ConvUnitParams(CONV_PRESETS["default"], SMEM)}
TAG = 8


def answers(lanes, rng, tag):
    """The answers of one request, and what it should give."""
    pieces, chunks, packed = [], [rng.randbytes(16) for _ in range(8)], b""
    size, fill = rng.randrange(5), rng.randbytes(2)
    halves = [1, 2] if lanes == 8 and rng.random() < 0.4 else [3]
    both = {half: [rng.randbytes(16) for _ in range(8)] if half != halves[0] else chunks for half in halves}
    for n in range(lanes):
        offset, low, high = rng.randrange(16), rng.randrange(17), rng.randrange(17)
        two, lane = int(offset + low < 16 < offset + high), rng.randrange(8) if lanes == 8 else 2 * n
        mine = next(both[half] for half in halves if half >> (2 * n // lanes) & 1)
        for i in range(1 << size):
            place = offset + i
            byte = mine[(lane + (two and place >= 16)) % 8][place % 16]
            packed += bytes([byte if low <= i < high else fill[i & 1]])
        pieces.append({"offset": offset, "low": low, "high": high, "two": two} | ({"lane": lane} if lanes == 8 else {}))
    read = {"pieces": pieces, "size": size, "fill": int.from_bytes(fill, "little"), "tag": tag, "reads": 1}
    steps = []
    for half in halves:
        step = read | ({"halves": half, "last": half == halves[-1]} if lanes == 8 else {})
        steps.append({"chunks": [int.from_bytes(chunk, "little") for chunk in both[half]], "read": step})
    return steps, packed


@pytest.mark.parametrize("idle", [0.0, 0.5])
@pytest.mark.parametrize("lanes", PARAMS)
def test_random(lanes, idle):
    dut = elaborated(PiecePacker, PARAMS[lanes], TAG)
    rng = random.Random(SEED)
    made = [answers(lanes, rng, tag) for tag in range(150)]
    steps = [step for some, _ in made for step in some]
    sent, got = [], []

    async def source(ctx):
        sent.extend(await send(ctx, dut.i, steps, idle=idle, seed=SEED))

    async def sink(ctx):
        cycle = 0
        async for _, _, valid, payload in ctx.tick().sample(dut.o.valid, dut.o.payload):
            if valid:
                got.append((cycle, payload))
            cycle += 1
            if len(got) == len(made):
                return

    simulate(dut, source, sink)
    last = [cycle for cycle, step in zip(sent, steps, strict=True) if lanes == 2 or step["read"]["last"]]
    assert [cycle for cycle, _ in got] == [cycle + PiecePacker.LATENCY for cycle in last]
    for tag, ((_, payload), (_, packed)) in enumerate(zip(got, made, strict=True)):
        data = b"".join(lane.to_bytes(16, "little") for lane in payload["data"])
        assert payload["tag"] == tag
        assert data.startswith(packed), f"request {tag}: {packed.hex()}, not {data.hex()}"


SHARE_SEED = 9
COUNT = 40
SHARE_PARAMS = ConvUnitParams(CONV_PRESETS["unit"], SmemParams(1024))
TAGS = (5, 1, 9)


def requests(user):
    rng = random.Random(user)
    for _ in range(COUNT):
        pieces = [{"address": rng.randrange(1024), "low": 0, "high": 16} for _ in range(2)]
        yield {"pieces": pieces, "size": 4, "fill": rng.getrandbits(16), "tag": rng.getrandbits(TAGS[user])}


def data_of(request):
    """What the gatherer's place is taken by: data made from the request."""
    return [piece["address"] << 16 | request["fill"] for piece in request["pieces"]]


@pytest.mark.parametrize("mode", STALL_MODES)
def test_each_gets_its_own_answers(mode):
    dut = elaborated(GatherShare, SHARE_PARAMS, TAGS)
    asked = [list(requests(user)) for user in range(len(TAGS))]
    got, stalls, taken = [[] for _ in TAGS], STALL_MODES[mode], {}

    async def gatherer(ctx):
        for number in range(len(TAGS) * COUNT):
            (request,), _ = await receive(ctx, dut.merged, 1, stall=stalls["stall"], seed=number)
            await send(ctx, dut.gathered, [{"data": data_of(request), "tag": request["tag"].as_bits()}])
        ctx.set(dut.gathered.valid, 0)

    def source(user):
        async def ask(ctx):
            taken[user] = await send(
                ctx, getattr(dut, f"i{user}"), asked[user], idle=stalls["idle"], seed=SHARE_SEED + user
            )

        return ask

    async def listen(ctx):
        ports = [getattr(dut, f"o{user}") for user in range(len(TAGS))]
        values = [value for port in ports for value in (port.valid, port.payload)]
        async for _, _, *seen in ctx.tick().sample(*values):
            assert sum(seen[::2]) <= 1
            for into, valid, payload in zip(got, seen[::2], seen[1::2], strict=True):
                if valid:
                    into.append((payload["tag"], list(payload["data"])))

    watched = [watch_stream(dut.merged, "merged"), listen]
    simulate(dut, *map(source, range(len(TAGS))), gatherer, background=watched)
    assert got == [[(one["tag"], data_of(one)) for one in mine] for mine in asked]


@pytest.mark.parametrize("users", [[1], [0, 1, 2]])
def test_full_rate_and_latency(users):
    """One user alone, and all by turns."""
    dut, taken, seen, count = elaborated(GatherShare, SHARE_PARAMS, TAGS), {}, [], 10 * len(users)

    def source(user):
        async def ask(ctx):
            taken[user] = await send(ctx, getattr(dut, f"i{user}"), list(requests(user))[:10])

        return ask

    async def sink(ctx):
        _, cycles = await receive(ctx, dut.merged, count)
        seen.extend(cycles)

    simulate(dut, *map(source, users), sink)
    assert seen == list(range(1, count + 1))
    assert [taken[user] for user in users] == [list(range(n, count, len(users))) for n in range(len(users))]


def test_wrong_parameters():
    with pytest.raises(ValueError, match=r"^tags must be of at least 2 users, not 1$"):
        GatherShare(SHARE_PARAMS, (4,))
