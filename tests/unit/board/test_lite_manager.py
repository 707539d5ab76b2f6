"""The manager of an AXI4-Lite port: accesses come through a bridge to a target of the test, and answers back."""

import random

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, flipped

from support.streams import responder, transact
from tilewright.board.lite_manager import Axi4LiteManager
from tilewright.hw.bus.axi4_lite import AccessSignature, Axi4LiteBridge, Axi4LiteSignature
from tilewright.verify.pysim.simulate import elaborated
from tilewright.verify.pysim.streams import STALL_MODES

SEED = 6
ADDR_WIDTH = 12


class ThroughPort(wiring.Component):
    """Manager, port and bridge."""

    def __init__(self):
        super().__init__({"accesses": In(AccessSignature()), "target": Out(AccessSignature())})

    def elaborate(self, platform):
        m = Module()
        m.submodules.manager = manager = Axi4LiteManager(ADDR_WIDTH)
        m.submodules.bridge = bridge = Axi4LiteBridge(ADDR_WIDTH)
        wiring.connect(m, accesses=flipped(self.accesses), manager=manager.accesses)
        wiring.connect(m, manager=manager.axi, bridge=bridge.axi)
        wiring.connect(m, bridge=bridge.accesses, target=flipped(self.target))
        return m


@pytest.mark.parametrize("mode", STALL_MODES)
def test_accesses_come_through(mode):
    rng = random.Random(SEED)
    accesses = [
        {
            "address": rng.randrange(1 << ADDR_WIDTH),
            "write": rng.getrandbits(1),
            "data": rng.getrandbits(32),
            "strobe": rng.getrandbits(4),
        }
        for _ in range(200)
    ]
    replies = [{"data": rng.getrandbits(32), "error": rng.getrandbits(1)} for _ in accesses]
    dut, seen = elaborated(ThroughPort), []

    def reply(item):
        seen.append({name: item[name] for name in ("address", "write", "data", "strobe")})
        return replies[len(seen) - 1]

    target = responder(dut.target.requests, dut.target.answers, reply, mode, seed=SEED)
    counts = {"accesses.answers": len(accesses)}
    payloads, _ = transact(dut, {"accesses.requests": accesses}, counts, mode, seed=SEED, background=[target])
    assert seen == accesses
    assert [{"data": answer.data, "error": answer.error} for answer in payloads["accesses.answers"]] == replies


@pytest.mark.parametrize("first", ["aw", "w"])
def test_address_and_data_of_a_write_are_taken_one_by_one(first):
    dut, taken = Axi4LiteManager(ADDR_WIDTH), {}
    then = {"aw": "w", "w": "aw"}[first]

    async def port(ctx):
        for cycle, channel in ((2, first), (5, then)):
            await ctx.tick().repeat(cycle)
            ctx.set(getattr(dut.axi, f"{channel}ready"), 1)
            _, _, taken[channel] = await ctx.tick().sample(getattr(dut.axi, f"{channel}valid"))
            ctx.set(getattr(dut.axi, f"{channel}ready"), 0)
            # What was taken is offered no more, what was not stays.
            assert not ctx.get(getattr(dut.axi, f"{channel}valid"))
            assert ctx.get(getattr(dut.axi, f"{then}valid")) == (channel == first)
        ctx.set(dut.axi.bvalid, 1)

    item = {"address": 8, "write": 1, "data": 9, "strobe": 15}
    transact(dut, {"accesses.requests": [item]}, {"accesses.answers": 1}, testbenches=[port])
    assert taken == {"aw": 1, "w": 1}


def test_no_cycle_is_added():
    """A port that takes and answers at once: an access every second cycle."""
    inputs = dict.fromkeys(("axi.arready", "axi.awready", "axi.wready", "axi.rvalid", "axi.bvalid"), 1)
    items = {"accesses.requests": [{"address": 4 * n, "write": n & 1} for n in range(8)]}
    _, cycles = transact(Axi4LiteManager(ADDR_WIDTH), items, {"accesses.answers": 8}, inputs=inputs)
    assert cycles == {"accesses.requests": list(range(0, 16, 2)), "accesses.answers": list(range(1, 17, 2))}


@pytest.mark.parametrize("addr_width", [2, 33])
def test_wrong_parameters(addr_width):
    with pytest.raises(ValueError, match=rf"^addr_width must be an int from 3 to 32, not {addr_width}$"):
        Axi4LiteManager(addr_width)


def test_signature():
    assert Axi4LiteManager(ADDR_WIDTH).axi.signature == Axi4LiteSignature(ADDR_WIDTH)
