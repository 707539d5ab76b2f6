"""Several requesters of one gatherer: each gets its own answers with its own tags."""

import random

import pytest

from support.conv import conv_unit
from support.streams import responder, transact
from tilewright.hw.conv.fetch.gather import GatherShare
from tilewright.verify.pysim.simulate import elaborated
from tilewright.verify.pysim.streams import STALL_MODES

SEED = 9
COUNT = 40
PARAMS = conv_unit(smem=1024)
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
    got = [[] for _ in TAGS]

    def reply(request):
        return {"data": data_of(request), "tag": request["tag"].as_bits()}

    async def answered(ctx):
        while sum(map(len, got)) < len(TAGS) * COUNT:
            await ctx.tick()

    async def listen(ctx):
        ports = [getattr(dut, f"o{user}") for user in range(len(TAGS))]
        values = [value for port in ports for value in (port.valid, port.payload)]
        async for _, _, *seen in ctx.tick().sample(*values):
            assert sum(seen[::2]) <= 1
            for into, valid, payload in zip(got, seen[::2], seen[1::2], strict=True):
                if valid:
                    into.append((payload["tag"], list(payload["data"])))

    requests_by_port = {f"i{user}": mine for user, mine in enumerate(asked)}
    background = [responder(dut.merged, dut.gathered, reply, mode), listen]
    transact(dut, requests_by_port, mode=mode, seed=SEED, watch=["merged"], background=background, then=answered)
    assert got == [[(one["tag"], data_of(one)) for one in mine] for mine in asked]


@pytest.mark.parametrize("users", [[1], [0, 1, 2]])
def test_full_rate_and_latency(users):
    """One user alone, and all by turns."""
    count = 10 * len(users)
    asked = {f"i{user}": list(requests(user))[:10] for user in users}
    _, cycles = transact(elaborated(GatherShare, PARAMS, TAGS), asked, {"merged": count})
    assert cycles["merged"] == list(range(1, count + 1))
    assert [cycles[port] for port in asked] == [list(range(n, count, len(users))) for n in range(len(users))]


def test_wrong_parameters():
    with pytest.raises(ValueError, match=r"^tags must be of at least 2 users, not 1$"):
        GatherShare(PARAMS, (4,))
