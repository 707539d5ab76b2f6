"""Mixed batches as replay cases, read back and run: the same ends, and the same bytes where no barrier is."""

import json
from dataclasses import replace

import pytest

from tilewright.golden.spec import Opcode
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.sim.compare.mixed_golden import run_golden
from tilewright.sim.compare.order_case import order_case
from tilewright.sim.random.mixed import random_mixes
from tilewright.sim.random.order import Order
from tilewright.sim.replay.cases import read_cases
from tilewright.sim.replay.golden import run_case

SEED = 3
PARAMS = TMAU_PRESETS["unit"]


def batches():
    """Batches at address 0 that signal nothing."""
    for batch in random_mixes(SEED, PARAMS, 300):
        orders = (replace(order, fields=order.fields | {"signal": 0}) for order in batch.orders)
        yield replace(batch, base=0, orders=tuple(orders))


def test_a_case_does_what_the_batch_does(tmp_path):
    path, operations = tmp_path / "case.json", set()
    for batch in batches():
        sayable = [order for order in batch.orders if "no replay case" not in order_case("one", "", replace(
            batch, orders=(order,)), PARAMS)]  # fmt: skip
        batch = replace(batch, orders=tuple(sayable))
        path.write_text(order_case("whole", "found", batch, PARAMS))
        (case,) = read_cases(path)
        golden, outcome = run_golden(batch, PARAMS), run_case(case)
        expected = next((ending.name.lower() for ending in golden.endings if ending), None)
        assert outcome.record["error"] == expected
        assert (outcome.memories["smem"][:-128] == golden.machine.smem[:-128]).all()
        assert json.loads(path.read_text())["cases"][0]["expect"]["error"] == expected
        operations |= {command.opcode for command in case.commands}
    assert operations == set(Opcode)


@pytest.mark.parametrize("order", [Order({"opcode": 15}), Order({"opcode": Opcode.LOAD}, raw=bytes(128))])
def test_what_cannot_be_said(order):
    batch = replace(next(random_mixes(SEED, PARAMS, 1)), orders=(order,))
    assert order_case("none", "", batch, PARAMS).startswith("no replay case: no case can say")
