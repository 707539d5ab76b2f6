"""Processors that share a unit: commands take turns, with the number in their tags, and everybody sees its own ends."""

import pytest

from tilewright.hw.tmau.processors import ProcessorShare
from tilewright.sim.pysim.simulate import elaborated, simulate
from tilewright.sim.pysim.streams import STALL_MODES, receive, send, watch_stream

N = 3


@pytest.mark.parametrize("mode", STALL_MODES)
def test_commands_take_turns(mode):
    dut, stalls, got = elaborated(ProcessorShare, N), STALL_MODES[mode], []
    commands = [
        [{"tag": 0xC000 * (n % 2) + n, "smem": 100 * processor + n} for n in range(20)] for processor in range(N)
    ]

    def processor(number):
        return lambda ctx: send(ctx, dut.commands[number], commands[number], idle=stalls["idle"], seed=number)

    async def unit(ctx):
        got.extend(await receive(ctx, dut.merged, 20 * N, stall=stalls["stall"]))

    simulate(dut, unit, *(processor(number) for number in range(N)), background=[watch_stream(dut.merged)])
    merged, cycles = got
    for number in range(N):
        own = [(command.tag, command.smem) for command in merged if command.tag >> 14 == number]
        assert own == [((number << 14) + n, 100 * number + n) for n in range(20)]
    if mode == "none":
        assert [command.tag >> 14 for command in merged] == 20 * [0, 1, 2]
        assert cycles == list(range(1, 20 * N + 1)), "one a cycle, with a latency of one"


def test_ends_are_shown_to_their_processor():
    dut = elaborated(ProcessorShare, N)

    async def testbench(ctx):
        ctx.set(dut.ended.valid, 1)
        ctx.set(dut.ended.error, 7)
        for number in range(4):
            ctx.set(dut.ended.tag, (number << 14) + 77)
            assert [ctx.get(done.valid) for done in dut.done] == [number == each for each in range(N)]
            assert {(ctx.get(done.tag), ctx.get(done.error)) for done in dut.done} == {(77, 7)}

    simulate(dut, testbench)


@pytest.mark.parametrize("n", [1, 17, "2"])
def test_refuses(n):
    with pytest.raises(ValueError, match=f"n must be an int from 2 to 16, not {n!r}"):
        ProcessorShare(n)
