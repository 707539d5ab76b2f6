"""Tensors from a checkpoint of PyTorch, its format before version 1.6, without PyTorch.

The file is a row of pickles, and then the numbers of every storage. A pickle may name any function to be called: here
only those that a checkpoint of plain tensors needs, and each is one of ours.
"""

import pickle
import struct
from collections import OrderedDict
from typing import NamedTuple

import numpy as np

from ..errors import ModelError

__all__ = ["read_checkpoint"]

_MAGIC = 0x1950A86A20F9469CFC6C
_TYPES = {"FloatStorage": np.dtype("<f4"), "LongStorage": np.dtype("<i8")}


class _View(NamedTuple):
    """A tensor: a part of a storage, in elements."""

    storage: str
    offset: int
    size: tuple[int, ...]
    stride: tuple[int, ...]


def _rebuild(storage, offset, size, stride, *_):
    return _View(storage, offset, size, stride)


class _Unpickler(pickle.Unpickler):
    """Notes in ``types`` what each storage holds."""

    _ALLOWED = {  # noqa: RUF012 - constant
        ("collections", "OrderedDict"): OrderedDict,
        ("torch._utils", "_rebuild_tensor_v2"): _rebuild,
        **{("torch", name): name for name in _TYPES},
    }

    def __init__(self, file, types):
        super().__init__(file)
        self._types = types

    def find_class(self, module, name):
        if (module, name) not in self._ALLOWED:
            raise pickle.UnpicklingError(f"it names {module}.{name}, which tensors do not need")
        return self._ALLOWED[module, name]

    def persistent_load(self, pid):
        _, kind, key, *_ = pid
        self._types[key] = _TYPES[kind]
        return key


def read_checkpoint(path):
    """The tensors of a file, by their names, as arrays.

    Raises
    ------
    ModelError
        If it is no such checkpoint; one sentence.
    """
    types = {}
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - any kind of path
            magic, _, _, views, keys = (_Unpickler(file, types).load() for _ in range(5))
            if magic != _MAGIC:
                raise pickle.UnpicklingError("it begins with another number")
            storages = {key: _storage(file, types[key]) for key in keys}
            return {name: _array(storages[view.storage], view) for name, view in views.items()}
    except (pickle.UnpicklingError, struct.error, AttributeError, EOFError, KeyError, TypeError, ValueError) as error:
        raise ModelError(f"{path} is no checkpoint of tensors: {error}") from None


def _storage(file, dtype):
    (count,) = struct.unpack("<q", file.read(8))
    data = file.read(count * dtype.itemsize)
    if len(data) != count * dtype.itemsize:
        raise EOFError("it ends too early")
    return np.frombuffer(data, dtype)


def _array(storage, view):
    last = view.offset + sum((size - 1) * step for size, step in zip(view.size, view.stride, strict=True))
    if min((view.offset, *view.stride)) < 0 or last >= storage.size:
        raise ValueError("a tensor reaches out of its storage")
    strides = [step * storage.itemsize for step in view.stride]
    return np.lib.stride_tricks.as_strided(storage[view.offset :], view.size, strides, writeable=False).copy()
