"""The end of commands; what is reported, and in which order, is proved in tests/formal/tmau/test_finish.py."""

import pytest

from support.streams import transact
from tilewright.hw.tmau.finish import Finisher
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.spec import Error
from tilewright.spec.cluster import ClusterError
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import send

PARAMS = TMAU_PRESETS["unit"]


def log_ends(dut, ended):
    async def watch(ctx):
        cycle = 0
        async for _, _, done in ctx.tick().sample(dut.done):
            if done.valid:
                ended.append((cycle, done.record))
            cycle += 1

    return watch


@pytest.mark.parametrize(("name", "latency"), [("completions", 2), ("stores", 1), ("finished", 1)])
def test_done_comes_after_the_handshake(name, latency):
    dut, ended = elaborated(Finisher, PARAMS), []

    async def check(ctx):
        accepted = await send(ctx, getattr(dut, name), [{"tag": tag} for tag in range(20)])
        assert accepted == list(range(accepted[0], accepted[0] + 40, 2)), "one every second cycle"
        await ctx.tick().repeat(3)
        ends = [(cycle, record.tag) for cycle, record in ended]
        assert ends == [(cycle + latency, tag) for tag, cycle in enumerate(accepted)]

    simulate(dut, check, background=[log_ends(dut, ended)])


def test_a_receiver_refuses():
    """In a cluster the record names the cores that refused a part of a transfer, unless the bus failed before."""
    dut, ended = elaborated(Finisher, PARAMS.replace(cores=3)), []
    loads = [{"tag": 1, "signal": 1}, {"tag": 2, "error": 1, "address": 7}]
    came, _ = transact(dut, {"completions": loads}, {"landed": 2}, inputs={"refusing": 0b101},
                       background=[log_ends(dut, ended)], settle=3)  # fmt: skip
    assert [(item.tag, item.signal, item.failed) for item in came["landed"]] == [(1, 1, 0), (2, 0, 1)]
    ends = [(record.tag, record.code, record.address) for _, record in ended]
    assert ends == [(1, ClusterError.REMOTE, 0b101), (2, Error.READ, 7)]
