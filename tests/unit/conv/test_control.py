"""Registers of the convolution engine: parameters of each preset, and counters.

Error record, interrupt and status are shown by tests/integration/conv/test_registers.py.
"""

import pytest

from support.registers import Registers
from tilewright.hw.conv.control import ConvControl
from tilewright.hw.conv.params import CONV_UNIT_PRESETS
from tilewright.spec.conv import CONV_ID_VALUE, CONV_REGISTERS
from tilewright.spec.pe import MM_FAMILIES
from tilewright.verify.pysim.simulate import elaborated, simulate

#: Counters, by their registers, with the events that they count.
COUNTED = {"jobs": "job", "steps": "step", "feature_rows_fetched": "feature_rows", "weight_rows_fetched": "weight_rows",
           "results_written": "results", "bank_conflicts": "bank_conflict"}  # fmt: skip
COUNTED |= {f"stall_{name}": f"stall_{name}" for name in ("features", "weights", "results")}


@pytest.mark.parametrize("preset", CONV_UNIT_PRESETS)
def test_identification_and_parameters(preset):
    conv, dut = CONV_UNIT_PRESETS[preset].conv, elaborated(ConvControl, CONV_UNIT_PRESETS[preset])
    types = sum(1 << number for number, family in enumerate(MM_FAMILIES) if family in conv.types)
    expected = {
        "id": CONV_ID_VALUE,
        "params0": int.from_bytes([conv.row_bytes, conv.slaves, conv.units, conv.results], "little"),
        "params1": int.from_bytes(
            [conv.feature_rows, conv.weight_rows, conv.queue_depth, types | conv.rotation << 4 | 0x60], "little"
        ),
        "params2": conv.weight_bytes,
    }

    async def bench(ctx):
        registers = Registers(ctx, dut.accesses, CONV_REGISTERS)
        assert {name: await registers.read(name) for name in expected} == expected

    simulate(dut, bench)
    assert CONV_ID_VALUE.to_bytes(4, "big") == b"TWCV"


def test_each_counter_counts_its_event_alone():
    dut = elaborated(ConvControl, CONV_UNIT_PRESETS["unit"])

    async def bench(ctx):
        registers = Registers(ctx, dut.accesses, CONV_REGISTERS)
        ctx.set(dut.idle, 1)
        for counter, event in COUNTED.items():
            await registers.write("control", clear_counters=1)
            most = (1 << len(dut.events[event])) - 1
            for events in ({event: most}, {event: 1}, {}):
                ctx.set(dut.events, events)
                await ctx.tick()
            counts = {name: await registers.read(name) for name in COUNTED}
            assert counts == dict.fromkeys(COUNTED, 0) | {counter: most + 1}
        assert await registers.read("busy_cycles") == 0
        ctx.set(dut.idle, 0)
        await ctx.tick().repeat(7)
        ctx.set(dut.idle, 1)
        await ctx.tick()
        assert await registers.read("busy_cycles") == 7
        await registers.write("control", clear_counters=1)
        assert await registers.read("busy_cycles") == 0

    simulate(dut, bench)
