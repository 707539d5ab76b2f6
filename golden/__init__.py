"""What the hardware means: numpy, no cycles, no streams."""

from .machine import ErrorRecord, Machine, command_word
from .memory import GlobalMemory, Memory
from .tmau.align import Alignment, Operator, Padding, align, unalign
from .tmau.copy import check_block
from .tmau.descriptor import Refusal, check_word
from .tmau.limits import Limits, limits
from .tmau.load import load
from .tmau.setup import check_command
from .tmau.store import store
from .tmau.tensor_map import DescriptorError, TensorMap
from .tmau.tile import tx_bytes
from .windows import Windows

__all__ = [
    "Alignment",
    "DescriptorError",
    "ErrorRecord",
    "GlobalMemory",
    "Limits",
    "Machine",
    "Memory",
    "Operator",
    "Padding",
    "Refusal",
    "TensorMap",
    "Windows",
    "align",
    "check_block",
    "check_command",
    "check_word",
    "command_word",
    "limits",
    "load",
    "store",
    "tx_bytes",
    "unalign",
]
