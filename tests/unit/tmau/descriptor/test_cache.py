"""The descriptor cache: hits, misses, prefetch, refusals, invalidation; latency and rate; and its memories."""

import random

import pytest

from support.streams import transact
from support.tmau_neighbours import FedCache
from tilewright.golden import TensorMap
from tilewright.hw.tmau.descriptor.cache import DescriptorStore
from tilewright.hw.tmau.descriptor.layouts import CheckedLayout, ListedLayout
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.spec import COMMAND_FIELD, DESCRIPTOR, FORMATS, TENSOR_OPCODES, Error, Opcode
from tilewright.spec.cluster import ClusterError
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import STALL_MODES, receive, send, watch_stream

SEED = 20261122
PARAMS = TMAU_PRESETS["default"]
CHECKED, LISTED = CheckedLayout(PARAMS), ListedLayout(PARAMS)


def random_const(rng, layout):
    return layout.from_bits(rng.getrandbits(layout.size))


def test_pieces():
    dut = elaborated(DescriptorStore, PARAMS)
    rng = random.Random(SEED)
    places = range(PARAMS.cache_entries)
    model = [CHECKED.from_bits(0) for _ in places]
    lists = [[dict.fromkeys(LISTED.members, 0) for _ in range(5)] for _ in places]

    async def run(ctx):
        expected, dimension, shown = None, None, None
        for _ in range(600):
            # What is shown is not written.
            place = rng.choice([place for place in places if place != shown])
            new, listed = random_const(rng, CHECKED), random_const(rng, LISTED)
            axis, row, number = (rng.randrange(5) for _ in range(3))
            axis_stb, row_stb, look = (rng.random() < 0.5 for _ in range(3))
            write, read, read_place = rng.random() < 0.3, rng.random() < 0.3, rng.choice(places)
            ctx.set(dut.place, place)
            ctx.set(dut.i, new)
            ctx.set(dut.write, write)
            derived = {"listed": listed, "axis_stb": axis_stb, "axis": axis, "row_stb": row_stb, "row": row}
            ctx.set(dut.lists, derived)
            ctx.set(dut.read, read)
            ctx.set(dut.read_place, read_place)
            ctx.set(dut.dimensions.look, look)
            ctx.set(dut.dimensions.number, number)
            await ctx.tick()
            if read:
                shown, expected, dimension = read_place, model[read_place], dict(lists[read_place][0])
            elif look and shown is not None:
                dimension = dict(lists[shown][number])
            model[place] = new if write else model[place]
            for names, strobe, written in ((LISTED.AXIS, axis_stb, axis), (LISTED.ROW, row_stb, row)):
                lists[place][written].update({name: listed[name] for name in names if strobe})
            if expected is not None:
                assert ctx.get(dut.o) == expected, "it holds until the next read"
                assert ctx.get(dut.shown) == shown
                found = ctx.get(dut.dimensions.listed)
                assert {name: found[name] for name in dimension} == dimension

    print(f"seed {SEED}")
    simulate(dut, run)


CACHE_SEED = 20261121
CACHE_PARAMS = TMAU_PRESETS["unit"]  # two entries
BEATS = DESCRIPTOR.bits // CACHE_PARAMS.bus_width


def descriptor(number):
    """A descriptor that can be told by its address field."""
    return TensorMap(element="u8", size=(64, 8), stride=(64,), box=(16, 4), address=16 * number)


def beats(word, error=0):
    """The bus words of a descriptor."""
    parts = [word >> i * CACHE_PARAMS.bus_width & (1 << CACHE_PARAMS.bus_width) - 1 for i in range(BEATS)]
    return [{"data": part, "error": error, "last": i == BEATS - 1} for i, part in enumerate(parts)]


class Descriptors:
    """A memory that answers fetches, one beat a cycle after ``latency`` cycles."""

    def __init__(self, dut, latency=5):
        self.dut, self.latency = dut, latency
        self.words = {64 * n: int.from_bytes(descriptor(n).pack(), "little") for n in range(16)}
        self.failing = set()
        self.fetched = []

    async def serve(self, ctx):
        while True:
            ctx.set(self.dut.fetch.ready, 1)
            valid = False
            while not valid:
                _, _, valid, address = await ctx.tick().sample(self.dut.fetch.valid, self.dut.fetch.payload)
            ctx.set(self.dut.fetch.ready, 0)
            self.fetched.append(address)
            for _ in range(self.latency - 1):
                await ctx.tick()
            await send(ctx, self.dut.words, beats(self.words[address], address in self.failing))


def load(number, **fields):
    return {"opcode": Opcode.LOAD, "descriptor": 64 * number, **fields}


async def run_commands(ctx, dut, commands):
    """Sends commands one by one; the answer to each."""
    answers = []
    for command in commands:
        await send(ctx, dut.i, [command])
        (answer,), _ = await receive(ctx, dut.o, 1)
        answers.append(answer)
    return answers


@pytest.mark.parametrize("mode", STALL_MODES)
def test_every_command_meets_its_descriptor(mode):
    dut, rng, counted = elaborated(FedCache, CACHE_PARAMS), random.Random(CACHE_SEED), [0, 0]
    memory = Descriptors(dut)
    numbers = [rng.choice([0, 1, 1, 2, rng.randint(0, 15)]) for _ in range(100)]
    commands = [load(n, tag=i, opcode=rng.choice(TENSOR_OPCODES)) for i, n in enumerate(numbers)]

    async def count(ctx):
        async for _, _, hit, miss in ctx.tick().sample(dut.hit_stb, dut.miss_stb):
            counted[0] += hit
            counted[1] += miss

    background = [memory.serve, count, watch_stream(dut.fetch)]
    came, _ = transact(dut, {"i": commands}, {"o": 100}, mode, background=background)
    for tag, (number, answer) in enumerate(zip(numbers, came["o"], strict=True)):
        assert (answer.command.tag, answer.fault.code) == (tag, Error.NONE)
        assert answer.checked.address == 16 * number
    assert counted == [len(numbers) - len(memory.fetched), len(memory.fetched)]


def test_hits_leave_every_second_cycle_with_latency_one():
    dut = elaborated(FedCache, CACHE_PARAMS)
    memory = Descriptors(dut)

    async def run(ctx):
        await run_commands(ctx, dut, [load(3)])
        ctx.set(dut.o.ready, 1)
        ctx.set(dut.i.payload, load(3))
        ctx.set(dut.i.valid, 1)
        await ctx.tick()
        for cycle in range(20):
            assert ctx.get(dut.i.ready) == cycle % 2 and ctx.get(dut.o.valid) == cycle % 2
            await ctx.tick()

    simulate(dut, run, background=[memory.serve])
    assert memory.fetched == [3 * 64]


def test_miss_asks_in_the_next_cycle_and_leaves_twenty_one_cycles_after_the_last_word():
    dut = elaborated(FedCache, CACHE_PARAMS)

    async def run(ctx):
        await send(ctx, dut.i, [load(1)])
        ctx.set(dut.fetch.ready, 1)
        assert not ctx.get(dut.fetch.valid)
        await ctx.tick()
        assert ctx.get(dut.fetch.valid) and ctx.get(dut.fetch.payload) == 64
        await ctx.tick()
        await send(ctx, dut.words, beats(int.from_bytes(descriptor(1).pack(), "little")))
        for _ in range(20):
            assert not ctx.get(dut.o.valid)
            await ctx.tick()
        # `send` returns one cycle after the last word's handshake.
        assert ctx.get(dut.o.valid) and ctx.get(dut.o.payload.checked.address) == 16

    simulate(dut, run)


def test_next_descriptor_is_fetched_while_a_command_waits():
    dut = elaborated(FedCache, CACHE_PARAMS)
    memory = Descriptors(dut)

    async def run(ctx):
        sent = [load(1, tag=1), load(2, tag=2)]
        await send(ctx, dut.i, sent)
        await ctx.tick().repeat(60)
        assert memory.fetched == [64, 128], "the second one is fetched though the first command is not taken"
        assert ctx.get(dut.o.payload.command.tag) == 1
        answers, cycles = await receive(ctx, dut.o, 2)
        assert [answer.checked.address for answer in answers] == [16, 32]
        assert cycles == [0, 2]

    simulate(dut, run, background=[memory.serve])


def outcome(commands, *, prepare=None, inputs=(), params=CACHE_PARAMS):
    """Faults of commands that are sent one by one, and the addresses that were fetched. ``prepare`` changes memory."""
    dut, faults = elaborated(FedCache, params), []
    memory = Descriptors(dut)
    if prepare:
        prepare(memory)

    async def run(ctx):
        for name, value in dict(inputs).items():
            ctx.set(getattr(dut, name), value)
        for answer in await run_commands(ctx, dut, commands):
            faults.append((answer.fault.code, answer.fault.field))

    simulate(dut, run, background=[memory.serve])
    return faults, memory.fetched


def field_of(opcode, name):
    return COMMAND_FIELD + FORMATS[opcode].index(name)


NO_FAULT = (Error.NONE, 0)
WINDOW = (Error.WINDOW, field_of(Opcode.LOAD, "descriptor"))
CONFINED = {"windows": {"confine_global": 1, "global_first": 1, "global_last": 2}}


@pytest.mark.parametrize(
    ("opcode", "number", "again"),
    [(Opcode.INVALIDATE, 1, [64]), (Opcode.INVALIDATE_ALL, 9, [64, 128]), (Opcode.INVALIDATE, 9, [])],
)
def test_invalidation(opcode, number, again):
    loads = [load(1), load(2)]
    faults, fetched = outcome([*loads, {"opcode": opcode, "descriptor": 64 * number}, *loads])
    assert (faults, fetched) == ([NO_FAULT] * 5, [64, 128, *again])


# From the last descriptor before the window to the first behind it; the last two are in the window in part or not at
# all, and above the address space.
WINDOW_CASES = [
    (4096 - 64, False),
    (4096, True),
    (3 * 4096 - 128, True),
    (3 * 4096 - 64, False),
    (3 * 4096, False),
    ((1 << 32) + 4096, False),
]


@pytest.mark.parametrize("opcode", [Opcode.STORE, Opcode.INVALIDATE])
@pytest.mark.parametrize("confined", [0, 1])
def test_descriptors_lie_in_the_window(opcode, confined):
    def prepare(memory):
        memory.words |= {address % (1 << 32): memory.words[0] for address, _ in WINDOW_CASES}

    commands = [{"opcode": opcode, "descriptor": address} for address, _ in WINDOW_CASES]
    faults, fetched = outcome(commands, prepare=prepare, inputs=CONFINED if confined else {})
    passes = [inside or not confined or opcode == Opcode.INVALIDATE for _, inside in WINDOW_CASES]
    assert faults == [NO_FAULT if passed else WINDOW for passed in passes]
    assert not confined or all(4096 <= address <= 3 * 4096 - 128 for address in fetched)


def test_a_cached_descriptor_outside_the_window_is_refused():
    dut = elaborated(FedCache, CACHE_PARAMS)
    memory = Descriptors(dut)

    async def run(ctx):
        await run_commands(ctx, dut, [load(1)])
        ctx.set(dut.windows, CONFINED["windows"])
        (answer,) = await run_commands(ctx, dut, [load(1)])
        assert answer.fault.code == Error.WINDOW

    simulate(dut, run, background=[memory.serve])


@pytest.mark.parametrize("stopped", [0, 1])
def test_a_stopped_core_refuses_every_command(stopped):
    commands = [load(1), {"opcode": Opcode.COPY_BLOCK}, {"opcode": 15}]
    faults, fetched = outcome(commands, inputs={"stopped": stopped}, params=CACHE_PARAMS.replace(cores=2))
    codes = [ClusterError.STOPPED] * 3 if stopped else [Error.NONE, Error.NONE, Error.OPCODE]
    assert ([code for code, _ in faults], fetched) == (codes, [64] * (not stopped))
