"""Commands from processors: through the window of registers, through a shared port, and with their own windows."""

import random

import pytest

from support.streams import transact
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.hw.tmau.processors import CommandWindow, ProcessorShare, WindowChoice
from tilewright.spec import COMMAND
from tilewright.spec.tmau_registers import COMMAND_WINDOW_REGISTERS
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import STALL_MODES, receive, send, watch_stream

SEED = 4


def words(command):
    """Writes of a command."""
    return [{"address": 4 * n, "write": 1, "data": command >> 32 * n & 0xFFFF_FFFF} for n in range(16)]


def run(accesses, commands, mode="none"):
    """Commands that are sent, errors of the answers, and cycles of all handshakes."""
    items, counts = {"accesses.requests": accesses}, {"accesses.answers": len(accesses), "commands": commands}
    came, cycles = transact(elaborated(CommandWindow), items, counts, mode, seed=SEED)
    sent = [COMMAND.pack(**{field.name: getattr(item, field.name) for field in COMMAND.fields})
            for item in came["commands"]]  # fmt: skip
    return sent, [answer.error for answer in came["accesses.answers"]], cycles


@pytest.mark.parametrize("mode", STALL_MODES)
def test_commands_of_the_window(mode):
    rng = random.Random(SEED)
    mask = (1 << 512) - 1 ^ COMMAND.reserved_mask
    commands = [rng.getrandbits(512) & mask for _ in range(6)]
    sent, errors, _ = run([access for command in commands for access in words(command)], len(commands), mode)
    assert sent == commands and not any(errors)


def test_what_is_refused_sends_nothing():
    """Reads of words; writes of ``ended`` and behind it; reads behind it."""
    refused = [*({"address": 4 * n, "write": 0} for n in (0, 15)), *({"address": 4 * n, "write": 1} for n in (16, 31)),
               {"address": 0x44, "write": 0}]  # fmt: skip
    sent, errors, _ = run([*refused, *words(COMMAND.pack(opcode=1))], 1)
    assert (sent, errors) == ([COMMAND.pack(opcode=1)], [1] * 5 + [0] * 16)


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


def test_latency_of_the_window():
    """A word is answered after one cycle, and the last one a cycle after the command was taken."""
    _, _, cycles = run(words(0) * 2, 2)
    assert cycles["accesses.requests"][:17] == [*range(0, 32, 2), 33]
    assert cycles["accesses.answers"][:16] == [*range(1, 31, 2), 32]
    assert cycles["commands"] == [31, 64]


N = 3


@pytest.mark.parametrize("mode", STALL_MODES)
def test_commands_take_turns(mode):
    dut, stalls, result = elaborated(ProcessorShare, N), STALL_MODES[mode], []
    commands = [
        [{"tag": 0xC000 * (n % 2) + n, "smem": 100 * processor + n} for n in range(20)] for processor in range(N)
    ]

    def processor(number):
        return lambda ctx: send(ctx, dut.commands[number], commands[number], idle=stalls["idle"], seed=number)

    async def unit(ctx):
        result.extend(await receive(ctx, dut.merged, 20 * N, stall=stalls["stall"]))

    simulate(dut, unit, *map(processor, range(N)), background=[watch_stream(dut.merged)])
    merged, cycles = result
    for number in range(N):
        own = [(command.tag, command.smem) for command in merged if command.tag >> 14 == number]
        assert own == [((number << 14) + n, 100 * number + n) for n in range(20)]
    if mode == "none":
        assert [command.tag >> 14 for command in merged] == 20 * [0, 1, 2]
        assert cycles == list(range(1, 20 * N + 1)), "one a cycle, with a latency of one"


@pytest.mark.parametrize("n", [1, 17, "2"])
def test_refuses(n):
    with pytest.raises(ValueError, match=f"n must be an int from 2 to 16, not {n!r}"):
        ProcessorShare(n)


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
        busy = owner = 0
        ticks = ctx.tick().sample(dut.o.valid, dut.o.ready, dut.o.payload.tag, dut.chosen)
        async for *_, valid, ready, tag, chosen in ticks:
            if busy or valid:
                owner = owner if busy else tag >> 14
                assert (chosen.global_first, chosen.shared_first) == (owner + 1, 3 * owner)
            assert not (busy and valid and tag >> 14 != owner), "a command of another processor waits"
            busy = 4 if valid and ready else max(busy - 1, 0)
            ctx.set(dut.idle, not busy)
            if valid and ready:
                seen.append(tag)

    simulate(dut, source, sink, background=[setup, watch_stream(dut.o)])
    assert seen == TAGS


def test_the_same_processor_waits_for_nothing():
    items = [{"tag": tag} for tag in (1, 2, 3, 0x4004, 0x4005)]
    _, cycles = transact(elaborated(WindowChoice, PARAMS), {"i": items}, {"o": 5}, inputs={"idle": 1})
    assert cycles["i"] == [0, 1, 2, 4, 5], "a change takes a cycle if nothing is being set up"
