"""Functions of float32 by the names of their operators.

A function of more than one operation is computed in binary64 and rounded once. Results may be infinite, or NaN.
"""

import math

import numpy as np

__all__ = ["FUNCTIONS", "OPERATIONS", "exponentials", "softmax", "softmax_of_floats"]

_ERF = np.vectorize(math.erf, otypes=[float])


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


def _softplus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def _gelu(x, approximate):
    if approximate == "tanh":
        return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return 0.5 * x * (1 + _ERF(x / math.sqrt(2)))


def _elu(x, alpha):
    return np.where(x < 0, alpha * np.expm1(x), x)


def _hard_sigmoid(x, alpha, beta):
    """In binary32, as its results are often halfway between two integers."""
    x = x.astype(np.float32)
    return np.clip(np.float32(alpha) * x + np.float32(beta), np.float32(0), np.float32(1))


def _hard_swish(x):
    return x.astype(np.float32) * _hard_sigmoid(x, 1 / 6, 0.5)


#: By operator: the function of a float64 array, and its attributes with their defaults.
FUNCTIONS = {
    "Abs": (np.abs, {}),
    "Elu": (_elu, {"alpha": 1.0}),
    "Erf": (_ERF, {}),
    "Exp": (np.exp, {}),
    "Gelu": (_gelu, {"approximate": "none"}),
    "HardSigmoid": (_hard_sigmoid, {"alpha": 0.2, "beta": 0.5}),
    "HardSwish": (_hard_swish, {}),
    "LeakyRelu": (lambda x, alpha: np.where(x < 0, np.float32(alpha) * x, x), {"alpha": 0.01}),
    "Log": (np.log, {}),
    "Mish": (lambda x: x * np.tanh(_softplus(x)), {}),
    "Neg": (np.negative, {}),
    "Reciprocal": (np.reciprocal, {}),
    "Selu": (lambda x, alpha, gamma: gamma * _elu(x, alpha), {"alpha": 1.6732632, "gamma": 1.050701}),
    "Sigmoid": (_sigmoid, {}),
    "Softplus": (_softplus, {}),
    "Softsign": (lambda x: x / (1 + np.abs(x)), {}),
    "Sqrt": (np.sqrt, {}),
    "Tanh": (np.tanh, {}),
    "ThresholdedRelu": (lambda x, alpha: np.where(x > np.float32(alpha), x, 0), {"alpha": 1.0}),
}

#: By operator: the function of two float32 arrays.
OPERATIONS = {
    "Add": np.add,
    "Div": np.divide,
    "Max": np.maximum,
    "Min": np.minimum,
    "Mul": np.multiply,
    "PRelu": lambda x, slope: np.where(x < 0, x * slope, x),
    "Pow": np.power,
    "Sub": np.subtract,
    "Sum": np.add,
}


def exponentials(scale, count):
    """e^x for x from 255 steps below the largest of ``count`` numbers up to it, scaled so that sums fit 32 bits."""
    largest = np.iinfo(np.uint32).max
    shift = math.log(largest / count) / float(scale)
    return np.array([min(int(math.exp((i - 255 + shift) * float(scale))), largest) for i in range(256)], np.int64)


def softmax(x, node, dtype):
    """Softmax of integers, by a ``Softmax``."""
    x = x.astype(np.int64)
    terms = node.table[255 + x - x.max(axis=node.axes, keepdims=True)]
    total = terms.sum(axis=node.axes, keepdims=True)
    shares = (terms * node.scale + total // 2) // total
    return np.clip(shares + node.y_zero, node.minimum, node.maximum).astype(dtype)


def softmax_of_floats(x, axes):
    """Softmax of float32, in binary64 and rounded once."""
    x = x.astype(np.float64)
    terms = np.exp(x - x.max(axis=axes, keepdims=True))
    return (terms / terms.sum(axis=axes, keepdims=True)).astype(np.float32)
