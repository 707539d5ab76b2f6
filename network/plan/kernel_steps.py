"""Steps of a layer that a kernel of the processing engine computes (docs/network.md, "Kernels").

A buffer holds rows as the engine wants them: columns in pages of 128 bytes of all rows, swizzled. Results replace what
was loaded. There are up to three buffers: one is loaded, one is computed, one is stored.
"""

from dataclasses import replace
from itertools import product
from math import ceil

import numpy as np

from tilewright.golden.pe.checks import instruction_word
from tilewright.spec.pe import Operation, Target

from ..graph import node_error
from ..lower.kernels import Blocks, Chunks, Constant, Operand, Result, Table
from ..lower.places import LINE, as_cut, padded
from ..tiling.shares import chunk
from .steps import Call, Code, Load, Map, Segment, Store, Transfer, block

__all__ = ["KernelImage", "boxes_of", "kernel_steps", "least_bytes", "log2_of"]

#: Bytes of a row of a page.
_PAGE = LINE
#: Most rows of a box.
_MOST = 256
_DEPTH = 3
#: Bytes of a buffer that are worth while: with fewer the words of a program count.
_ENOUGH = 8192
_ENTRIES, _ENTRY_BITS = 4, 32  # of the lookup memory in a word
#: Instructions that a PE word's address is a multiple of.
_ALIGNED = 4
#: Elements of 32 bits of the shortest row of a page.
_SHORTEST = 4


class KernelImage:
    """Instructions that load a kernel, those that load its lookup memory, and its constants, like an ``Image``.

    Parameters
    ----------
    kernel : Kernel

    Attributes
    ----------
    words : list of int
        The instruction that loads the kernel and the kernel itself; then, from a multiple of 64 bytes on, the
        instruction that loads the lookup memory and its entries.
    offsets, lengths : list of int
        Where each constant begins, and its 32-bit numbers.
    size : int
        Bytes of all.
    """

    def __init__(self, kernel):
        self._kernel, self._constants = kernel, kernel.constants
        load = instruction_word(Operation.LOAD, target=Target.CODE, imm=kernel.index, n=len(kernel.code))
        self.words = [load, *kernel.code]
        self._table = padded(len(self.words), _ALIGNED)
        if kernel.lookup:
            self.words += [0] * (self._table - len(self.words))
            entries = [kernel.lookup[first : first + _ENTRIES] for first in range(0, len(kernel.lookup), _ENTRIES)]
            self.words.append(instruction_word(Operation.LOAD, target=Target.LOOKUP, n=len(entries)))
            self.words += [sum(entry << _ENTRY_BITS * place for place, entry in enumerate(word)) for word in entries]
        self.lengths = [len(constant) for constant in kernel.constants]
        self.offsets, self.size = [], padded(16 * len(self.words), LINE)
        for constant in kernel.constants:
            self.offsets.append(self.size)
            self.size += padded(constant.nbytes, LINE)

    @property
    def constants(self):
        """Offset of the first byte of the constants, and of the end."""
        return (self.offsets[0] if self.offsets else self.size), self.size

    def code(self, address):
        """The :class:`Code` of the kernel, with this image at an address."""
        kernel = self._kernel
        table = (address + 16 * self._table, len(self.words) - self._table) if kernel.lookup else None
        return Code((address, 1 + len(kernel.code)), table, kernel.index, kernel.code, kernel.lookup)

    def data(self):
        """The bytes."""
        image = np.zeros(self.size, np.uint8)
        image[: 16 * len(self.words)] = np.frombuffer(
            b"".join(int(word).to_bytes(16, "little") for word in self.words), np.uint8
        )
        for offset, constant in zip(self.offsets, self._constants, strict=True):
            image[offset : offset + constant.nbytes] = constant.view(np.uint8)
        return image


def kernel_steps(layer, low, high, down, addresses, image, share=(0, 1)):
    """Steps of a layer of a kernel, with buffers from ``low`` to ``high``; at the end if ``down``.

    ``image`` is the address of its :class:`KernelImage` in global memory. ``share`` is the number of the core, and the
    number of cores.
    """
    kernel, own = layer.kernel, KernelImage(layer.kernel)
    first, last = own.constants
    rows, depth = _sizes(layer, high - low - (last - first), share[1])
    sizes = [rows * size for size in _row_bytes(kernel)]
    base = high - (last - first) - depth * sum(sizes) if down else low
    buffers = base + last - first
    kept = [(base, buffers)] if last > first else []
    bands = list(product(range(0, kernel.columns, kernel.group), chunk(range(0, kernel.rows, rows), share)))
    if kept and bands:
        yield Load([block(image + first, base, last - first)])
    for turn, (column, row) in enumerate(bands):
        start = buffers + turn % depth * sum(sizes)
        spots = [start + sum(sizes[:source]) for source in range(len(sizes))]
        columns, count = min(kernel.group, kernel.columns - column), min(rows, kernel.rows - row)
        boxes = [
            boxes_of(place, addresses, (origin[0] + row, origin[1] + column * size), columns * size, rows, spot)
            for place, origin, size, spot in zip(
                (*layer.sources, layer.output), kernel.origins, kernel.elements, (*spots, spots[0]), strict=True)
        ]  # fmt: skip
        yield Load([each for band in boxes[:-1] for each in band])
        segments = [_rows_segment(argument, boxes, columns, rows, kernel) for argument in kernel.arguments]
        arguments = [_argument(*pair, base - first, own, column, columns, count)
                     for pair in zip(kernel.arguments, segments, strict=True)]  # fmt: skip
        spans = [(spot, spot + size) for spot, size in zip(spots, sizes, strict=True)]
        yield Call(own.code(image), tuple(arguments), spans + kept, spans[:1], kernel.cycles(count), entry=kernel.index,
                   registers=kernel.registers(count))  # fmt: skip
        yield Store(boxes[-1])


def _row_bytes(kernel):
    """Bytes of shared memory of a row of each source."""
    return [ceil(size * kernel.group / _PAGE) * _PAGE for size in kernel.elements[:-1]]


def least_bytes(layer):
    """Bytes of shared memory that a layer needs for one band of as many rows as its kernel computes at once."""
    first, last = KernelImage(layer.kernel).constants
    rows = min(layer.kernel.block_rows, 1 << log2_of(layer.kernel.rows))
    return last - first + rows * sum(_row_bytes(layer.kernel))


def log2_of(size):
    """Log2 of the next power of two."""
    return (size - 1).bit_length()


def _sizes(layer, room, cores):
    """Rows of a band, a power of two, and the number of bands that buffers of ``room`` bytes hold.

    Each of ``cores`` has a band if there are enough rows.
    """
    kernel, row_bytes = layer.kernel, sum(_row_bytes(layer.kernel))
    most = min(1 << log2_of(ceil(kernel.rows / cores)), _MOST)
    wanted = min(max(kernel.block_rows, 1 << log2_of(ceil(_ENOUGH / row_bytes))), most)
    for depth in (_DEPTH, 2, 1):
        fits = room // (depth * row_bytes)
        if fits >= min(kernel.block_rows, most) or (depth == 1 and fits > 0):
            return min(1 << fits.bit_length() - 1, wanted), depth
    sentence = f"a row of {kernel.group} bytes does not fit {room} bytes of shared memory"
    raise node_error(layer.name, layer.operator, sentence)


def boxes_of(place, addresses, start, size, rows, spot, room=None):
    """Transfers of ``size`` bytes of some rows from ``start`` on, a row and a byte of it: a box for each page.

    Pages have ``room`` rows, as many as the boxes unless it is given.
    """
    (row, first), whole, transfers = start, as_cut(place), []
    for page, column in enumerate(range(first, first + size, _PAGE)):
        count = min(_PAGE, first + size - column)
        cut = replace(whole, channels=count, first_channel=column, gap=_PAGE - count, swizzled=True)
        coords, near = (column // cut.unit, 0, row, 0), spot + page * (room or rows) * _PAGE
        address = addresses[place.name]
        transfers.append(Transfer(near, rows * _PAGE, address, Map(cut, rows, address), coords))
    return transfers


def _rows_segment(argument, boxes, columns, rows, kernel):
    """The segment of an argument that is rows of a source or of the result; None for another one."""
    if not isinstance(argument, Operand | Result):
        return None
    number = argument.source if isinstance(argument, Operand) else -1
    pages = tuple(each.near for each in boxes[number])
    page_log2 = log2_of(_PAGE // kernel.elements[number]), log2_of(rows)
    return Segment(argument.element, (columns, rows), pages, page_log2, True)


def _argument(argument, segment, constants, own, column, columns, rows):
    """What an argument of the kernel is for ``rows`` rows of some columns; offsets count from address ``constants``."""
    if segment is not None:
        return segment
    if isinstance(argument, Constant):
        size = own.lengths[argument.number]
        start = constants + own.offsets[argument.number]
        if argument.by_column:
            start, size = start + 4 * column, columns
        return Segment("uint32", (size,), (start,), (log2_of(max(size, _SHORTEST)),))
    if isinstance(argument, Table):
        return Segment("uint8", (256, 256), (constants + own.offsets[argument.number],), (8, 8))
    if isinstance(argument, Chunks):
        return ceil(columns / argument.columns)
    return ceil(rows / argument.rows) if isinstance(argument, Blocks) else argument
