"""Memory path on a real shared memory: accesses have their effects in order, one a cycle."""

import random
from collections import Counter

import pytest
from amaranth.hdl import Elaboratable, Module
from amaranth.lib.wiring import connect

from support.streams import counting, transact
from tilewright.hw.pe.layouts import AccessKind
from tilewright.hw.pe.memory import MemoryPath
from tilewright.hw.pe.params import PeParams
from tilewright.hw.smem.params import SmemParams
from tilewright.hw.smem.top import SharedMemory
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import STALL_MODES, send

SEED = 25
PARAMS = PeParams(smem=SmemParams(1024))
HALF = PARAMS.replace(smem=SmemParams(1024, chunks_a_cycle=4, writes_a_cycle=2))
CHUNKS = PARAMS.smem.size_bytes // 16
OFF = {"enable": 0, "chunk": 0, "byte": 0, "keep": 0}
#: What passes with columns.
NAMES = ("on", "register", "first_member", "last")


class OnSharedMemory(Elaboratable):
    """A memory path, and the shared memory that it reads and writes."""

    def __init__(self, params):
        self.path = MemoryPath(params)
        self.memory = SharedMemory(params.smem, stores=True)

    def elaborate(self, platform):
        m = Module()
        m.submodules.path = side = self.path
        m.submodules.memory = memory = self.memory
        connect(m, side=side.reads, memory=memory.reads)
        connect(m, memory=memory.read_data, side=side.read_data)
        connect(m, side=side.scatter, memory=memory.scatter)
        m.d.comb += side.scatter_idle.eq(memory.scatter_idle)
        return m


class Reference:
    """What accesses do, one after the other."""

    def __init__(self, image, unit_bytes):
        self.image, self.unit_bytes = bytearray(image), unit_bytes
        self.blocks = [[bytes(16)] * 32 for _ in range(2)]
        self.columns, self.loads, self.loads_done, self.filled = [], [], [], 0

    def chunk(self, lane):
        return self.image[16 * lane["chunk"] :][:16] if lane["enable"] else bytes(16)

    def cut(self, lane, size):
        chunk = self.chunk(lane)
        data = [chunk[lane["byte"] + n] if lane["keep"] >> n & 1 else 0 for n in range(size)]
        return int.from_bytes(data, "little")

    def access(self, access):
        kind, lanes = access["kind"], access["lanes"]
        if kind == AccessKind.COLUMNS:
            self.item(access, [self.cut(lane, self.unit_bytes) for lane in lanes])
        elif kind == AccessKind.PICK:
            self.item(access, [self.pick(access, number) for number in range(8)])
        elif kind == AccessKind.FILL:
            self.filled += sum(lane["enable"] for lane in lanes)
            first = 8 * access["octet"]
            self.blocks[access["slot"]][first : first + 8] = map(self.chunk, lanes)
        elif kind == AccessKind.STORE:
            for lane, word in zip(lanes, access["data"], strict=True):
                for byte in range(4):
                    if lane["enable"] and lane["keep"] >> byte & 1:
                        self.image[16 * lane["chunk"] + lane["byte"] + byte] = word >> 8 * byte & 0xFF
        elif access["on"]:
            words = [self.cut(lane, 4) for lane in lanes]
            self.loads.append((access["register"], access["group"], access["on"], words))
        if kind in (AccessKind.LOAD, AccessKind.NOTHING) and access["last"]:
            self.loads_done.append(len(self.loads))

    def pick(self, access, number):
        size = 2 if access["wide"] else 1
        column, unit = divmod(number, access["kb"] + 1)
        k, place = self.unit_bytes // size, (access["place"] + column * size) % 16
        first = unit * k
        rows = self.blocks[access["slot"]][first : first + k]
        return int.from_bytes(b"".join(row[place : place + size] for row in rows), "little")

    def item(self, access, units):
        kb = access["kb"] + 1
        self.columns.append((*(access[name] for name in NAMES), units[: 8 // kb * kb]))


def access(kind, lanes, **fields):
    zero = dict.fromkeys((*NAMES, "group", "slot", "octet", "place", "wide", "kb"), 0)
    return {"kind": int(kind), "lanes": lanes, "data": [0] * 8, **zero, **fields}


class Program:
    """Random instructions, as accesses."""

    def __init__(self, rng, unit_bytes):
        self.rng, self.unit_bytes = rng, unit_bytes

    def lane(self, size):
        keep = self.rng.choice([0xFF, 0xFF, (1 << self.rng.randrange(9)) - 1])
        lane = {"enable": 1, "chunk": self.rng.randrange(CHUNKS), "byte": self.rng.randrange(0, 16, size), "keep": keep}
        return lane if self.rng.random() < 0.9 else OFF

    def columns(self):
        kb = self.rng.randrange(4)
        for n in range(3):
            lanes = [self.lane(self.unit_bytes) for _ in range(8)]
            places = {"register": n, "first_member": self.rng.randrange(4), "kb": kb}
            yield access(AccessKind.COLUMNS, lanes, on=self.rng.getrandbits(8), last=n == 2, **places)
        yield access(AccessKind.COLUMNS, [OFF] * 8, last=1)

    def transposed(self):
        kb, wide, slot = self.rng.randrange(4), self.rng.randrange(2), self.rng.randrange(2)
        rows = (kb + 1) * self.unit_bytes >> wide
        for octet in range(-(-rows // 8)):
            yield access(AccessKind.FILL, [self.lane(16) for _ in range(8)], slot=slot, octet=octet, wide=wide)
        picks = self.rng.choice([0, 4])  # without one the next read follows the rows at once
        for n in range(picks):
            place = self.rng.randrange(0, 16, wide + 1)
            fields = {"slot": slot, "wide": wide, "kb": kb, "register": n, "last": n == 3, "place": place}
            yield access(AccessKind.PICK, [OFF] * 8, on=self.rng.getrandbits(8), **fields)

    def load(self):
        count = self.rng.randrange(4)
        for n in range(count):
            lanes = [self.lane(4) for _ in range(8)]
            on = self.rng.choice([0, 0xFF, self.rng.getrandbits(8)])
            group = self.rng.randrange(PARAMS.groups)
            yield access(AccessKind.LOAD, lanes, on=on, register=n, group=group, last=n == count - 1)
        if not count:
            yield access(AccessKind.NOTHING, [OFF] * 8, last=1)

    def store(self):
        """Each lane has 128 bytes of its own: no two write the same byte."""
        count = self.rng.choice([1, 3, 8])
        starts = [128 * lane + 4 * self.rng.randrange(33 - count) for lane in self.rng.sample(range(8), 8)]
        for n in range(count):
            places = [divmod(start + 4 * n, 16) for start in starts]
            lanes = [{**self.lane(4), "chunk": chunk, "byte": byte} for chunk, byte in places]
            data = [self.rng.getrandbits(32) for _ in range(8)]
            yield access(AccessKind.STORE, lanes, data=data, last=n == count - 1)

    def accesses(self, instructions):
        kinds = [self.columns, self.transposed, self.load, self.store]
        return [item for _ in range(instructions) for item in self.rng.choice(kinds)()]


async def fill(ctx, dut, image):
    for chunk in range(CHUNKS):
        value = int.from_bytes(image[16 * chunk :][:16], "little")
        ctx.set(dut.memory.banks.memories[chunk % 8].data[chunk // 8], value)


def contents(ctx, dut):
    chunks = [ctx.get(dut.memory.banks.memories[chunk % 8].data[chunk // 8]) for chunk in range(CHUNKS)]
    return b"".join(chunk.to_bytes(16, "little") for chunk in chunks)


# Elaboration for a second number of factor registers takes longer than the runs.
@pytest.mark.parametrize(
    ("mode", "params"),
    [
        *(pytest.param(mode, PARAMS.replace(factor_regs=1), id=mode) for mode in STALL_MODES),
        *(pytest.param(mode, HALF, id=f"{mode}, four a cycle") for mode in STALL_MODES),
        *(pytest.param(mode, PARAMS, marks=pytest.mark.long, id=f"{mode}, wide") for mode in ("stall", "both")),
    ],
)
def test_random(mode, params):
    rng, ends, loaded = random.Random(SEED), [], 0
    dut, counts = elaborated(OnSharedMemory, params), Counter()
    side = dut.path
    image = rng.randbytes(PARAMS.smem.size_bytes)
    accesses = Program(rng, params.unit_bytes).accesses(40)
    reference = Reference(image, params.unit_bytes)
    for item in accesses:
        reference.access(item)

    async def source(ctx):
        await fill(ctx, dut, image)
        await send(ctx, side.accesses, accesses, idle=STALL_MODES[mode]["idle"], seed=SEED)
        await ctx.tick().until(side.idle & side.stores_idle)
        assert contents(ctx, dut) == reference.image

    async def watch_ends(ctx):
        nonlocal loaded
        async for _, _, done, word in ctx.tick().sample(side.load_done, side.loads.valid & side.loads.ready):
            loaded += word
            ends.extend([loaded] * done)

    payloads, _ = transact(
        dut,
        receive={"path.columns": len(reference.columns), "path.loads": len(reference.loads)},
        mode=mode,
        testbenches=[source],
        background=[counting(counts, filled=side.line_fill), watch_ends],
        watch=["path.reads", "path.scatter"],
    )
    for item, (*fields, units) in zip(payloads["path.columns"], reference.columns, strict=True):
        assert [item[name] for name in NAMES] == fields
        assert list(item.units)[: len(units)] == units
    loads = [(int(w.register), int(w.group), int(w.lanes), list(w.data)) for w in payloads["path.loads"]]
    assert loads == reference.loads
    # Each load ends when as many words have been taken as precede its end.
    assert (ends, counts["filled"]) == (reference.loads_done, reference.filled)


@pytest.mark.parametrize(("params", "pace"), [(PARAMS, 1), (HALF, 2)], ids=["eight", "four"])
@pytest.mark.parametrize(("kind", "latencies"), [(AccessKind.COLUMNS, (4, 5)), (AccessKind.PICK, (2, 5))])
def test_latency_and_rate(kind, latencies, params, pace):
    lanes = [{"enable": 1, "chunk": lane ^ 5, "byte": 8, "keep": 0xFF} for lane in range(8)]
    count, first = 16, latencies[pace - 1]
    accesses = [access(kind, lanes, on=0xFF)] * count
    dut = elaborated(OnSharedMemory, params)
    _, cycles = transact(dut, {"path.accesses": accesses}, {"path.columns": count})
    # Some wait in queues before they come every second cycle.
    sent = cycles["path.accesses"]
    assert sent == list(range(count)) if pace == 1 else sent[-1] <= 2 * count
    assert cycles["path.columns"] == list(range(first, first + pace * count, pace))


def test_blocks_are_filled_and_picked_without_a_bubble():
    """mm8, kb = 1: an octet holds sixteen columns, two items of eight; three accesses, three cycles."""
    dut, counts, count = elaborated(OnSharedMemory, PARAMS), Counter(), 12
    rows = [{"enable": 1, "chunk": 8 * row + row, "byte": 0, "keep": 0} for row in range(8)]
    accesses = [
        item
        for block in range(count)
        for item in (
            access(AccessKind.FILL, rows, slot=block % 2),
            *(access(AccessKind.PICK, [OFF] * 8, slot=block % 2, place=8 * part, on=0xFF) for part in range(2)),
        )
    ]
    _, cycles = transact(
        dut,
        send={"path.accesses": accesses},
        receive={"path.columns": 2 * count},
        background=[counting(counts, filled=dut.path.line_fill)],
    )
    assert cycles["path.accesses"] == list(range(3 * count))
    assert cycles["path.columns"] == [5 + 3 * block + part for block in range(count) for part in range(2)]
    assert counts["filled"] == 8 * count


@pytest.mark.parametrize(("swizzled", "conflicts"), [(True, 0), (False, 7)], ids=["swizzle 128", "no swizzle"])
def test_conflicts_of_stores(swizzled, conflicts):
    """Eight rows of 128 bytes: a chunk of each is in a bank of its own, or all in one."""
    dut, counts, chunks = elaborated(OnSharedMemory, PARAMS), Counter(), 8
    accesses = []
    for word in range(4 * chunks):
        lanes = [
            {"enable": 1, "chunk": 8 * row + (word // 4 ^ row * swizzled), "byte": word % 4 * 4, "keep": 0xF}
            for row in range(8)
        ]
        accesses.append(access(AccessKind.STORE, lanes, data=[word] * 8, last=word == 4 * chunks - 1))

    async def drive(ctx):
        cycles = await send(ctx, dut.path.accesses, accesses)
        assert cycles[-1] == (5 + conflicts) * (chunks - 1) + 3
        await ctx.tick().until(dut.path.stores_idle)
        assert contents(ctx, dut)[:16] == b"".join(word.to_bytes(4, "little") for word in range(4))

    simulate(dut, drive, background=[counting(counts, conflicts=dut.memory.scatter_conflict_stb)])
    assert counts["conflicts"] == conflicts * chunks
