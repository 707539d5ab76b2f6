"""Whole networks of the bench on the hardware of preset ``default``: results, and the cycles that the plan expects."""

import numpy as np
import pytest

from tilewright.network.architectures import ARCHITECTURES
from tilewright.network.compiled import compile as compile_network
from tilewright.network.evaluation import evaluate
from tilewright.network.machine import machine_of_core
from tilewright.network.rtl import run_on
from tilewright.results import record
from tilewright.sim.session.core import open_accelerator
from tilewright.tools.network.bench import TARGETS

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def session():
    with open_accelerator("default", latency=100) as session:
        yield session


@pytest.mark.parametrize("name", TARGETS)
def test_cycles_are_expected(session, name):
    maker = ARCHITECTURES[name]()
    compiled = compile_network(maker.graph(), machine_of_core(session.params))
    inputs = maker.draw()
    data, run = run_on(session, compiled, compiled.memory(inputs))
    values = evaluate(compiled.graph, inputs)
    for output, value in compiled.tensors(data).items():
        np.testing.assert_array_equal(value, values[output], err_msg=output)
    cycles, expected = run.words[-1].cycle - run.words[0].cycle, compiled.plan.cycles
    print(f"{name}: {expected:,} cycles expected, {cycles:,} on the hardware")
    record(f"rtl-{name.replace(' ', '-').replace(',', '').lower()}", cycles=cycles, expected=expected)
    assert 0.9 <= expected / cycles <= 1.1
