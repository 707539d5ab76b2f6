"""Field tables and encodings: the one source that ``hw`` builds its layouts from and ``golden`` its packers."""

from .barrier import BARRIER, BarrierOp
from .fields import Field, Format
from .sizes import BANKS, CHUNK_BYTES, LINE_BYTES, NAN_FILL, PAGE_BYTES
from .swizzle import Swizzle
from .tmau.command import (
    BLOCK,
    COMMAND,
    FORMATS,
    GROUP,
    LANES,
    REPLACE,
    TENSOR_OPCODES,
    LaneLayout,
    Opcode,
    Reduction,
    Space,
)
from .tmau.descriptor import DESCRIPTOR, DESCRIPTOR_VERSION, Element, Fill, Interleave, L2Promotion, Mode
from .tmau.errors import COMMAND_FIELD, Error

__all__ = [
    "BANKS",
    "BARRIER",
    "BLOCK",
    "CHUNK_BYTES",
    "COMMAND",
    "COMMAND_FIELD",
    "DESCRIPTOR",
    "DESCRIPTOR_VERSION",
    "FORMATS",
    "GROUP",
    "LANES",
    "LINE_BYTES",
    "NAN_FILL",
    "PAGE_BYTES",
    "REPLACE",
    "TENSOR_OPCODES",
    "BarrierOp",
    "Element",
    "Error",
    "Field",
    "Fill",
    "Format",
    "Interleave",
    "L2Promotion",
    "LaneLayout",
    "Mode",
    "Opcode",
    "Reduction",
    "Space",
    "Swizzle",
]
