"""Files of arrays: ``.npy`` has one, ``.npz`` several by their names."""

import io
import zipfile
from pathlib import Path

import numpy as np

from tilewright.sim.files import write_atomically

from .errors import ModelError

__all__ = ["array_bytes", "read_inputs", "write_arrays"]


def read_inputs(path, graph):
    """The inputs of a network by their names: from a ``.npz``, or a ``.npy`` if there is only one.

    Raises
    ------
    ModelError
        If it is no such file; one sentence. A file that cannot be read is an OSError.
    """
    data = Path(path).read_bytes()
    try:
        found = np.load(io.BytesIO(data), allow_pickle=False)
        if isinstance(found, np.ndarray):
            found = {None: found}
        values = {name: found[name] for name in found}
    except (ValueError, EOFError, KeyError, zipfile.BadZipFile, NotImplementedError) as error:
        raise ModelError(f"{path} has no arrays of numbers: {' '.join(str(error).split())}") from None
    if None not in values:
        return values
    if len(graph.inputs) != 1:
        raise ModelError(f"the network has {len(graph.inputs)} inputs: {path} must be a .npz with an array for each")
    return {graph.inputs[0]: values[None]}


def write_arrays(path, values):
    """Writes arrays by their names, whatever these are, as a ``.npz``."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, value in values.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, np.asarray(value), allow_pickle=False)
    write_atomically(path, buffer.getvalue())


def array_bytes(value):
    """An array as the contents of a ``.npy``."""
    buffer = io.BytesIO()
    np.save(buffer, value, allow_pickle=False)
    return buffer.getvalue()
