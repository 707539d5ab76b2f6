"""Steps of a layer that a kernel of the processing engine computes (docs/network.md, "Kernels").

A buffer holds rows as the engine wants them: columns in pages of 128 bytes of all rows, swizzled. Results replace what
was loaded. There are up to three buffers: one is loaded, one is computed, one is stored.
"""

from dataclasses import replace
from math import ceil

import numpy as np

from tilewright.golden.pe.checks import instruction_word
from tilewright.spec.pe import Operation, Target

from ..graph import node_error
from ..lower.kernels import Blocks, Constant, Operand
from ..lower.places import LINE, as_cut, padded
from .steps import Call, Load, Map, Segment, Store, Transfer, block

__all__ = ["KernelImage", "kernel_steps", "least_bytes"]

#: Bytes of a row of a page.
_PAGE = LINE
#: Most rows of a box.
_MOST = 256
_DEPTH = 3
#: Bytes of a buffer that are worth while: with fewer the words of a program count.
_ENOUGH = 8192
_ENTRIES, _ENTRY_BITS = 4, 32  # of the lookup memory in a word
#: Elements of 32 bits of the shortest row of a page.
_SHORTEST = 4


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


def kernel_steps(layer, low, high, down, addresses, image, pe):
    """Steps of a layer of a kernel, with buffers from ``low`` to ``high``; at the end if ``down``.

    ``image`` is the address of its :class:`KernelImage` in global memory, ``pe`` the sizes of the engine.
    """
    kernel, own = layer.kernel, KernelImage(layer.kernel)
    first, last = own.constants
    rows, depth = _sizes(layer, high - low - (last - first), pe.pages)
    pages, sources = ceil(kernel.columns / _PAGE), len(layer.sources)
    buffer_bytes = rows * _PAGE * pages
    base = high - (last - first) - depth * sources * buffer_bytes if down else low
    constants = [Segment("uint32", (len(array),), (base + offset - first,), (_log2(max(len(array), _SHORTEST)),))
                 for offset, array in zip(own.offsets, kernel.constants, strict=True)]  # fmt: skip
    kept = [(base, base + last - first)] if constants else []
    if constants:
        yield Load([block(image + first, base, last - first)])
        base += last - first
    for turn, row in enumerate(range(0, kernel.rows, rows)):
        spots = [base + (turn % depth * sources + source) * buffer_bytes for source in range(sources)]
        bands = [_boxes(place, addresses, origin, row, kernel.columns, rows, spot)
                 for place, origin, spot in zip(layer.sources, kernel.origins[:-1], spots, strict=True)]  # fmt: skip
        yield Load([each for band in bands for each in band])
        segments = [[each.near for each in band] for band in bands]
        count = min(rows, kernel.rows - row)
        arguments = (_argument(each, kernel, segments, constants, rows, count) for each in kernel.arguments)
        spans = [(spot, spot + buffer_bytes) for spot in spots]
        yield Call((image, len(own.words)), tuple(arguments), spans + kept, spans[:1], kernel.cycles(count))
        yield Store(_boxes(layer.output, addresses, kernel.origins[-1], row, kernel.columns, rows, spots[0]))


def least_bytes(layer):
    """Bytes of shared memory that a layer needs for one band of as many rows as its kernel computes at once."""
    first, last = KernelImage(layer.kernel).constants
    rows = min(layer.kernel.block_rows, 1 << _log2(layer.kernel.rows))
    return last - first + rows * ceil(layer.kernel.columns / _PAGE) * _PAGE * len(layer.sources)


def _log2(size):
    return (size - 1).bit_length()


def _sizes(layer, room, pages):
    """Rows of a band, a power of two, and the number of bands that buffers of ``room`` bytes hold.

    A band has at most ``pages`` pages.
    """
    kernel = layer.kernel
    row_bytes = ceil(kernel.columns / _PAGE) * _PAGE
    needed = ceil(kernel.columns / _PAGE) * len(layer.sources)
    if needed > pages:
        sentence = f"rows of {kernel.columns} bytes are {needed} pages, and the processing engine has {pages}"
        raise node_error(layer.name, layer.operator, sentence)
    most = min(1 << _log2(kernel.rows), _MOST)
    wanted = min(max(kernel.block_rows, 1 << _log2(ceil(_ENOUGH / row_bytes))), most)
    for depth in (_DEPTH, 2, 1):
        fits = room // (depth * len(layer.sources) * row_bytes)
        if fits >= min(kernel.block_rows, most) or (depth == 1 and fits > 0):
            return min(1 << fits.bit_length() - 1, wanted), depth
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
        pages, sizes = tuple(segments[argument.source]), (kernel.columns, page_rows)
        return Segment(argument.element, sizes, pages, (_log2(_PAGE), _log2(page_rows)), True)
    if isinstance(argument, Constant):
        return constants[argument.number]
    return ceil(rows / argument.rows) if isinstance(argument, Blocks) else argument
