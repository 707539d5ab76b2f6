"""Steps of a layer that normalises channels: all pixels of an image are loaded twice (docs/network.md, "Kernels")."""

from math import ceil

from ..lower.places import LINE
from ..tiling.shares import chunk
from .kernel_steps import KernelImage, boxes_of, log2_of
from .steps import Call, Load, Segment, Store, block

__all__ = ["channel_bytes", "channel_steps"]

_ROWS, _DEPTH, _PAGE = 64, 3, LINE
#: Cycles of a call without pixels.
_ALONE = 400


def channel_bytes(layer):
    """Bytes of shared memory that a layer needs."""
    first, last = KernelImage(layer.kernel).constants
    return last - first + _DEPTH * _ROWS * _PAGE


def channel_steps(layer, low, high, down, addresses, image, share=(0, 1)):
    """Steps of a layer, with buffers from ``low`` to ``high``; at the end if ``down``. As of ``kernel_steps``."""
    kernel, own = layer.kernel, KernelImage(layer.kernel)
    first, last = own.constants
    size, code = _ROWS * _PAGE, own.code(image)
    base = high - channel_bytes(layer) if down else low
    kept, buffers = [(base, base + last - first)], base + last - first
    begin, add, find, apply = (kernel.index + entry for entry in kernel.entries)
    own_columns, turn = chunk(range(0, kernel.columns, kernel.group), share), 0
    if own_columns:
        yield Load([block(image + first, base, last - first)])
    for column in own_columns:
        columns = min(kernel.group, kernel.columns - column)
        starts = [base + offset - first for offset in own.offsets]
        page_log2 = (max(log2_of(columns), 2),)
        numbers = [Segment("uint32", (columns,), (start + 4 * column,), page_log2) for start in starts[:2]]
        # Sums of groups of channels, if there are any, have room after the numbers.
        sums = [Segment("uint32", (size,), (start,), (log2_of(size),))
                for start, size in zip(starts[2:], own.lengths[2:], strict=True)]  # fmt: skip
        summed = [(start, base + last - first) for start in starts[2:]]
        for picture in range(kernel.images):
            yield Call(code, (0, 1, *numbers, *sums), kept, [], _ALONE, entry=begin)
            for entry in (add, apply):
                if entry == apply:
                    yield Call(code, (0, 1, *numbers, *sums), kept, summed, _ALONE * ceil(columns / 16), entry=find)
                for row in range(0, kernel.rows, _ROWS):
                    spot, count = buffers + turn % _DEPTH * size, min(_ROWS, kernel.rows - row)
                    source, target = ((first_row + picture * kernel.rows + row, first_byte + column)
                                      for first_row, first_byte in kernel.origins)  # fmt: skip
                    yield Load(boxes_of(layer.sources[0], addresses, source, columns, _ROWS, spot))
                    pixels = Segment(kernel.dtype, (columns, _ROWS), (spot,), (log2_of(_PAGE), log2_of(_ROWS)), True)
                    written = [(spot, spot + size)] if entry == apply else []
                    yield Call(code, (pixels, count, *numbers, *sums), [*kept, (spot, spot + size)], written,
                               (1 + (entry == apply)) * kernel.cycles(count), entry=entry)  # fmt: skip
                    if entry == apply:
                        # Rows past the image are those of the next one: they are not stored.
                        yield Store(boxes_of(layer.output, addresses, target, columns, count, spot))
                    turn += 1
