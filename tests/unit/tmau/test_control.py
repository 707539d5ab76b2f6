"""The TMAU's registers as a driver sees them."""

import pytest

from support.registers import Registers
from tilewright.hw.tmau.control import Control
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.spec import Error
from tilewright.spec.tmau_registers import TMAU_REGISTERS, processor_registers
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import send


class Driver(Registers):
    """Reads and writes registers, and plays the core."""

    def __init__(self, ctx, dut):
        super().__init__(ctx, dut.accesses, TMAU_REGISTERS + processor_registers(16))
        self.dut = dut

    async def done(self, code=0, *, field=0, tag=0, address=0, landed=0, stored=0):
        """One command ends, after ``landed`` bytes, which with ``stored`` went to global memory."""
        record = {"code": code, "field": field, "tag": tag, "address": address}
        self.ctx.set(self.dut.datapath.done, {"valid": 1, "stored": stored, "bytes": landed, "record": record})
        await self.ctx.tick()
        self.ctx.set(self.dut.datapath.done.valid, 0)


def run(script, preset="unit", **changes):
    dut = elaborated(Control, TMAU_PRESETS[preset].replace(**changes))

    async def testbench(ctx):
        ctx.set(dut.datapath.idle, 1)
        await script(Driver(ctx, dut))

    simulate(dut, testbench)


@pytest.mark.parametrize("preset", TMAU_PRESETS)
def test_identification_and_parameters(preset):
    params = TMAU_PRESETS[preset]

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
        await driver.done(13, field=9, tag=0x1234, address=0x0123_4567_89AB_CDEF)
        await driver.done(26, tag=0x5678, address=7)
        assert await driver.read("error") == 0x1234_09_0D
        assert await driver.read("error_address_lo") == 0x89AB_CDEF
        assert await driver.read("error_address_hi") == 0x0123_4567
        assert await driver.read("error_count") == 2
        assert await driver.read("status") == 3
        await driver.write("control", 0b100)
        for name in ("error", "error_address_lo", "error_address_hi", "error_count"):
            assert await driver.read(name) == 0, name
        await driver.done(1, tag=3)
        assert await driver.read("error") == 0x0003_0001

    run(script, "full")


def test_refused_barrier_operation():
    """It has no tag; of two errors in one cycle the command's is the first."""

    async def script(driver):
        ctx, dut = driver.ctx, driver.dut
        ctx.set(dut.datapath.refused.address, 0x128)
        ctx.set(dut.datapath.refused.valid, 1)
        await ctx.tick()
        ctx.set(dut.datapath.refused.valid, 0)
        assert await driver.read("error") == Error.BARRIER_OPERATION
        assert await driver.read("error_address_lo") == 0x128
        assert await driver.read("irq_status") == 0b01
        await driver.write("control", 0b100)
        ctx.set(dut.datapath.refused.valid, 1)
        await driver.done(3, tag=5, address=0x40)
        ctx.set(dut.datapath.refused.valid, 0)
        assert await driver.read("error") == 0x0005_0003
        assert await driver.read("error_address_lo") == 0x40
        assert await driver.read("error_count") == 2

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
        "write_request": "write_requests",
        "write_beat": "write_beats",
        "descriptor_hit": "descriptor_hits",
        "descriptor_miss": "descriptor_misses",
        "stall_credit": "stall_credit",
        "stall_ar": "stall_ar",
        "stall_data": "stall_data",
        "stall_smem": "stall_smem",
        "bank_conflict": "bank_conflicts",
    }

    async def script(driver):
        ctx, dut = driver.ctx, driver.dut
        for number, event in enumerate(registers, start=1):
            ctx.set(dut.datapath.events, {event: 1})
            for _ in range(number):
                await ctx.tick()
        ctx.set(dut.datapath.events, {})
        ctx.set(dut.datapath.idle, 0)
        for _ in range(3):
            await driver.done(landed=4096 - 16)
        ctx.set(dut.datapath.idle, 1)
        await driver.done(26, landed=64)
        await driver.done(stored=1, landed=48)
        await driver.done(36, stored=1, landed=64)
        for number, name in enumerate(registers.values(), start=1):
            assert await driver.read(name) == number, name
        assert await driver.read("bytes") == 3 * (4096 - 16), "those of a failed transfer do not count"
        assert await driver.read("write_bytes") == 48
        assert await driver.read("busy_cycles") == 3
        await driver.write("control", 0b001)
        for name in (*registers.values(), "bytes", "write_bytes", "busy_cycles"):
            assert await driver.read(name) == 0, name

    run(script)


def test_status_and_invalidate():
    pulses = []

    async def script(driver):
        driver.ctx.set(driver.dut.datapath.idle, 0)
        driver.ctx.set(driver.dut.datapath.queue_level, 2)
        assert await driver.read("status") == 0x200
        access = {"address": driver.named["control"].offset, "write": 1, "data": 0b010, "strobe": 15}
        await send(driver.ctx, driver.dut.accesses.requests, [access])
        for _ in range(4):
            *_, pulse = await driver.ctx.tick().sample(driver.dut.datapath.invalidate_descriptors)
            pulses.append(pulse)

    run(script)
    assert pulses == [1, 0, 0, 0]


#: Memory of 2^32 bytes; base, limit -> first and last page.
GLOBAL_WINDOWS = {
    "whole pages": (0x3000, 0x8FFF, 0x3, 0x8),
    "low bits do not count": (0x3FFF, 0x8000, 0x3, 0x8),
    "to the end of all addresses": (0x1000, (1 << 64) - 1, 1, (1 << 20) - 1),
    "behind the memory": (1 << 32, (1 << 64) - 1, (1 << 20) - 1, 0),
}


@pytest.mark.parametrize("case", GLOBAL_WINDOWS)
def test_global_window(case):
    base, limit, first, last = GLOBAL_WINDOWS[case]

    async def script(driver):
        for name, address in (("base", base), ("limit", limit)):
            await driver.write(f"global_{name}_lo", address & 0xFFFF_FFFF)
            await driver.write(f"global_{name}_hi", address >> 32)
        assert not driver.ctx.get(driver.dut.datapath.windows.confine_global)
        await driver.write("windows", 1)
        windows = driver.ctx.get(driver.dut.datapath.windows)
        assert (windows.confine_global, windows.confine_shared) == (1, 0)
        assert (windows.global_first, windows.global_last) == (first, last)

    run(script)


@pytest.mark.parametrize(
    ("base", "limit", "first", "last"),
    [(256, 1023, 2, 7), (300, 1000, 2, 7), (0, 0xFFFF_FFFF, 0, 31), (4096, 8191, 31, 0)],
)
def test_shared_window(base, limit, first, last):
    """Of 4096 bytes; one behind them holds nothing."""

    async def script(driver):
        await driver.write("shared_base", base)
        await driver.write("shared_limit", limit)
        await driver.write("windows", 2)
        windows = driver.ctx.get(driver.dut.datapath.windows)
        assert (windows.confine_global, windows.confine_shared) == (0, 1)
        assert (windows.shared_first, windows.shared_last) == (first, last)

    run(script)


def test_windows_of_processors():
    """What lies in its own and in those of the unit."""

    async def script(driver):
        datapath = driver.dut.datapath
        unit = {
            "global_base_lo": 0x1000,
            "global_limit_lo": 0x8FFF,
            "shared_base": 128,
            "shared_limit": 1023,
            "windows": 3,
        }
        first = {"global_base_lo_1": 0x5000, "global_limit_lo_1": 0xBFFF, "global_limit_hi_1": 1, "windows_1": 1}
        second = {"shared_base_2": 0, "shared_limit_2": 511, "windows_2": 2}
        for name, value in (unit | first | second).items():
            await driver.write(name, value)
        assert await driver.read("processors") == 3
        assert [await driver.read(name) for name in first] == list(first.values())

        def seen(windows):
            shown = driver.ctx.get(windows)
            parts = (shown.global_first, shown.global_last), (shown.shared_first, shown.shared_last)
            return tuple(
                pair if on else None
                for pair, on in zip(parts, (shown.confine_global, shown.confine_shared), strict=True)
            )

        await driver.ctx.tick()
        assert seen(datapath.windows) == ((1, 8), (1, 7))
        assert [seen(datapath.processor_windows[number]) for number in range(3)] == [
            ((1, 8), (1, 7)), ((5, 8), (1, 7)), ((1, 8), (1, 3))
        ]  # fmt: skip
        await driver.write("windows", 0)
        await driver.ctx.tick()
        assert seen(datapath.windows) == (None, None)
        assert [seen(datapath.processor_windows[number]) for number in range(3)] == [
            (None, None), ((5, (1 << 20) - 1), None), (None, (0, 3))
        ]  # fmt: skip

    run(script, processors=3)


def test_without_windows_processors_are_counted():
    async def script(driver):
        assert await driver.read("processors") == 16
        assert (await driver.access("windows_3"))[1]

    run(script, preset="lean", processors=16)
