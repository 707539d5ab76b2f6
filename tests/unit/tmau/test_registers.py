"""The TMAU's registers as a driver sees them."""

import pytest

from tilewright.golden.spec.registers import REGISTERS
from tilewright.hw.tmau.params import PRESETS
from tilewright.hw.tmau.registers import TmauRegisters
from tilewright.sim.pysim import simulate
from tilewright.sim.streams import receive, send

OFFSETS = {register.name: register.offset for register in REGISTERS}


class Driver:
    """Reads and writes registers by name, and plays the core."""

    def __init__(self, ctx, dut):
        self.ctx = ctx
        self.dut = dut

    async def _access(self, **item):
        await send(self.ctx, self.dut.accesses, [item])
        (answer,), _ = await receive(self.ctx, self.dut.answers, 1)
        assert not answer.error
        return answer.data

    async def read(self, name):
        return await self._access(address=OFFSETS[name])

    async def write(self, name, data):
        await self._access(address=OFFSETS[name], write=1, data=data, strobe=0b1111)

    async def done(self, code=0, *, field=0, tag=0, value=0):
        """One command ends."""
        record = {"code": code, "field": field, "tag": tag, "value": value}
        self.ctx.set(self.dut.done, {"valid": 1, "record": record})
        await self.ctx.tick()
        self.ctx.set(self.dut.done, {"valid": 0})


def run(script, preset="unit"):
    dut = TmauRegisters(PRESETS[preset])

    async def testbench(ctx):
        ctx.set(dut.idle, 1)
        await script(Driver(ctx, dut))

    simulate(dut, testbench)


@pytest.mark.parametrize("preset", PRESETS)
def test_identification_and_parameters(preset):
    params = PRESETS[preset]

    async def script(driver):
        assert await driver.read("id") == 0x54575254
        word = await driver.read("params0")
        expected = [params.bus_bytes, params.addr_width, params.queue_depth, params.cache_entries]
        assert list(word.to_bytes(4, "little")) == expected
        assert await driver.read("params1") == params.max_outstanding | params.commands_in_flight << 16
        assert await driver.read("params2") == params.smem.size_bytes

    run(script, preset)


def test_first_error_is_kept_and_all_are_counted():
    async def script(driver):
        await driver.done(tag=1)
        assert await driver.read("status") == 1
        assert (await driver.read("error"), await driver.read("error_count")) == (0, 0)
        await driver.done(13, field=9, tag=0x1234, value=0x0123_4567_89AB_CDEF)
        await driver.done(26, tag=0x5678, value=7)
        assert await driver.read("error") == 0x1234_09_0D
        assert await driver.read("error_value_lo") == 0x89AB_CDEF
        assert await driver.read("error_value_hi") == 0x0123_4567
        assert await driver.read("error_count") == 2
        assert await driver.read("status") == 3
        await driver.write("control", 0b100)
        assert [await driver.read(f"error{part}") for part in ("", "_value_lo", "_value_hi", "_count")] == [0, 0, 0, 0]
        await driver.done(1, tag=3)
        assert await driver.read("error") == 0x0003_0001

    run(script)


def test_error_in_the_cycle_of_the_clear_is_recorded():
    async def script(driver):
        await driver.done(5, tag=1)
        await driver.done(5, tag=2)
        # The strobe comes in the cycle after the access is accepted.
        access = {"address": OFFSETS["control"], "write": 1, "data": 0b100, "strobe": 15}
        driver.ctx.set(driver.dut.answers.ready, 1)
        await send(driver.ctx, driver.dut.accesses, [access])
        await driver.done(6, tag=3)
        assert await driver.read("error") == 0x0003_0006
        assert await driver.read("error_count") == 1

    run(script)


def test_interrupt():
    async def script(driver):
        def irq():
            return driver.ctx.get(driver.dut.irq)

        await driver.done()
        await driver.done(3)
        assert not irq(), "nothing is enabled"
        assert await driver.read("irq_status") == 0b11
        await driver.write("irq_enable", 0b01)
        assert irq()
        await driver.write("irq_status", 0b01)
        assert not irq(), "done alone is not enabled"
        assert await driver.read("irq_status") == 0b10
        await driver.write("irq_enable", 0b10)
        assert irq()

    run(script)


def test_counters():
    """Each event counts in its own register, bytes by their number; one write clears all."""
    registers = {
        "command": "commands",
        "request": "requests",
        "beat": "beats",
        "descriptor_hit": "descriptor_hits",
        "descriptor_miss": "descriptor_misses",
        "stall_credit": "stall_credit",
        "stall_ar": "stall_ar",
        "stall_data": "stall_data",
        "stall_smem": "stall_smem",
    }

    async def script(driver):
        ctx, dut = driver.ctx, driver.dut
        for number, event in enumerate(registers, start=1):
            ctx.set(dut.events, {event: 1})
            for _ in range(number):
                await ctx.tick()
        ctx.set(dut.events, {})
        ctx.set(dut.landed_bytes, 4096)
        ctx.set(dut.conflict_stb, 1)
        ctx.set(dut.idle, 0)
        for _ in range(3):
            await ctx.tick()
        ctx.set(dut.landed_bytes, 0)
        ctx.set(dut.conflict_stb, 0)
        ctx.set(dut.idle, 1)
        for number, name in enumerate(registers.values(), start=1):
            assert await driver.read(name) == number, name
        assert await driver.read("bytes") == 3 * 4096
        assert await driver.read("bank_conflicts") == 3
        assert await driver.read("busy_cycles") == 3
        await driver.write("control", 0b001)
        for name in (*registers.values(), "bytes", "bank_conflicts", "busy_cycles"):
            assert await driver.read(name) == 0, name

    run(script)


def test_status_and_invalidate():
    pulses = []

    async def script(driver):
        driver.ctx.set(driver.dut.idle, 0)
        driver.ctx.set(driver.dut.queue_level, 2)
        assert await driver.read("status") == 0x200
        access = {"address": OFFSETS["control"], "write": 1, "data": 0b010, "strobe": 15}
        await send(driver.ctx, driver.dut.accesses, [access])
        for _ in range(4):
            *_, pulse = await driver.ctx.tick().sample(driver.dut.invalidate_descriptors)
            pulses.append(pulse)

    run(script)
    assert pulses == [1, 0, 0, 0]
