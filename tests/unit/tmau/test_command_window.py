"""The command window: sixteen words become a command, whatever the queue behind it does."""

import random

import pytest

from tilewright.golden.spec import COMMAND
from tilewright.golden.spec.host_windows import COMMAND_WINDOW_REGISTERS
from tilewright.hw.tmau.command_window import CommandWindow
from tilewright.sim.pysim.simulate import simulate
from tilewright.sim.pysim.streams import STALL_MODES, receive, send, watch_stream

SEED = 4


def words(command):
    """Writes of a command."""
    return [{"address": 4 * n, "write": 1, "data": command >> 32 * n & 0xFFFF_FFFF} for n in range(16)]


def run(accesses, commands, mode="none"):
    """Commands that are sent, errors of the answers, cycles of accesses, answers and commands."""
    dut, found = CommandWindow(), {}
    stalls = STALL_MODES[mode]

    async def source(ctx):
        found["in"] = await send(ctx, dut.accesses.requests, accesses, idle=stalls["idle"], seed=SEED)

    async def answers(ctx):
        got, found["answers"] = await receive(
            ctx, dut.accesses.answers, len(accesses), stall=stalls["stall"], seed=SEED
        )
        found["errors"] = [answer.error for answer in got]

    async def sink(ctx):
        got, found["out"] = await receive(ctx, dut.commands, commands, stall=stalls["stall"], seed=SEED + 1)
        found["commands"] = [COMMAND.pack(**{field.name: getattr(item, field.name) for field in COMMAND.fields})
                             for item in got]  # fmt: skip

    simulate(dut, source, answers, sink, background=[watch_stream(dut.commands), watch_stream(dut.accesses.answers)])
    return found


@pytest.mark.parametrize("mode", STALL_MODES)
def test_commands(mode):
    rng = random.Random(SEED)
    mask = (1 << 512) - 1 ^ COMMAND.reserved_mask
    commands = [rng.getrandbits(512) & mask for _ in range(6)]
    found = run([access for command in commands for access in words(command)], len(commands), mode)
    assert found["commands"] == commands
    assert not any(found["errors"])


def test_words_stay_and_come_in_any_order():
    command = COMMAND.pack(opcode=1, tag=7, smem=0x80)
    again = [words(command)[15]]
    found = run([*reversed(words(command)[:15]), *again, *again], 2)
    assert found["commands"] == [command] * 2


def test_what_is_refused_sends_nothing():
    """Reads of words; writes of ``ended`` and behind it; reads behind it."""
    refused = [*({"address": 4 * n, "write": 0} for n in (0, 15)), *({"address": 4 * n, "write": 1} for n in (16, 31)),
               {"address": 0x44, "write": 0}]  # fmt: skip
    found = run([*refused, *words(COMMAND.pack(opcode=1))], 1)
    assert found["errors"] == [1] * 5 + [0] * 16
    assert found["commands"] == [COMMAND.pack(opcode=1)]


def test_ended():
    """The last command that ended, and how many, modulo 256; one that ends in the cycle of a read shows in the next."""
    dut, seen = CommandWindow(), []
    ended = {register.name: register for register in COMMAND_WINDOW_REGISTERS}["ended"]
    read = [{"address": ended.offset, "write": 0}]

    async def processor(ctx):
        for number in range(258):
            if number in (0, 1, 257):
                await send(ctx, dut.accesses.requests, read)
                ((answer,), _) = await receive(ctx, dut.accesses.answers, 1)
                assert not answer.error
                seen.append(ended.format.unpack(answer.data))
            for name, value in (("valid", 1), ("tag", 7 * number), ("error", number & 3)):
                ctx.set(getattr(dut.done, name), value)
            await ctx.tick()
            ctx.set(dut.done.valid, 0)
            ctx.set(dut.done.tag, 0xFFFF)

    simulate(dut, processor)
    assert [(each["tag"], each["error"], each["count"]) for each in seen] == [(0, 0, 0), (0, 0, 1), (7 * 256, 0, 1)]


def test_latency():
    """A word is answered after one cycle, and the last one a cycle after the command was taken."""
    found = run(words(0) * 2, 2)
    assert found["in"][:17] == [*range(0, 32, 2), 33]
    assert found["answers"][:16] == [*range(1, 31, 2), 32]
    assert found["out"] == [31, 64]
