"""Several requesters of one gatherer: each gets its own answers with its own tags."""

import random

import pytest

from tilewright.hw.conv.fetch.gather import GatherShare
from tilewright.hw.conv.params import ConvUnitParams
from tilewright.hw.smem.params import SmemParams
from tilewright.spec.conv import CONV_PRESETS
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import STALL_MODES, receive, send, watch_stream

SEED = 9
COUNT = 40
PARAMS = ConvUnitParams(CONV_PRESETS["unit"], SmemParams(1024))
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
    dut = elaborated(GatherShare, PARAMS, TAGS)
    asked = [list(requests(user)) for user in range(len(TAGS))]
    got, stalls, taken = [[] for _ in TAGS], STALL_MODES[mode], {}

    async def gatherer(ctx):
        for number in range(len(TAGS) * COUNT):
            (request,), _ = await receive(ctx, dut.merged, 1, stall=stalls["stall"], seed=number)
            await send(ctx, dut.gathered, [{"data": data_of(request), "tag": request["tag"].as_bits()}])
        ctx.set(dut.gathered.valid, 0)

    def source(user):
        async def ask(ctx):
            taken[user] = await send(ctx, getattr(dut, f"i{user}"), asked[user], idle=stalls["idle"], seed=SEED + user)

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
    dut, taken, seen, count = elaborated(GatherShare, PARAMS, TAGS), {}, [], 10 * len(users)

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
        GatherShare(PARAMS, (4,))
