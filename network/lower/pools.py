"""Global averages as several layers: sums of parts first (docs/network.md, "Global averages")."""

from dataclasses import replace
from math import gcd
from typing import NamedTuple

import numpy as np

from tilewright.spec.conv import ConvOperation
from tilewright.spec.pe import MmType

from .layers import Layer, Part
from .operators import bits, element_type, results, same_channels, table_of, through, whole_output
from .places import BLOCK, padded

__all__ = ["is_global", "layers_of_rows", "layers_of_view", "rows_of_sums", "view_of_sums"]

#: Most rows, and columns, of a window.
_MOST = 256
#: Channels whose sums are added side by side, at most.
_APART = 8
#: Bytes that a cycle loads, and that a request for rows has of a run of channels at most.
_LOADED, _CHUNK = 64, 16
#: About: sums that a cycle adds, and further cycles of the job, for the weights of each window and in all.
_SUMMED, _WEIGHTS, _SUM_CYCLES = 32, 4, 900
#: Bytes of weights and tables of the layer before, about.
_OTHERS = 2048
#: Bytes for each channel of the tables and the results of a layer of rows.
_OF_ROWS = 12


class _View(NamedTuple):
    """A map as lines of pixels, of which a window has some; one pixel is runs of ``channels`` beside each other.

    Attributes
    ----------
    pixels : int
        Of a line.
    rows : int
        Lines whose sums are computed at once.
    channels : int
    """

    pixels: int
    rows: int
    channels: int


def is_global(pool, place, shape):
    """Whether a Pool adds all pixels of one image; ``shape`` is that of its result."""
    one = shape[2:] == (1, 1) and pool.scale is not None and pool.scale.size == 1
    return one and place.batch == 1 and tuple(pool.kernel) == (place.height, place.width)


def view_of_sums(place, conv, room):
    """How a map is added up with runs of channels beside each other, as that is faster: a :class:`_View`; else None.

    ``room`` is bytes of shared memory.
    """
    pixels, size, blocks = place.height * place.width, place.channels, -(-place.channels // conv.row_bytes)
    solid = place.row_pitch == place.width * size
    loaded = pixels * size // _LOADED

    def added(view):
        return pixels // view.pixels * -(-view.pixels * size // (conv.lanes * min(view.channels, _CHUNK)))

    def cycles(view):
        sums = pixels // view.rows * (size / _SUMMED + _WEIGHTS) + _SUM_CYCLES
        # Sums of whole rows of the map may be added while the rows lie in shared memory.
        in_bands = view.rows * view.pixels % place.width == 0 and view.rows < pixels
        return max(added(view), 0 if in_bands else loaded) + (sums if view.rows < pixels else 0)

    views = []
    for count in _divisors(pixels) if solid else [place.width]:
        channels = gcd(count * size, conv.row_bytes)
        if count > _MOST or (count * size % BLOCK and count != place.width):
            continue
        for rows in _divisors(pixels // count):
            # The layer before may add up bands of this many rows, with two buffers for its own sources and results.
            sums = pixels // rows * 4 * size
            fits = 4 * (rows * padded(count * size) + place.row_pitch) + sums <= room - _OTHERS and "i16" in conv.types
            fits = fits and size % 4 == 0 and pixels // rows <= _MOST
            if rows <= _MOST and (rows == pixels or fits):
                views.append(_View(count, rows, channels))
    best = min(views, key=lambda view: (cycles(view) + added(view) // 2, view), default=None)
    return best if best and cycles(best) < blocks * pixels else None


def _divisors(number):
    return [divisor for divisor in range(1, number + 1) if number % divisor == 0]


def rows_of_sums(place, room):
    """Rows that are added at once, if not all fit ``room``: the next ones are loaded meanwhile; otherwise None."""
    count = min(max(room // 3 // place.row_pitch, 1), _MOST)
    fits = count * place.row_pitch + _OF_ROWS * place.channels <= room and place.width <= _MOST
    return count if fits and place.image_pitch > room // 2 and place.height > count else None


def layers_of_view(node, output, place, view, between):
    """The layers of sums of windows and of their sum, or one layer if all pixels are in one window.

    ``between`` makes a place for an intermediate result, of a name, a shape and a type.
    """
    pixels, size = place.height * place.width, place.channels
    lines = pixels // view.pixels
    runs = {"width": view.pixels * size // view.channels, "channels": view.channels}
    place = replace(place, height=lines, **runs)
    if view.rows == pixels:
        return (_sum_of_windows(node, replace(output, **runs), place, view),)
    sums = between("sums", (1, size, lines // view.rows * view.pixels, 1), "int32")
    made = replace(sums, height=lines // view.rows, width=runs["width"], channels=4 * view.channels)
    return _sum_of_windows(node, made, place, view), _sum_of_sums(node, output, sums, pixels, place.dtype)


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


def _sum_of_windows(node, output, place, view):
    """The layer that adds lines: the results of the Pool, or sums of 32 bits from the least number of the type on."""
    at, whole = node.attributes, output.dtype != "int32"
    zero = at.x_zero if whole else _least(place.dtype)
    table = {"table": table_of(view.channels, bits(at.scale.reshape(-1)[0]))} if whole else {}
    part = Part(source=0, channels=(0, view.channels), out_channels=(0, view.channels), **whole_output(output),
                operation=ConvOperation.SUM_POOL, type=element_type(place.dtype), x_zero=zero & 0xFF,
                kernel=(view.rows, 1), stride=(1 if whole else view.rows, 1), **table,
                zero_first=whole and at.zero_first,
                **results(node, output, at.y_zero, at.minimum, at.maximum))  # fmt: skip
    return Layer(node.name, node.operator or node.kind, output, (place,), (part,))


def _sum_of_sums(node, output, sums, pixels, dtype):
    """The layer that adds sums of ``pixels`` elements of ``dtype`` in all, as the lower halves of 32 bits.

    It is a convolution of some channels at a time, whose weights are 1 for the lower half of the channel itself.
    """
    at, size = node.attributes, output.channels
    count = gcd(size, _APART)
    halves, runs = 2 * count, size // count
    weights = np.zeros((count, sums.height, halves), "<u2")
    weights[range(count), :, range(0, halves, 2)] = 1
    bias = pixels * (_least(dtype) - at.x_zero)
    part = Part(operation=ConvOperation.CONVOLUTION, source=0, channels=(0, halves), out_channels=(0, count),
                rows=(0, 1), columns=(0, runs), type=MmType.U16U16, kernel=(sums.height, 1),
                weights=weights.reshape(count, -1).view(np.uint8), counted=0,
                table=table_of(count, bits(at.scale.reshape(-1)[0]), bias), zero_first=at.zero_first,
                **results(node, output, at.y_zero, at.minimum, at.maximum))  # fmt: skip
    output, sums = replace(output, width=runs, channels=count), replace(sums, width=runs, channels=2 * halves)
    return Layer(node.name, node.operator or node.kind, output, (sums,), (part,))


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
