"""What a name in a model stands for while it is read."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

__all__ = ["Constant", "Function", "Pending", "Quantity", "Real"]


class Quantity(NamedTuple):
    """What integers mean: (x - zero) · scale. Scale is a numpy float32, zero an int, dtype a name."""

    scale: np.float32
    zero: int
    dtype: str


@dataclass(frozen=True, eq=False)
class Constant:
    """An array of the model file.

    ``scale`` and ``zero`` are there once a DequantizeLinear has said what its integers mean: arrays with one element,
    or with one for each index of dimension ``axis``, counted from 0.
    """

    array: np.ndarray
    scale: np.ndarray | None = None
    zero: np.ndarray | None = None
    axis: int = 0


@dataclass(frozen=True, eq=False)
class Real:
    """The floats that the integers of tensor ``name`` mean: what a DequantizeLinear gives."""

    name: str
    quantity: Quantity
    dequantise: object  # the node


class Function(NamedTuple):
    """Floats that depend on one tensor alone, element by element: float32 [256], by the byte of tensor ``name``."""

    name: str
    floats: np.ndarray


@dataclass(frozen=True, eq=False)
class Pending:
    """Floats that an operator would give, in need of a QuantizeLinear that says as which integers.

    Attributes
    ----------
    node : Operator
    shape : tuple of int
    finish : callable
        Takes the name of the result, its Quantity, and least and largest result; adds nodes to the graph.
    low, high : float
        Floats are clamped to these before they are quantised.
    quantity : Quantity or None
        In which integers are exactly the floats, clamped or not, as nothing but places of elements changed.
    floats : callable or None
        Of a product: takes the name of the result, adds nodes that give the floats themselves, without a clamp.
    biased : callable or None
        Of a product: takes an Add and which of its inputs is a constant; returns the Pending of the product with that
        bias.
    function : Function or None
        The floats, clamped, by the element of one tensor that each of them is made of.
    """

    node: object
    shape: tuple[int, ...]
    finish: object
    low: float = -np.inf
    high: float = np.inf
    quantity: Quantity | None = None
    floats: object = None
    biased: object = None
    function: Function | None = None
