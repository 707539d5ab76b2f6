"""Steps of a layer that a kernel of the processing engine computes (docs/network.md, "Kernels").

A buffer holds rows as the engine wants them: columns in pages of 128 bytes of all rows, swizzled. Results replace what
was loaded. There are up to three buffers: one is loaded, one is computed, one is stored.
"""

from dataclasses import replace
from math import ceil
from typing import NamedTuple

import numpy as np

from tilewright.golden.pe.checks import instruction_word
from tilewright.spec.pe import Operation, Target

from ..graph import node_error
from ..lower.kernels import Blocks, Constant, Operand
from ..lower.places import LINE, as_cut, padded
from .steps import Call, Load, Map, Segment, Store, Transfer, block

__all__ = ["KernelImage", "kernel_steps"]

#: Bytes of a row of a page.
_PAGE = LINE
#: Most rows of a box.
_MOST = 256
_DEPTH = 3
#: Bytes of a buffer that are worth while: with fewer the words of a program count.
_ENOUGH = 8192
_ENTRIES, _ENTRY_BITS = 4, 32  # of the lookup memory in a word


class KernelImage:
    """The instructions that load a kernel, then its constants, with the interface of an ``Image``.

    Parameters
    ----------
    kernel : Kernel

    Attributes
    ----------
    words : list of int
        Instructions, and what they load.
    offsets : list of int
        Where each constant begins.
    size : int
        Bytes of all.
    """

    def __init__(self, kernel):
        self._constants = kernel.constants
        self.words = [instruction_word(Operation.LOAD, target=Target.CODE, n=len(kernel.code)), *kernel.code]
        if kernel.lookup:
            entries = [kernel.lookup[first : first + _ENTRIES] for first in range(0, len(kernel.lookup), _ENTRIES)]
            self.words.append(instruction_word(Operation.LOAD, target=Target.LOOKUP, n=len(entries)))
            self.words += [sum(entry << _ENTRY_BITS * place for place, entry in enumerate(word)) for word in entries]
        self.offsets, self.size = [], padded(16 * len(self.words), LINE)
        for constant in kernel.constants:
            self.offsets.append(self.size)
            self.size += padded(constant.nbytes, LINE)

    @property
    def constants(self):
        """Offset of the first byte of the constants, and of the end."""
        return (self.offsets[0] if self.offsets else self.size), self.size

    def data(self):
        """The bytes."""
        image = np.zeros(self.size, np.uint8)
        image[: 16 * len(self.words)] = np.frombuffer(
            b"".join(int(word).to_bytes(16, "little") for word in self.words), np.uint8
        )
        for offset, constant in zip(self.offsets, self._constants, strict=True):
            image[offset : offset + constant.nbytes] = constant.view(np.uint8)
        return image


class _Buffers(NamedTuple):
    """Rows of a band, and the addresses of buffers, each with one for each source."""

    rows: int
    buffers: list


def kernel_steps(layer, low, high, down, addresses, image):
    """Steps of a layer of a kernel, with buffers from ``low`` to ``high``; at the end if ``down``.

    ``image`` is the address of its :class:`KernelImage` in global memory.
    """
    kernel, own = layer.kernel, KernelImage(layer.kernel)
    first, last = own.constants
    buffers = _buffers(layer, high - low - (last - first))
    bytes_used = last - first + sum(map(len, buffers.buffers)) * _buffer_bytes(kernel, buffers.rows)
    base = high - bytes_used if down else low
    if last > first:
        yield Load([block(image + first, base, last - first)])
    constants = [Segment("uint32", (len(array),), (base + offset - first,), (_log2(len(array)),))
                 for offset, array in zip(own.offsets, kernel.constants, strict=True)]  # fmt: skip
    base += last - first
    pages, page_bytes = ceil(kernel.columns / _PAGE), buffers.rows * _PAGE
    for turn, row in enumerate(range(0, kernel.rows, buffers.rows)):
        spots = [
            base + number * _buffer_bytes(kernel, buffers.rows)
            for number in buffers.buffers[turn % len(buffers.buffers)]
        ]
        rows, loads, segments = min(buffers.rows, kernel.rows - row), [], []
        for source, (place, origin, spot) in enumerate(zip(layer.sources, kernel.origins, spots, strict=False)):
            loads += _boxes(place, addresses, origin, row, kernel.columns, buffers.rows, spot)
            segments.append(tuple(spot + page * page_bytes for page in range(pages)))
        yield Load(loads)
        arguments = [
            _argument(argument, kernel, segments, constants, buffers.rows, rows) for argument in kernel.arguments
        ]
        reads = [(spot, spot + pages * page_bytes) for spot in spots]
        if last > first:
            reads.append((base - (last - first), base))
        yield Call((image, len(own.words)), tuple(arguments), reads, reads[:1], kernel.cycles(rows))
        yield Store(_boxes(layer.output, addresses, kernel.origins[-1], row, kernel.columns, buffers.rows, spots[0]))


def _buffer_bytes(kernel, rows):
    return ceil(kernel.columns / _PAGE) * _PAGE * rows


def _log2(size):
    return (size - 1).bit_length()


def _buffers(layer, room):
    """The :class:`_Buffers` of a layer: as many rows as the kernel computes at once, if they fit, or more."""
    kernel, sources = layer.kernel, len(layer.sources)
    most = min(1 << _log2(kernel.rows), _MOST)
    for depth in (_DEPTH, 2, 1):
        fits = room // (depth * sources * _buffer_bytes(kernel, 1))
        if fits < min(kernel.block_rows, most) and depth > 1:
            continue
        if not fits:
            break
        enough = max(kernel.block_rows, _ENOUGH // _buffer_bytes(kernel, 1))
        rows = min(1 << fits.bit_length() - 1, 1 << _log2(enough), most)
        depth = min(depth, ceil(kernel.rows / rows))
        return _Buffers(rows, [list(range(turn * sources, (turn + 1) * sources)) for turn in range(depth)])
    sentence = f"a row of {kernel.columns} bytes does not fit {room} bytes of shared memory"
    raise node_error(layer.name, layer.operator, sentence)


def _boxes(place, addresses, origin, row, columns, rows, spot):
    """Transfers of some rows of ``columns`` bytes: a box for each page."""
    (first_row, first_column), whole, transfers = origin, as_cut(place), []
    for page, column in enumerate(range(0, columns, _PAGE)):
        count = min(_PAGE, columns - column)
        cut = replace(whole, channels=count, first_channel=first_column + column, gap=_PAGE - count, swizzled=True)
        coords = ((first_column + column) // cut.unit, 0, first_row + row, 0)
        near = spot + page * rows * _PAGE
        transfers.append(Transfer(near, rows * _PAGE, addresses[place.name], Map(cut, rows), coords))
    return transfers


def _argument(argument, kernel, segments, constants, page_rows, rows):
    """What an argument of the kernel is for a band of ``rows`` rows."""
    if isinstance(argument, Operand):
        pages = segments[argument.source]
        return Segment(argument.element, (kernel.columns, page_rows), pages, (_log2(_PAGE), _log2(page_rows)), True)
    if isinstance(argument, Constant):
        return constants[argument.number]
    return ceil(rows / argument.rows) if isinstance(argument, Blocks) else argument
