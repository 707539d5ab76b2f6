"""The queue of commands: order, rate, and what it tells of the next one."""

import random

import numpy as np
import pytest

from support.streams import transact
from tilewright.golden import TensorMap, command_word
from tilewright.hw.tmau.front import CommandQueue, Front
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.spec import Element, Error, LaneLayout, Opcode, Space
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import STALL_MODES, send, watch_stream

SEED = 20261127


@pytest.mark.parametrize("mode", STALL_MODES)
@pytest.mark.parametrize(("depth", "block"), [(2, False), (4, False), (64, False), (2, True), (8, True), (64, True)])
def test_order(depth, block, mode):
    dut, rng = CommandQueue(depth, prefer_bram=block), random.Random(SEED)
    items = [{"opcode": rng.getrandbits(4), "descriptor": rng.getrandbits(64), "tag": number} for number in range(60)]

    async def watch(ctx):
        told, took, level = None, False, 0
        ends = (dut.i.valid, dut.i.ready, dut.o.valid, dut.o.ready, dut.o.payload.descriptor)
        async for *_, comes, ready, valid, goes, descriptor, moves, ahead, now in ctx.tick().sample(
            *ends, dut.moves, dut.ahead, dut.level
        ):
            assert now == level
            level += (comes and ready) - (valid and goes)
            assert told is None or not valid or descriptor == told
            told = ahead if moves and not took else None
            took = valid and goes

    came, cycles = transact(dut, {"i": items}, {"o": 60}, mode, background=[watch])
    assert [(item.opcode, item.descriptor, item.tag) for item in came["o"]] == [tuple(item.values()) for item in items]
    assert mode != "none" or cycles["o"] == list(range(1, 61))


FRONT_SEED = 20261121
PARAMS = TMAU_PRESETS["unit"]
TMAP = TensorMap(element="u8", size=(64, 8), stride=(96,), box=(32, 4), address=0x2000)
DESCRIPTOR = 0x180
WORDS = len(TMAP.pack()) // PARAMS.bus_bytes


class Bench:
    """A front between a memory that holds one descriptor, walkers, and paths that take time for a transfer."""

    def __init__(self, mode="none"):
        self.dut = elaborated(Front, PARAMS)
        self.stall, self.rng = STALL_MODES[mode]["stall"], random.Random(FRONT_SEED)
        self.log = []  # (what, number, cycle)
        self.fetched = []

    async def descriptors(self, ctx):
        """Answers each fetch with the descriptor's bus words."""
        fetch, words = self.dut.fetch, self.dut.words
        content = np.frombuffer(TMAP.pack(), np.uint8).reshape(WORDS, -1)
        ctx.set(fetch.ready, 1)
        while True:
            *_, asked, address = await ctx.tick().sample(fetch.valid, fetch.payload)
            if asked:
                self.fetched.append(address)
                items = [
                    {"data": int.from_bytes(word.tobytes(), "little"), "last": number == WORDS - 1}
                    for number, word in enumerate(content)
                ]
                await send(ctx, words, items)

    async def watch(self, ctx):
        """Takes everything that comes out; completes each transfer some cycles later."""
        dut, rng, cycle = self.dut, self.rng, 0
        ports = {
            "load": (dut.issue.load_transfers, dut.issue.load_transfers.payload.tag),
            "store": (dut.issue.store_transfers, dut.issue.store_transfers.payload.tag),
            "walk": (dut.issue.walks, dut.issue.walks.payload.origin),
            "finished": (dut.issue.finished, dut.issue.finished.payload.as_value()[:24]),  # code and tag
        }
        due = []  # (cycle, strobe)
        while True:
            for port, _ in ports.values():
                ctx.set(port.ready, rng.random() >= self.stall)
            for strobe in ("load_completed", "store_completed", "store_read", "store_done"):
                now = (cycle, strobe) in due
                ctx.set(getattr(dut.issue if "completed" in strobe else dut, strobe), now)
                if now:
                    self.log.append((strobe, 0, cycle))
            samples = [(port.valid & port.ready, value) for port, value in ports.values()]
            quiet = (dut.issue.load_transfers.payload.quiet, dut.issue.store_transfers.payload.quiet)
            _, _, load_quiet, store_quiet, *seen = await ctx.tick().sample(
                *quiet, *(s for pair in samples for s in pair)
            )
            for name, taken, value in zip(ports, seen[::2], seen[1::2], strict=True):
                if not taken:
                    continue
                self.log.append((name, value, cycle))
                if name == "load" and not load_quiet:
                    due.append((cycle + 20, "load_completed"))
                if name == "store":
                    due += [(cycle + 10, "store_read"), (cycle + 20, "store_done")]
                    due += [(cycle + 20, "store_completed")] * (not store_quiet)
            cycle += 1

    def run(self, script):
        dut = self.dut
        issue = dut.issue
        streams = (issue.walks, issue.load_transfers, issue.store_transfers, issue.finished, dut.fetch)
        watchers = map(watch_stream, streams)
        simulate(dut, script, background=[self.descriptors, self.watch, *watchers])

    def numbers(self, what):
        return [number for name, number, _ in self.log if name == what]

    def cycles(self, what):
        return [cycle for name, _, cycle in self.log if name == what]


def load(tag, **fields):
    return command_word(Opcode.LOAD, tag=tag, descriptor=DESCRIPTOR, **fields)


COMMANDS = [
    load(1, coords=(0, 1)),
    command_word(Opcode.COPY_BLOCK, tag=2, source=0x300, destination=512, size=64, destination_space=Space.SHARED),
    command_word(Opcode.LANES, tag=3, element=Element.U8, shape=(16, 1, 3, 1), lanes_log2=1, eu_log2=4,
                 source=0x5000, destination_layout=LaneLayout.ALIGNED),
    command_word(Opcode.STORE, tag=4, descriptor=DESCRIPTOR, coords=(16, 4)),
    command_word(Opcode.COMMIT, tag=5),
    command_word(15, tag=6),
    command_word(Opcode.WAIT, tag=7, count=0),
    command_word(Opcode.WAIT_ALL, tag=8),
    load(9, smem=64),
    load(10, coords=(0, 2)),
]  # fmt: skip


@pytest.mark.parametrize("mode", ["none", "both"])
def test_commands_of_all_setups(mode):
    bench = Bench(mode)

    async def run(ctx):
        await send(ctx, bench.dut.commands, COMMANDS, idle=STALL_MODES[mode]["idle"], seed=FRONT_SEED)
        while len(bench.numbers("load_completed")) < 4:
            await ctx.tick()

    print(f"seed {FRONT_SEED}")
    bench.run(run)
    loads = bench.numbers("load")
    assert [tag for tag in loads if tag != 3] == [1, 2, 10]
    assert loads.count(3) == 3, "a block for each channel"
    assert bench.numbers("store") == [4]
    lanes = [0x5000, 0x5010, 0x5020]
    assert bench.numbers("walk") == [0x2060, 0x300, *lanes, 0x2000 + 4 * 96 + 16, 0x2000 + 2 * 96]
    assert bench.fetched == [DESCRIPTOR]
    ends = [(0, 5), (Error.OPCODE, 6), (0, 7), (0, 8), (Error.SMEM_ALIGNMENT, 9)]
    assert bench.numbers("finished") == [code | tag << 8 for code, tag in ends]
    _, _, waited, all_waited, _ = bench.cycles("finished")
    assert waited > bench.cycles("store_done")[0]
    assert all_waited > max(bench.cycles("store_completed") + bench.cycles("load_completed")[:3])


def test_six_cycles_to_the_walk():
    bench, accepted = Bench(), []

    async def run(ctx):
        cycle = 0
        for tag in range(2):
            (offset,) = await send(ctx, bench.dut.commands, [load(tag)])
            accepted.append(cycle + offset)
            await ctx.tick().repeat(40)
            cycle += offset + 1 + 40

    bench.run(run)
    assert bench.cycles("walk")[1] == accepted[1] + 6
    assert bench.cycles("load")[1] == accepted[1] + 6
