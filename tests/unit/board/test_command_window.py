"""The command window: sixteen words become a command, whatever the queue behind it does."""

import random

import pytest

from tilewright.golden.spec import COMMAND
from tilewright.hw.board.command_window import CommandWindow
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


def test_reads_are_refused_and_send_nothing():
    found = run([{"address": 0x3C, "write": 0}, *words(COMMAND.pack(opcode=1))], 1)
    assert found["errors"] == [1] + [0] * 16


def test_latency():
    """A word is answered after one cycle, and the last one a cycle after the command was taken."""
    found = run(words(0) * 2, 2)
    assert found["in"][:17] == [*range(0, 32, 2), 33]
    assert found["answers"][:16] == [*range(1, 31, 2), 32]
    assert found["out"] == [31, 64]
