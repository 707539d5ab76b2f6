"""Kernels of the processing engine: text files, and programs that run them on arrays (docs/kernels.md)."""

from .elements import function_bytes, gather_rows, gru_gates, lstm_gates, product_bytes, sum_bytes, transpose_bytes
from .program import KernelProgram, Space
from .rows import arg_max, layer_norm, max_rows, mean_rows, softmax_bytes, softmax_floats, sum_rows
from .text import KERNELS, kernel_text, kernel_words

__all__ = [
    "KERNELS", "KernelProgram", "Space", "arg_max", "function_bytes", "gather_rows", "gru_gates", "kernel_text",
    "kernel_words", "layer_norm", "lstm_gates", "max_rows", "mean_rows", "product_bytes", "softmax_bytes",
    "softmax_floats", "sum_bytes", "sum_rows", "transpose_bytes",
]  # fmt: skip
