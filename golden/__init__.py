"""What the hardware means: numpy, no cycles, no streams."""

from .dot import dot
from .memory import GlobalMemory, Memory
from .pe.gemm import lower_gemm
from .pe.gemm_plan import Gemm
from .pe.machine import Fault, Pe, PeSizes, instruction_word
from .pe.placement import Placement
from .pe.program import Program, gemm_program
from .pe.segment import Segment, wrong_segment
from .tmau.align import Alignment, Operator, Padding, align, unalign
from .tmau.copy import check_block
from .tmau.descriptor import Refusal, check_word
from .tmau.limits import Limits, limits
from .tmau.load import load
from .tmau.machine import ErrorRecord, Machine, command_word
from .tmau.setup import check_command
from .tmau.store import store
from .tmau.tensor_map import DescriptorError, TensorMap
from .tmau.tile import tx_bytes
from .tmau.windows import Windows

__all__ = [
    "Alignment",
    "DescriptorError",
    "ErrorRecord",
    "Fault",
    "Gemm",
    "GlobalMemory",
    "Limits",
    "Machine",
    "Memory",
    "Operator",
    "Padding",
    "Pe",
    "PeSizes",
    "Placement",
    "Program",
    "Refusal",
    "Segment",
    "TensorMap",
    "Windows",
    "align",
    "check_block",
    "check_command",
    "check_word",
    "command_word",
    "dot",
    "gemm_program",
    "instruction_word",
    "limits",
    "load",
    "lower_gemm",
    "store",
    "tx_bytes",
    "unalign",
    "wrong_segment",
]
