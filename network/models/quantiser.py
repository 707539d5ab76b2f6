"""Models of floats, quantised by ONNX Runtime's own tools."""

import logging
import tempfile
from contextlib import contextmanager
from pathlib import Path

import onnx
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process

__all__ = ["quantised"]


@contextmanager
def _quiet():
    """Without its advice on speed."""
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)


class _Samples(CalibrationDataReader):
    def __init__(self, samples):
        self._left = iter(samples)

    def get_next(self):
        return next(self._left, None)


def quantised(model, samples, *, form="QOperator", signed=False, reduced=False):
    """A model of integers.

    Parameters
    ----------
    model : ModelProto
        Of float32.
    samples : iterable of dict of str to array
        Inputs that show how large activations are.
    form : str
        ``"QOperator"`` or ``"QDQ"``.
    signed : bool
        Whether activations are int8; otherwise uint8.
    reduced : bool
        Weights of 7 bits, with which no kernel of ONNX Runtime saturates; otherwise of 8.

    Returns
    -------
    ModelProto
        Weights are int8, with a scale for each channel.
    """
    with tempfile.TemporaryDirectory() as folder:
        plain, ready, done = (str(Path(folder) / f"{name}.onnx") for name in ("plain", "ready", "done"))
        onnx.save(model, plain)
        kind = QuantType.QInt8 if signed else QuantType.QUInt8
        with _quiet():
            quant_pre_process(plain, ready, skip_symbolic_shape=True)
            quantize_static(ready, done, _Samples(samples), QuantFormat[form], per_channel=True, activation_type=kind,
                            weight_type=QuantType.QInt8, reduce_range=reduced)  # fmt: skip
        return onnx.load(done)
