"""Rows of the kernel: what was written comes two cycles after it is read, and in pooling the fill."""

import random

import numpy as np
import pytest

from support.conv import conv_unit, conv_units
from support.streams import pulse
from tilewright.hw.conv.fetch.buffer import FeatureBuffer, KernelRows
from tilewright.spec.conv import KERNEL_ROWS
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import receive, watch_stream

SEED = 47


@pytest.mark.parametrize("preset", ["unit", "full"])
def test_rows(preset):
    """A write and reads a cycle; what is written can be read in the same one, for the memory is read a cycle later."""
    params, rng = conv_unit(preset), random.Random(SEED)
    dut, bits = elaborated(KernelRows, params), 8 * params.conv.row_bytes
    held, wanted = {}, []

    async def bench(ctx):
        for _ in range(200):
            number, row = rng.randrange(KERNEL_ROWS), rng.getrandbits(bits)
            lanes = [row >> at & (1 << 128) - 1 for at in range(0, bits, 128)]
            enable = rng.getrandbits(1)
            ctx.set(dut.write, {"row": number, "data": lanes, "enable": enable})
            reads = [rng.choice(list(held) or [0]) for _ in range(params.halves)]
            ctx.set(dut.read, reads)
            if enable:
                held[number] = row
            wanted.append([held.get(read) for read in reads])
            await ctx.tick()
            for want, found in zip(wanted[-2] if len(wanted) > 2 else (), ctx.get(dut.rows), strict=False):
                assert want in (None, found)

    simulate(dut, bench)


BUFFER_SEED = 26
PARAMS = conv_units("unit", "default", "wide", "one-slave", "one-unit")


class Contents:
    """What the sets are to hold."""

    def __init__(self, params):
        conv, self.params = params.conv, params
        self.sets = np.zeros((params.sets, conv.units * conv.row_bytes), np.uint8)
        self.slaves = np.zeros((params.words, conv.slaves * conv.row_bytes), np.uint8)
        self.kernel = np.zeros(conv.row_bytes, np.uint8)  # the last row

    def put(self, tag, come):
        whole, number = 16 * self.params.lanes, tag["set"]
        if tag["slaves"] and tag["pair"]:
            half, at, words = whole // 2, tag["part"] * whole, self.params.words
            for upper in (0, 1):
                row = self.slaves[(tag["word"] + (upper != tag["turned"])) % words]
                begin = at + upper * half
                row[begin : begin + half] = come[upper * half :][: len(row[begin : begin + half])]
            return
        if tag["pair"]:
            half, at = whole // 2, tag["part"] * whole // 2
            for each in (number, (number + 1) % self.params.sets):
                self.sets[each, at : at + half] = come[half:] if each % 2 else come[:half]
            return
        period = 1 << tag["period"]
        if tag["kernel"]:
            self.kernel[:] = np.tile(come[:period], len(self.kernel) // period)
            return
        rows = self.slaves[tag["word"]] if tag["slaves"] else self.sets[number]
        at = tag["part"] * period
        rows[at : at + period] = come[: len(rows[at : at + period])]


def some_set(rng, params, number, word):
    """The tags of the answers that make a set, or two; or a word, or two, and a row of the kernel."""
    conv, lanes_log2 = params.conv, params.lanes.bit_length() - 1
    most = conv.row_bytes.bit_length() - 1
    granularity, kind = rng.randint(most - 4, most), rng.choice(["rows", "pair", "lanes"])
    flags = {name: rng.getrandbits(1) for name in ("first", "last", "final")}
    if kind == "pair" and params.pairs:
        count = 2 * conv.units * conv.row_bytes // (16 * params.lanes)
        tags = [{"part": part, "period": lanes_log2 + 4, "pair": 1} for part in range(count)]
    else:
        period = min(granularity, 4) + lanes_log2
        lanes = kind == "lanes"
        pair = lanes and params.pairs and granularity >= 4 and rng.getrandbits(1)
        count = max((conv.slaves if lanes else conv.units) * conv.row_bytes >> period, 1)
        tags = [{"part": part, "period": period, "slaves": lanes, "pair": pair, "turned": turned}
                for turned in range(1 + pair) for part in range(count)]  # fmt: skip
        if lanes:
            tags[-1]["complete"] = 1
            tags.append({"kernel": 1, "period": granularity, "word": rng.randrange(KERNEL_ROWS)})
    if kind != "lanes":
        tags[-1]["complete"] = 1
    names = {"part": 0, "pair": 0, "turned": 0, "slaves": 0, "kernel": 0, "complete": 0, "set": number, "word": word,
             "flags": flags}  # fmt: skip
    return [names | tag for tag in tags]


@pytest.mark.parametrize("preset", PARAMS)
def test_bytes_and_order(preset):
    params, rng = PARAMS[preset], random.Random(f"{BUFFER_SEED} {preset}")
    dut, contents, wanted = elaborated(FeatureBuffer, params), Contents(params), []
    found = np.zeros_like(contents.slaves)
    conv, bits = params.conv, 8 * params.conv.row_bytes

    async def bench(ctx):
        number = word = kernel_rows = 0
        for _ in range(25):
            tags = some_set(rng, params, number, word % params.words)
            lanes = tags[0]["slaves"]
            many = 1 + tags[0]["pair"]
            for tag in tags:
                come = np.frombuffer(rng.randbytes(16 * params.lanes), np.uint8)
                contents.put(tag, come)
                data = [int.from_bytes(come[at : at + 16].tobytes(), "little") for at in range(0, len(come), 16)]
                ctx.set(dut.i.payload, {"data": data, "tag": tag})
                await pulse(ctx, dut.i.valid)
                assert ctx.get(dut.kernel_write.enable) == tag["kernel"]
                if tag["kernel"]:
                    row = ctx.get(dut.kernel_write.data.as_value()).to_bytes(conv.row_bytes, "little")
                    assert (np.frombuffer(row, np.uint8) == contents.kernel).all(), tag
                    assert ctx.get(dut.kernel_write.row) == tag["word"]
                for slave, port in enumerate(dut.slave_writes):
                    strobe, row = ctx.get(port.strobe), ctx.get(port.data.as_value())
                    for byte in range(conv.row_bytes):
                        if strobe >> byte & 1:
                            assert tag["slaves"]
                            found[ctx.get(port.word), slave * conv.row_bytes + byte] = row >> 8 * byte & 255
                if rng.random() < 0.3:
                    await ctx.tick()
            await ctx.tick()
            assert (found == contents.slaves).all(), tags
            if lanes:
                word, kernel_rows = word + many, kernel_rows + 1
            assert ctx.get(dut.written) == word % (2 * params.words)
            assert ctx.get(dut.written_kernel) == kernel_rows % (2 * KERNEL_ROWS)
            if lanes:
                assert not ctx.get(dut.sets.valid)
                continue
            for each in range(many):
                flags, place = tags[0]["flags"], (number + each) % params.sets
                wanted.append((flags["first"] and each == 0, flags["last"] and each == many - 1, flags["final"]))
                ctx.set(dut.read, place)
                await ctx.tick()
                row = ctx.get(dut.rows.as_value()).to_bytes(conv.units * bits // 8, "little")
                assert (np.frombuffer(row, np.uint8) == contents.sets[place]).all(), tags
            number = (number + many) % params.sets
            (payloads, _) = await receive(ctx, dut.sets, many, stall=0.3, seed=number)
            for payload in payloads:
                assert (payload.first, payload.last, payload.final) == wanted.pop(0), tags
            assert not ctx.get(dut.sets.valid)

    simulate(dut, bench, background=[watch_stream(dut.sets, "sets")])


def test_latency():
    """An answer's set is there two cycles later, and its rows a cycle after that."""
    params = PARAMS["unit"]
    dut = elaborated(FeatureBuffer, params)

    async def bench(ctx):
        ctx.set(dut.i.payload, {"data": [1, 2], "tag": {"period": 5, "complete": 1}})
        await pulse(ctx, dut.i.valid)
        assert not ctx.get(dut.sets.valid)
        await ctx.tick()
        assert ctx.get(dut.sets.valid)
        await ctx.tick()
        assert [ctx.get(dut.rows[unit][0]) for unit in (0, 1)] == [1, 2]

    simulate(dut, bench)
