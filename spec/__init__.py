"""Bit fields and encodings of every format: hardware layouts and golden packers are both made from these tables."""

from .fields import Field, Format
from .memory import BANKS, BARRIER, CHUNK_BYTES, LINE_BYTES, NAN_FILL, PAGE_BYTES, BarrierOp, Swizzle
from .tmau import (
    BLOCK,
    COMMAND,
    COMMAND_FIELD,
    DESCRIPTOR,
    DESCRIPTOR_VERSION,
    FORMATS,
    GROUP,
    LANES,
    REPLACE,
    TENSOR_OPCODES,
    Element,
    Error,
    Fill,
    Interleave,
    L2Promotion,
    LaneLayout,
    Mode,
    Opcode,
    Reduction,
    Space,
)  # fmt: skip

__all__ = [
    "BANKS", "BARRIER", "BLOCK", "CHUNK_BYTES", "COMMAND", "COMMAND_FIELD", "DESCRIPTOR", "DESCRIPTOR_VERSION",
    "FORMATS", "GROUP", "LANES", "LINE_BYTES", "NAN_FILL", "PAGE_BYTES", "REPLACE", "TENSOR_OPCODES", "BarrierOp",
    "Element", "Error", "Field", "Fill", "Format", "Interleave", "L2Promotion", "LaneLayout", "Mode", "Opcode",
    "Reduction", "Space", "Swizzle",
]  # fmt: skip
