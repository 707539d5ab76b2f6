"""A file becomes the message that ONNX defines, or it is refused."""

from pathlib import Path

import onnx
from onnx.external_data_helper import load_external_data_for_model

from tilewright.golden.arguments import shown

from ..errors import ModelError

__all__ = ["load"]


def load(path):
    """The ``ModelProto`` of a file; weights in files beside it are read too.

    Raises
    ------
    ModelError
        If it is no model; one sentence. A file that cannot be read is an OSError.
    """
    if not isinstance(path, str | Path):
        raise TypeError(f"path must be that of a model file, not {shown(path)}")
    with open(path, "rb") as file:  # noqa: PTH123 - its sentence names the file, whatever type the path has
        data = file.read()
    try:
        model = onnx.load_model_from_string(data)
    except Exception:  # the class is that of a package behind onnx, and there is nothing else that can fail
        raise ModelError(f"{path} is no ONNX model, or not all of one") from None
    if not model.graph.node:
        raise ModelError(f"{path} is no ONNX model, or has no nodes")
    try:
        load_external_data_for_model(model, str(Path(path).parent))
    except Exception as error:  # a class of onnx, of files, or of numbers
        raise ModelError(f"{path} has weights in other files: {' '.join(str(error).split())}") from None
    return model
