"""Layouts of tensors in memory (docs/network.md, "Tensors in memory")."""

from dataclasses import dataclass, replace
from math import prod

import numpy as np

__all__ = ["BLOCK", "LINE", "LONG", "Cut", "Held", "Place", "as_bytes", "as_cut", "as_held", "cut_place",
           "in_images", "in_pixels_of", "padded", "place_of"]  # fmt: skip

#: Addresses and sizes of block copies are multiples of this many bytes.
BLOCK = 16
#: Buffers in shared memory begin at multiples of this many bytes.
LINE = 128
#: Long pixels are cut to rows of a box of this many bytes.
LONG = 64
#: Most elements of a box along one dimension.
_MOST = 256
#: A tensor without channels is treated as pixels of at most 4 blocks and rows of at most 64 pixels.
_PIXEL, _ROW = 4, 64
#: Most bytes of a pixel that is an image.
_IMAGE = 4096


def padded(size, unit=BLOCK):
    """``size`` rounded up to a multiple of ``unit``."""
    return -(-size // unit) * unit


@dataclass(frozen=True)
class Place:
    """A tensor of bytes in global memory: images of rows of pixels of channels.

    Pixels of a row are contiguous. A row begins at a multiple of 16 bytes, so that a band of rows is one block.

    Attributes
    ----------
    name : str
        Name of the tensor.
    batch, height, width, channels : int
        Channels are bytes: four for each element of int32.
    shape : tuple of int
        As in the model.
    dtype : str
    """

    name: str
    batch: int
    height: int
    width: int
    channels: int
    shape: tuple[int, ...]
    dtype: str

    @property
    def element(self):
        """Bytes of an element."""
        return np.dtype(self.dtype).itemsize

    @property
    def pixel_pitch(self):
        """Bytes from a pixel to the next."""
        return self.channels

    @property
    def row_pitch(self):
        """Bytes from a row to the next."""
        return padded(self.width * self.channels)

    @property
    def image_pitch(self):
        """Bytes from an image to the next."""
        return self.height * self.row_pitch

    @property
    def size(self):
        """Bytes of the whole tensor."""
        return self.batch * self.image_pitch

    @property
    def strides(self):
        """Bytes from one index of each dimension of ``shape`` to the next."""
        if len(self.shape) == 4:
            return self.image_pitch, self.element, self.row_pitch, self.channels
        if len(self.shape) == 2:
            return self.image_pitch, self.element
        return tuple(self.element * prod(self.shape[axis + 1 :]) for axis in range(len(self.shape)))

    def view(self, data, address=0):
        """The tensor in ``data``, a uint8 array, with the dimensions of the model."""
        return np.ndarray(self.shape, self.dtype, data, address, self.strides)


@dataclass(frozen=True)
class Cut(Place):
    """Some channels, columns and rows of a tensor, whose rows are contiguous in shared memory.

    Attributes
    ----------
    base : Place
        The whole tensor.
    first_channel, first_column : int
    step : (int, int)
        Steps between rows, and between columns, of the tensor.
    gap : int
        Unused bytes after each pixel in shared memory.
    swizzled : bool
        Whether blocks of 16 bytes change their places there, with a span of 128 bytes.
    """

    base: Place | None = None
    first_channel: int = 0
    first_column: int = 0
    step: tuple[int, int] = (1, 1)
    gap: int = 0
    swizzled: bool = False

    @property
    def pixel_pitch(self):
        """Bytes from a pixel to the next in shared memory."""
        return self.channels + self.gap

    @property
    def row_pitch(self):
        """Bytes from a row to the next in shared memory."""
        return self.width * self.pixel_pitch

    @property
    def unit(self):
        """Bytes of an element of the box that transfers these channels; None if no box can."""
        parts = self.channels, self.first_channel, self.base.channels, self.gap
        for unit in (1, 2, 4, 8):
            if self.pixel_pitch <= _MOST * unit and not any(part % unit for part in parts):
                return unit
        fits = self.pixel_pitch <= _MOST * LONG and not any(part % LONG for part in parts)
        return 8 if fits else None

    @property
    def long(self):
        """Whether a pixel is longer than a row of a box: then it is cut to rows of ``LONG`` bytes."""
        return self.pixel_pitch > _MOST * 8

    @property
    def columns(self):
        """Columns of the tensor from the first to the last one, including those that are stepped over."""
        return (self.width - 1) * self.step[1] + 1


@dataclass(frozen=True)
class Held(Cut):
    """A tensor, or part of one, that stays whole in shared memory from the layer that makes it to the next one."""

    @property
    def pixel_pitch(self):
        """Bytes from a pixel to the next in shared memory."""
        return self.base.channels + self.gap

    @property
    def row_pitch(self):
        """Bytes from a row to the next in shared memory."""
        return padded(self.base.width * self.pixel_pitch)

    @property
    def offset(self):
        """Bytes from the beginning of the tensor to the first channel and column."""
        return self.first_column * self.pixel_pitch + self.first_channel


def as_held(place, gap):
    """A whole tensor that stays in shared memory, with ``gap`` bytes between pixels."""
    shape = place.batch, place.height, place.width, place.channels, place.shape
    return Held(place.name, *shape, place.dtype, base=place, gap=gap)


def cut_place(place, channels, columns):
    """A :class:`Cut` to channels and columns, each (first, count); the place itself if they are all of it."""
    if channels == (0, place.channels) and columns == (0, place.width):
        return place
    whole = as_cut(place)
    return replace(whole, channels=channels[1], width=columns[1], first_channel=whole.first_channel + channels[0],
                   first_column=whole.first_column + columns[0] * whole.step[1])  # fmt: skip


def as_cut(place):
    """A place as a :class:`Cut`: itself, or a cut to all of it."""
    if isinstance(place, Cut):
        return place
    return Cut(place.name, place.batch, place.height, place.width, place.channels, place.shape, place.dtype, base=place)


def place_of(tensor):
    """The :class:`Place` of a tensor of a graph: feature maps are NHWC, matrices row by row, others as plain bytes."""
    shape, element = tensor.shape, np.dtype(tensor.dtype).itemsize
    if len(shape) == 4:
        batch, channels, height, width = shape
    elif len(shape) == 2:
        batch, channels, height, width = shape[0], shape[1], 1, 1
    else:
        return Place(tensor.name, **_rows(element * prod(shape)), shape=shape, dtype=tensor.dtype)
    return Place(tensor.name, batch, height, width, element * channels, shape, tensor.dtype)


def as_bytes(place):
    """A place as rows of plain bytes, including the bytes between its own rows."""
    return replace(place, **_rows(place.size))


def in_images(place, most):
    """A place as images of one pixel of at most ``most`` bytes, including the bytes between its own rows."""
    blocks = padded(place.size) // BLOCK
    pixel = _divisor(blocks, max(min(most, _IMAGE) // BLOCK, 1))
    return replace(place, batch=blocks // pixel, height=1, width=1, channels=BLOCK * pixel)


def in_pixels_of(other, place):
    """A place with the images, rows and pixels of ``other``, which has the same shape."""
    sizes = {name: getattr(other, name) for name in ("batch", "height", "width", "channels")}
    return replace(place, **sizes)


def _rows(size):
    """Fields of a place of ``size`` bytes as pixels of one image."""
    blocks = padded(size) // BLOCK
    pixel = _divisor(blocks, _PIXEL)
    width = _divisor(blocks // pixel, _ROW)
    return {"batch": 1, "height": blocks // pixel // width, "width": width, "channels": BLOCK * pixel}


def _divisor(number, most):
    """The largest divisor of a number up to ``most``."""
    return next(divisor for divisor in range(most, 0, -1) if number % divisor == 0)
