"""The convolution engine's registers as a driver sees them."""

import pytest

from tilewright.hw.conv.control import ConvControl
from tilewright.hw.conv.params import CONV_UNIT_PRESETS
from tilewright.spec.conv import CONV_ID_VALUE, CONV_REGISTERS, ConvError
from tilewright.spec.pe import MM_FAMILIES
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import receive, send

REGISTERS = {register.name: register for register in CONV_REGISTERS}
#: What counts, by its register, if not a member of the same name.
COUNTED = {"jobs": "job", "steps": "step", "feature_rows_fetched": "feature_rows", "weight_rows_fetched": "weight_rows",
           "results_written": "results", "bank_conflicts": "bank_conflict"}  # fmt: skip
COUNTED |= {f"stall_{name}": f"stall_{name}" for name in ("features", "weights", "results")}


class Driver:
    """Reads and writes registers by name, and plays the engine."""

    def __init__(self, ctx, dut):
        self.ctx, self.dut = ctx, dut

    async def access(self, name, **item):
        await send(self.ctx, self.dut.accesses.requests, [{"address": REGISTERS[name].offset} | item])
        (answer,), _ = await receive(self.ctx, self.dut.accesses.answers, 1)
        assert not answer.error
        return answer.data

    async def read(self, name):
        return await self.access(name)

    async def fields(self, name):
        return REGISTERS[name].format.unpack(await self.read(name))

    async def write(self, name, **fields):
        await self.access(name, write=1, data=REGISTERS[name].format.pack(**fields), strobe=0b1111)

    async def end(self, code=ConvError.NONE, field=0, tag=0):
        """A job ends; its record can be read then."""
        self.ctx.set(self.dut.end, {"code": code, "field": field, "tag": tag})
        self.ctx.set(self.dut.ended, 1)
        await self.ctx.tick()
        self.ctx.set(self.dut.ended, 0)
        self.ctx.set(self.dut.end, {"code": 9, "field": 9, "tag": 9})  # means nothing
        await self.ctx.tick()


def run(script, preset="unit"):
    dut = elaborated(ConvControl, CONV_UNIT_PRESETS[preset])

    async def testbench(ctx):
        ctx.set(dut.idle, 1)
        await script(Driver(ctx, dut))

    simulate(dut, testbench)


@pytest.mark.parametrize("preset", CONV_UNIT_PRESETS)
def test_identification_and_parameters(preset):
    conv = CONV_UNIT_PRESETS[preset].conv

    async def script(driver):
        assert await driver.read("id") == CONV_ID_VALUE
        assert (await driver.read("id")).to_bytes(4, "big") == b"TWCV"
        shown = list((await driver.read("params0")).to_bytes(4, "little"))
        assert shown == [conv.row_bytes, conv.slaves, conv.units, conv.results]
        types = sum(1 << number for number, family in enumerate(MM_FAMILIES) if family in conv.types)
        types |= conv.rotation << 4
        shown = list((await driver.read("params1")).to_bytes(4, "little"))
        assert shown == [conv.feature_rows, conv.weight_rows, conv.queue_depth, types]
        assert await driver.read("params2") == conv.weight_bytes

    run(script, preset)


def test_the_first_error_is_kept_and_all_are_counted():
    async def script(driver):
        await driver.end()
        assert await driver.fields("error") == {"code": 0, "field": 0, "tag": 0}
        assert await driver.fields("irq_status") == {"error": 0, "done": 1}
        await driver.end(ConvError.RANGE, 20, 0xABCD)
        await driver.end(ConvError.VERSION, 1, 3)
        assert await driver.fields("error") == {"code": ConvError.RANGE, "field": 20, "tag": 0xABCD}
        assert await driver.read("error_count") == 2
        assert await driver.fields("irq_status") == {"error": 1, "done": 1}
        assert (await driver.fields("status"))["error"] == 1
        await driver.write("control", clear_error=1)
        assert await driver.read("error") == await driver.read("error_count") == 0
        assert (await driver.fields("status"))["error"] == 0
        await driver.end(ConvError.BARRIER, 30, 5)
        assert await driver.fields("error") == {"code": ConvError.BARRIER, "field": 30, "tag": 5}

    run(script)


def test_interrupt():
    """Of every bit alone: pending, enabled, cleared by a one."""

    async def script(driver):
        ctx, dut = driver.ctx, driver.dut
        for name, code in (("done", ConvError.NONE), ("error", ConvError.TYPE)):
            other = "error" if name == "done" else "done"
            await driver.end(code)
            assert not ctx.get(dut.irq)
            await driver.write("irq_enable", **{other: 1})
            assert not ctx.get(dut.irq)
            await driver.write("irq_enable", **{name: 1})
            assert ctx.get(dut.irq)
            await driver.write("irq_status", **{other: 1})
            assert ctx.get(dut.irq)
            await driver.write("irq_status", **{name: 1})
            assert not ctx.get(dut.irq)

    run(script)


def test_status():
    async def script(driver):
        ctx, dut = driver.ctx, driver.dut
        assert await driver.fields("status") == {"idle": 1, "error": 0, "queue_level": 0}
        ctx.set(dut.idle, 0)
        ctx.set(dut.waiting, 64)
        assert await driver.fields("status") == {"idle": 0, "error": 0, "queue_level": 64}

    run(script)


def test_each_counter_counts_its_event_alone():
    async def script(driver):
        ctx, dut = driver.ctx, driver.dut
        for counter, event in COUNTED.items():
            await driver.write("control", clear_counters=1)
            most = (1 << len(dut.events[event])) - 1
            for value in (most, 1):
                ctx.set(dut.events, {event: value})
                await ctx.tick()
            ctx.set(dut.events, {})
            await ctx.tick()
            seen = {name: await driver.read(name) for name in COUNTED}
            assert seen == dict.fromkeys(COUNTED, 0) | {counter: most + 1}
        assert await driver.read("busy_cycles") == 0
        ctx.set(dut.idle, 0)
        await ctx.tick().repeat(7)
        ctx.set(dut.idle, 1)
        await ctx.tick()
        assert await driver.read("busy_cycles") == 7
        await driver.write("control", clear_counters=1)
        assert await driver.read("busy_cycles") == 0

    run(script)
