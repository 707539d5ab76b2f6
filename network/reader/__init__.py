"""Reads ONNX files: operators on integers, or on floats between DequantizeLinear and QuantizeLinear."""

from .model import read, read_model

__all__ = ["read", "read_model"]
