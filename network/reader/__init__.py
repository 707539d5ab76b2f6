"""Model files: ONNX, with operators on integers, or with QuantizeLinear and DequantizeLinear around those on floats."""

from .model import read, read_model

__all__ = ["read", "read_model"]
