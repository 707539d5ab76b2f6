"""The golden model: the meaning of the hardware in numpy, without cycles and streams."""

from tilewright.spec.conv import CONV_PRESETS, ConvParams

from .cluster import Cluster, ClusterGemm, Cores, delivery_bits
from .conv.banks import read_share, request_cycles
from .conv.layer import ConvLayer, PostProcessing, convolve
from .conv.machine import Conv, ConvRecord, job_word
from .conv.plan import ConvPlan, convolution_plans, most_steps, plan_convolution, seed_granularity
from .conv.shape import ConvShape
from .core.implicit_gemm import ImplicitGemm
from .core.machine import Core, DeadlockError, ProgramRecord, Step
from .core.program import LayerProgram, conv_words, page_words, program_bytes, program_word, segment_words, tmau_word
from .dot_product import dot
from .memory import GlobalMemory, Memory
from .pe.checks import instruction_word
from .pe.gemm import lower_gemm
from .pe.gemm_plan import Gemm
from .pe.machine import Fault, Pe
from .pe.placement import Placement
from .pe.program import Program, gemm_program, multiply
from .pe.segment import Segment, wrong_segment
from .pe.sizes import PeSizes
from .tmau.align import Alignment, Operator, Padding, align, unalign
from .tmau.block import check_block, copy_block, prefetch_block
from .tmau.checks import Windows, check_command
from .tmau.descriptor import Refusal, check_word
from .tmau.limits import Limits, limits
from .tmau.machine import ErrorRecord, Machine, command_word
from .tmau.tensor_map import DescriptorError, TensorMap
from .tmau.tile import tx_bytes
from .tmau.transfer import CommandError, load, prefetch, store

__all__ = [
    "CONV_PRESETS", "Alignment", "Cluster", "ClusterGemm", "CommandError", "Conv", "ConvLayer", "ConvParams",
    "ConvPlan", "ConvRecord", "ConvShape", "Core", "Cores", "DeadlockError", "DescriptorError", "ErrorRecord", "Fault",
    "Gemm", "GlobalMemory", "ImplicitGemm", "LayerProgram", "Limits", "Machine", "Memory", "Operator", "Padding", "Pe",
    "PeSizes", "Placement", "PostProcessing", "Program", "ProgramRecord", "Refusal", "Segment", "Step", "TensorMap",
    "Windows", "align", "check_block", "check_command", "check_word", "command_word", "conv_words",
    "convolution_plans", "convolve", "copy_block", "delivery_bits", "dot", "gemm_program", "instruction_word",
    "job_word", "limits", "load", "lower_gemm", "most_steps", "multiply", "page_words", "plan_convolution", "prefetch",
    "prefetch_block", "program_bytes", "program_word", "read_share", "request_cycles", "seed_granularity",
    "segment_words", "store", "tmau_word", "tx_bytes", "unalign", "wrong_segment",
]  # fmt: skip
