"""Line assembler: TF32 rounding on raw bits; random pieces against a byte model in every stall mode; latency, rate."""

import random

import numpy as np
import pytest
from amaranth.hdl import Elaboratable, Module, Signal

from tilewright.hw.tmau.load.fill import LineAssembler, round_tf32
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.sim.pysim.simulate import elaborated, simulate
from tilewright.sim.pysim.streams import STALL_MODES, receive, send, watch_stream

SEED = 14


def tf32(value):
    """By way of a double, which holds every sum exactly: adding and taking away 2^13 units rounds to nearest even."""
    number = np.uint32(value).view(np.float32)
    if np.isnan(number):
        return 0x7FFFE000
    if np.isinf(number) or number == 0:
        return value
    exponent = max(value >> 23 & 255, 1) - 127
    unit = np.float64(2.0) ** (exponent - 10)
    rounded = np.rint(np.float64(number) / unit) * unit
    with np.errstate(over="ignore"):
        return int(np.copysign(np.float32(abs(rounded)), number).view(np.uint32))


class Rounder(Elaboratable):
    """``round_tf32`` between two ports."""

    def __init__(self):
        self.i, self.o = Signal(32), Signal(32)

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.o.eq(round_tf32(self.i))
        return m


def test_round_tf32():
    rng = random.Random(SEED)
    edges = [0x000, 0x001, 0xFFF, 0x1000, 0x1001, 0x1FFF]  # of the thirteen bits that go
    values = [
        sign << 31 | exponent << 23 | kept << 13 | low
        for sign in (0, 1)
        for exponent in (0, 1, 127, 254, 255)
        for kept in (0, 1, 2, 0x3FE, 0x3FF)
        for low in edges
    ]
    values += [rng.getrandbits(32) for _ in range(2000)]
    dut = elaborated(Rounder)

    async def compare(ctx):
        for value in values:
            ctx.set(dut.i, value)
            assert ctx.get(dut.o) == tf32(value), f"{value:#010x}"

    simulate(dut, compare)


class Pieces:
    """Random pieces as the realigner hands them on, and the lines that they make."""

    def __init__(self, bus_bytes, count):
        rng = random.Random(SEED)
        self.pieces, self.lines = [], []
        line, position, memory = 0, 0, {}
        for number in range(count):
            first = rng.randint(position, 127)
            end = rng.choice([rng.randint(first, 127), 128, rng.randint(128, 255)])
            data_first = rng.choice([0, rng.randint(0, 127)])
            data_end = rng.choice([0, rng.randint(0, end)])
            word, fill, is_tf32 = rng.getrandbits(8 * bus_bytes), rng.getrandbits(32), rng.random() < 0.3
            emit = end >= 128 or rng.random() < 0.2
            piece = {
                "line": line,
                "first": first,
                "end": end,
                "data_first": data_first,
                "data_end": data_end,
                "emit": emit,
            }
            piece["last"] = emit and number % 3 == 0
            context = {"tag": number, "swizzle": number % 4, "fill": fill, "tf32": is_tf32}
            ends = {"error": number % 2, "address": number}
            self.pieces.append({"piece": piece, "word": word, "context": context} | ends)

            lanes = [word >> 32 * k & 0xFFFFFFFF for k in range(bus_bytes // 4)]
            data = b"".join((tf32(lane) if is_tf32 else lane).to_bytes(4, "little") for lane in lanes)
            for byte in range(first, end):
                # The part in the next line is wholly behind the data's first byte.
                is_data = data_first <= byte < data_end
                memory[byte] = data[byte % bus_bytes] if is_data else fill >> 8 * (byte % 4) & 255
            position = end
            if emit:
                done = {byte: value for byte, value in memory.items() if byte < 128}
                self.lines.append((number, line, done, piece["last"]))
                memory = {byte - 128: value for byte, value in memory.items() if byte >= 128}
                line, position = (line + 1) % 32, max(end - 128, 0)


def run(bus_bytes, load, mode="none"):
    dut = elaborated(LineAssembler, TMAU_PRESETS["unit"].replace(bus_bytes=bus_bytes))
    result = {}

    async def source(ctx):
        result["pieces"] = await send(ctx, dut.aligned, load.pieces, idle=STALL_MODES[mode]["idle"], seed=SEED)

    async def sink(ctx):
        stall = STALL_MODES[mode]["stall"]
        result["lines"] = await receive(ctx, dut.lines, len(load.lines), stall=stall, seed=SEED)

    simulate(dut, source, sink, background=[watch_stream(dut.lines)])
    return result


@pytest.mark.parametrize("mode", STALL_MODES)
@pytest.mark.parametrize("bus_bytes", [16, 32, 64])
def test_lines_of_random_pieces(bus_bytes, mode):
    load = Pieces(bus_bytes, 200)
    result = run(bus_bytes, load, mode)
    for came, (number, row, expected, last) in zip(result["lines"][0], load.lines, strict=True):
        data = came.line.data.to_bytes(128, "little")
        assert {k: data[k] for k in range(128) if came.line.strobe >> k & 1} == expected
        assert (came.line.row, came.last) == (row, last)
        assert (came.context.swizzle, came.context.tag) == (number % 4, number)
        assert (came.error, came.address) == (number % 2, number)


def test_latency_one_and_full_rate():
    load = Pieces(16, 100)
    result = run(16, load)
    assert result["pieces"] == list(range(100))
    assert result["lines"][1] == [number + 1 for number, *_ in load.lines]
