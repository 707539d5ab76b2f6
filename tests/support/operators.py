"""A model of each operator that networks may have, with any attributes, and values of attributes to try."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from tilewright.verify.random.model import MICROSOFT, SCALE, ZERO, Form

__all__ = ["CASES", "VALUES", "OperatorCase"]

_FUNCTIONS = ("Abs", "Elu", "Erf", "Exp", "Gelu", "HardSigmoid", "HardSwish", "LeakyRelu", "Log", "Mish", "Neg",
              "Reciprocal", "Selu", "Sigmoid", "Softplus", "Softsign", "Sqrt", "Tanh", "ThresholdedRelu")  # fmt: skip
_OPERATIONS = ("Max", "Min", "PRelu", "Pow")
#: Operators that are read on constants alone, with further operands.
_ON_CONSTANTS = {"Ceil": (), "Equal": (np.float32([2.25, 4, -1]),), "Floor": ()}
#: Of a result; of a tensor of floats that are not negative.
_Y, _POSITIVE = (np.float32(0.05), np.uint8(7)), (SCALE, np.uint8(0))
#: A constant of numbers.
_NUMBERS = np.float32([[-7.5, 2.25, 4], [0.5, -1, 11]])
#: Shapes of ``x``; of bytes, which constants choose from.
_MAP, _ROWS, _VECTOR = (1, 4, 6, 5), (5, 12), (256,)


def _of_floats(form, kind, *operands, quantity=(SCALE, ZERO), **attributes):
    return form.quantise(form.node(kind, form.both("x", *quantity), *operands, **attributes), *_Y)


def _moved(form, kind, *operands, **attributes):
    return form.node(kind, form.quantise("x"), *operands, **attributes)


def _function(form, kind, **attributes):
    return _of_floats(
        form, kind, quantity=_POSITIVE if kind in ("Log", "Sqrt", "Reciprocal") else (SCALE, ZERO), **attributes
    )


def _two_functions(form, kind, **attributes):
    return _of_floats(form, kind, np.float32(1.5), quantity=_POSITIVE, **attributes)


def _conv(form, kind, *, group=None, **attributes):
    attributes |= {} if group is None else {"group": group}
    return _of_floats(form, kind, form.weights(4, 4 // (group or 1), 3, 3)[0], form.numbers(4), **attributes)


def _gemm(form, kind, **attributes):
    matrix = _integers(3, 12) if attributes.get("transB") else _integers(12, 3)
    weights = form.floats(matrix, np.float32(0.01), np.int8(0))
    bias = form.floats(np.int32([-900, 0, 4321]), SCALE * np.float32(0.01), np.int32(0))
    return _of_floats(form, kind, weights, bias, **attributes)


def _matmul(form, kind, **attributes):
    return _of_floats(form, kind, form.weights(5, 3, axis=1)[0], **attributes)


def _batch_normalization(form, kind, **attributes):
    return _of_floats(
        form, kind, *np.float32([[1, 2, -1, 0.5], [0, 1, 2, 3], [1, -1, 0, 2], [1, 2, 0.5, 1]]), **attributes
    )


def _conv_transpose(form, kind, *, group=None, **attributes):
    attributes |= {} if group is None else {"group": group}
    weights = form.floats(_integers(4, 4 // (group or 1), 3, 3), np.float32(0.01), np.int8(0))
    return _of_floats(form, kind, weights, form.numbers(4), **attributes)


def _normalization(form, kind, **attributes):
    axis = attributes.get("axis", -1)
    sizes = _MAP[axis:] if -len(_MAP) <= axis < len(_MAP) else _MAP
    numbers = [np.linspace(-1, 2, np.prod(sizes), dtype=np.float32).reshape(sizes)] * (1 + (kind[0] == "L"))
    return _of_floats(form, kind, *numbers, **attributes)


def _instance_normalization(form, kind, **attributes):
    return _of_floats(form, kind, *np.float32([[1, 2, -1, 0.5], [0, 1, 2, 3]]), **attributes)


def _group_normalization(form, kind, **attributes):
    numbers = np.float32([[1, 2, -1, 0.5], [0, 1, 2, 3]])[:, : 4 if form.opset >= 21 else attributes["num_groups"]]
    return _of_floats(form, kind, *numbers, **attributes)


def _recurrent(form, kind, **attributes):
    """Of 6 steps of 4 batches of 5 inputs, with weights that change slowly from element to element."""
    ways, hidden = 1 + (attributes.get("direction") == "bidirectional"), attributes["hidden_size"]
    rows, x = {"GRU": 3, "LSTM": 4, "RNN": 1}[kind] * hidden, form.node("Squeeze", form.both("x"))
    weights = [
        np.sin(np.arange(ways * rows * size, dtype=np.float32)).reshape(ways, rows, size) for size in (5, hidden)
    ]
    y = form.node(kind, form.node("Transpose", x, perm=[1, 0, 2]), *weights, **attributes)
    return form.quantise(y, np.float32(0.01), np.uint8(128))


def _expand(form, kind, **attributes):
    return _moved(form, kind, np.int64([2, 4, 6, 5]), **attributes)


def _tile(form, kind, **attributes):
    return _moved(form, kind, np.int64([1, 2, 1, 2]), **attributes)


def _on_integers(form, kind, *others, **attributes):
    domain = "" if kind in ("QLinearConv", "QLinearMatMul") else MICROSOFT
    return form.node(kind, form.quantise("x"), SCALE, ZERO, *others, *_Y, domain=domain, **attributes)


def _integers(*_shape):
    return np.random.default_rng(3).integers(-64, 64, _shape).astype(np.int8)


def _qlinear_conv(form, kind, *, group=None, **attributes):
    attributes |= {} if group is None else {"group": group}
    return _on_integers(form, kind, _integers(4, 4 // (group or 1), 3, 3), np.float32(0.01), np.int8(0), **attributes)


def _qgemm(form, kind, *, transB=0, **attributes):  # noqa: N803 - ONNX's name
    matrix = _integers(3, 12) if transB else _integers(12, 3)
    attributes |= {"transB": transB} if transB else {}
    return _on_integers(form, kind, matrix, np.float32(0.01), np.int8(0), np.arange(3, dtype=np.int32), **attributes)


def _qlinear_concat(form, kind, **attributes):
    x = form.quantise("x")
    return form.node(kind, *_Y, x, SCALE, ZERO, x, np.float32(0.02), ZERO, domain=MICROSOFT, **attributes)


def _clip(form, kind, **attributes):
    return _of_floats(form, kind, *((np.float32(-1), np.float32(2)) if form.opset > 10 else ()), **attributes)


def _pad(form, kind, **attributes):
    widths = [0, 0, 1, 2, 0, 0, 0, 1]
    if form.opset < 11:
        return _of_floats(form, kind, **({"pads": widths} | attributes))
    return _of_floats(form, kind, np.int64(widths), np.float32(0.3), **attributes)


def _resize(form, kind, **attributes):
    if form.opset < 11:
        return _of_floats(form, kind, np.float32([1, 1, 1.5, 2.2]), **attributes)
    sizes = [9, 4] if "axes" in attributes else [1, 4, 9, 4]
    empty = np.float32([])
    return _of_floats(form, kind, empty, empty, np.int64(sizes), **attributes)


def _reduce(form, kind, **attributes):
    axes = [np.int64([2, -1])] if form.opset >= (13 if kind == "ReduceSum" else 18) else []
    attributes = attributes if axes else {"axes": [2, -1]} | attributes
    return _of_floats(form, kind, *axes, **attributes)


def _by_axes(form, kind, **attributes):
    axes = 0 if kind == "Squeeze" else -2
    if form.opset >= 13:
        return _moved(form, kind, np.int64([axes]), **attributes)
    return _moved(form, kind, **({"axes": [axes]} | attributes))


def _slice_of(form, kind, **attributes):
    if form.opset < 10:
        return _moved(form, kind, **({"starts": [1, 0], "ends": [3, 4], "axes": [1, 2]} | attributes))
    return _moved(form, kind, np.int64([1, 0]), np.int64([3, 4]), np.int64([1, -2]), **attributes)


def _split(form, kind, **attributes):
    given = form.opset >= 13 and "num_outputs" not in attributes
    first = _moved(form, kind, *([np.int64([2, 2])] if given else []), outputs=2, **({"axis": 1} | attributes))
    return first.replace(".0", ".1")


def _cast(form, kind, **attributes):
    return _of_floats(form, kind, **({"to": TensorProto.FLOAT} | attributes))


def _quantize_linear(form, kind, *, domain="", **attributes):
    return form.node(kind, form.both("x"), SCALE, domain=domain, **attributes)


def _dequantize_linear(form, kind, *, domain="", **attributes):
    return form.quantise(form.node(kind, form.quantise("x"), SCALE, ZERO, domain=domain, **attributes), *_Y)


def _constant_node(form, kind, **attributes):
    attributes = attributes or {"value": numpy_helper.from_array(np.int64([2, 1]))}
    return _seen(form, form.node(kind, **attributes))


def _shape(form, kind, **attributes):
    return _seen(form, form.node(kind, np.zeros((2, 3, 4), np.float32), **attributes))


def _constant_of_shape(form, kind, **attributes):
    return _seen(form, form.node(kind, np.int64([2, 3]), **attributes))


def _seen(form, constant):
    """A constant as bytes of x, which counts them: how many it has in each dimension, and four times its elements."""
    flat = form.node("Reshape", form.node("Cast", constant, to=TensorProto.FLOAT), np.int64([-1]))
    elements = form.node("Cast", form.node("Mul", flat, np.float32([4])), to=TensorProto.INT64)
    return form.node("Gather", "x", form.node("Concat", form.node("Shape", constant), elements, axis=0))


def _on_constant(*operands, first=_NUMBERS, attributes=None):
    def build(form, kind, **given):
        later = operands if form.opset >= {"Slice": 10, "Squeeze": 13, "Unsqueeze": 13}.get(kind, 0) else ()
        return _seen(form, form.node(kind, first, *later, **({} if later else attributes or {}) | given))

    return build


def _weights_of(form, kind, **attributes):
    """Floats of integers with a scale for each row, in a product."""
    scales = np.float32([0.01, 0.02, 0.005]) if "axis" in attributes else np.float32(0.01)
    weights = form.node(kind, _integers(3, 12), scales, **attributes)
    each = {"axis": 0} if scales.ndim else {}
    bias = form.floats(np.zeros(3, np.int32), SCALE * scales, np.zeros(scales.shape, np.int32), **each)
    return _of_floats(form, "Gemm", weights, bias, transB=1)


def _integers_of(form, kind, **attributes):
    scales = np.float32([0.25, 0.5]) if "axis" in attributes else np.float32(0.25)
    return _seen(form, form.node(kind, _NUMBERS, scales, **attributes))


class OperatorCase:
    """How an operator is built, on a tensor ``x`` of a shape, with attributes that it needs.

    ``build`` takes a Form, the operator and attributes, and returns the name of the result.
    """

    def __init__(self, build, shape=_MAP, **needed):
        self.build, self.needed, self._shape = build, needed, shape

    @property
    def inputs(self):
        """Elements of ``x`` by its name, where they matter: bytes that count from 0."""
        return {"x": np.arange(256).astype(np.uint8)} if self._shape == _VECTOR else None

    def model(self, kind, version, **attributes):
        """The operator with these attributes, in a version of ONNX's operators."""
        form = Form(*self._shape, dtype="uint8" if self._shape == _VECTOR else "float32", opset=version)
        return form.model(self.build(form, kind, **(self.needed | attributes)))


#: By domain and operator: on tensors, if there is such, and then on constants.
CASES = {
    **{("", kind): [OperatorCase(_function)] for kind in _FUNCTIONS},
    **{("", kind): [OperatorCase(_two_functions)] for kind in _OPERATIONS},
    **{("", kind): [OperatorCase(_two_functions), OperatorCase(_on_constant(np.float32([2, -0.5, 4])), _VECTOR)]
       for kind in ("Add", "Div", "Mul", "Sub")},
    **{("", kind): [OperatorCase(_of_floats)] for kind in ("GlobalAveragePool", "GlobalMaxPool", "Relu", "Softmax")},
    **{("", kind): [OperatorCase(_on_constant(*others), _VECTOR)] for kind, others in _ON_CONSTANTS.items()},
    ("", "Sum"): [OperatorCase(_two_functions)],
    ("", "AveragePool"): [OperatorCase(_of_floats, kernel_shape=[3, 3])],
    ("", "BatchNormalization"): [OperatorCase(_batch_normalization)],
    ("", "ConvTranspose"): [OperatorCase(_conv_transpose)],
    ("", "GroupNormalization"): [OperatorCase(_group_normalization, num_groups=2)],
    **{("", kind): [OperatorCase(_recurrent, hidden_size=3)] for kind in ("GRU", "LSTM", "RNN")},
    ("", "InstanceNormalization"): [OperatorCase(_instance_normalization)],
    **{("", kind): [OperatorCase(_normalization)] for kind in ("LayerNormalization", "RMSNormalization")},
    ("", "Expand"): [OperatorCase(_expand, (1, 4, 6, 1)), OperatorCase(_on_constant(np.int64([2, 2, 3])), _VECTOR)],
    ("", "Range"): [OperatorCase(_on_constant(np.int64(7), np.int64(2), first=np.int64(1)), _VECTOR)],
    ("", "Tile"): [OperatorCase(_tile), OperatorCase(_on_constant(np.int64([2, 1])), _VECTOR)],
    ("", "Where"): [OperatorCase(_on_constant(_NUMBERS, np.float32(3), first=_NUMBERS > 1), _VECTOR)],
    ("", "Cast"): [OperatorCase(_cast), OperatorCase(_on_constant(), _VECTOR, to=TensorProto.INT32)],
    ("", "Clip"): [OperatorCase(_clip)],
    ("", "Concat"): [OperatorCase(lambda form, kind, **given: _of_floats(form, kind, form.both("x"), **given), axis=1),
                     OperatorCase(_on_constant(_NUMBERS), _VECTOR, axis=0)],
    ("", "Constant"): [OperatorCase(_constant_node, _VECTOR)],
    ("", "ConstantOfShape"): [OperatorCase(_constant_of_shape, _VECTOR)],
    ("", "Conv"): [OperatorCase(_conv)],
    ("", "DepthToSpace"): [OperatorCase(_moved, blocksize=2)],
    ("", "DequantizeLinear"): [OperatorCase(_dequantize_linear), OperatorCase(_weights_of, _ROWS)],
    ("", "Dropout"): [OperatorCase(_of_floats)],
    ("", "Flatten"): [OperatorCase(_moved), OperatorCase(_on_constant(), _VECTOR)],
    ("", "Gather"): [OperatorCase(lambda form, kind, **given: _moved(form, kind, np.int64([0, -1]), **given)),
                     OperatorCase(_on_constant(np.int64([1, 0])), _VECTOR)],
    ("", "Gemm"): [OperatorCase(_gemm, _ROWS)],
    ("", "Identity"): [OperatorCase(_moved)],
    ("", "MatMul"): [OperatorCase(_matmul)],
    ("", "MaxPool"): [OperatorCase(_of_floats, kernel_shape=[3, 3])],
    ("", "Pad"): [OperatorCase(_pad)],
    ("", "QLinearConv"): [OperatorCase(_qlinear_conv)],
    ("", "QLinearMatMul"): [OperatorCase(lambda form, kind, **given: _on_integers(
        form, kind, _integers(5, 3), np.float32(0.01), np.int8(0), **given))],
    ("", "QuantizeLinear"): [OperatorCase(_quantize_linear), OperatorCase(_integers_of, _VECTOR)],
    **{("", kind): [OperatorCase(_reduce)] for kind in ("ReduceMax", "ReduceMean", "ReduceSum")},
    ("", "Reshape"): [OperatorCase(lambda form, kind, **given: _moved(form, kind, np.int64([6, -1, 4]), **given)),
                      OperatorCase(_on_constant(np.int64([3, -1])), _VECTOR)],
    ("", "Resize"): [OperatorCase(_resize, mode="nearest")],
    ("", "Shape"): [OperatorCase(_shape, _VECTOR)],
    ("", "Slice"): [OperatorCase(_slice_of), OperatorCase(_on_constant(
        *(np.int64([each]) for each in (1, 3, -1)), attributes={"starts": [1], "ends": [3], "axes": [1]}), _VECTOR)],
    ("", "SpaceToDepth"): [OperatorCase(_moved, (1, 4, 6, 4), blocksize=2)],
    ("", "Split"): [OperatorCase(_split)],
    ("", "Squeeze"): [OperatorCase(_by_axes), OperatorCase(_on_constant(np.int64([-2]), first=_NUMBERS[:, None],
                                                      attributes={"axes": [1]}), _VECTOR)],
    ("", "Transpose"): [OperatorCase(_moved), OperatorCase(_on_constant(), _VECTOR)],
    ("", "Unsqueeze"): [OperatorCase(_by_axes), OperatorCase(_on_constant(
        np.int64([-2]), attributes={"axes": [1]}), _VECTOR)],
    (MICROSOFT, "DequantizeLinear"): [
        OperatorCase(lambda form, kind, **given: _dequantize_linear(form, kind, domain=MICROSOFT, **given)),
        OperatorCase(lambda form, kind, **given: _weights_of(form, kind, domain=MICROSOFT, **given), _ROWS)],
    (MICROSOFT, "Gelu"): [OperatorCase(lambda form, kind, **given: _of_floats(form, kind, domain=MICROSOFT, **given))],
    (MICROSOFT, "QGemm"): [OperatorCase(_qgemm, _ROWS)],
    (MICROSOFT, "QLinearAveragePool"): [OperatorCase(_on_integers, kernel_shape=[3, 3])],
    (MICROSOFT, "QLinearConcat"): [OperatorCase(_qlinear_concat, axis=1)],
    (MICROSOFT, "QLinearGlobalAveragePool"): [OperatorCase(_on_integers)],
    (MICROSOFT, "QLinearSoftmax"): [OperatorCase(_on_integers, opset=13)],
    (MICROSOFT, "QuantizeLinear"): [
        OperatorCase(lambda form, kind, **given: _quantize_linear(form, kind, domain=MICROSOFT, **given)),
        OperatorCase(lambda form, kind, **given: _integers_of(form, kind, domain=MICROSOFT, **given), _VECTOR)],
    (MICROSOFT, "QLinearAdd"): [OperatorCase(lambda form, kind, **given: _on_integers(
        form, kind, form.quantise("x"), SCALE, ZERO, **given))],
    (MICROSOFT, "QLinearMul"): [OperatorCase(lambda form, kind, **given: _on_integers(
        form, kind, np.uint8(77), SCALE, np.uint8(3), **given))],
    **{(MICROSOFT, kind): [OperatorCase(_on_integers)] for kind in ("QLinearLeakyRelu", "QLinearSigmoid")},
}  # fmt: skip

_SWITCH, _AUTO = [0, 1], ["NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER", "SAME"]
_WINDOWS = {"dilations": [[1, 1], [1, 2]], "kernel_shape": [[3, 3], [2, 2]], "strides": [[1, 1], [2, 1]],
           "pads": [[0, 0, 0, 0], [1, 0, 2, 1]], "auto_pad": _AUTO}  # fmt: skip
#: Values to try for each attribute, or for the attribute of one operator; the default is tried too.
VALUES = _WINDOWS | {
    "allowzero": _SWITCH, "alpha": [1.0, 0.3, -0.25], "antialias": _SWITCH, "approximate": ["none", "tanh", "erf"],
    "axes": [[0], [2, 3], [-2, -1]], "axis": [0, 1, -1, -2, 9], "beta": [1.0, 0.5, 0.3], "block_size": [0, 2],
    "blocksize": [1, 2, 3], "ceil_mode": _SWITCH, "channels_last": _SWITCH, "count_include_pad": _SWITCH,
    "coordinate_transformation_mode": ["half_pixel", "pytorch_half_pixel", "half_pixel_symmetric", "asymmetric",
                                       "tf_half_pixel_for_nn", "align_corners", "tf_crop_and_resize"],
    "cubic_coeff_a": [-0.75, -0.5], "end": [1, -1, 9], "ends": [[3, 4], [9, -1]], "epsilon": [1e-5, 0.25],
    "exclude_outside": _SWITCH,
    "extrapolation_value": [0.0, 7.0], "gamma": [1.05, 2.0], "group": [1, 2, 4],
    "keep_aspect_ratio_policy": ["stretch", "not_larger", "not_smaller"], "keepdims": _SWITCH, "max": [2.0, -0.5],
    "min": [-1.0, 0.5], "nearest_mode": ["floor", "ceil", "round_prefer_floor", "round_prefer_ceil", "simple"],
    ("", "Pad", "mode"): ["constant", "reflect", "edge", "wrap"],
    ("", "Resize", "mode"): ["nearest", "linear", "cubic"], "mode": ["DCR", "CRD"], "momentum": [0.9, 0.5],
    "noop_with_empty_axes": _SWITCH,
    "output_padding": [[0, 0], [1, 0]], "output_shape": [[8, 7], [7, 6]], "spatial": [1, 0], "training_mode": [0, 1],
    "num_outputs": [2, 3], "opset": [11, 12, 13],
    "direction": ["forward", "reverse", "bidirectional"], "hidden_size": [3], "linear_before_reset": [0, 1],
    "input_forget": [0, 1], "layout": [0], "clip": [0.5], "activation_alpha": [[0.5]], "activation_beta": [[0.5]],
    ("", "GRU", "activations"): [["Sigmoid", "Tanh"], ["Sigmoid", "Relu"]],
    ("", "LSTM", "activations"): [["Sigmoid", "Tanh", "Tanh"], ["Tanh", "Relu", "Sigmoid"]],
    ("", "RNN", "activations"): [["Tanh"], ["Relu"]],
    "output_dtype": [0, *(getattr(TensorProto, name) for name in ("FLOAT", "UINT8", "INT8", "INT16", "FLOAT16"))],
    ("", "Pad", "pads"): [[0, 0, 1, 2, 0, 0, 0, 1], [0, 2, 0, 0, 0, 0, 1, 0]], "perm": [[0, 2, 3, 1], [1, 0], [0, 0]],
    "precision": [0, TensorProto.FLOAT, TensorProto.FLOAT16], "ratio": [0.5, 0.2],
    "round_mode": ["up", "down", "nearest"], "saturate": [1, 0], "seed": [0, 7],
    "sparse_value": [helper.make_sparse_tensor(
        numpy_helper.from_array(np.int64([3]), "v"), numpy_helper.from_array(np.int64([1])), [2])],
    "num_groups": [1, 2, 4],
    "split": [[2, 2], [1, 3], [1, 1]], "stash_type": [1, 10],
    "start": [0, 1, -1, 9], "starts": [[1, 0], [-2, 1]], "storage_order": _SWITCH,
    "to": [1, 2, 3, 6, 7, 10, 11], "transA": _SWITCH, "transB": _SWITCH, ("", "Pad", "value"): [0.0, 0.7],
    "value": [numpy_helper.from_array(value) for value in (np.int32([7]), np.float32([2.5]))],
    "value_float": [2.5], "value_floats": [[2.5, 1.0]], "value_int": [3], "value_ints": [[3, -1]],
    "value_string": ["a"], "value_strings": [["a"]],
}  # fmt: skip
