"""From rows and words to shared memory, against a byte-by-byte model: random transfers in every stall mode; rates."""

import random
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest
from amaranth.hdl import Value

from support.selection import cases
from support.shared_memory import line_bits
from tilewright.hw.smem.params import SmemParams
from tilewright.hw.tmau.load.path import LoadPath
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.spec import Reduction
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import STALL_MODES, receive, send, unpacker, watch_stream

SEED = 20260
buses = cases("bus_bytes", [16], [32, 64])


def unit_params(bus_bytes):
    return TMAU_PRESETS["unit"].replace(bus_bytes=bus_bytes)


def deep_params(bus_bytes):
    """Queues so deep that the test's own drivers never wait."""
    sizes = {"max_outstanding": 256, "commands_in_flight": 32, "smem": SmemParams(16384)}
    return TMAU_PRESETS["unit"].replace(bus_bytes=bus_bytes, **sizes)


def tf32(value):
    """Of the raw bits of a float, by division: the nearest multiple of 2^13, the even one in the middle."""
    sign, magnitude = value & 1 << 31, value & (1 << 31) - 1
    if magnitude > 0x7F800000:
        return 0x7FFFE000
    quotient, rest = divmod(magnitude, 1 << 13)
    if 2 * rest > 1 << 13 or (2 * rest == 1 << 13 and quotient % 2):
        quotient += 1
    return sign | quotient << 13


def swizzled(address, swizzle):
    """docs/tmau.md, "Swizzle"."""
    chunks = (0, 32, 64, 128)[swizzle] // 16
    return address ^ ((address >> 7) % chunks) * 16 if swizzle else address


@dataclass
class Traffic:
    """What goes into the load path, and what must come out."""

    params: object
    transfers: list = field(default_factory=list)
    rows: list = field(default_factory=list)
    words: list = field(default_factory=list)
    loop: list = field(default_factory=list)
    # (row, {byte in the line: value}, None), or of staged words: (None, {byte in the word: value}, members beside it)
    lines: list = field(default_factory=list)
    completions: list = field(default_factory=list)
    last_lines: list = field(default_factory=list)  # index in lines of the last one of each completion
    errors: list = field(default_factory=list)  # addresses that transfers still to come answer for

    def add(self, rng, transfer, rows, *, error_rate=0.0):
        """Adds one transfer; ``rows`` are dictionaries of ``inside``, ``offset``, ``shared`` and ``skip``."""
        bus = self.params.bus_bytes
        memory, words, start = {}, [], transfer["smem"]
        for number, row in enumerate(rows):
            self.rows.append(row | {"last": number == len(rows) - 1})
            fill = transfer["fill"].to_bytes(4, "little")
            run = [fill[(start + k) % 4] for k in range(transfer["run_bytes"])]
            if row["inside"]:
                first, end = transfer["data_start"], transfer["data_end"]
                count = -(-(row["offset"] + end - first) // bus)
                taken = words[-1:] if row["shared"] else []
                while len(taken) < count:
                    taken.append(self._word(rng, error_rate))
                    words.append(taken[-1])
                source = b"".join(word["data"].to_bytes(bus, "little") for word in taken)[row["offset"] :]
                run[first:end] = self._rounded(source[: end - first], transfer["tf32"])
            memory |= {start + k: byte for k, byte in enumerate(run)}
            start += transfer["run_bytes"] + transfer["gap"] * row["skip"]
        self.transfers.append(transfer | {"bytes": len(memory)})
        (self.loop if transfer["loop"] else self.words).extend(words)
        self._expect(transfer, memory, [word["address"] for word in words if word["error"]])

    def _word(self, rng, error_rate):
        # Floats near the ends of their range are more frequent than chance has them.
        data = rng.getrandbits(self.params.bus_width)
        for lane in range(0, self.params.bus_width, 32):
            if rng.random() < 0.2:
                data |= rng.choice([0x7F800000, 0x7F7FF000, 0x7FFFFFFF]) << lane
            if rng.random() < 0.3:
                data &= ~(rng.choice([0xFFF, 0x1FFF, 0x7FFFFF]) << lane)
        return {"data": data, "error": rng.random() < error_rate, "address": rng.getrandbits(self.params.addr_width)}

    @staticmethod
    def _rounded(source, is_tf32):
        if not is_tf32:
            return source
        lanes = (int.from_bytes(source[k : k + 4], "little") for k in range(0, len(source), 4))
        return b"".join(tf32(lane).to_bytes(4, "little") for lane in lanes)

    def _expect(self, transfer, memory, errors):
        size = self.params.bus_bytes if transfer["stage"] else 128
        for row in sorted({address // size for address in memory}):
            line = {swizzled(a, transfer["swizzle"]) - size * row: b for a, b in memory.items() if a // size == row}
            self.lines.append((None, line, {}) if transfer["stage"] else (row, line, None))
        self.errors += errors
        # The last word tells the store path of all errors.
        last = {"error": bool(self.errors)} | ({"address": self.errors[0]} if self.errors else {})
        if transfer["stage"]:
            self.lines[-1][2].update(last)
        if not transfer["quiet"]:
            self.last_lines.append(len(self.lines) - 1)
            expected = {name: transfer[name] for name in ("tag", "signal", "barrier")}
            self.completions.append(expected | {"bytes": len(memory)} | last)
        if transfer["stage"] or not transfer["quiet"]:
            self.errors = []


def simple_transfer(**members):
    """Run after run without gaps, swizzle or rounding; ``members`` replace what they name."""
    defaults = {
        "tag": 1,
        "signal": 1,
        "barrier": 8,
        "smem": 0,
        "data_start": 0,
        "data_end": members["run_bytes"],
        "gap": 0,
        "swizzle": 0,
        "fill": 0x04030201,
        "tf32": 0,
        "quiet": 0,
        "loop": 0,
        "stage": 0,
        "reduction": 0,
        "element": 0,
    }
    return defaults | members


def random_traffic(params, count, seed):
    rng = random.Random(seed)
    traffic = Traffic(params)
    for tag in range(count):
        is_tf32, quiet = rng.random() < 0.3, rng.random() < 0.3
        grain = 4 if is_tf32 else rng.choice([1, 2, 8, 16])
        length = grain * rng.choice(
            [1, 1, 2, 3, 5, 9, rng.randint(1, 640 // grain), 16 * rng.randint(1, 40 // grain + 1)]
        )
        gap = grain * rng.choice([0, 0, 0, 1, rng.randint(0, 127 // grain)])
        runs = rng.randint(1, max(1, min(40, 1200 // (length + gap))))
        cuts = sorted(rng.sample(range(0, length + 1, grain), 2))
        space = params.smem.size_bytes - runs * (length + gap)
        transfer = {
            "tag": tag,
            "quiet": quiet,
            "signal": rng.getrandbits(1),
            "barrier": 8 * rng.randrange(params.smem.size_bytes // 8),
            "smem": rng.choice([128 * rng.randint(0, space // 128), grain * rng.randint(0, space // grain)]),
            "run_bytes": length,
            "data_start": rng.choice([0, cuts[0]]),
            "data_end": rng.choice([length, cuts[1]]),
            "gap": gap,
            "swizzle": rng.randrange(4),
            "fill": rng.getrandbits(32),
            "tf32": is_tf32,
            "loop": rng.random() < 0.2,
            "stage": quiet and not traffic.errors and rng.random() < 0.5,
            "reduction": Reduction.NONE,
            "element": rng.randrange(15),
        }
        if transfer["stage"]:
            runs = 1
            transfer |= dict.fromkeys(("smem", "data_start", "gap", "swizzle", "tf32"), 0) | {"data_end": length}
        inside_rate, share_rate = rng.choice([0, 0.5, 1, 1]), rng.choice([0, 0.5, 0.9])
        rows, started = [], False
        for _ in range(runs):
            inside = transfer["stage"] or rng.random() < inside_rate
            offset = rng.randrange(0, params.bus_bytes, min(grain, params.bus_bytes)) if inside else 0
            shared = inside and started and rng.random() < share_rate
            rows.append({"inside": inside, "offset": offset, "shared": shared, "skip": rng.random() < 0.8})
            started |= inside
        traffic.add(rng, transfer, rows, error_rate=rng.choice([0, 0, 0.2]))
    return traffic


def run(traffic, mode="none", *, hold_last_word=0, seed=SEED):
    """Runs the traffic, checks everything that comes out, and returns the cycles of all handshakes by port."""
    dut = elaborated(LoadPath, traffic.params)
    idle, stall = STALL_MODES[mode]["idle"], STALL_MODES[mode]["stall"]
    cycles, came = {"loop": []}, {}
    counts = {"staged": sum(row is None for row, _, _ in traffic.lines), "completions": len(traffic.completions)}

    def source(name, salt):
        async def drive(ctx):
            cycles[name] = await send(ctx, getattr(dut, name), getattr(traffic, name), idle=idle, seed=seed + salt)

        return drive

    async def words(ctx):
        count = len(traffic.words) - bool(hold_last_word)
        cycles["words"] = await send(ctx, dut.words, traffic.words[:count], idle=idle, seed=seed)
        if hold_last_word:
            await ctx.tick().repeat(hold_last_word)
            elapsed = (cycles["words"] or [-1])[-1] + 1 + hold_last_word
            cycles["words"] += [elapsed + c for c in await send(ctx, dut.words, traffic.words[count:])]

    def sink(name, salt):
        async def take(ctx):
            port = getattr(dut, name)
            came[name], cycles[name] = await receive(ctx, port, counts[name], stall=stall, seed=seed + salt)

        return take

    async def writes(ctx):
        """As many as it takes: they are cut as words lie."""
        write, rng, cycle = dut.writes, random.Random(seed + 3), 0
        left = sum(len(line) for _, line, members in traffic.lines if members is None)
        came["writes"], cycles["writes"] = [], []
        unpack = unpacker(write.payload.shape())
        ticks = aiter(ctx.tick().sample(write.valid & write.ready, Value.cast(write.payload)))
        while left > 0:
            ctx.set(write.ready, rng.random() >= stall)
            *_, done, bits = await anext(ticks)
            if done:
                line = unpack(bits)
                came["writes"].append(SimpleNamespace(row=line.row, data=line_bits(line.data), strobe=line.strobe))
                cycles["writes"].append(cycle)
                left -= line.strobe.bit_count()
            cycle += 1

    simulate(
        dut,
        *(writes, source("transfers", 1), source("rows", 2), words, source("loop", 5)),
        *(sink(name, salt) for salt, name in enumerate(counts, start=4)),
        background=[watch_stream(getattr(dut, name), name) for name in ("writes", *counts)],
        deadline=40_000,
    )
    check(traffic, came, cycles)
    return cycles


def check(traffic, came, cycles):
    ports = {name: zip(came[name], cycles[name], strict=True) for name in ("writes", "staged")}
    taken = []  # cycles of the last write of all lines, and of staged words, in order
    for row, line, members in traffic.lines:
        open_bytes = set(line)
        while open_bytes:
            payload, cycle = next(ports["writes" if members is None else "staged"])
            written = {k for k in line if members is not None or payload.strobe >> k & 1}
            assert {k: payload.data >> 8 * k & 255 for k in written} == {k: line[k] for k in written}
            assert written and written <= open_bytes, "a write without a byte, or a byte written twice"
            open_bytes -= written
            assert members is not None or (payload.row, payload.strobe) == (row, sum(1 << k for k in written))
            assert members is None or {name: payload[name] for name in members} == members
        taken.append(cycle)
    assert taken == sorted(taken)
    for completion, expected in zip(came["completions"], traffic.completions, strict=True):
        assert {name: completion[name] for name in expected} == expected
    for done, last in zip(cycles["completions"], traffic.last_lines, strict=True):
        assert done > taken[last], "complete before the last byte is written"
    for done, last in zip(cycles["completions"], traffic.last_lines[1:], strict=False):
        assert done <= taken[last], "two completions at a time"


def consecutive(cycles):
    return cycles == list(range(cycles[0], cycles[0] + len(cycles)))


@buses
@pytest.mark.parametrize("mode", STALL_MODES)
def test_random_transfers(bus_bytes, mode):
    seed = SEED + 10 * bus_bytes + list(STALL_MODES).index(mode)
    print(f"seed {seed}")
    run(random_traffic(unit_params(bus_bytes), 16, seed), mode, seed=seed)


def repeated(params, count, transfer, rows):
    traffic = Traffic(params)
    for _ in range(count):
        traffic.add(random.Random(SEED), transfer, rows)
    return traffic


INSIDE = {"inside": 1, "offset": 0, "shared": 0, "skip": 1}
OUTSIDE = INSIDE | {"inside": 0}


@buses
@cases("length, offset, runs", [(64, 0, 4), (256, 11, 1), (16, 0, 12)], [(1024, 5, 2), (80, 0, 8), (160, 0, 4)])
def test_a_word_a_cycle(bus_bytes, length, offset, runs):
    rows = [INSIDE | {"offset": offset}] * runs
    cycles = run(repeated(deep_params(bus_bytes), 6, simple_transfer(run_bytes=length), rows))
    # Where a transfer ends with a word that spans two lines, the second takes a cycle of its own; none here does.
    assert consecutive(cycles["words"])


@buses
@cases("swizzle", [3], [0, 1, 2])
def test_a_run_a_cycle_with_gaps(bus_bytes, swizzle):
    transfer = simple_transfer(run_bytes=16, gap=(0, 16, 48, 112)[swizzle], swizzle=swizzle)
    assert consecutive(run(repeated(deep_params(bus_bytes), 4, transfer, [INSIDE] * 16))["words"])
    adjoining = simple_transfer(run_bytes=bus_bytes, gap=128 - bus_bytes, swizzle=swizzle, tf32=1)  # in two words each
    rows = [INSIDE | {"offset": bus_bytes // 2, "shared": k > 0} for k in range(20)]
    assert consecutive(run(repeated(deep_params(bus_bytes), 3, adjoining, rows))["words"])


@cases("bus_bytes, size", [(16, 1)], [(32, 16), (32, 1), (64, 16), (64, 1)])
def test_a_run_a_cycle_where_runs_share_words(bus_bytes, size):
    """All chunks of a word, and, as with ``gather0``, every second byte of it."""
    offsets = [max(size, 2) * k % bus_bytes for k in range(256)]
    rows = [INSIDE | {"offset": offset, "shared": offset > 0} for offset in offsets]
    writes = run(repeated(deep_params(bus_bytes), 2, simple_transfer(run_bytes=size), rows))["writes"]
    assert len(writes) == 2 * 256 and consecutive(writes)


@cases("bus, length, gap", [(16, 100, 28)], [(32, 37, 27), (64, 201, 0), (64, 100, 28)])
def test_a_word_a_cycle_with_rows_of_odd_length(bus, length, gap):
    transfer = simple_transfer(run_bytes=length, gap=gap)
    assert consecutive(run(repeated(deep_params(bus), 1, transfer, [INSIDE | {"offset": 5}] * 8))["words"])


@buses
def test_a_line_of_fill_a_cycle(bus_bytes):
    assert consecutive(run(repeated(deep_params(bus_bytes), 5, simple_transfer(run_bytes=1024), [OUTSIDE]))["writes"])


@buses
def test_fill_around_the_data_costs_no_cycle(bus_bytes):
    transfer = simple_transfer(run_bytes=128, data_start=48, data_end=56)
    assert consecutive(run(repeated(deep_params(bus_bytes), 5, transfer, [INSIDE] * 4))["writes"])


@buses
@pytest.mark.parametrize("swizzle", [0, 3])
def test_two_cycles_from_the_last_word(bus_bytes, swizzle):
    transfer = simple_transfer(run_bytes=256, swizzle=swizzle, data_end=250)
    cycles = run(repeated(deep_params(bus_bytes), 1, transfer, [INSIDE]), hold_last_word=30)
    assert cycles["writes"][-1] == cycles["words"][-1] + 2
    assert cycles["completions"] == [cycles["writes"][-1] + 1]
