"""A node of a model file while it is read: its attributes and inputs, and what its names stand for."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import onnx

from ..graph import ModelError, Tensor, node_error

__all__ = ["MICROSOFT", "READERS", "Constant", "Function", "Operator", "Pair", "Pending", "Quantity", "Real", "Weights",
           "check_opset", "check_schema", "reads"]  # fmt: skip

MICROSOFT = "com.microsoft"

#: Functions that read a node, by domain and operator: see :func:`reads`.
READERS = {}


def reads(*kinds, domain=""):
    """Decorates a function of an Operator and a Reading that reads the operators ``kinds`` of a domain."""

    def register(reader):
        READERS.update(dict.fromkeys(((domain, kind) for kind in kinds), reader))
        return reader

    return register


class Quantity(NamedTuple):
    """The meaning of integers: (x - zero) · scale. Scale is a numpy float32, zero an int, dtype a name."""

    scale: np.float32
    zero: int
    dtype: str


@dataclass(frozen=True, eq=False)
class Constant:
    """An array of the model file.

    ``scale`` and ``zero`` are the meaning that a DequantizeLinear gives to its integers: arrays of one element, or of
    one for each index of dimension ``axis``, counted from 0.
    """

    array: np.ndarray
    scale: np.ndarray | None = None
    zero: np.ndarray | None = None
    axis: int = 0

    @property
    def meaning(self):
        """The array, or the floats that its integers mean."""
        if self.scale is None:
            return self.array
        sizes = [1] * self.array.ndim
        if self.scale.size > 1:
            sizes[self.axis] = -1
        scale, zero = (part.reshape(sizes) for part in (self.scale, self.zero))
        return (self.array.astype(np.int64) - zero).astype(np.float32) * scale


@dataclass(frozen=True, eq=False)
class Real:
    """The floats that the integers of tensor ``name`` mean: the output of a DequantizeLinear."""

    name: str
    quantity: Quantity
    dequantise: object  # the node


class Function(NamedTuple):
    """Floats that are a function of one tensor, element by element: float32 [256], by the byte of tensor ``name``."""

    name: str
    floats: np.ndarray


class Pair(NamedTuple):
    """Floats that are a function of two tensors, element by element: float32 [256, 256], by the bytes of both."""

    names: tuple
    floats: np.ndarray


@dataclass(frozen=True, eq=False)
class Pending:
    """Floats that an operator would give, until a QuantizeLinear says which integers they become.

    Attributes
    ----------
    node : Operator
    shape : tuple of int
    finish : callable
        Adds nodes to the graph: takes the name of the result, its Quantity, and least and largest result.
    low, high : float
        Floats are clamped to these before they are quantised.
    quantity : Quantity or None
        The meaning of integers that are exactly the floats, because elements have only been moved.
    floats : callable or None
        Adds nodes that give the floats themselves, without a clamp: takes the name of the result.
    biased : callable or None
        Adds a bias to a product: takes an Add and the number of its constant input, returns the Pending.
    function : Function or None
        The clamped floats as a function of one tensor.
    pair : Pair or None
        The clamped floats as a function of two tensors.
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
    pair: Pair | None = None


_BYTES = ("uint8", "int8")


class Weights(NamedTuple):
    """Integers of the model with float32 scales and int32 zero points, one for all or one for each of ``axis``."""

    array: np.ndarray
    scale: np.ndarray
    zero: np.ndarray


class Operator:
    """A node that is being read.

    Parameters
    ----------
    proto : NodeProto
    reading : Reading
        The values of names so far.

    Attributes
    ----------
    proto : NodeProto
    kind, name : str
        The operator, and the name of the node, or of its first output.
    outputs : list of str
    """

    def __init__(self, proto, reading):
        self.proto, self.kind = proto, proto.op_type
        self.outputs = [name for name in proto.output if name]
        self.name = proto.name or (self.outputs[0] if self.outputs else "")
        self._inputs = list(proto.input)
        self._reading, self._values = reading, reading.values
        self._attributes, self._unread = {}, {i for i, name in enumerate(self._inputs) if name}
        for attribute in proto.attribute:
            try:
                self._attributes[attribute.name] = onnx.helper.get_attribute_value(attribute)
            except ValueError:
                raise self.refusal(f"its attribute {attribute.name!r} has no value") from None

    def named(self, output):
        """The node with another output, without attributes and inputs."""
        return Operator(onnx.helper.make_node(self.kind, [], [output], self.name), self._reading)

    @property
    def output(self):
        """The name of the only output; refused if there are several."""
        self.refuse_if(len(self.outputs) != 1, f"it has {len(self.outputs)} outputs, and only one is supported")
        return self.outputs[0]

    def refusal(self, sentence, host="integers"):
        """The error to raise: the node, and what is wrong with it.

        ``host`` is what the host may compute instead: "integers" or only "floats" of the results, or "nothing".
        """
        error = node_error(self.name, self.kind, sentence)
        error.host = host
        return error

    def refuse_if(self, condition, sentence):
        """Raises the refusal if a condition holds."""
        if condition:
            raise self.refusal(sentence)

    def float_refusal(self, sentence):
        """The error for floats that are not quantised; it names the next step."""
        return self.refusal(f"{sentence}: quantise it first (docs/quantise.md)")

    # Attributes

    def take(self, name, default, kind=int):
        """The value of an attribute, of type ``kind``, or its default.

        Lists are tuples, and ``kind`` is the type of their elements.
        """
        value = self._attributes.pop(name, default)
        if isinstance(value, bytes) and kind is str:
            return value.decode("utf-8", "replace")
        listed = isinstance(value, list | tuple)
        if not all(isinstance(item, kind) for item in (value if listed else [value]) if item is not default):
            raise self.refusal(f"its attribute {name!r} is not of the right type")
        if default is not None and listed != isinstance(default, tuple):
            raise self.refusal(f"its attribute {name!r} is not of the right type")
        return tuple(value) if listed else value

    def sizes(self, name, default, least):
        """The value of an attribute that is as many ints as its default, each ``least`` or more."""
        values = self.take(name, default)
        if len(values) != len(default) or min(values) < least:
            raise self.refusal(
                f"its attribute {name!r} is {list(values)}, and must be {len(default)} numbers from {least} on"
            )
        return values

    def require(self, name, value, kind=int):
        """Refuses the node if an attribute is given and not ``value``."""
        given = self.take(name, value, kind)
        self.refuse_if(given != value, f"its attribute {name!r} is {given!r}, and only {value!r} is supported")

    def forget(self):
        """Marks all attributes and inputs as used."""
        self._attributes.clear()
        self._unread.clear()

    def end(self):
        """Refuses the node if it has an attribute or an input that no reader has used."""
        for name in self._attributes:
            raise self.refusal(f"its attribute {name!r} is not supported")
        for index in sorted(self._unread):
            raise self.refusal(f"its input {self._inputs[index]!r}, number {index}, is not supported")

    def axis(self, axis, rank):
        """A dimension of ``rank``, counted from 0."""
        self.refuse_if(not -rank <= axis < rank, f"it has no dimension {axis}: its input has {rank}")
        return axis % rank

    # Inputs

    def __len__(self):
        return len(self._inputs)

    def has(self, index):
        """Whether the node has this input; any may be left out."""
        return index < len(self._inputs) and bool(self._inputs[index])

    def skip(self, index):
        """Marks an input as used that has no effect."""
        self._unread.discard(index)

    def input_name(self, index):
        """The name of an input."""
        return self._inputs[index]

    def value(self, index):
        """The value of an input: a Tensor, Constant, Real or Pending."""
        self.refuse_if(not self.has(index), f"it lacks input {index}")
        self._unread.discard(index)
        name = self._inputs[index]
        self.refuse_if(name not in self._values, f"its input {name!r} is given by nothing before it")
        return self._values[name]

    def tensor(self, index, types=_BYTES):
        """An input that is a computed tensor of one of ``types``."""
        value = self.value(index)
        name = self._inputs[index]
        self.refuse_if(isinstance(value, Constant), f"its input {name!r} is a constant, which is not supported")
        if not isinstance(value, Tensor):
            raise self.float_refusal(f"its input {name!r} is float32, which no QuantizeLinear makes integers")
        self.refuse_if(value.dtype not in types, f"its input {name!r} is {value.dtype}, which is not supported")
        return value

    def real(self, index):
        """An input that is floats which stand for integers: a Real."""
        value = self.value(index)
        name = self._inputs[index]
        real = self._reading.real(name)
        if real is not None:
            return real
        if isinstance(value, Pending) or (isinstance(value, Tensor) and value.dtype == "float32"):
            raise self.float_refusal(f"its input {name!r} is float32, without QuantizeLinear and DequantizeLinear")
        self.refuse_if(isinstance(value, Constant), f"its input {name!r} is a constant, which is not supported")
        raise self.refusal(f"its input {name!r} is {value.dtype}, not the DequantizeLinear of integers")

    def shape_of(self, value):
        """The shape of a value."""
        if isinstance(value, Real):
            return self._values[value.name].shape
        return value.array.shape if isinstance(value, Constant) else value.shape

    # Constants

    def constant(self, index, role, real=False):
        """An input that is a Constant, of a DequantizeLinear if ``real``. ``role`` is its name in error messages."""
        value = self.value(index)
        name = self._inputs[index]
        if not isinstance(value, Constant):
            raise self.refusal(f"its {role} {name!r} is computed, and only a constant is supported")
        if real and value.scale is None:
            refusal = self.float_refusal if value.array.dtype == np.float32 else self.refusal
            raise refusal(f"its {role} {name!r} is {value.array.dtype}, not the DequantizeLinear of integers")
        if value.scale is not None and not real:
            raise self.refusal(f"its {role} {name!r} is given by a DequantizeLinear, which is not supported")
        return value

    def number(self, index, role):
        """A constant of one number, possibly of a DequantizeLinear, as an int or a float."""
        value = self.value(index)
        real = isinstance(value, Constant) and value.scale is not None
        constant = self.constant(index, role, real)
        number = self.single(constant.array, role)
        self.refuse_if(constant.array.dtype.kind not in "iuf", f"its {role} {self._inputs[index]!r} is not a number")
        return float((number - constant.zero[0]) * constant.scale[0]) if real else number.item()

    def integers(self, index, role):
        """A constant list of integers, as a tuple."""
        array = self.constant(index, role).array
        if array.dtype.kind != "i" or array.ndim > 1:
            raise self.refusal(f"its {role} {self._inputs[index]!r} is not a list of integers")
        return tuple(int(number) for number in np.atleast_1d(array))

    def axes(self, index, rank, default=(), added=False):
        """Different dimensions, counted from 0, from an input, from the attribute ``axes``, or ``default``.

        ``rank`` is the number of dimensions; if they are ``added``, before they are.
        """
        listed = index is not None and self.has(index)
        given = (self.integers(index, "axes") if listed else self.take("axes", default)) or default
        axes = tuple(self.axis(axis, rank + len(given) * added) for axis in given)
        self.refuse_if(len(set(axes)) < len(axes), f"its dimensions {list(given)} are not different ones")
        return axes

    def scales(self, index):
        """A constant of positive float32 scales, as an array of one dimension."""
        array = self.constant(index, "scale").array
        self.refuse_if(array.dtype != np.float32, f"its scale {self._inputs[index]!r} is {array.dtype}, not float32")
        return self.checked_scales(array.reshape(-1), f"its scale {self._inputs[index]!r}")

    def checked_scales(self, scales, role):
        """``scales`` if they are finite and positive."""
        wrong = scales[~((scales > 0) & np.isfinite(scales))]
        if wrong.size or not scales.size:
            raise self.refusal(f"{role} is {wrong[0] if wrong.size else 'empty'}: it must be positive and finite")
        return scales

    def scale(self, index):
        """A constant of one positive float32 scale."""
        return self.single(self.scales(index), f"scale {self._inputs[index]!r}")

    def single(self, array, role):
        """The element of an array of one element."""
        self.refuse_if(array.size != 1, f"its {role} has {array.size} elements, and only one is supported")
        return array.reshape(-1)[0]

    def zeros(self, index, dtype):
        """Zero points of type ``dtype`` as an int32 array of one dimension; 0 if the input is left out."""
        if not self.has(index):
            return np.zeros(1, np.int32)
        array = self.constant(index, "zero point").array
        self.refuse_if(array.dtype != dtype, f"its zero point {self._inputs[index]!r} is {array.dtype}, not {dtype}")
        return array.reshape(-1).astype(np.int32)

    def quantity(self, scale, zero, dtype=None):
        """The Quantity of two inputs, scale and zero point, for integers of ``dtype``; by default the zero point's."""
        if dtype is None:
            dtype = self.constant(zero, "zero point").array.dtype.name if self.has(zero) else "uint8"
            if dtype not in _BYTES:
                raise self.refusal(f"its zero point {self._inputs[zero]!r} is {dtype}, which is not supported")
        zero = self.single(self.zeros(zero, dtype), "zero point")
        return Quantity(self.scale(scale), int(zero), dtype)

    def weights(self, index, scale, zero):
        """The Weights of three inputs: a constant of 8 bits, scales and zero points."""
        array = self.constant(index, "operand").array
        if array.dtype.name not in _BYTES:
            raise self.refusal(f"its operand {self._inputs[index]!r} is {array.dtype}, which is not supported")
        return Weights(array, self.scales(scale), self.zeros(zero, array.dtype))

    def real_weights(self, index, axis=None, types=_BYTES):
        """The Weights of a constant of a DequantizeLinear; several scales must be along ``axis``."""
        constant = self.constant(index, "operand", real=True)
        name = self._inputs[index]
        if constant.array.dtype.name not in types:
            raise self.refusal(f"its operand {name!r} is {constant.array.dtype}, which is not supported")
        if constant.scale.size > 1 and axis is not None and constant.axis != axis:
            raise self.refusal(f"its operand {name!r} has scales along dimension {constant.axis}, not {axis}")
        return Weights(constant.array, constant.scale, constant.zero)


#: In older versions attributes say how operators broadcast, and some defaults are different.
_FIRST = 7


def check_opset(opset):
    """Refuses versions of ONNX's operators that are not supported."""
    last = onnx.defs.onnx_opset_version()
    if not _FIRST <= opset <= last:
        raise ModelError(f"the operators are of opset {opset}: {_FIRST} to {last} are supported")


def check_schema(op, opset):
    """Refuses a node of ONNX's own domain whose attributes or inputs its operator does not have in a version."""
    try:
        schema = onnx.defs.get_schema(op.kind, opset)
    except onnx.defs.SchemaError:
        raise op.refusal(f"the operator does not exist in opset {opset}") from None
    for attribute in op.proto.attribute:
        if attribute.name not in schema.attributes:
            raise op.refusal(f"its attribute {attribute.name!r} does not exist in opset {opset}")
    for kind, names, most in (
        ("inputs", op.proto.input, schema.max_input), ("outputs", op.proto.output, schema.max_output),
    ):  # fmt: skip
        if len(names) > most:
            raise op.refusal(f"it has {len(names)} {kind}, and there are at most {most} in opset {opset}")
