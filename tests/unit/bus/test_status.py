"""The first error is kept and all are counted; the registers' part is tested with the control blocks."""

import pytest
from amaranth.lib import data

from tilewright.hw.bus.status import ErrorRecord
from tilewright.sim.pysim.simulate import simulate

RECORD = data.StructLayout({"code": 8, "number": 8})


def run(*cycles):
    """Shows ``(errors, code, inputs)`` one a cycle; returns code and count after each."""
    dut, seen = ErrorRecord(RECORD, count_width=3), []

    async def script(ctx):
        for errors, code, inputs in cycles:
            ctx.set(dut.errors, errors)
            ctx.set(dut.record, {"code": code, "number": 7})
            for name in ("before", "clear"):
                ctx.set(getattr(dut, name), name in inputs)
            await ctx.tick()
            seen.append((ctx.get(dut.kept.code), ctx.get(dut.count)))

    simulate(dut, script)
    return seen


def test_the_first_error_is_kept():
    assert run((0, 9, ()), (1, 3, ()), (1, 4, ()), (0, 5, ("before",))) == [(0, 0), (3, 1), (3, 2), (3, 2)]


def test_an_earlier_error_takes_its_place():
    assert run((1, 3, ()), (1, 4, ("before",))) == [(3, 1), (4, 2)]


@pytest.mark.parametrize(("errors", "after"), [(0, (0, 0)), (1, (4, 1)), (2, (4, 2))])
def test_a_clear_drops_what_was_before(errors, after):
    assert run((1, 3, ()), (errors, 4, ("clear",)))[-1] == after


def test_the_count_stays_at_its_largest_value():
    assert [count for _, count in run(*[(2, 1, ())] * 5)] == [2, 4, 6, 7, 7]
