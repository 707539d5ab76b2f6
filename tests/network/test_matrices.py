"""Products of two computed matrices, in forms of both exporters, on ONNX Runtime and as programs."""

import numpy as np
import pytest

from support.network import refusal
from tilewright.network.attributes import MatMul
from tilewright.verify.random.model import MICROSOFT, Form

A, B = np.float32(0.03), np.float32(0.02)
#: Types of both operands and of the result for which ONNX Runtime has a kernel on integers.
TYPES = [("uint8", "uint8", "uint8"), ("uint8", "int8", "uint8"), ("int8", "int8", "int8")]
SHAPES = [
    ((5, 40), (40, 7)), ((16, 32), (32, 48)), ((1, 17, 40), (1, 40, 19)), ((3, 16, 32), (3, 32, 16)),
    ((2, 3, 16, 32), (2, 3, 32, 48)), ((2, 3, 17, 20), (2, 3, 20, 9)),
    # One matrix and several, and dimensions that are repeated on both sides.
    ((3, 17, 40), (40, 19)), ((1, 17, 40), (3, 40, 19)), ((2, 1, 9, 20), (2, 3, 20, 11)),
    ((2, 1, 9, 20), (1, 3, 20, 8)),
    # Single rows and columns, and single elements that are added.
    ((4, 1, 48), (4, 48, 1)), ((1, 1), (1, 9)), ((2, 5, 1), (2, 1, 6)),
]  # fmt: skip


def zero(value, dtype):
    return np.array(value + 128 * (dtype == "uint8"), dtype)


def product(form, kind, a, b, types, size):
    """The product of two names of floats with quantised results, in one of both forms."""
    first, second, made = types
    quantities = [(A, zero(5, first)), (B, zero(-9, second)), (np.float32(A * B * size**0.5 * 50), zero(3, made))]
    if kind == "QLinearMatMul":
        integers = [form.quantise(x, *quantity) for x, quantity in zip((a, b), quantities, strict=False)]
        operands = [value for x, quantity in zip(integers, quantities, strict=False) for value in (x, *quantity)]
        return form.node(kind, *operands, *quantities[2]), quantities[2]
    floats = [form.both(x, *quantity) for x, quantity in zip((a, b), quantities, strict=False)]
    return form.quantise(form.node("MatMul", *floats), *quantities[2]), quantities[2]


@pytest.mark.parametrize("types", TYPES, ids=lambda types: "-".join(types))
@pytest.mark.parametrize("kind", ["MatMul", "QLinearMatMul"])
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_shapes(shapes, kind, types, check_model):
    form = Form(*shapes[0])
    form.give("b", shapes[1])
    graph = check_model(form.model(product(form, kind, "x", "b", types, shapes[0][-1])[0]), presets=("unit", "default"))
    (node,) = (node for node in graph.nodes if node.kind == "MatMul")
    assert graph.macs(node) == np.prod(graph.tensors[node.output].shape) * shapes[0][-1]


@pytest.mark.parametrize("types", TYPES, ids=lambda types: "-".join(types))
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("across", [(0, 0), (0, 1), (1, 0), (1, 1)], ids=str)
@pytest.mark.parametrize("kind", ["Gemm", "QGemm"])
def test_gemm(kind, across, bias, types, check_model):
    first, second = ((9, 20)[:: -1 if across[0] else 1], (20, 16)[:: -1 if across[1] else 1])
    form = Form(*first)
    form.give("b", second)
    (a_type, b_type, y_type), attributes = types, {"transA": across[0], "transB": across[1]}
    quantities = (A, zero(5, a_type)), (B, zero(-9, b_type))
    y, counts = (np.float32(0.15), zero(3, y_type)), np.arange(-8, 8, dtype=np.int32) * 300
    if kind == "QGemm":
        a, b = (form.quantise(name, *quantity) for name, quantity in zip(("x", "b"), quantities, strict=True))
        end = form.node(kind, a, *quantities[0], b, *quantities[1], counts if bias else "", *y, domain=MICROSOFT,
                        **attributes)  # fmt: skip
    else:
        operands = [form.both(name, *quantity) for name, quantity in zip(("x", "b"), quantities, strict=True)]
        operands += [form.floats(counts, A * B, np.int32(0))] * bias
        end = form.quantise(form.node(kind, *operands, **attributes), *y)
    check_model(form.model(end), presets=("unit", "default"))


@pytest.mark.parametrize("shapes", [((20,), (20, 9)), ((9, 20), (20,)), ((3, 9, 20), (20,))], ids=str)
def test_vectors(shapes, check_model):
    """Of one dimension: ``x`` has a batch, so that the vectors are reshaped matrices."""
    form = Form(*(shapes[0] if len(shapes[0]) > 1 else (1, *shapes[0])))
    form.give("b", shapes[1] if len(shapes[1]) > 1 else (1, *shapes[1]))
    a, b = (name if len(shape) > 1 else form.node("Reshape", name, np.int64(shape))
            for name, shape in zip(("x", "b"), shapes, strict=True))  # fmt: skip
    check_model(form.model(product(form, "MatMul", a, b, TYPES[0], 20)[0]))


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("shapes", [((3, 9, 20), (3, 20, 8)), ((9, 20), (20, 8)), ((2, 9, 20), (4, 2, 20, 8))], ids=str)
def test_a_constant_operand(shapes, first, check_model):
    """Several constant matrices, or a constant that comes first."""
    form = Form(*shapes[first])
    numbers = np.random.default_rng(3).integers(0, 256, shapes[not first]).astype(np.uint8)
    constant, x = form.floats(numbers, B, np.uint8(77)), form.both("x", A, np.uint8(120))
    check_model(form.model(form.quantise(form.node("MatMul", *((constant, x) if first else (x, constant))),
                                         np.float32(0.1), np.uint8(128))))  # fmt: skip


@pytest.mark.parametrize("presets", [("unit",), ("default",)], ids=str)
@pytest.mark.parametrize(("rows", "heads", "deep"), [(16, 2, 16), (19, 3, 8), (33, 2, 32)])
def test_heads(rows, heads, deep, presets, check_model):
    """As in attention, with a function of each element where that has its Softmax."""
    wide = heads * deep
    form = Form(1, rows, wide)
    x, quantity = form.both("x"), (np.float32(0.1), np.uint8(128))

    def head(*order):
        y = form.both(form.node("MatMul", x, form.weights(wide, wide, axis=1)[0]), *quantity)
        return form.node("Transpose", form.node("Reshape", y, np.int64([1, rows, heads, deep])), perm=order)

    scores = form.both(form.node("MatMul", head(0, 2, 1, 3), head(0, 2, 3, 1)), np.float32(2), np.uint8(120))
    scores = form.both(form.node("Mul", scores, np.float32(deep**-0.5)), np.float32(0.4), np.uint8(128))
    weights = form.both(form.node("Sigmoid", scores), np.float32(1 / 255), np.uint8(0))
    y = form.both(form.node("MatMul", weights, head(0, 2, 1, 3)), np.float32(0.5), np.uint8(128))
    y = form.node("Reshape", form.node("Transpose", y, perm=[0, 2, 1, 3]), np.int64([1, rows, wide]))
    y = form.quantise(form.node("MatMul", y, form.weights(wide, 10, axis=1)[0]), np.float32(2), np.uint8(128))
    check_model(form.model(y), presets=presets)


@pytest.mark.parametrize("shape", [(1, 12, 4, 5), (2, 16, 4, 4)], ids=str)
def test_pixels_by_pixels(shape, check_model):
    """A non-local block: products of all pixels with all pixels, and of those with the pixels again."""
    batch, channels, height, width = shape
    form = Form(*shape)
    x = form.both("x")
    flat = [form.node("Reshape", form.both(form.node("Conv", x, form.weights(channels, channels, 1, 1)[0]),
                                           np.float32(0.08), np.uint8(128)), np.int64([batch, channels, -1]))
            for _ in range(3)]  # fmt: skip
    pairs = form.node("MatMul", form.node("Transpose", flat[0], perm=[0, 2, 1]), flat[1])
    pairs = form.both(form.node("Mul", form.both(pairs, np.float32(1), np.uint8(128)), np.float32(1 / height / width)),
                      np.float32(0.06), np.uint8(128))  # fmt: skip
    y = form.both(form.node("MatMul", pairs, form.node("Transpose", flat[2], perm=[0, 2, 1])), np.float32(0.5),
                  np.uint8(128))  # fmt: skip
    y = form.node("Reshape", form.node("Transpose", y, perm=[0, 2, 1]), np.int64(shape))
    check_model(form.model(form.quantise(form.node("Add", y, x), np.float32(0.5), np.uint8(128))),
                presets=("unit", "default"))  # fmt: skip


@pytest.mark.parametrize("shape", [(9, 24), (2, 16, 32), (1, 6, 4, 5)], ids=str)
def test_a_matrix_by_itself(shape, check_model):
    """The Gram matrix of rows, of which negative sums are cut off, and a product of one operand twice."""
    form = Form(*shape)
    x, order = form.both("x"), [*range(len(shape) - 2), len(shape) - 1, len(shape) - 2]
    gram = form.both(form.node("Relu", form.node("MatMul", x, form.node("Transpose", x, perm=order))),
                     np.float32(0.5), np.uint8(0))  # fmt: skip
    graph = check_model(form.model(form.quantise(form.node("MatMul", gram, gram), np.float32(90), np.uint8(3))))
    first, second = (node.attributes for node in graph.nodes if isinstance(node.attributes, MatMul))
    assert (first.minimum, second.minimum) == (0, 0)


@pytest.mark.parametrize("shape", [(5, 20), (1, 6, 20), (3, 7, 20), (2, 3, 8, 20)], ids=str)
def test_floats_at_the_end(shape, check_model):
    form, other = Form(*shape), (*shape[:-2], 20, 9)
    form.give("b", other)
    check_model(form.model(form.node("MatMul", form.both("x"), form.both("b", B, np.uint8(100)))),
                presets=("unit", "default"))  # fmt: skip


@pytest.mark.parametrize(
    ("shapes", "sentence"),
    [
        (((3, 20), (21, 3)), "its inputs are [3, 20] and [21, 3], which do not fit"),
        (((2, 3, 20), (3, 20, 4)), "its inputs are [2, 3, 20] and [3, 20, 4], which do not fit"),
    ],
)
def test_refusals(shapes, sentence):
    for kind in ("MatMul", "QLinearMatMul"):
        form = Form(*shapes[0])
        form.give("b", shapes[1])
        assert refusal(form.model(product(form, kind, "x", "b", TYPES[0], 20)[0])).endswith(sentence)


def test_several_scales_of_several_matrices_are_refused():
    form = Form(2, 3, 20)
    x, weights = form.both("x"), form.weights(2, 20, 4, axis=2)[0]
    sentence = refusal(form.model(form.quantise(form.node("MatMul", x, weights))))
    assert sentence.endswith("(MatMul): its scale has 4 elements, and only one is supported")
