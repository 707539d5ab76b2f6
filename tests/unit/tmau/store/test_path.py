"""The store path: random transfers against an image of bytes; ends, errors, strobes; rate."""

import random

import numpy as np
import pytest

from support.selection import cases
from tilewright.golden.smem import swizzle
from tilewright.hw.smem.params import SmemParams
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.hw.tmau.store.path import StorePath
from tilewright.spec import Swizzle
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import STALL_MODES, receive, send, set_together, watch_stream

SEED = 17
SMEM = 4096
MEMORY = 1 << 16
SHARED = np.random.default_rng(SEED).integers(0, 256, SMEM, dtype=np.uint8)
TRANSFERS = 28
KINDS = ("shared", "shared", "shared", "immediate", "stage", "loop")


def make_params(bus_bytes):
    return TMAU_PRESETS["unit"].replace(
        addr_width=16, bus_bytes=bus_bytes, max_burst=4, max_outstanding=8, commands_in_flight=4, smem=SmemParams(SMEM)
    )


class Model:
    """What transfers do, byte by byte, and what the ports of the store path see of it."""

    def __init__(self, bus_bytes):
        self.bus_bytes = bus_bytes
        self.memory = np.zeros(MEMORY, np.uint8)
        self.looped = []  # bytes and number of words of each loop transfer
        self.staged = []
        self.refused = set()  # pages in which a write is answered with an error
        self.completions = []
        self.count = 0
        self.passed_on = None  # error of the quiet transfers so far

    def source(self, transfer, offset, count, address):
        """Bytes of a run, ``offset`` bytes after the start of the transfer."""
        if transfer["immediate"]:
            fill = np.frombuffer(transfer["fill"].to_bytes(8, "little"), np.uint8)
            return fill[(address + np.arange(count)) % 8]
        if transfer["stage"]:
            return SHARED[offset : offset + count]
        return SHARED[swizzle(transfer["smem"] + offset + np.arange(count), Swizzle(transfer["swizzle"]))]

    def add(self, transfer, runs, bad=None):
        """Makes a transfer; from staged segment ``bad`` on, nothing is written."""
        offset, start, count = 0, transfer["data_start"], transfer["data_end"] - transfer["data_start"]
        error = None
        for run in runs:
            if run["inside"]:
                data = self.source(transfer, offset + start, count, run["address"])
                if transfer["loop"]:
                    self.looped.append(data)
                else:
                    refused = self.write(run["address"], data, bad)
                    error = error or refused
            offset += transfer["run_bytes"] + (transfer["gap"] if run["skip"] else 0)
        if transfer["stage"]:
            self.stage(count, bad)
            error = (0, 0x5550 + bad) if bad is not None else error
        self.count += 1
        if not transfer["loop"]:
            # The first one, but those of reading before those of writing.
            self.passed_on = min(filter(None, (self.passed_on, error)), key=lambda error: error[0], default=None)
            if not transfer["quiet"]:
                self.completions.append((transfer["tag"], transfer["bytes"], self.passed_on))
                self.passed_on = None

    def write(self, address, data, bad):
        """Writes bytes; the first burst that is refused, if one is."""
        for index, byte in enumerate(data):
            # A word that has a byte of a bad segment is not written at all.
            end_of_word = min(
                (address + index) // self.bus_bytes * self.bus_bytes + self.bus_bytes - address, len(data)
            )
            if bad is None or (end_of_word - 1) // self.bus_bytes < bad:
                self.memory[(address + index) % MEMORY] = byte
        page = next(
            (p for p in range(address >> 12, (address + len(data) - 1 >> 12) + 1) if p % 16 in self.refused), None
        )
        if page is None:
            return None
        return (1, max(address // self.bus_bytes * self.bus_bytes, page << 12) % MEMORY)

    def stage(self, count, bad):
        for number in range(-(-count // self.bus_bytes)):
            segment = SHARED[self.bus_bytes * number : self.bus_bytes * (number + 1)]
            error = bad is not None and number >= bad
            self.staged.append(
                {
                    "data": int.from_bytes(segment.tobytes(), "little"),
                    "error": int(error),
                    "address": 0x5550 + bad if error else number,
                }
            )


def random_transfer(rng, tag, kind):
    """A transfer and its runs."""
    plain = kind in ("stage", "loop")
    number = 1 if plain else rng.randrange(1, 6)
    run_bytes = rng.randrange(1, 300)
    data_start = rng.choice([0, rng.randrange(run_bytes)])
    data_end = rng.choice([run_bytes, rng.randrange(data_start + 1, run_bytes + 1)])
    if plain:
        data_start, data_end = 0, run_bytes
    transfer = {
        "tag": tag,
        "bytes": run_bytes,
        "quiet": rng.random() < 0.3,
        "smem": 0 if kind in ("stage", "immediate") else 128 * rng.randrange(8) + rng.choice([0, rng.randrange(128)]),
        "run_bytes": run_bytes,
        "data_start": data_start,
        "data_end": data_end,
        "gap": rng.choice([0, rng.randrange(256)]),
        "swizzle": 0 if plain else rng.randrange(4),
        "fill": rng.getrandbits(64),
        "immediate": int(kind == "immediate"),
        "loop": int(kind == "loop"),
        "stage": int(kind == "stage"),
        "reduction": rng.randrange(10),
        "element": rng.randrange(10),
    }
    runs = [
        {
            "address": 0 if kind == "loop" else rng.randrange(MEMORY),
            "inside": int(plain or rng.random() < 0.75),
            "skip": rng.randrange(2),
            "last": int(index == number - 1),
        }
        for index in range(number)
    ]
    return transfer, runs


class Bus:
    """Memory behind the streams of the store path."""

    def __init__(self, dut, model, transfers, *, stall=0.0):
        self.dut, self.model, self.stall = dut, model, stall
        self.bus_bytes = model.bus_bytes
        self.memory = np.zeros(MEMORY, np.uint8)
        self.expected_kinds = iter([(t["reduction"], t["element"]) for t in transfers if not t["loop"]])
        self.bursts, self.words, self.responses, self.looped = [], [], [], []
        self.word_cycles, self.fetched = [], []
        self.cycle = 0

    async def clock(self, ctx):
        async for _ in ctx.tick():
            self.cycle += 1

    async def shared_memory(self, ctx):
        """Lines, in the cycle after their fetch and only then."""
        rng, rows = random.Random(SEED), self.dut.fetch.rows
        ctx.set(rows.ready, rng.random() >= self.stall)
        async for _, _, valid, ready, row in ctx.tick().sample(rows.valid, rows.ready, rows.payload):
            line = rng.getrandbits(1024)
            if valid and ready:
                self.fetched.append(row)
                line = int.from_bytes(SHARED[128 * row : 128 * row + 128].tobytes(), "little")
            set_together(ctx, (self.dut.fetch.line, line), (rows.ready, rng.random() >= self.stall))

    async def take_bursts(self, ctx):
        kind = next(self.expected_kinds, None)
        while True:
            (burst,), _ = await receive(ctx, self.dut.writes.bursts, 1, stall=self.stall, seed=len(self.bursts))
            assert (burst.reduction, burst.element) == kind
            if burst.last:
                kind = next(self.expected_kinds, None)
            assert not burst.empty or burst.last
            self.bursts.append(burst)

    async def take_words(self, ctx):
        while True:
            (word,), _ = await receive(ctx, self.dut.writes.words, 1, stall=self.stall, seed=len(self.words))
            self.words.append(word)
            self.word_cycles.append(self.cycle)

    async def take_loop(self, ctx):
        while True:
            (word,), _ = await receive(ctx, self.dut.loop, 1, stall=self.stall, seed=len(self.looped))
            assert not word.error
            self.looped.append(word.data)

    async def respond(self, ctx):
        """Writes the words of each burst, and answers it."""
        bursts = words = 0
        while True:
            count = (
                0
                if len(self.bursts) == bursts or self.bursts[bursts].empty
                else self.bursts[bursts].beats_minus_one + 1
            )
            if len(self.bursts) == bursts or len(self.words) < words + count:
                await ctx.tick()
                continue
            burst = self.bursts[bursts]
            address = burst.word * self.bus_bytes
            assert burst.empty or address >> 12 == address + count * self.bus_bytes - 1 >> 12
            for index, word in enumerate(self.words[words : words + count]):
                for byte in range(self.bus_bytes):
                    if word.strobe >> byte & 1:
                        place = (address + self.bus_bytes * index + byte) % MEMORY
                        self.memory[place] = word.data >> 8 * byte & 0xFF
            error = not burst.empty and address >> 12 in self.model.refused
            bursts, words = bursts + 1, words + count
            response = {"error": int(error), "last": burst.last, "address": address}
            await send(ctx, self.dut.writes.responses, [response], idle=self.stall, seed=bursts)


def simulate_transfers(dut, model, transfers, runs, mode="none"):
    """Runs all; returns the bus and the completions that came."""
    idle, stall = STALL_MODES[mode]["idle"], STALL_MODES[mode]["stall"]
    bus = Bus(dut, model, transfers, stall=stall)
    strobes = {"read": 0, "done": 0}
    completions = []

    def source(port, items, seed, idle=idle):
        async def drive(ctx):
            await send(ctx, port, items, idle=idle, seed=seed)

        return drive

    async def count_strobes(ctx):
        async for _, _, read, done in ctx.tick().sample(dut.read_stb, dut.done_stb):
            strobes["read"] += read
            strobes["done"] += done
            assert strobes["done"] <= strobes["read"]

    async def take_completions(ctx):
        taken, _ = await receive(ctx, dut.completions, len(model.completions), stall=stall, seed=SEED)
        completions.extend(taken)
        while strobes["done"] < model.count:
            await ctx.tick()
        await ctx.tick().repeat(10)

    outputs = (dut.fetch.rows, dut.writes.bursts, dut.writes.words, dut.loop, dut.completions)
    simulate(
        dut,
        source(dut.transfers, transfers, SEED),
        source(dut.runs, runs, SEED + 1),
        source(dut.staged, model.staged, SEED + 2, idle=0.0),  # never late: all of a transfer are there before it
        take_completions,
        background=[
            *(bus.shared_memory, bus.take_bursts, bus.take_words, bus.take_loop, bus.respond, bus.clock, count_strobes),
            *map(watch_stream, outputs),
        ],
        deadline=60_000,
    )
    assert strobes == {"read": model.count, "done": model.count}
    for came, (tag, count, error) in zip(completions, model.completions, strict=True):
        assert (came.tag, came.bytes, came.signal, came.error) == (tag, count, 0, error is not None)
        if error:
            assert (came.write, came.address) == error
    return bus


def check_looped(bus, model):
    position = 0
    for data in model.looped:
        count = -(-len(data) // bus.bus_bytes)
        words = bus.looped[position : position + count]
        came = b"".join(word.to_bytes(bus.bus_bytes, "little") for word in words)
        assert came[: len(data)] == data.tobytes()
        position += count
    assert position == len(bus.looped)


@cases("bus_bytes, mode", [(16, "stall"), (16, "both"), (64, "none"), (64, "idle")], [(64, "both")])
def test_random_transfers(bus_bytes, mode):
    rng = random.Random(SEED)
    dut, model = elaborated(StorePath, make_params(bus_bytes)), Model(bus_bytes)
    model.refused = {3, 9, 15}
    transfers, runs = [], []
    for tag in range(TRANSFERS):
        kind = rng.choice(KINDS)
        transfer, its_runs = random_transfer(rng, tag, kind)
        segments = -(-transfer["run_bytes"] // bus_bytes)
        bad = rng.randrange(segments) if kind == "stage" and rng.random() < 0.4 else None
        model.add(transfer, its_runs, bad)
        transfers.append(transfer)
        runs += its_runs
    # Errors of quiet transfers go on to the next one, so the last must not be quiet.
    transfer, its_runs = random_transfer(rng, 99, "shared")
    transfer["quiet"] = 0
    model.add(transfer, its_runs)
    bus = simulate_transfers(dut, model, [*transfers, transfer], [*runs, *its_runs], mode)
    np.testing.assert_array_equal(bus.memory, model.memory)
    check_looped(bus, model)
    assert len(bus.words) == sum(0 if b.empty else b.beats_minus_one + 1 for b in bus.bursts)
    errors = {error and error[0] for _, _, error in model.completions}
    assert errors == {None, 0, 1}


def plain_transfer(count, **changes):
    """A transfer of ``count`` bytes, one run unless ``changes`` say otherwise."""
    transfer = dict.fromkeys(("quiet", "smem", "data_start", "gap", "swizzle", "fill", "immediate", "loop", "stage"), 0)
    transfer |= {"tag": 1, "bytes": count, "run_bytes": count, "data_end": count, "reduction": 0, "element": 0}
    return transfer | changes


def cycles_of(bus_bytes, *stores):
    """Makes transfers, with runs to addresses; returns the bus and the cycles from the first word to the last."""
    dut, model = elaborated(StorePath, make_params(bus_bytes)), Model(bus_bytes)
    all_runs = []
    for transfer, addresses in stores:
        runs = [{"address": address, "inside": 1, "skip": 1, "last": 0} for address in addresses]
        runs[-1]["last"] = 1
        model.add(transfer, runs)
        all_runs += runs
    bus = simulate_transfers(dut, model, [transfer for transfer, _ in stores], all_runs)
    np.testing.assert_array_equal(bus.memory, model.memory)
    return bus, bus.word_cycles[-1] - bus.word_cycles[0] + 1


@pytest.mark.parametrize(("bus_bytes", "rows"), [(16, [16, 64, 80]), (64, [64, 80])])
def test_rate(bus_bytes, rows):
    """One word a cycle, whatever the alignment, from transfer to transfer; in each a segment, or line, is read once."""
    stores, words, fetched = [], 0, []
    for row in rows:
        transfer = plain_transfer(512, smem=1024, run_bytes=row, data_end=row)
        for shift in (0, 1, 13, 63):
            addresses = range(256 + shift, 256 + shift + 512 - row + 1, row)
            stores.append((transfer, addresses))
            words += sum((address + row - 1) // bus_bytes - address // bus_bytes + 1 for address in addresses)
            lines = [8 + bus_bytes * n // 128 for n in range(-(-len(addresses) * row // bus_bytes))]
            fetched += lines if bus_bytes == 16 else dict.fromkeys(lines)
    bus, cycles = cycles_of(bus_bytes, *stores)
    assert len(bus.words) == cycles == words
    assert bus.fetched == fetched


def test_rate_of_swizzled_rows():
    """Rows of 64 bytes in lines of their own: one fetch and one word a cycle."""
    transfer = plain_transfer(1024, run_bytes=64, data_end=64, gap=64, swizzle=int(Swizzle.B128))
    bus, cycles = cycles_of(64, (transfer, range(0, 16 * 192, 192)))
    assert (len(bus.fetched), cycles) == (16, 16)


def test_rate_of_staged_segments():
    _, cycles = cycles_of(64, (plain_transfer(2048, stage=1), [4096]))
    assert cycles == 32


def test_a_run_whose_first_word_takes_two_new_segments_waits_for_one():
    """Sixteen runs of one word in the middle of 208 bytes; of those that straddle segments, each takes a cycle more."""
    transfer = plain_transfer(3328, run_bytes=208, data_start=112, data_end=176)
    bus, cycles = cycles_of(64, (transfer, range(0, 16 * 64, 64)))
    straddling = sum((208 * n + 112) % 64 > 0 for n in range(16))
    assert straddling == 12
    assert cycles == 16 + straddling - 1  # the first word's segment was taken before the first word came
    crossing = sum((208 * n + 112) % 128 > 64 for n in range(16))
    assert len(bus.fetched) == 16 + crossing
