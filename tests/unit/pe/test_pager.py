"""The pager: commands of the TMAU, and the page entries when they are complete."""

import random

import pytest

from support.streams import transact
from tilewright.hw.pe.pager import PAGER_TAG, Pager, PagerOp
from tilewright.hw.pe.params import PE_PRESETS
from tilewright.spec import COMMAND
from tilewright.spec.pe import PAGE_ENTRY
from tilewright.verify.pysim.simulate import elaborated
from tilewright.verify.pysim.streams import STALL_MODES, receive

PARAMS = PE_PRESETS["unit"]
SEED = 4
_TAG = COMMAND["tag"]
#: Operation that does not exist.
UNKNOWN = 3


def random_requests(count):
    rng = random.Random(SEED)
    return [
        {
            "op": rng.choice([*PagerOp, UNKNOWN]),
            "entry": rng.randrange(PARAMS.pages),
            "address": rng.getrandbits(32),
            "command": rng.getrandbits(512),
        }
        for _ in range(count)
    ]


def entry(address):
    flags = sum(1 << PAGE_ENTRY[name].lsb for name in ("valid", "loaded", "on_chip"))
    return address << PAGE_ENTRY["address"].lsb | flags


class Tmau:
    """Completes commands after some cycles, commands of others in between, and fails a few."""

    def __init__(self, dut, stall):
        self.dut, self.stall = dut, stall
        self.commands, self.errors = [], []

    async def run(self, ctx):
        rng = random.Random(SEED)
        done = self.dut.done
        while True:
            (command,), _ = await receive(ctx, self.dut.commands, 1, stall=self.stall, seed=rng.getrandbits(8))
            self.commands.append(command.as_bits())
            tag = command.tag
            for _ in range(rng.randrange(4)):
                ctx.set(done, {"valid": rng.getrandbits(1), "tag": tag ^ 1 << rng.randrange(16), "error": 1})
                await ctx.tick()
                ctx.set(done, {"valid": 0, "tag": tag, "error": 0})
                await ctx.tick()
            self.errors.append(rng.random() < 0.3)
            ctx.set(done, {"valid": 1, "tag": tag, "error": self.errors[-1]})
            await ctx.tick()
            ctx.set(done.valid, 0)


@pytest.mark.parametrize("mode", STALL_MODES)
def test_entries_follow_completions(mode):
    requests = random_requests(120)
    dut = elaborated(Pager, PARAMS)
    stall = STALL_MODES[mode]["stall"]
    tmau = Tmau(dut, stall)
    writes, ends = [], []

    async def sink(ctx):
        while True:
            (write,), _ = await receive(ctx, dut.writes, 1, stall=stall, seed=len(writes))
            writes.append((write.index, write.word))

    async def strobes(ctx):
        async for _, _, moved, failed in ctx.tick().sample(dut.moved, dut.failed):
            assert not (moved and failed)
            if moved or failed:
                ends.append(bool(moved))

    transact(dut, {"requests": requests}, mode=mode, seed=SEED, watch=["commands", "writes"],
             background=[tmau.run, sink, strobes])  # fmt: skip

    errors = iter(tmau.errors)
    commands, wanted, kinds = [], [], []
    for request in requests:
        failed = request["op"] == UNKNOWN
        if request["op"] in (PagerOp.IN, PagerOp.OUT):
            mask = (1 << _TAG.width) - 1 << _TAG.lsb
            commands.append(request["command"] & ~mask | PAGER_TAG + request["entry"] << _TAG.lsb)
            failed = next(errors)
        if not failed:
            wanted.append((request["entry"], entry(request["address"]) if request["op"] == PagerOp.IN else 0))
        kinds.append(not failed)
    assert tmau.commands == commands
    assert writes == wanted
    assert ends == kinds
    assert any(tmau.errors)


def test_cycles():
    dut = elaborated(Pager, PARAMS)
    drop, load = ({"op": op, "entry": 3, "address": 64, "command": 1} for op in (PagerOp.DROP, PagerOp.IN))

    async def command(ctx):
        assert (await receive(ctx, dut.commands, 1))[1] == [3]
        ctx.set(dut.done, {"valid": 1, "tag": PAGER_TAG + 3, "error": 0})
        await ctx.tick()
        ctx.set(dut.done.valid, 0)

    _, cycles = transact(dut, {"requests": [drop, load, drop]}, {"writes": 3}, testbenches=[command])
    assert cycles == {"requests": [2, 6, 9], "writes": [1, 5, 8]}
