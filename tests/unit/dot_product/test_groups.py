"""Groups: leaders have sums, maxima and ORs over all units of their group, for sizes that change every cycle."""

import random
from functools import reduce
from operator import or_

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from tilewright.hw.dot_product.groups import Groups, add, either, larger
from tilewright.hw.lib.logic import delay
from tilewright.verify.pysim.streams import run_pipeline

SEED = 12
OWN = 3  # values of each unit
OPERATORS = {add: sum, larger: max, either: lambda values: reduce(or_, values)}
ROWS = {"threads": (13, (1, 2, 3, 4)), "parts": (8, (8, 4, 2, 1)), "one": (1, (1,)), "others": (5, (2, 3))}


class Reduced(wiring.Component):
    """Reduces 8-bit values, and spreads the results."""

    def __init__(self, count, sizes, combine, cycles, steps=None):
        self.LATENCY = cycles
        self._groups, self._steps = Groups(count, sizes), steps
        self._combine = combine
        super().__init__(
            {
                "i": In(data.ArrayLayout(data.ArrayLayout(8, OWN), count)),
                "select": In(range(len(sizes))),
                "o": Out(data.ArrayLayout(16, count)),
                "spread": Out(data.ArrayLayout(16, count)),
                "leads": Out(count),
            }
        )

    def elaborate(self, platform):
        m = Module()
        selects = [delay(m, self.select, cycle, name=f"select{cycle}") for cycle in range(self.LATENCY + 1)]
        rows = [list(unit) for unit in self.i]
        results = self._groups.reduce(m, rows, selects[:-1], self._combine, name="reduced", steps=self._steps)
        wide = [Signal(16, name=f"wide_{unit}") for unit in range(self._groups.count)]
        m.d.comb += [signal.eq(result) for signal, result in zip(wide, results, strict=True)]
        spread = self._groups.spread(m, wide, selects[-1], name="spread")
        for unit in range(self._groups.count):
            m.d.comb += [
                self.o[unit].eq(wide[unit]),
                self.spread[unit].eq(spread[unit]),
                self.leads[unit].eq(self._groups.leads(self.select, unit)),
            ]
        return m


@pytest.mark.parametrize("cycles", [1, 2, 3])
@pytest.mark.parametrize("combine", OPERATORS, ids=lambda combine: combine.__name__)
@pytest.mark.parametrize("units", ROWS)
def test_reduce(units, combine, cycles):
    check(ROWS[units], combine, cycles)


@pytest.mark.parametrize("steps", [(0, 1, 1, 1, 1, 1), (0, 4, 1), (3, 1, 0, 1), (2, 3)])
@pytest.mark.parametrize("combine", OPERATORS, ids=lambda combine: combine.__name__)
def test_steps_in_any_cycle(combine, steps):
    """Two steps join the values of a unit, and three the units."""
    check(ROWS["parts"], combine, len(steps), steps)


def check(row, combine, cycles, steps=None):
    count, sizes = row
    rng = random.Random(SEED)
    rows = [
        {"select": rng.randrange(len(sizes)), "i": [[rng.getrandbits(8) for _ in range(OWN)] for _ in range(count)]}
        for _ in range(40)
    ]
    results = run_pipeline(Reduced(count, sizes, combine, cycles, steps), rows, o=cycles, spread=cycles, leads=0)
    for row, result in zip(rows, results, strict=True):
        size = sizes[row["select"]]
        assert result["leads"] == sum(1 << unit for unit in range(0, count, size))
        for first in range(0, count - size + 1, size):
            expected = OPERATORS[combine]([value for unit in row["i"][first : first + size] for value in unit])
            assert result["o"][first] == expected
            assert [result["spread"][unit] for unit in range(first, first + size)] == [expected] * size
