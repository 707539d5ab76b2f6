"""Word placer: random pieces against a byte model in every swizzle, bus width and stall mode; completions; rates."""

import random

import numpy as np
import pytest

from tilewright.hw.smem.layouts import whole_line
from tilewright.hw.tmau.load.layouts import BOUNDS
from tilewright.hw.tmau.load.place import WordPlacer
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import STALL_MODES, receive, send, watch_stream

SEED = 14
ROWS = TMAU_PRESETS["unit"].smem.rows
BUSES = [16, 32, 64]
#: Each width and each stall mode.
QUICK = [(16, mode) for mode in STALL_MODES]


def swizzled(address, span):
    """docs/tmau.md, "Swizzle"; the span in bytes, 0 for none."""
    return address ^ ((address >> 7) % (span // 16)) * 16 if span else address


def truncated(lane):
    """A number that ends in zeros is its own TF32: rounding itself is tested in test_fill.py."""
    return lane & 0xBFFFE000


class Load:
    """Random transfers as the realigner hands them on; writes, staged words and completions that must come of them."""

    def __init__(self, bus_bytes, transfers):
        self.rng = random.Random(SEED)
        self.bus_bytes = bus_bytes
        self.pieces = []
        self.writes = []  # (row, {byte: value}), of each piece that writes
        self.staged = []  # ({byte: value}, error, address)
        self.completions = []
        self.lasts = []  # how many writes there are up to the end of each transfer that completes
        for tag in range(transfers):
            rng = self.rng
            context = {
                "tag": tag,
                "quiet": rng.random() < 0.3,
                "signal": rng.getrandbits(1),
                "barrier": 8 * tag,
                "bytes": tag,
                "swizzle": rng.randrange(4),
                "fill": rng.getrandbits(32),
                "tf32": rng.random() < 0.3,
                "stage": rng.random() < 0.2,
            }
            self.error = {"error": rng.random() < 0.3, "address": rng.getrandbits(32)}
            if context["stage"]:
                context |= {"swizzle": 0, "tf32": 0}
                self.add_staged(context)
            else:
                self.add_written(context)
            if not context["quiet"]:
                expected = {name: context[name] for name in ("tag", "signal", "barrier", "bytes")}
                self.completions.append(expected | self.error | {"write": 0})
                self.lasts.append(len(self.writes))

    def add(self, context, *, remains=0, **piece):
        lanes = [truncated(self.rng.getrandbits(32)) for _ in range(self.bus_bytes // 4)]
        word = b"".join(lane.to_bytes(4, "little") for lane in lanes)
        # Its chunks come swizzled.
        base, span = 128 * piece["line"], (0, 32, 64, 128)[context["swizzle"]]
        lies = [word[(swizzled(base + byte, span) - base) % self.bus_bytes] for byte in range(self.bus_bytes)]
        word_lies = int.from_bytes(bytes(lies), "little")
        payload = {"piece": piece, "word": word_lies, "context": context, "remains": remains}
        self.pieces.append(payload | self.error)
        return word

    def add_written(self, context):
        """Pieces one behind the other, with gaps; data reach at most a bus word, and then into the next line."""
        rng, fill = self.rng, context["fill"].to_bytes(4, "little")
        row, position, memory, before = rng.randrange(ROWS), rng.randrange(128), {}, None
        for left in reversed(range(rng.randint(1, 12))):
            first = min(127, position + rng.choice([0, 0, 0, 5]))
            reach = rng.choice([rng.randint(first + 1, 128), 128])
            data_first = rng.choice([first, rng.randint(first, reach - 1)])
            data_end = rng.choice([0, min(reach, data_first + rng.randint(1, self.bus_bytes))])
            if data_end and rng.random() < 0.4 and data_first + self.bus_bytes > 128:
                data_end = rng.randint(129, data_first + self.bus_bytes)
                reach = rng.choice([data_end, rng.randint(data_end, 255)])
            joint = 0
            if before and first < self.bus_bytes - 1 and rng.random() < 0.5:
                data_first = rng.randint(first, self.bus_bytes - 2)
                joint = rng.randint(data_first + 1, self.bus_bytes - 1)
                data_end = rng.randint(joint + 1, self.bus_bytes)
                reach = rng.randint(data_end, 128)
            end = max(reach, data_end)
            over = end > 128
            word = self.add(context, line=row, first=first, end=end, data_first=data_first, data_end=data_end,
                            joint=joint, last=left == 0 and not over)  # fmt: skip
            for byte in range(first, end):
                is_data = data_first <= byte < data_end
                source = before if byte < joint else word
                memory[byte] = source[byte % self.bus_bytes] if is_data else fill[byte % 4]
            before = word
            self.write(context, row, memory)
            memory = {byte - 128: value for byte, value in memory.items() if byte >= 128}
            position = end % 128
            row = (row + (end >= 128)) % ROWS
        if memory:
            # Nothing follows: an empty piece lets what waits out.
            self.add(context, line=row, first=position, end=position, data_first=0, data_end=0, last=1)
            self.write(context, row, memory)

    def write(self, context, row, memory):
        base, span = 128 * row, (0, 32, 64, 128)[context["swizzle"]]
        self.writes.append((row, {swizzled(base + k, span) - base: v for k, v in memory.items() if k < 128}))

    def add_staged(self, context):
        """One run from address 0 on, by words that begin anywhere."""
        bus, length = self.bus_bytes, self.rng.choice([self.bus_bytes, self.rng.randint(1, 300)])
        start, word_end, memory = 0, self.rng.randint(1, bus), {}
        while start < length:
            end = min(word_end, length)
            line = start // 128
            over = end > 128 * (line + 1)
            last = end == length and not over
            word = self.add(context, line=line, first=start % 128, end=end - 128 * line, data_first=start % 128,
                            data_end=end - 128 * line, last=last,
                            remains=last and start // bus != end // bus and end % bus != 0)  # fmt: skip
            memory |= {byte: word[byte % bus] for byte in range(start, end)}
            start, word_end = end, word_end + bus
        if over:
            self.pieces.append(self.pieces[-1] | {"piece": {"line": line + 1, "first": end % 128, "end": end % 128,
                                                            "data_first": 0, "data_end": 0, "last": 1}})  # fmt: skip
        for base in range(0, length, bus):
            self.staged.append(({k: memory[base + k] for k in range(min(bus, length - base))}, self.error))


def chunks_of(payload):
    """AlignedLayout: for each byte that bounds the piece the chunks below it and its own, as the swizzle has them."""
    piece, span = payload["piece"], (0, 32, 64, 128)[payload["context"]["swizzle"]]
    base, found = 128 * piece["line"], {}
    for name in BOUNDS:
        whole, place = divmod(piece[name], 16)
        at = [1 << (swizzled(base + 16 * chunk, span) - base) // 16 for chunk in range(8)]
        found[name] = {"whole": sum(at[:whole]), "partly": at[whole] if place and whole < 8 else 0}
    return found


def run(load, mode="none", *, completion_stall=None):
    dut = elaborated(WordPlacer, TMAU_PRESETS["unit"].replace(bus_bytes=load.bus_bytes))
    idle, stall = STALL_MODES[mode]["idle"], STALL_MODES[mode]["stall"]
    result = {"writes": [], "rows": []}
    pieces = [payload | {"chunks": chunks_of(payload)} for payload in load.pieces]

    async def source(ctx):
        result["sent"] = await send(ctx, dut.i, pieces, idle=idle, seed=SEED)

    async def guard(ctx):
        """The stage behind: what was taken shows until it is written, as late as that may be."""
        rng, cycle, waiting = random.Random(SEED), 0, False
        ctx.set(dut.rows.ready, 1)
        async for *_, ready, came, row, data, strobe in ctx.tick().sample(
            dut.rows.ready, dut.rows.valid & dut.rows.ready, dut.rows.payload, whole_line(dut.data), dut.strobe
        ):
            if waiting and ready:
                result["writes"].append((result["rows"][-1][1], data, strobe))
                waiting = False
            if came:
                result["rows"].append((cycle, row))
                waiting = True
            ctx.set(dut.rows.ready, not waiting or rng.random() >= stall)
            cycle += 1

    async def staged(ctx):
        result["staged"] = await receive(ctx, dut.staged, len(load.staged), stall=stall, seed=SEED + 1)

    async def completions(ctx):
        chance = stall if completion_stall is None else completion_stall
        result["completions"] = await receive(ctx, dut.completions, len(load.completions), stall=chance, seed=SEED + 2)
        await ctx.tick().repeat(20)

    rules = [watch_stream(port) for port in (dut.rows, dut.staged, dut.completions)]
    simulate(dut, source, staged, completions, background=[guard, *rules], deadline=40_000)
    return result


def bytes_of(data, strobe):
    return {byte: data >> 8 * byte & 255 for byte in range(128) if strobe >> byte & 1}


@pytest.mark.parametrize(
    ("bus_bytes", "mode"),
    [
        pytest.param(bus_bytes, mode, marks=[] if (bus_bytes, mode) in QUICK else pytest.mark.long)
        for bus_bytes in BUSES
        for mode in STALL_MODES
    ],
)
def test_random_transfers(bus_bytes, mode):
    load = Load(bus_bytes, 30)
    result = run(load, mode)
    for (row, data, strobe), expected in zip(result["writes"], load.writes, strict=True):
        assert (row, bytes_of(data, strobe)) == expected
    for came, (expected, error) in zip(result["staged"][0], load.staged, strict=True):
        assert {byte: came.data >> 8 * byte & 255 for byte in expected} == expected
        assert (came.error, came.address) == (error["error"], error["address"])


@pytest.mark.parametrize(
    ("mode", "completion_stall"),
    [
        *((mode, 0.9) for mode in STALL_MODES),
        *(pytest.param(mode, 0.0, marks=pytest.mark.long) for mode in STALL_MODES),
    ],
)
def test_completions_come_behind_their_last_write(mode, completion_stall):
    load = Load(16, 25)
    result = run(load, mode, completion_stall=completion_stall)
    rows = [cycle for cycle, _ in result["rows"]]
    for last, expected, completion, cycle in zip(load.lasts, load.completions, *result["completions"], strict=True):
        assert completion == completion.shape().const(expected)
        # A row is taken a cycle before it is written, if nothing stalls.
        assert not last or cycle >= rows[last - 1] + 2


def test_latency_one_and_full_rate():
    load = Load(16, 0)
    load.error = {"error": 0, "address": 0}
    context = {"swizzle": 3, "quiet": 1}
    for number in range(64):
        first = 16 * number % 128
        word = load.add(context, line=number // 8, first=first, end=first + 16, data_first=first, data_end=first + 16)
        load.write(context, number // 8, {first + byte: word[byte] for byte in range(16)})
    load.pieces[-1]["piece"]["last"] = 1
    load.pieces[-1]["context"] = {"swizzle": 3, "tag": 5}
    load.completions = [{"tag": 5}]
    result = run(load)
    assert result["sent"] == [cycle for cycle, _ in result["rows"]] == list(range(64))
    assert [bytes_of(data, strobe) for _, data, strobe in result["writes"]] == [line for _, line in load.writes]
    assert result["completions"][1] == [65], "written in the cycle after it came, complete in the one after that"


@pytest.mark.parametrize("bus_bytes", [16, pytest.param(64, marks=pytest.mark.long)])
def test_lines_of_fill_leave_whole(bus_bytes):
    load = Load(bus_bytes, 0)
    load.error = {"error": 0, "address": 0}
    for row in range(8):
        context = {"fill": 0x04030201, "quiet": 1, "swizzle": 0}
        load.add(context, line=row, first=0, end=128, data_first=0, data_end=0, last=row == 7)
        load.write(context, row, dict(enumerate(np.tile([1, 2, 3, 4], 32).tolist())))
    result = run(load)
    assert [cycle for cycle, _ in result["rows"]] == list(range(8))
    assert [bytes_of(data, strobe) for _, data, strobe in result["writes"]] == [line for _, line in load.writes]
