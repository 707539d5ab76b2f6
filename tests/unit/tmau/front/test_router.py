"""Every command reaches its setup, in order, one setup at a time."""

import random

import pytest

from tilewright.golden.spec import FORMATS, Error, Opcode
from tilewright.hw.bus.commands import command_layout
from tilewright.hw.tmau.front.router import Router
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.sim.pysim.simulate import elaborated, simulate
from tilewright.sim.pysim.streams import STALL_MODES, send, watch_stream

SEED = 20261121
BLOCKS = ("COPY_BLOCK", "PREFETCH_BLOCK", "COMMIT", "WAIT", "WAIT_ALL", "REPLACE")


def room_of(opcode, code):
    if code != Error.NONE:
        return 0
    return 2 if opcode == Opcode.LANES else int(Opcode(opcode).name in BLOCKS)


class SetupModel:
    """Takes commands and works on each for some cycles."""

    def __init__(self, dut, number, port, log, stall):
        self.dut, self.number, self.port, self.log = dut, number, port, log
        self.stall = stall
        self.rng = random.Random(number)

    async def work(self, ctx):
        left = 0
        while True:
            ready = self.rng.random() >= self.stall
            ctx.set(self.port.ready, ready)
            ctx.set(self.dut.busy[self.number], left > 0)
            _, _, valid, payload, busy = await ctx.tick().sample(self.port.valid, self.port.payload, self.dut.busy)
            left = max(left - 1, 0)
            if valid:
                assert not busy & ~(1 << self.number), "another one is at work"
            if valid and ready:
                command = payload.command if self.number == 0 else payload
                self.log.append((self.number, command.tag))
                left = self.rng.randint(1, 5)


@pytest.mark.parametrize("mode", STALL_MODES)
def test_order_and_setups(mode):
    dut = elaborated(Router, TMAU_PRESETS["unit"])
    rng = random.Random(SEED)
    stall = STALL_MODES[mode]
    log, items, expected = [], [], []
    for tag in range(300):
        code = rng.choice([Error.NONE] * 4 + [Error.WINDOW])
        opcode = rng.choice([rng.choice(list(Opcode)), Opcode.LOAD, Opcode.COPY_BLOCK])
        command = command_layout().from_bits(FORMATS[opcode].pack(opcode=opcode, tag=tag))
        items.append({"command": command, "fault": {"code": code}})
        expected.append((room_of(opcode, code), tag))

    async def source(ctx):
        await send(ctx, dut.i, items, idle=stall["idle"], seed=1)

    ports = (dut.tensors, dut.blocks, dut.lanes)
    setups = [SetupModel(dut, number, port, log, stall["stall"]).work for number, port in enumerate(ports)]
    print(f"seed {SEED}")
    simulate(dut, source, background=[*setups, *(watch_stream(port) for port in ports)])
    assert log == expected


@pytest.mark.parametrize("opcode", [Opcode.STORE, Opcode.COMMIT, Opcode.LANES])
def test_one_a_cycle_to_the_same_room(opcode):
    dut = elaborated(Router, TMAU_PRESETS["unit"])

    async def run(ctx):
        number = room_of(opcode, Error.NONE)
        ctx.set(dut.busy, 1 << number)
        ctx.set((dut.tensors, dut.blocks, dut.lanes)[number].ready, 1)
        cycles = await send(ctx, dut.i, [{"command": {"opcode": opcode}}] * 5)
        assert cycles == list(range(5))

    simulate(dut, run)
