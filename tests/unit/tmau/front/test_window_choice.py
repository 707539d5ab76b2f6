"""Windows follow the processor at the input, and change when nothing is being set up only."""

import pytest

from tilewright.hw.tmau.front.window_choice import WindowChoice
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.sim.pysim.simulate import elaborated, simulate
from tilewright.sim.pysim.streams import STALL_MODES, receive, send, watch_stream

PARAMS = TMAU_PRESETS["unit"].replace(processors=3)
TAGS = [0x0001, 0x0002, 0x4003, 0x8004, 0x4005, 0x4006, 0x4007, 0x0008]


def windows(number):
    return {"confine_global": 1, "global_first": number + 1, "global_last": 9, "shared_first": 3 * number}


@pytest.mark.parametrize("mode", STALL_MODES)
def test_commands_come_with_their_windows(mode):
    """What takes commands is busy for four cycles after each."""
    dut, stalls, seen = elaborated(WindowChoice, PARAMS), STALL_MODES[mode], []

    async def source(ctx):
        await ctx.tick().repeat(2)  # windows do not change as a command comes
        await send(ctx, dut.i, [{"tag": tag} for tag in TAGS], idle=stalls["idle"], seed=1)

    async def sink(ctx):
        await receive(ctx, dut.o, len(TAGS), stall=stalls["stall"], seed=2)

    async def setup(ctx):
        ctx.set(dut.windows, [windows(number) for number in range(3)])
        ctx.set(dut.idle, 1)
        busy = whose = 0
        ticks = ctx.tick().sample(dut.o.valid, dut.o.ready, dut.o.payload.tag, dut.chosen)
        async for *_, valid, ready, tag, chosen in ticks:
            if busy or valid:
                whose = whose if busy else tag >> 14
                assert (chosen.global_first, chosen.shared_first) == (whose + 1, 3 * whose)
            assert not (busy and valid and tag >> 14 != whose), "a command of another processor waits"
            busy = 4 if valid and ready else max(busy - 1, 0)
            ctx.set(dut.idle, not busy)
            if valid and ready:
                seen.append(tag)

    simulate(dut, source, sink, background=[setup, watch_stream(dut.o)])
    assert seen == TAGS


def test_the_same_processor_waits_for_nothing():
    dut, result = elaborated(WindowChoice, PARAMS), {}

    async def source(ctx):
        ctx.set(dut.idle, 1)
        result["sent"] = await send(ctx, dut.i, [{"tag": tag} for tag in (1, 2, 3, 0x4004, 0x4005)])

    async def sink(ctx):
        await receive(ctx, dut.o, 5)

    simulate(dut, source, sink)
    assert result["sent"] == [0, 1, 2, 4, 5], "a change takes a cycle if nothing is being set up"
