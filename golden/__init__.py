"""What the hardware means: numpy, no cycles, no streams."""

from .machine import ErrorRecord, Machine, command_word
from .memory import GlobalMemory, Memory
from .tmau.descriptor import Refusal, check_word
from .tmau.limits import Limits, limits
from .tmau.load import load
from .tmau.setup import check_command
from .tmau.tensor_map import DescriptorError, TensorMap
from .tmau.tile import tx_bytes

__all__ = [
    "DescriptorError",
    "ErrorRecord",
    "GlobalMemory",
    "Limits",
    "Machine",
    "Memory",
    "Refusal",
    "TensorMap",
    "check_command",
    "check_word",
    "command_word",
    "limits",
    "load",
    "tx_bytes",
]
