"""How tensors lie in memory (docs/network.md, "Tensors in memory")."""

from dataclasses import dataclass, replace
from math import prod

import numpy as np

__all__ = ["BLOCK", "LINE", "LONG", "Cut", "Held", "Place", "as_bytes", "as_cut", "as_held", "cut_place",
           "in_pixels_of", "padded", "place_of"]  # fmt: skip

#: Addresses and sizes of block copies are multiples of so many bytes.
BLOCK = 16
#: Multiples of which buffers in shared memory begin at.
LINE = 128
#: Bytes of the rows of a box that long pixels are cut to.
LONG = 64
#: Elements of a box along one of its dimensions, at most.
_MOST = 256
#: What has no channels is thought of as pixels of so many blocks, and rows of so many pixels, at most.
_PIXEL, _ROW = 4, 64


def padded(size, unit=BLOCK):
    """``size`` rounded up to a multiple of ``unit``."""
    return -(-size // unit) * unit


@dataclass(frozen=True)
class Place:
    """A tensor of bytes in global memory: images of rows of pixels of channels.

    Pixels of a row adjoin. A row begins at a multiple of 16 bytes, so that a band of rows is one block.

    Attributes
    ----------
    name : str
        Of the tensor.
    batch, height, width, channels : int
        Channels are bytes: of int32 four for each element.
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
        """Bytes in all."""
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
    """Some channels, columns and rows of a tensor, whose rows adjoin where they lie in shared memory.

    Attributes
    ----------
    base : Place
        The whole tensor.
    first_channel, first_column : int
    step : (int, int)
        Rows and columns of the tensor from one to the next of these.
    gap : int
        Bytes behind each pixel in shared memory.
    """

    base: Place | None = None
    first_channel: int = 0
    first_column: int = 0
    step: tuple[int, int] = (1, 1)
    gap: int = 0

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
        """Bytes of an element of a box that has these channels; None if there is no such box."""
        parts = self.channels, self.first_channel, self.base.channels, self.gap
        for unit in (1, 2, 4, 8):
            if self.pixel_pitch <= _MOST * unit and not any(part % unit for part in parts):
                return unit
        fits = self.pixel_pitch <= _MOST * LONG and not any(part % LONG for part in parts)
        return 8 if fits else None

    @property
    def long(self):
        """Whether a pixel is more than a row of a box: then it is rows of ``LONG`` bytes."""
        return self.pixel_pitch > _MOST * 8

    @property
    def columns(self):
        """Columns of the tensor from the first to the last of these."""
        return (self.width - 1) * self.step[1] + 1


@dataclass(frozen=True)
class Held(Cut):
    """A tensor, or some of it, that stays in shared memory as a whole from the layer that makes it to the next one."""

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
        """Bytes from the first of the tensor to the first of these."""
        return self.first_column * self.pixel_pitch + self.first_channel


def as_held(place, gap):
    """All of a tensor as it stays, with so many bytes between pixels."""
    shape = place.batch, place.height, place.width, place.channels, place.shape
    return Held(place.name, *shape, place.dtype, base=place, gap=gap)


def cut_place(place, channels, columns):
    """A :class:`Cut` to channels and columns, each (first, count), or the place itself where that is all of it."""
    if channels == (0, place.channels) and columns == (0, place.width):
        return place
    whole = as_cut(place)
    return replace(whole, channels=channels[1], width=columns[1], first_channel=whole.first_channel + channels[0],
                   first_column=whole.first_column + columns[0] * whole.step[1])  # fmt: skip


def as_cut(place):
    """A place as a :class:`Cut`: of all that it has, if it is none."""
    if isinstance(place, Cut):
        return place
    return Cut(place.name, place.batch, place.height, place.width, place.channels, place.shape, place.dtype, base=place)


def place_of(tensor):
    """The :class:`Place` of a tensor of a graph: feature maps NHWC, matrices row by row, others as any pixels."""
    shape, element = tensor.shape, np.dtype(tensor.dtype).itemsize
    if len(shape) == 4:
        batch, channels, height, width = shape
    elif len(shape) == 2:
        batch, channels, height, width = shape[0], shape[1], 1, 1
    else:
        return Place(tensor.name, **_rows(element * prod(shape)), shape=shape, dtype=tensor.dtype)
    return Place(tensor.name, batch, height, width, element * channels, shape, tensor.dtype)


def as_bytes(place):
    """A place as rows of any bytes, those between its own rows too."""
    return replace(place, **_rows(place.size))


def in_pixels_of(other, place):
    """A place as images, rows and pixels of another one of the same shape."""
    sizes = {name: getattr(other, name) for name in ("batch", "height", "width", "channels")}
    return replace(place, **sizes)


def _rows(size):
    """So many bytes as pixels of one image."""
    blocks = padded(size) // BLOCK
    pixel = _divisor(blocks, _PIXEL)
    width = _divisor(blocks // pixel, _ROW)
    return {"batch": 1, "height": blocks // pixel // width, "width": width, "channels": BLOCK * pixel}


def _divisor(number, most):
    """The largest divisor of a number up to ``most``."""
    return next(divisor for divisor in range(most, 0, -1) if number % divisor == 0)
