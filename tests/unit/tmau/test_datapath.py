"""The data path on memory models in Python: each kind of transfer against golden, latency, bus errors."""

import random

import numpy as np
import pytest

from support.shared_memory import LineMemory
from tilewright.golden import Machine, Memory, TensorMap, command_word
from tilewright.hw.tmau.datapath import TmauDatapath
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.spec import Element, Error, Opcode, Reduction, Space
from tilewright.verify.pysim.axi import AxiMemory
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import STALL_MODES, send, watch_stream

SEED = 20261121
PARAMS = TMAU_PRESETS["unit"]
GMEM_BYTES = 1 << 14
#: Where descriptors lie: behind all tensors.
DESCRIPTORS = GMEM_BYTES - 1024

PADDED = TensorMap(element="f16", size=(40, 6), stride=(96,), box=(32, 5), swizzle="64B", address=0x1030)
TARGET = TensorMap(element="u32", size=(12, 9), stride=(64,), box=(8, 4), address=0x2008, unaligned=True)
WAIT_ALL = {"opcode": Opcode.WAIT_ALL}


class Bench:
    """A core with both of its memories, and a log of what ends."""

    def __init__(self, *, mode="none", latency=10):
        rng = random.Random(SEED)
        stall = {"stall": STALL_MODES[mode]["stall"], "seed": SEED}
        self.mode = mode
        self.dut = dut = elaborated(TmauDatapath, PARAMS)
        self.gmem, self.smem = (
            np.frombuffer(rng.randbytes(size), np.uint8).copy() for size in (GMEM_BYTES, PARAMS.smem.size_bytes)
        )
        for number, tmap in enumerate((PADDED, TARGET)):
            self.gmem[DESCRIPTORS + 128 * number :][:128] = np.frombuffer(tmap.pack(), np.uint8)
        self.memory = AxiMemory(dut.axi, self.gmem, latency=latency, **stall)
        self.shared = LineMemory(dut.smem, self.smem, **stall)
        self.accepted, self.landed, self.done = [], [], []

    async def _watch(self, ctx):
        dut, cycle = self.dut, 0
        ctx.set(dut.smem.landed.ready, 1)
        async for *_, accepted, landed, barrier, done in ctx.tick().sample(
            dut.commands.valid & dut.commands.ready, dut.smem.landed.valid, dut.smem.landed.payload, dut.control.done
        ):
            if accepted:
                self.accepted.append(cycle)
            if landed:
                self.landed.append((cycle, barrier.barrier, barrier.bytes))
            if done.valid:
                self.done.append((cycle, done.record))
            cycle += 1

    def run(self, commands, *, apart=False):
        """Runs commands given as keywords, ``apart`` each when the one before has ended; tags are their numbers."""
        words = [command_word(tag=tag, **command) for tag, command in enumerate(commands)]

        async def issue(ctx):
            for number in range(0, len(words), 1 if apart else len(words)):
                part = words[number : number + 1] if apart else words
                await send(ctx, self.dut.commands, part, idle=STALL_MODES[self.mode]["idle"], seed=SEED)
                while len(self.done) < number + len(part):
                    await ctx.tick()
            await ctx.tick()
            assert ctx.get(self.dut.control.idle)

        models = [self.memory.serve, self.memory.serve_writes, self.shared.serve, self._watch]
        smem = self.dut.smem
        watchers = [watch_stream(port) for port in (smem.writes, smem.fetch.rows, smem.landed)]
        simulate(self.dut, issue, background=[*models, *watchers], deadline=8000)
        return words


def tile(opcode, number, coords, smem, **fields):
    return {"opcode": opcode, "descriptor": DESCRIPTORS + 128 * number, "coords": coords, "smem": smem, **fields}


def block(source, destination, size, *spaces, **fields):
    places = {"source_space": spaces[0], "destination_space": spaces[1], "source": source, "destination": destination}
    return {"opcode": Opcode.COPY_BLOCK, "size": size, **places, **fields}


COMMANDS = [
    tile(Opcode.LOAD, 0, (-3, 2), 1024, signal=1, barrier=8),
    tile(Opcode.REDUCE, 1, (7, 3), 0, reduction=Reduction.MAX),
    WAIT_ALL,
    tile(Opcode.STORE, 1, (1, 6), 1024),
    block(0x0800, 2048, 208, Space.GLOBAL, Space.SHARED, reduction=Reduction.ADD, element=Element.U32),
    WAIT_ALL,
    block(1024, 3072, 176, Space.SHARED, Space.SHARED),
    block(0x1010, 0x3030, 160, Space.GLOBAL, Space.GLOBAL),
    WAIT_ALL,
]


@pytest.mark.parametrize("mode", [pytest.param("none", marks=pytest.mark.long), "both"])
def test_each_kind_of_transfer(mode):
    bench = Bench(mode=mode)
    gmem, smem = bench.gmem.copy(), bench.smem.copy()
    print(f"seed {SEED}")
    words = bench.run(COMMANDS)
    machine = Machine(Memory(gmem), smem, PARAMS.bus_bytes, PARAMS.addr_width)
    # The bench has no barriers, so the machine is not to touch any.
    moved = [machine.execute(command_word(**(COMMANDS[0] | {"signal": 0})))]
    moved += [machine.execute(word) for word in words[1:]]
    assert None not in moved
    assert [record.code for _, record in bench.done] == [Error.NONE] * len(COMMANDS)
    assert sorted(record.tag for _, record in bench.done) == list(range(len(COMMANDS)))
    assert [landed[1:] for landed in bench.landed] == [(8, moved[0])]
    assert (bench.smem == smem).all()
    assert (bench.gmem == gmem).all()


def test_latencies_of_a_single_load():
    bench = Bench()
    bench.run([tile(Opcode.LOAD, 0, (0, 0), 0, signal=1)] * 2, apart=True)
    data = [cycle for cycle, burst_id, _, _ in bench.memory.requests if burst_id == 0]
    fetch = [cycle for cycle, burst_id, _, _ in bench.memory.requests if burst_id == 1]
    miss, hit = bench.accepted
    assert fetch == [miss + 4, miss + 5], "a miss asks for the descriptor four cycles later, in bursts of max_burst"
    round_trip = 10 + 8 - 1  # latency, and the beats of a descriptor on a 16-byte bus
    assert data[0] - miss == 10 + round_trip + 23
    assert min(cycle for cycle in data if cycle > hit) - hit == 10, "a hit asks for data ten cycles after the command"
    last_line = bench.shared.writes[-1][0]
    assert last_line - bench.memory.last_beat == 2, "the last bytes are written two cycles after the last beat"
    assert bench.landed[-1][0] - last_line == 3, (
        "the completion comes a cycle later, and goes through a buffer and the guard"
    )
    assert bench.done[-1][0] - last_line == 4


def test_bus_errors():
    """A failing read drains and does not signal, a failing write is reported; the next commands work."""
    bench = Bench()
    read, write = PADDED.address // 16 * 16 + 32, TARGET.address // 16 * 16 + 64
    bench.memory.failing |= {read, write}
    commands = [
        tile(Opcode.LOAD, 0, (0, 0), 1024, signal=1),
        tile(Opcode.STORE, 1, (0, 0), 0),
        tile(Opcode.LOAD, 0, (0, 3), 1024, signal=1),
    ]
    bench.run(commands, apart=True)
    assert [(record.code, record.address) for _, record in bench.done[:2]] == [(Error.READ, read), (Error.WRITE, write)]
    assert bench.done[2][1].code == Error.NONE
    assert len(bench.landed) == 1
