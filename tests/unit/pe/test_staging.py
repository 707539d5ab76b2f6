"""Staging: what is put comes out of the right stream, and nothing disturbs it before it is taken."""

import random

import pytest

from tilewright.golden.spec.pe.registers import DATA_WORDS, PE_REGISTERS, Put
from tilewright.hw.pe.params import PE_PRESETS
from tilewright.hw.pe.staging import Staging
from tilewright.sim.pysim.simulate import elaborated, simulate
from tilewright.sim.pysim.streams import STALL_MODES, receive, send, watch_stream

PARAMS = PE_PRESETS["unit"]
OFFSETS = {register.name: register.offset for register in PE_REGISTERS}
PUT = next(register.format for register in PE_REGISTERS if register.name == "put")
PORTS = {Put.INSTRUCTION: "instructions", Put.SEGMENT: "segments", Put.PAGE: "pages"}
BITS = {Put.INSTRUCTION: 128, Put.SEGMENT: 256, Put.PAGE: 64}


def content(item, kind, index, words, address):
    """Checks an item of the stream of ``kind``."""
    value = sum(word << 32 * place for place, word in enumerate(words))
    if kind == Put.INSTRUCTION:
        assert item == value % (1 << 128)
    elif kind in BITS:
        assert (item.index, item.word) == (index, value % (1 << BITS[kind]))
    else:
        command = item.command
        assert (item.op, item.entry, item.address, command) == (kind - Put.PAGE_IN, index, address, value)


@pytest.mark.parametrize("mode", STALL_MODES)
def test_put(mode):
    dut = elaborated(Staging, PARAMS)
    rng = random.Random(f"staging {mode}")
    stall = STALL_MODES[mode]["stall"]

    async def testbench(ctx):
        for number in range(80):
            kind = rng.choice(list(Put))
            index = rng.randrange({Put.INSTRUCTION: 1, Put.SEGMENT: PARAMS.segments}.get(kind, PARAMS.pages))
            words, address = [rng.getrandbits(32) for _ in range(DATA_WORDS)], rng.getrandbits(32)
            for port, word in zip(dut.words, words, strict=True):
                ctx.set(port, word)
            ctx.set(dut.page_address, address)
            assert not ctx.get(dut.busy)
            ctx.set(dut.put, {"kind": kind, "index": index})
            assert ctx.get(dut.busy)
            await ctx.tick()
            ctx.set(dut.put, {"kind": 0, "index": 0})
            port = getattr(dut, PORTS.get(kind, "pager_requests"))
            assert ctx.get(port.valid)
            assert ctx.get(dut.busy)
            (item,), _ = await receive(ctx, port, 1, stall=stall, seed=number)
            content(item, kind, index, words, address)

    outputs = (dut.instructions, dut.segments, dut.pages, dut.pager_requests)
    simulate(dut, testbench, background=[watch_stream(port) for port in outputs])


def test_writes_are_guarded():
    """Only to what is staged, only while it has not been taken, or if the index does not exist; reads never."""
    dut = elaborated(Staging, PARAMS)

    async def passes(ctx, name, *, write=1, **fields):
        access = {"address": OFFSETS[name], "write": write, "data": PUT.pack(**fields), "strobe": 0b1111}
        ctx.set(dut.accesses.payload, access)
        return ctx.get(dut.checked.payload.address) == OFFSETS[name]

    async def testbench(ctx):
        assert await passes(ctx, "data0") and await passes(ctx, "irq_enable")
        limits = {Put.INSTRUCTION: 1, Put.SEGMENT: PARAMS.segments}
        for kind in Put:
            limit = limits.get(kind, PARAMS.pages)
            assert await passes(ctx, "put", kind=kind, index=limit - 1)
            assert not await passes(ctx, "put", kind=kind, index=limit)
        assert not await passes(ctx, "put", kind=0)
        assert not await passes(ctx, "put", kind=7)
        ctx.set(dut.put.kind, Put.PAGE)
        for _ in range(3):
            for name in ("data0", "data15", "put", "page_address"):
                assert not await passes(ctx, name, kind=Put.PAGE)
                assert await passes(ctx, name, write=0)
            assert await passes(ctx, "control")
            await ctx.tick()
            ctx.set(dut.put.kind, 0)
        ctx.set(dut.pages.ready, 1)
        await ctx.tick()
        assert await passes(ctx, "data0") and await passes(ctx, "put", kind=Put.PAGE)

    simulate(dut, testbench)


@pytest.mark.parametrize("mode", STALL_MODES)
def test_accesses_pass(mode):
    dut = elaborated(Staging, PARAMS)
    rng = random.Random(1)
    items = [
        {"address": 4 * rng.randrange(64), "write": 1, "data": rng.getrandbits(32), "strobe": 15} for _ in range(50)
    ]

    async def source(ctx):
        await send(ctx, dut.accesses, items, idle=STALL_MODES[mode]["idle"])

    async def sink(ctx):
        found, _ = await receive(ctx, dut.checked, len(items), stall=STALL_MODES[mode]["stall"])
        assert [(item.address, item.data) for item in found] == [(item["address"], item["data"]) for item in items]

    simulate(dut, source, sink, background=[watch_stream(dut.checked)])
