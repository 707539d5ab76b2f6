"""Runs a model on ONNX Runtime, for comparison with the evaluation.

Tensors that ONNX Runtime computes by kernels on integers are equal. It leaves some products, sums and averages to
kernels on floats, whose results may be one off, and so may tensors computed from them; its optimised graph shows which.

Its kernels for x86 processors without VNNI add pairs of products of uint8 and int8 in 16 bits, which saturate unless
weights are -64 to 63. A session option selects exact kernels; some of those for int8 activations do not exist.
"""

import re
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime

from tilewright.errors import HostError

from .graph import ModelError

__all__ = ["Witness", "has_exact_kernels", "run_witness"]

_INTEGERS = (onnx.TensorProto.UINT8, onnx.TensorProto.INT8)
#: Kernels on floats, whose results are not rounded as sums of integers are.
_ON_FLOATS = {
    "Add", "AveragePool", "Conv", "ConvTranspose", "Div", "FusedConv", "FusedGemm", "FusedMatMul", "GRU", "Gemm",
    "GlobalAveragePool", "LSTM", "MatMul", "Mul", "QLinearAveragePool", "RNN", "ReduceMean", "Sub", "Sum",
}  # fmt: skip
_NAMED = 5  # tensors that a sentence names


def has_exact_kernels():
    """Whether this processor multiplies uint8 by int8 without saturation; False unless it is x86 on Linux."""
    information = Path("/proc/cpuinfo")
    return information.exists() and bool(re.search(r"\bavx512_vnni\b|\bavx_vnni\b", information.read_text()))


class Witness:
    """A model on ONNX Runtime.

    Parameters
    ----------
    model : ModelProto
    graph : Graph
        The same model.
    names : sequence of str
        Tensors of ``graph`` to return, without inputs; tensors that the model does not have are left out.

    Attributes
    ----------
    names : list of str
        Tensors that :meth:`run` returns.
    floats : list of str
        All tensors that are computed by kernels on floats.

    Raises
    ------
    ModelError
        If ONNX Runtime does not run the model.
    HostError
        If results would not be exact on this processor.
    """

    def __init__(self, model, graph, names):
        changed = onnx.ModelProto()
        changed.CopyFrom(model)
        given = {output.name for output in changed.graph.output}
        computed = given | {name for node in model.graph.node for name in node.output}
        self._graph, self.names = graph, [name for name in names if name in computed]
        for name in self.names:
            if name not in given:
                tensor = graph.tensors[name]
                kind = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(tensor.dtype))
                value = onnx.helper.make_tensor_value_info(name, kind, list(tensor.shape))
                changed.graph.output.append(value)
        large = [node for node in graph.nodes if not _is_small(graph, node)]
        plain = has_exact_kernels() or not large
        if not plain:
            _separate_initialisers(changed)
        try:
            if not plain and any(node.kind == "MatMul" for node in large):
                raise _LacksKernelError  # exact kernels have constant weights
            self._session, optimised = _session(changed, plain)
        except _LacksKernelError:
            raise HostError(
                f"ONNX Runtime is not exact for this model on a processor without VNNI: {len(large)} layers with "
                f"{_values(graph, [node.output for node in large]):,} values may saturate"
            ) from None
        self.floats = _computed_on_floats(optimised, set(graph.tensors))

    def run(self, inputs):
        """The tensors in ``names``, from ``inputs`` by name."""
        return dict(zip(self.names, self._session.run(self.names, inputs), strict=True))

    @property
    def reservation(self):
        """A sentence about the tensors that may differ; empty if there are none."""
        if not self.floats:
            return ""
        named = ", ".join(map(repr, self.floats[:_NAMED])) + (" …" if len(self.floats) > _NAMED else "")
        count = f"{len(self.floats)} of {len(self._graph.nodes)} tensors in floats"
        values = f"{_values(self._graph, self.floats):,} values"
        return f"ONNX Runtime computes {count}, {values}, which may be one off, as may what follows from them: {named}"


def run_witness(model, graph, inputs, names):
    """The tensors ``names`` of a :class:`Witness` for ``inputs``, a dict of str to array."""
    return Witness(model, graph, names).run(inputs)


def _values(graph, names):
    return sum(int(np.prod(graph.tensors[name].shape)) for name in names)


def _is_small(graph, node):
    """Whether weights are so small that no kernel saturates; computed ones may be any."""
    if node.kind == "MatMul":
        return graph.tensors[node.inputs[1]].dtype == "uint8"
    if node.kind != "Conv" or node.attributes.weight.dtype == np.uint8:
        return True
    return node.attributes.weight.min() >= -64 and node.attributes.weight.max() <= 63


def _separate_initialisers(model):
    """Gives each node its own copies of constants: exact kernels fail if two weights share a zero point."""
    constants = {tensor.name: tensor for tensor in model.graph.initializer if tensor.data_type in _INTEGERS}
    used = set()
    for number, node in enumerate(model.graph.node):
        for index, name in enumerate(node.input):
            if name in used and name in constants:
                copy = model.graph.initializer.add()
                copy.CopyFrom(constants[name])
                copy.name = node.input[index] = f"{name}/{number}/{index}"
            used.add(name)


class _LacksKernelError(Exception):
    """An exact kernel is missing."""


def _session(model, plain):
    """A session for the model, with kernels that are exact on any processor unless ``plain``, and its graph."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    if plain:
        # Otherwise convolutions of int8 are first changed to uint8, which fails if the input has a second reader.
        options.add_session_config_entry("session.qdqisint8allowed", "1")
    else:
        options.add_session_config_entry("session.x64quantprecision", "1")
    with tempfile.TemporaryDirectory() as folder:
        options.optimized_model_filepath = str(Path(folder) / "optimised.onnx")
        try:
            session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
        except Exception as error:
            if not plain and "NOT_IMPLEMENTED" in str(error):
                raise _LacksKernelError from None
            raise ModelError(f"ONNX Runtime does not take the model: {' '.join(str(error).split())}") from None
        return session, onnx.load(options.optimized_model_filepath).graph


def _computed_on_floats(optimised, tensors):
    """The ``tensors`` that kernels on floats compute, in the order of ONNX Runtime's graph."""
    rounded, names = set(), []  # results of such kernels, and floats computed from them
    for node in optimised.node:
        if node.op_type not in _ON_FLOATS and rounded.isdisjoint(node.input):
            continue
        for name in filter(None, node.output):
            if name in tensors:
                names.append(name)
            if not node.op_type.startswith("Q"):  # QuantizeLinear, QLinear… and QGemm give integers
                rounded.add(name)
    return names
