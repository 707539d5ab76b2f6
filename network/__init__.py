"""Quantised neural networks: reads model files, evaluates them exactly, and compiles them to programs.

Names are imported at first use: a graph needs only numpy, a model file also the package onnx.
"""

from importlib import import_module

#: Public names, by the module that defines them.
_MODULES = {
    "evaluation": "evaluate",
    "attributes": "Add Arithmetic Concat Conv Dequantize Floats MatMul Mul Normalise NormaliseChannels Pad Pairs Pool"
    " Quantize Reshape Scale Softmax Take Transpose",
    "graph": "Graph ModelError Node Tensor",
    "compiled": "Compiled compile",
    "machine": "MACHINES Machine",
    "reader": "read",
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names.split()}

__all__ = sorted(_HOMES)


def __getattr__(name):
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    return value


def __dir__():
    return __all__
