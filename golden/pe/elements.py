"""Types of products by name, and the arrays that fit them."""

from ..arguments import array, member, shown
from ..spec.pe.instruction import MmType
from ..spec.pe.segment import SegmentElement

__all__ = ["mm_type", "operand", "segment_elements", "values"]

#: Names beside those of the members: both operands alike, and the usual name of half precision.
_SHORT = {"s8": MmType.S8S8, "u8": MmType.U8U8, "s16": MmType.S16S16, "u16": MmType.U16U16, "fp16": MmType.F16}
#: Names of numpy types, by those of elements.
_NUMPY = {"s8": "int8", "u8": "uint8", "s16": "int16", "u16": "uint16", "f16": "float16", "bf16": "bfloat16",
          "s32": "int32", "u32": "uint32", "f32": "float32"}  # fmt: skip


def mm_type(value):
    """The ``MmType`` of a member, its number, or its name: ``"s8s8"``, ``"u16s16"``, ``"f16"``, ``"bf16"`` …

    One letter and size stand for both operands: ``"s8"`` is ``"s8s8"``.
    """
    return member("type", MmType, value, _SHORT)


def segment_elements(kind):
    """Elements of A, B and C."""
    if kind.is_float:
        return SegmentElement[kind.name], SegmentElement[kind.name], SegmentElement.F32
    size = 8 * kind.bytes
    a, b = (SegmentElement[f"{'U' if kind & unsigned else 'S'}{size}"] for unsigned in (2, 1))
    return a, b, SegmentElement.S32 if a.name[0] == b.name[0] == "S" else SegmentElement.U32


def operand(name, values, kind, element):
    """An operand of ``element`` in native byte order; TypeError if its type is another, ValueError if it is empty.

    Unsigned integers of the element's size are raw bits, and fit every type.
    """
    array(name, values)
    own, raw = _NUMPY[element.name.lower()], f"uint{8 * element.bytes}"
    if values.dtype.name not in (own, raw):
        wanted = own if own == raw else f"{own}, or {raw} as raw bits,"
        raise TypeError(f"{name} must be an array of {wanted} for type {kind.name.lower()}, not {shown(values)}")
    return values if values.dtype.isnative else values.astype(values.dtype.newbyteorder("="))


def values(bits, element):
    """Raw bits as numbers of the element's type."""
    return bits.view(_NUMPY[element.name.lower()])
