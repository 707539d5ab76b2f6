"""What ONNX Runtime computes for the same model: a second opinion, not the judge.

Its kernels for x86 processors without VNNI add pairs of products of uint8 and int8 in 16 bits, which saturate unless
weights are -64 to 63. A session option makes it take others, which are exact; of int8 activations it then lacks some.
"""

import re
from pathlib import Path

import numpy as np
import onnx
import onnxruntime

from tilewright.sim.usage import HostError

from .errors import ModelError

__all__ = ["has_exact_kernels", "run_witness"]

_TYPES = {"uint8": onnx.TensorProto.UINT8, "int8": onnx.TensorProto.INT8, "float32": onnx.TensorProto.FLOAT}


def has_exact_kernels():
    """Whether this processor multiplies uint8 by int8 without saturation; of none but x86 on Linux it is known."""
    information = Path("/proc/cpuinfo")
    return information.exists() and bool(re.search(r"\bavx512_vnni\b|\bavx_vnni\b", information.read_text()))


def run_witness(model, graph, inputs, names):
    """Runs a model.

    Parameters
    ----------
    model : ModelProto
    graph : Graph
        The same model.
    inputs : dict of str to array
    names : sequence of str
        Tensors of ``graph`` that are wanted, none of them an input; those that the model does not have are left out.

    Returns
    -------
    dict of str to array

    Raises
    ------
    ModelError
        If it does not run the model.
    HostError
        If it would not be exact on this processor.
    """
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    given = {output.name for output in changed.graph.output}
    computed = given | {name for node in model.graph.node for name in node.output}
    names = [name for name in names if name in computed]
    for name in names:
        if name not in given:
            tensor = graph.tensors[name]
            changed.graph.output.append(
                onnx.helper.make_tensor_value_info(name, _TYPES[tensor.dtype], list(tensor.shape))
            )
    plain = has_exact_kernels() or all(_is_small(node) for node in graph.nodes)
    session = _session(changed, plain)
    return dict(zip(names, session.run(names, inputs), strict=True))


def _is_small(node):
    """Whether no kernel can saturate."""
    if node.kind != "Conv" or node.attributes.weight.dtype == np.uint8:
        return True
    return node.attributes.weight.min() >= -64 and node.attributes.weight.max() <= 63


def _session(model, plain):
    """A session for the model, with the kernels that are exact on any processor unless ``plain`` ones are here."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    if not plain:
        options.add_session_config_entry("session.x64quantprecision", "1")
    try:
        return onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    except Exception as error:
        if not plain and "NOT_IMPLEMENTED" in str(error):
            raise HostError("ONNX Runtime is not exact for this model on a processor without VNNI") from None
        raise ModelError(f"ONNX Runtime does not take the model: {' '.join(str(error).split())}") from None
