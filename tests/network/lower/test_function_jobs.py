"""Jobs that functions of one tensor take, and what docs/network.md, "Tables" and docs/limits.md say of them."""

from pathlib import Path

import numpy as np
import pytest

from tilewright import network
from tilewright.network.functions import FUNCTIONS
from tilewright.network.lower.scales import steps_of
from tilewright.network.reader import read_model
from tilewright.results import record
from tilewright.tools.docs.figures import stale
from tilewright.verify.random.model import Form

ROOT = Path(__file__).parents[3]
#: What a calibration may find that x lies between.
RANGES = ((-1, 1), (-2, 2), (-4, 4), (-8, 8), (-3, 8), (-8, 0.5))
#: x times what these give, of which a tool makes integers first: SiLU, and HardSwish as MobileNetV3 has it.
FACTORS = {"SiLU": "Sigmoid", "HardSwish": "HardSigmoid"}


def quantity(low, high):
    """Scale and zero point with which the numbers from ``low`` to ``high``, and 0, are 8 bits."""
    low, high = min(low, 0), max(high, 0)
    scale = np.float32((high - low) / 255)
    return scale, np.uint8(np.rint(-low / scale))


def model(kind, limits, factor=None, shape=(1, 4, 8, 8)):
    """A function of x with the scales that fit, or x times integers of the function ``factor``."""
    x_quantity = quantity(*limits)
    form = Form(*shape, dtype="uint8", opset=22)
    x = form.floats("x", *x_quantity)
    numbers = (np.arange(256) - int(x_quantity[1])) * float(x_quantity[0])
    function, attributes = FUNCTIONS[factor or kind]
    results = function(numbers, **attributes)
    if factor:
        y = form.node("Mul", x, form.both(form.node(factor, x), *quantity(results.min(), results.max())))
        results = results * numbers
    else:
        y = form.node(kind, x)
    return form.model(form.quantise(y, *quantity(results.min(), results.max())))


def jobs(proto):
    """Of the table that a model of one output is."""
    graph = read_model(proto)
    given = np.arange(256, dtype=np.uint8).reshape(1, 4, 8, 8)
    (table,) = (network.evaluate(graph, {"x": given})[name] for name in graph.outputs)
    return len(steps_of(table.reshape(-1), np.dtype(np.uint8)))


def test_jobs_of_functions():
    rows = {}
    for limits in RANGES:
        extent = f"{limits[0]} to {limits[1]}"
        for kind in ("LeakyRelu", "Sigmoid", "HardSwish", "Gelu"):
            rows[f"{kind}, {extent}"] = {"jobs": jobs(model(kind, limits))}
        for kind, factor in FACTORS.items():
            rows[f"x times integers, {kind}, {extent}"] = {"jobs": jobs(model(kind, limits, factor))}
    record("function-jobs", rows=rows)
    assert not stale("function-jobs", ROOT)


@pytest.mark.parametrize(
    ("kind", "shape"), [("HardSwish", (1, 16, 112, 112)), ("LeakyRelu", (1, 32, 104, 104))], ids=["hardswish", "leaky"]
)
def test_expected_cycles(kind, shape, request):
    compiled = network.compile(read_model(model(kind, (-4, 4), shape=shape)), "default")
    name = f"function-cycles-{request.node.callspec.id}"
    record(name, jobs=len(compiled.plan.layers[0].parts), cycles=compiled.plan.schedule.cycles)
    assert not stale(name, ROOT)
