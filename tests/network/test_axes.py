"""Dimensions counted from the end: every operator with dimensions, and every way to give them."""

import numpy as np
import onnx
import pytest

from tilewright.network import ModelError, evaluate
from tilewright.network.reader import read_model
from tilewright.network.reader.constants import FOR_CONSTANTS
from tilewright.network.reader.model import READERS
from tilewright.verify.random.model import MICROSOFT, SCALE, ZERO, Form
from tilewright.verify.random.networks import draw_inputs

SHAPE = (2, 3, 4, 6)
SCALES = np.float32([0.01, 0.02, 0.005, 0.03, 0.015, 0.025])
WEIGHTS = np.random.default_rng(2).integers(-64, 64, (6, 6, 3, 3)).astype(np.int8)


def attribute(kind, *others, scale=SCALE, **attributes):
    """An operator on floats that has an attribute ``axis``."""

    def build(form, axis):
        y = form.node(kind, form.both("x"), *others, axis=axis, **attributes)
        return form.quantise(y.replace(".0", ".1") if attributes.get("outputs") == 2 else y, scale, np.uint8(20))

    return build


def given(kind, *before, after=(), named="axes"):
    """One whose dimensions are an input, or the attribute ``axes``."""

    def build(form, axis):
        if named == "axes":
            return form.quantise(form.node(kind, form.both("x"), *before, np.int64([axis]), *after))
        return form.quantise(form.node(kind, form.both("x"), *before, axes=[axis], **dict(after)))

    return build


def scaled(operator, shape, floats=False):
    """A product with weights that have a scale for each index of a dimension."""

    def build(form, axis):
        weights = WEIGHTS[tuple(slice(size) for size in shape) + (0,) * (4 - len(shape))]
        scales = SCALES[: shape[axis] if -len(shape) <= axis < len(shape) else 2]
        if floats:
            weights = form.node(
                "QuantizeLinear", weights.astype(np.float32), scales, np.zeros(len(scales), np.int8), axis=axis
            )
        weights = form.node("DequantizeLinear", weights, scales, np.zeros(len(scales), np.int8), axis=axis)
        return form.quantise(form.node(operator, form.both("x"), weights))

    return build


def both(form, axis):
    return form.quantise(form.node("Concat", form.both("x"), form.both("x"), axis=axis))


def joined(form, axis):
    x = form.quantise("x")
    return form.node("QLinearConcat", SCALE, ZERO, x, SCALE, ZERO, x, SCALE, ZERO, axis=axis, domain=MICROSOFT)


def shares(form, axis):
    return form.node("QLinearSoftmax", form.quantise("x"), SCALE, ZERO, np.float32(1 / 256), np.uint8(0),
                     axis=axis, opset=13, domain=MICROSOFT)  # fmt: skip


def normalised(kind):
    """Rows from a dimension on."""

    def build(form, axis):
        gain = np.ones(SHAPE[axis:] if -4 <= axis < 4 else 6, np.float32)
        return form.quantise(form.node(kind, form.both("x"), gain, axis=axis))

    return build


def mean(form, axis):
    """Of rows and columns: one of the two is counted as ``axis`` says."""
    axes = [axis, 3 if axis % 4 == 2 else 2]
    y = form.both("x")
    y = form.node("ReduceMean", y, np.int64(axes)) if form.opset >= 18 else form.node("ReduceMean", y, axes=axes)
    return form.quantise(y)


def moved_weights(kind, *others, shape=(6, 6), **attributes):
    """Weights of a MatMul that an operator moves before."""

    def build(form, axis):
        weights = form.floats(WEIGHTS[:, :, 0, 0].reshape(shape), SCALES[:1], np.zeros(1, np.int8))
        weights = form.node(kind, weights, *others, **({"axis": axis} if kind == "Flatten" else {"axes": [axis]}))
        weights = form.node("Reshape", weights, np.int64([6, 6]))
        return form.quantise(form.node("MatMul", form.both("x"), weights))

    return build


def indices(kind, *others):
    """Elements of x whose indices are computed from constants."""

    def build(form, axis):
        numbers = np.arange(12).reshape(2, 6) % 6
        if kind == "Slice":
            chosen = form.node(kind, numbers, np.int64([0]), np.int64([1]), np.int64([axis]))
        else:
            chosen = form.node(kind, numbers, *others, axis=axis)
        return form.quantise(form.node("Gather", form.both("x"), form.node("Reshape", chosen, np.int64([-1])), axis=3))

    return build


F32 = np.float32([])
#: Operator, how it is built, the shape of its input, how many dimensions ``axis`` has, and the version.
CASES = [
    ("Concat", both, SHAPE, 4, 13),
    ("Concat", indices("Concat", np.arange(12).reshape(2, 6) % 6), SHAPE, 2, 13),
    *(("DequantizeLinear", scaled("Conv", (6, 3, *[3] * rank)), (2, 3, *[6] * rank), 2 + rank, 13) for rank in (1, 2)),
    *(("DequantizeLinear", scaled(kind, (6, 6)), (2, 6), 2, 13) for kind in ("Gemm", "MatMul")),
    ("QuantizeLinear", scaled("Conv", (6, 3, 3), floats=True), (2, 3, 6), 3, 13),
    ("QuantizeLinear", scaled("MatMul", (6, 6), floats=True), (2, 6), 2, 21),
    *(("Flatten", attribute("Flatten"), SHAPE, 4, opset) for opset in (11, 21)),
    ("Flatten", moved_weights("Flatten", shape=(6, 6, 1)), (2, 6), 3, 13),
    ("Gather", attribute("Gather", np.int64([1, 0])), SHAPE, 4, 13),
    ("Gather", indices("Gather", np.int64([1])), SHAPE, 2, 13),
    ("LayerNormalization", normalised("LayerNormalization"), SHAPE, 4, 17),
    ("RMSNormalization", normalised("RMSNormalization"), SHAPE, 4, 23),
    ("QLinearConcat", joined, SHAPE, 4, 13),
    ("QLinearSoftmax", shares, SHAPE, 4, 13),
    *(("Softmax", attribute("Softmax", scale=np.float32(1 / 256)), SHAPE, 4, opset) for opset in (11, 13)),
    ("Split", attribute("Split", np.int64([1, 1]), outputs=2), (2, 2, 2, 2), 4, 13),
    ("Split", attribute("Split", outputs=2), (2, 2, 2, 2), 4, 11),
    *(("ReduceMean", mean, SHAPE, 4, opset) for opset in (13, 18)),
    ("ReduceMax", given("ReduceMax"), SHAPE, 4, 18),
    ("ReduceSum", given("ReduceSum"), SHAPE, 4, 13),
    ("Resize", given("Resize", F32, F32, np.int64([5]), named="attribute", after=[("mode", "nearest")]), SHAPE, 4, 18),
    ("Slice", given("Slice", np.int64([1]), np.int64([2])), SHAPE, 4, 13),
    ("Slice", given("Slice", named="attribute", after=[("starts", [1]), ("ends", [2])]), SHAPE, 4, 9),
    ("Slice", indices("Slice"), SHAPE, 2, 13),
    ("Squeeze", given("Squeeze"), (1, 1, 1, 1), 4, 13),
    ("Squeeze", given("Squeeze", named="attribute"), (1, 1, 1, 1), 4, 11),
    ("Squeeze", moved_weights("Squeeze", shape=(6, 1, 6)), (2, 6), 3, 11),
    ("Unsqueeze", given("Unsqueeze"), SHAPE, 5, 13),
    ("Unsqueeze", given("Unsqueeze", named="attribute"), SHAPE, 5, 11),
    ("Unsqueeze", moved_weights("Unsqueeze"), (2, 6), 3, 11),
    ("Pad", given("Pad", np.int64([1, 2]), np.float32(0.3)), SHAPE, 4, 18),
]  # fmt: skip


def test_every_operator_that_has_a_dimension():
    """By ONNX's schemas; QLinear operators are ONNX Runtime's."""
    kinds = {kind for domain, kind in READERS if not domain} | FOR_CONSTANTS
    operators = {"QLinearConcat", "QLinearSoftmax"}
    for schema in onnx.defs.get_all_schemas_with_history():
        names = {*schema.attributes, *(each.name for each in schema.inputs)}
        if not schema.domain and schema.since_version >= 7 and schema.name in kinds and names & {"axis", "axes"}:
            operators.add(schema.name)
    assert {kind for kind, *_ in CASES} == operators


def answer(build, shape, opset, axis):
    """The output of a model; None if it is refused."""
    form = Form(*shape, opset=opset)
    try:
        graph = read_model(form.model(build(form, axis)))
    except ModelError:
        return None
    (name,) = graph.outputs
    return evaluate(graph, draw_inputs(np.random.default_rng(0), graph))[name]


@pytest.mark.parametrize(("kind", "build", "shape", "rank", "opset"), CASES,
                         ids=[f"{kind}-{number}" for number, (kind, *_) in enumerate(CASES)])  # fmt: skip
def test_from_the_end(kind, build, shape, rank, opset):
    pairs = [[answer(build, shape, opset, each) for each in (axis, axis - rank)] for axis in range(rank)]
    for first, second in pairs:
        assert (first is None) == (second is None)
        assert first is None or np.array_equal(first, second)
    assert any(first is not None for first, _ in pairs)
    assert answer(build, shape, opset, rank + 1) is None
    assert answer(build, shape, opset, -rank - 2) is None
