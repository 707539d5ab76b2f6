"""Resize takes the same elements as ONNX Runtime (docs/network.md, "The nearest element")."""

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from tilewright.network.reader.resize import COORDINATES, ROUNDINGS, nearest_elements
from tilewright.verify.random.model import Form

MODES = [(coordinates, rounding) for coordinates in COORDINATES for rounding in ROUNDINGS]
MOST = 64


def session(coordinates, rounding, argument, opset=19):
    """What ONNX Runtime makes of a row ``x``, for sizes or scales that are given, each as an output."""
    nodes, constants = [], []
    for i, value in enumerate(argument):
        constants.append(numpy_helper.from_array(np.array([value]), f"c{i}"))
        inputs = ["x", "", f"c{i}"] if argument.dtype == np.float32 else ["x", "", "", f"c{i}"]
        modes = {"coordinate_transformation_mode": coordinates, "nearest_mode": rounding}
        nodes.append(helper.make_node("Resize", inputs, [f"y{i}"], mode="nearest", **modes))
    x = helper.make_tensor_value_info("x", TensorProto.INT32, ["n"])
    made = [helper.make_tensor_value_info(f"y{i}", TensorProto.INT32, None) for i in range(len(argument))]
    model = helper.make_model(
        helper.make_graph(nodes, "resize", [x], made, constants), opset_imports=[helper.make_opsetid("", opset)],
        ir_version=8,
    )  # fmt: skip
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # it warns of tf_half_pixel_for_nn
    return onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])


@pytest.mark.parametrize(("coordinates", "rounding"), MODES, ids=lambda name: name)
def test_all_sizes(coordinates, rounding):
    """1 to 64 elements of 1 to 64."""
    sizes = np.arange(1, MOST + 1)
    witness = session(coordinates, rounding, sizes)
    for size in range(1, MOST + 1):
        answers = witness.run(None, {"x": np.arange(size, dtype=np.int32)})
        for made, theirs in zip(sizes, answers, strict=True):
            factor = np.float32(made) / np.float32(size)
            mine = nearest_elements(size, made, factor, coordinates, rounding)
            assert made == size or (mine == theirs).all(), (size, made, mine, theirs)


@pytest.mark.parametrize("factors", [(0.2, 1.1), (1.1, 4)], ids=["fewer", "more"])
def test_any_factors(factors):
    """Also of long rows, and factors that change no size."""
    rng = np.random.default_rng(7)
    for coordinates, rounding in MODES:
        scales = rng.uniform(*factors, 24).astype(np.float32)
        witness = session(coordinates, rounding, scales)
        for size in rng.integers(5, 900, 6):
            answers = witness.run(None, {"x": np.arange(size, dtype=np.int32)})
            for factor, theirs in zip(scales, answers, strict=True):
                made = int(np.float32(size) * factor)
                mine = nearest_elements(size, made, factor, coordinates, rounding)
                assert made == size or (mine == theirs).all(), (size, factor, coordinates, rounding)


def resized(before, opset=13, dtype="int8", **given):
    """A model of one Resize; sizes or scales, and modes."""
    form = Form(*before, dtype=dtype, opset=opset)
    argument = [np.float32([])] * (1 + ("sizes" in given)) + [given.pop("sizes" if "sizes" in given else "scales")]
    return form.model(form.node("Resize", "x", *argument, mode="nearest", **given))


@pytest.mark.parametrize("options", [
    *({"sizes": np.int64([1, 1, 1, made])} for made in (1, 6, 19, 38, 56)), {"sizes": np.int64([1, 1, 35, 38])},
    {"scales": np.float32([1, 1, 1, 30 / 29])}, {"scales": np.float32([1, 1, 30 / 29, 30 / 29])},
    {"scales": np.float32([1, 1, 2, 30 / 29])}, {"sizes": np.int64([38, 35]), "axes": [-1, 2], "opset": 18},
], ids=str)  # fmt: skip
@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_models(options, rounding, agree):
    """Sizes and factors whose positions lie halfway; factors that change nothing."""
    x = np.random.default_rng(1).integers(-128, 128, (1, 1, 28, 29)).astype(np.int8)
    agree(resized(x.shape, **(options | {"nearest_mode": rounding})), {"x": x})
