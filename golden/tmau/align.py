"""Padding of tensors for engines with a coarse granularity, by class of operator.

An engine whose addresses, sizes and strides must be multiples of 4 bytes cannot read an odd number of 2-byte elements.
The operator's view of a tensor (N, C, H, W) decides where padding does no harm and how little is enough. The TMAU makes
the copy: ``unaligned`` reads rows from any element, and the fill of elements outside the tensor becomes the padding.

Specification: docs/layouts.md, "Half precision".
"""

import math
from dataclasses import dataclass, replace
from enum import Enum
from itertools import product

import numpy as np

from tilewright.spec import Element

from ..arguments import integer, integers, member, power_of_two
from .tensor_map import TensorMap
from .transfer import load, store

__all__ = ["Alignment", "Operator", "Padding", "align", "unalign"]

_BOX_MAX = 256
#: Default of the most bytes of shared memory for a box.
_BOX_BYTES = 16384
#: Bits of the lowest number of each float type; plus 1: minus infinity, if the type has it.
_LOWEST = {
    Element.F16: 0xFBFF, Element.BF16: 0xFF7F, Element.F32: 0xFF7FFFFF, Element.F64: 0xFFEFFFFFFFFFFFFF,
    Element.TF32: 0xFF7FFFFF, Element.F8E4M3: 0xFE, Element.F8E5M2: 0xFB,
}  # fmt: skip


class Operator(Enum):
    """Class of an operator, by its view of the tensor."""

    ELEMENTWISE = "elementwise"  #: one row of N·C·H·W: activations
    ROW = "row"  #: N rows of C·H·W; padded by whole rows: fc, softmax
    COLUMN = "column"  #: N rows of C·H·W; each row is padded: fc, softmax
    BATCH_NORM_2D = "batch_norm_2d"  #: N·C rows of H·W
    POOL = "pool"  #: N·C·H rows of W
    BATCH_NORM_3D = "batch_norm_3d"  #: N planes of C rows of H·W; rows and planes are padded


class Padding(Enum):
    """Value of the padding.

    Zeros are neutral for element-wise operators, fc, sums (batch norm, average pool), and for whole rows of padding. A
    softmax over columns needs ``MINUS_INFINITY``, whose exponential is zero; a maximum needs that, or the ``LOWEST``
    number if the type has no infinity.
    """

    ZERO = "zero"
    LOWEST = "lowest"
    MINUS_INFINITY = "minus_infinity"


@dataclass(frozen=True)
class Alignment:
    """A tensor and its padded copy.

    For each of ``starts``, a load of ``source`` and a store of ``target``, at the same coordinates and the same place
    in shared memory, make a box of the padded tensor; with the two maps exchanged they remove the padding.

    Attributes
    ----------
    shape : tuple of int
        N, C, H, W.
    view : tuple of int
        The tensor as the operator sees it, outermost dimension first.
    padded : tuple of int
        The same with padding.
    strides : tuple of int
        Bytes from index to index in the padded tensor, outermost dimension first.
    source, target : TensorMap
        Of the tensor and of its padded copy.
    """

    shape: tuple
    view: tuple
    padded: tuple
    strides: tuple
    source: TensorMap
    target: TensorMap

    @property
    def starts(self):
        """Coordinates of each box, innermost dimension first."""
        box = self.source.box
        ranges = [range(0, size, step) for size, step in zip(self.target.size, box, strict=True)]
        return [tuple(reversed(start)) for start in product(*reversed(ranges))]

    @property
    def added_bytes(self):
        """Bytes of padding."""
        return (math.prod(self.padded) - math.prod(self.shape)) * self.source.element.bytes

    def pad(self, gmem):
        """Makes the padded tensor in ``gmem``, a Memory, as the TMAU does."""
        _copy(self.source, self.target, self.starts, gmem)

    def strip(self, gmem):
        """Makes the tensor from its padded copy in ``gmem``, as the TMAU does."""
        _copy(self.target, self.source, self.starts, gmem)


def align(shape, element, operator, granularity, *, padding=Padding.ZERO, source=0, target=0, box_bytes=_BOX_BYTES):
    """The :class:`Alignment` of a tensor (N, C, H, W) to multiples of ``granularity`` bytes.

    Parameters
    ----------
    shape : (int, int, int, int)
    element : Element or str
    operator : Operator or str
    granularity : int
        Bytes; a power of two.
    padding : Padding or str
        Value of the padding.
    source, target : int
        Addresses of the tensor, a multiple of the element, and of the copy, a multiple of ``granularity``.
    box_bytes : int
        Most bytes of shared memory for a box.
    """
    element = member("element", Element, element)
    operator, padding = member("operator", Operator, operator), member("padding", Padding, padding)
    shape = integers("shape", shape)
    if len(shape) != 4 or min(shape) < 1:
        raise ValueError(f"shape must be N, C, H, W, each at least 1, not {shape!r}")
    granularity, target = power_of_two("granularity", granularity), integer("target", target, 0)
    box_bytes = integer("box_bytes", box_bytes, element.bytes)
    if target % granularity:
        raise ValueError(f"target must be a multiple of the granularity {granularity}, not {target:#x}")
    view, longer = _view(shape, operator)
    multiple = max(granularity // element.bytes, 1)
    padded = tuple(-(-n // multiple) * multiple if grows else n for n, grows in zip(view, longer, strict=True))
    unpadded = TensorMap(
        element=element,
        size=view[::-1],
        stride=_strides(view, element)[:-1][::-1],
        box=_box(padded[::-1], element, box_bytes),
        address=source,
        unaligned=True,
        fill={"constant": _pattern(padding, element)},
    )
    strides = _strides(padded, element)
    aligned = replace(unpadded, size=padded[::-1], stride=strides[:-1][::-1], address=target)
    return Alignment(shape, view, padded, strides, unpadded, aligned)


def unalign(alignment, padded):
    """The tensor (N, C, H, W) of its padded copy, an array of any shape with this number of elements."""
    inner = np.reshape(padded, alignment.padded)[tuple(map(slice, alignment.view))]
    return inner.reshape(alignment.shape)


def _view(shape, operator):
    """The tensor as the operator sees it, outermost first, and which of its dimensions are padded."""
    n, c, h, w = shape
    return {
        Operator.ELEMENTWISE: ((n * c * h * w,), (True,)),
        Operator.ROW: ((n, c * h * w), (True, False)),
        Operator.COLUMN: ((n, c * h * w), (False, True)),
        Operator.BATCH_NORM_2D: ((n * c, h * w), (False, True)),
        Operator.POOL: ((n * c * h, w), (False, True)),
        Operator.BATCH_NORM_3D: ((n, c, h * w), (False, True, True)),
    }[operator]


def _strides(shape, element):
    """Bytes from index to index of a contiguous array, outermost first."""
    return tuple(math.prod(shape[d + 1 :]) * element.bytes for d in range(len(shape)))


def _box(size, element, box_bytes):
    """The largest box, innermost first, of a command within ``box_bytes``."""
    room, box = box_bytes // element.bytes, []
    for n in size:
        box.append(max(min(n, _BOX_MAX, room), 1))
        room //= box[-1]
    return tuple(box)


def _pattern(padding, element):
    """The 32-bit pattern of the padding."""
    if padding == Padding.ZERO:
        return 0
    if padding == Padding.MINUS_INFINITY and (not element.is_float or element == Element.F8E4M3):
        raise ValueError(f"padding minus_infinity needs a type that has infinity, not {element.name.lower()}")
    if element.is_float:
        bits = _LOWEST[element] + (padding == Padding.MINUS_INFINITY)
    else:
        bits = 1 << 8 * element.bytes - 1 if element.name[0] == "S" else 0
    raw = bits.to_bytes(element.bytes, "little")
    if len(raw) > 4 and raw[:4] != raw[4:]:
        raise ValueError(f"padding {padding.value} of {element.name.lower()} does not repeat every 4 bytes")
    return int.from_bytes((raw * 4)[:4], "little")


def _copy(source, target, starts, gmem):
    for start in starts:
        store(target, start, load(source, start, gmem), gmem)
