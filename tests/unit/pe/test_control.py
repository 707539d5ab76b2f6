"""Registers as a driver sees them; items that are put leave by the right stream, and are protected until then."""

import random

import pytest

from support.registers import Registers
from support.streams import pulse, recording, transact
from tilewright.hw.pe.control import Control, Staging
from tilewright.hw.pe.params import PE_PRESETS
from tilewright.spec.pe import DATA_WORDS, PE_REGISTERS, PeError, Put
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import STALL_MODES, receive, send, watch_stream

PARAMS = PE_PRESETS["unit"]
REGISTERS = {register.name: register for register in PE_REGISTERS}
PUT = REGISTERS["put"].format
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
def test_put_items(mode):
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
    """Writes of staged words are refused until the item leaves, and writes of a wrong index always; reads never."""
    dut = elaborated(Staging, PARAMS)

    async def passes(ctx, name, *, write=1, **fields):
        access = {"address": REGISTERS[name].offset, "write": write, "data": PUT.pack(**fields), "strobe": 0b1111}
        ctx.set(dut.accesses.payload, access)
        return ctx.get(dut.checked.payload.address) == REGISTERS[name].offset

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


class Driver(Registers):
    """Reads and writes registers, and plays the engine."""

    def __init__(self, ctx, dut):
        super().__init__(ctx, dut.accesses, PE_REGISTERS)
        self.dut = dut

    async def record(self):
        """The error record: code, register, number, first, last; and how many there were.

        A report is in it two cycles after it was accepted.
        """
        await self.ctx.tick()
        error, threads = await self.read("error"), await self.read("error_threads")
        number, count = await self.read("error_number"), await self.read("error_count")
        return (error & 0xFF, error >> 16, number, threads & 0xFFFF, threads >> 16), count


def run(script, preset="unit", background=()):
    dut = elaborated(Control, PE_PRESETS[preset])

    async def testbench(ctx):
        ctx.set(dut.idle, 1)
        await script(Driver(ctx, dut))

    simulate(dut, testbench, background=[make(dut) for make in background])


def fault(code, number, first=0, last=0, register=0):
    return {"code": code, "number": number, "first": first, "last": last, "register": register}


@pytest.mark.parametrize("preset", PE_PRESETS)
def test_identification_and_parameters(preset):
    params = PE_PRESETS[preset]

    async def script(driver):
        assert (await driver.read("id")).to_bytes(4, "big") == b"TWPE"
        assert await driver.read("params0") == params.threads | params.regs << 16
        types = 0b1111 if params.floats else 0b0011
        expected = [params.factor_regs, params.uniform_regs, params.mm_in_flight, types]
        assert list((await driver.read("params1")).to_bytes(4, "little")) == expected
        assert await driver.read("params2") == params.segments | params.pages << 16
        assert await driver.read("params3") == params.smem.size_bytes

    run(script, preset)


def test_error_of_the_first_instruction_in_program_order_is_kept():
    async def script(driver):
        ctx, dut = driver.ctx, driver.dut
        await send(ctx, dut.issued, [fault(PeError.NONE, 0)])
        assert await driver.record() == ((0, 0, 0, 0, 0), 0)
        assert await driver.read("status") == 0b01
        await send(ctx, dut.issued, [fault(PeError.OPCODE, 9, last=3), fault(PeError.NONE, 4)])
        assert await driver.record() == ((PeError.OPCODE, 0, 9, 0, 3), 1)
        await send(ctx, dut.collected, [fault(PeError.NONE, 5), fault(PeError.UNMAPPED, 6, 1, 2, 0x123)])
        await send(ctx, dut.collected, [fault(PeError.MEMORY, 7, 3, 3, 4)])
        assert await driver.record() == ((PeError.UNMAPPED, 0x123, 6, 1, 2), 3)
        assert await driver.read("status") == 0b11
        await driver.write("control", clear_error=1)
        assert await driver.record() == ((0, 0, 0, 0, 0), 0)
        await send(ctx, dut.collected, [fault(PeError.MEMORY, 70, 3, 3, 4)])
        assert await driver.record() == ((PeError.MEMORY, 4, 70, 3, 3), 1)

    run(script)


@pytest.mark.parametrize("mode", STALL_MODES)
def test_reports_of_both_sides(mode):
    """No report is lost, each side stays in order, Issue has priority, and the record is right."""
    rng = random.Random(f"reports {mode}")
    numbers = {"issued": list(range(0, 120, 2)), "collected": list(range(1, 120, 2))}
    codes = [rng.choice([0, 0, 0, *range(1, 12)]) for _ in range(120)]
    dut = elaborated(Control, PE_PRESETS["default"])
    reported = []
    items = {side: [fault(codes[number], number, register=number) for number in mine] for side, mine in numbers.items()}

    async def check(ctx):
        while len(reported) < 120:
            await ctx.tick()
        await ctx.tick()
        first = next(number for number, code in enumerate(codes) if code)
        expected = ((codes[first], first, first, 0, 0), sum(map(bool, codes)))
        assert await Driver(ctx, dut).record() == expected

    background = [recording(reported, dut.reported, dut.report.number, dut.report.code)]
    _, cycles = transact(dut, items, mode=mode, testbenches=[check], background=background)
    assert sorted((number, code) for _, number, code in reported) == list(enumerate(codes))
    for parity, side in enumerate(("issued", "collected")):
        assert [number for _, number, _ in reported if number % 2 == parity] == numbers[side]
    if mode == "none":
        assert cycles == {"issued": list(range(60)), "collected": list(range(60, 120))}


def test_interrupt():
    async def script(driver):
        ctx, dut = driver.ctx, driver.dut

        async def halt():
            await pulse(ctx, dut.halted)
            await ctx.tick()

        await halt()
        assert not ctx.get(dut.irq), "nothing is enabled"
        assert await driver.read("irq_status") == 0b10
        await driver.write("irq_enable", error=1)
        assert not ctx.get(dut.irq)
        await send(ctx, dut.issued, [fault(PeError.NONE, 1), fault(PeError.MERGE, 2)])
        await ctx.tick()
        assert ctx.get(dut.irq)
        await driver.write("irq_status", error=1)
        assert not ctx.get(dut.irq)
        await driver.write("irq_enable", halt=1)
        assert ctx.get(dut.irq)
        await driver.write("irq_status", halt=1)
        assert not ctx.get(dut.irq)

    run(script)


def test_a_halt_is_seen_no_earlier_than_the_record():
    async def script(driver):
        ctx, dut = driver.ctx, driver.dut
        await driver.write("irq_enable", halt=1)
        ctx.set(dut.collected.payload, fault(PeError.MEMORY, 3))
        await pulse(ctx, dut.collected.valid)
        await pulse(ctx, dut.halted)
        while not ctx.get(dut.irq):
            await ctx.tick()
        assert await driver.record() == ((PeError.MEMORY, 0, 3, 0, 0), 1)

    run(script)


def test_counters():
    """Each event counts in its own register, line fills by their number; one write clears all."""
    events = {
        "instruction": "instructions",
        "step": "steps",
        "stall_columns": "stall_columns",
        "stall_factors": "stall_factors",
        "stall_product": "stall_product",
        "line_fills": "line_fills",
        "bank_conflict": "bank_conflicts",
        "translation_miss": "translation_misses",
    }

    async def script(driver):
        ctx, dut = driver.ctx, driver.dut
        for number, event in enumerate(events, start=1):
            ctx.set(dut.events, {event: 8 if event == "line_fills" else 1})
            await ctx.tick().repeat(number)
        ctx.set(dut.events, {})
        ctx.set(dut.idle, 0)
        await ctx.tick().repeat(11)
        ctx.set(dut.idle, 1)
        for number, (event, name) in enumerate(events.items(), start=1):
            assert await driver.read(name) == (8 * number if event == "line_fills" else number)
        assert await driver.read("busy_cycles") == 11
        await driver.write("control", clear_counters=1)
        await ctx.tick()
        assert not any([await driver.read(name) for name in (*events.values(), "busy_cycles")])

    run(script)


def test_control_put():
    """An instruction written word by word comes out once; until it is taken the words are kept."""
    accepted = []

    def watch(dut):
        async def log(ctx):
            async for _, _, go, word in ctx.tick().sample(
                dut.instructions.valid & dut.instructions.ready, dut.instructions.payload
            ):
                if go:
                    accepted.append(word)

        return log

    async def script(driver):
        for word in range(4):
            await driver.write(f"data{word}", word=0x1111 * (word + 1))
        await driver.write("put", kind=Put.INSTRUCTION, index=1, refused=True)
        await driver.write("put", kind=Put.INSTRUCTION)
        assert await driver.read("status") == 0b100
        await driver.write("data0", word=5, refused=True)
        await driver.write("put", kind=Put.SEGMENT, refused=True)
        assert await driver.read("data0") == 0x1111
        driver.ctx.set(driver.dut.instructions.ready, 1)
        await driver.ctx.tick()
        assert await driver.read("status") == 0b001
        await driver.write("data0", word=5)
        await driver.write("page_address", address=0x40)
        assert await driver.read("page_address") == 0x40

    run(script, background=[watch, lambda dut: watch_stream(dut.instructions)])
    assert accepted == [0x4444_0000_3333_0000_2222_0000_1111]
