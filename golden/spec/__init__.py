"""Field tables and encodings: the one source that ``hw`` builds its layouts from and ``golden`` its packers."""

from .barrier import BARRIER, BarrierOp
from .command import COMMAND, Opcode
from .descriptor import DESCRIPTOR, DESCRIPTOR_VERSION, Element, Fill, Interleave, L2Promotion, Mode, Swizzle
from .errors import COMMAND_FIELD, Error
from .fields import Field, Format

__all__ = [
    "BARRIER",
    "COMMAND",
    "COMMAND_FIELD",
    "DESCRIPTOR",
    "DESCRIPTOR_VERSION",
    "BarrierOp",
    "Element",
    "Error",
    "Field",
    "Fill",
    "Format",
    "Interleave",
    "L2Promotion",
    "Mode",
    "Opcode",
    "Swizzle",
]
