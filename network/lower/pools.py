"""Global averages as several layers: sums of parts first (docs/network.md, "Global averages")."""

from dataclasses import replace
from itertools import product

import numpy as np

from tilewright.spec.conv import ConvOperation
from tilewright.spec.pe import MmType

from .layers import Layer, Part
from .operators import bits, element_type, results, same_channels, table_of, through, whole_output

__all__ = ["is_global", "layers_of_rows", "layers_of_windows", "rows_of_sums", "window_of_sums"]

#: Most rows, and columns, of a window.
_MOST = 256
#: Most elements whose sum is an unsigned number of 16 bits.
_MOST_SUMMED = 257
#: Bytes that a cycle loads, and cycles that two further jobs take, about.
_LOADED, _SUM_CYCLES = 64, 1500
#: Bytes for each channel of the tables and the results of the sum of sums, and of a layer of rows.
_OF_WINDOWS, _OF_ROWS = 18, 12


def is_global(pool, place, shape):
    """Whether a Pool adds all pixels of one image; ``shape`` is that of its result."""
    one = shape[2:] == (1, 1) and pool.scale is not None and pool.scale.size == 1
    return one and place.batch == 1 and tuple(pool.kernel) == (place.height, place.width)


def window_of_sums(place, conv, room):
    """Rows and columns of windows whose sums are computed first, as that is faster; otherwise None.

    The sums are added as numbers of 16 bits, all at once: they must fit ``room``, bytes of shared memory.
    """
    pixels, blocks = place.height * place.width, -(-place.channels // conv.row_bytes)

    def cycles(window):
        columns = place.width // window[1]
        return max(blocks * pixels // columns * -(-columns // conv.slaves), pixels * place.channels // _LOADED)

    def fits(rows, columns):
        counts = place.height // rows, place.width // columns
        sums = (4 * counts[0] * counts[1] + _OF_WINDOWS) * place.channels
        small = rows * columns <= _MOST_SUMMED and max(counts) <= _MOST
        return small and 4 * rows * place.row_pitch <= room and sums <= room

    windows = [window for window in product(_divisors(place.height), _divisors(place.width)) if fits(*window)]
    if "i16" not in conv.types or not windows:
        return None
    best = min(windows, key=lambda window: (cycles(window), pixels // window[0] // window[1]))
    return best if cycles(best) + _SUM_CYCLES < blocks * pixels else None


def _divisors(number):
    return [divisor for divisor in range(1, number + 1) if number % divisor == 0]


def rows_of_sums(place, room):
    """Rows that are added at once, if not all fit ``room``: the next ones are loaded meanwhile; otherwise None."""
    count = min(max(room // 3 // place.row_pitch, 1), _MOST)
    fits = count * place.row_pitch + _OF_ROWS * place.channels <= room and place.width <= _MOST
    return count if fits and place.image_pitch > room // 2 and place.height > count else None


def layers_of_windows(node, output, place, window, between):
    """The layers of sums of windows, of their sum, and of the result.

    ``between`` makes a place for an intermediate result, of a name, a shape and a type.
    """
    sums = between("sums", (1, place.channels, place.height // window[0], place.width // window[1]), "int32")
    halves = between("halves", (1, 2, 1, place.channels), output.dtype)
    result = replace(output, width=place.channels, channels=1)
    return (
        _sums_of_windows(node, sums, place, window),
        _sum_of_sums(node, halves, sums, place),
        _every_other(node, result, halves),
    )


def layers_of_rows(node, output, place, scales, count, between):
    """Layers that each add ``count`` rows to the sums so far, and tables with these sums between them.

    ``scales`` is the place of the scale of each channel.
    """
    ones = {"batch": 1, "height": 1, "width": place.channels}
    biases = None
    for number, first in enumerate(range(0, place.height, count)):
        rows = first, min(first + count, place.height)
        if rows[1] == place.height:
            yield _sums_of_rows(node, output, place, rows, biases)
            return
        sums = replace(between(f"sums{number}", (1, place.channels, 1, 1), "int32"), **ones, channels=4)
        yield _sums_of_rows(node, sums, place, rows, biases)
        biases = replace(between(f"table{number}", (1, 8, 1, place.channels), "uint8"), **ones)
        yield _table_layer(node, biases, sums, replace(scales, **ones, channels=4))


def _sums_of_windows(node, output, place, window):
    """The layer of sums of 32 bits of windows beside each other, from the least number of the type on."""
    part = Part(**same_channels(place, 0, output), **whole_output(output), operation=ConvOperation.SUM_POOL,
                type=element_type(place.dtype), x_zero=_least(place.dtype) & 0xFF, kernel=window, stride=window,
                **results(node, output))  # fmt: skip
    part = replace(part, out_channels=(0, place.channels))
    return Layer(node.name, node.operator or node.kind, output, (place,), (part,))


def _sum_of_sums(node, output, place, source):
    """The layer that adds all sums of :func:`_sums_of_windows`, whose halves of 16 bits are elements of X.

    A result of each half is written, of which the one of the upper half has no meaning. All elements of
    ``source`` are added.
    """
    at, channels = node.attributes, place.channels // 2
    table = table_of(channels, 0)
    table[::2] = (
        source.height * source.width * (_least(source.dtype) - at.x_zero) & 0xFFFFFFFF,
        int(bits(at.scale.reshape(-1)[0])),
    )
    part = Part(operation=ConvOperation.SUM_POOL, source=0, channels=(0, channels), out_channels=(0, channels),
                rows=(0, 1), columns=(0, 1), type=MmType.U16U16, kernel=(place.height, place.width), table=table,
                zero_first=at.zero_first, **results(node, output, at.y_zero, at.minimum, at.maximum))  # fmt: skip
    return Layer(node.name, node.operator or node.kind, output, (place,), (part,))


def _every_other(node, output, place):
    """The layer of the first one of two bytes each, pixels of both places."""
    part = through(place, None, source=0, channels=(0, 1), out_channels=(0, 1), **whole_output(output))
    return Layer(node.name, node.operator or node.kind, output, (place,), (part,))


def _least(dtype):
    return int(np.iinfo(dtype).min)


def _sums_of_rows(node, output, place, rows, biases):
    """The layer of a Pool of sums that adds some rows of ``place`` to earlier sums.

    ``rows`` is (first, end). ``biases`` is the place of the table with the earlier sums, or None for the first rows.
    The results are sums of 32 bits unless the rows are the last ones.
    """
    at, sources = node.attributes, (place,) if biases is None else (place, biases)
    first, end = rows
    part = Part(**same_channels(place, 0, output), **whole_output(output), operation=ConvOperation.SUM_POOL,
                type=element_type(place.dtype), x_zero=at.x_zero & 0xFF, kernel=(end - first, place.width),
                origin=(-first, 0), table_source=None if biases is None else 1,
                zero_first=at.zero_first, **results(node, output, at.y_zero, at.minimum, at.maximum))  # fmt: skip
    # Sums of 32 bits are pixels of 4 bytes for their reader, but here one point has them all.
    part = replace(part, out_channels=(0, place.channels), columns=(0, 1))
    return Layer(node.name, node.operator or node.kind, output, sources, (part,))


def _table_layer(node, output, sums, scales):
    """The layer that makes a table for :func:`_sums_of_rows`, pixels of 8 bytes, of pixels of 4 bytes each."""
    parts = [through(place, None, source=number, channels=(0, 4), out_channels=(4 * number, 4), **whole_output(output))
             for number, place in enumerate((sums, scales))]  # fmt: skip
    return Layer(node.name, node.operator or node.kind, output, (sums, scales), tuple(parts))
