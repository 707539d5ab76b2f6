"""The walk over the pixels of a convolution (docs/tmau.md, "Im2col mode")."""

import numpy as np

__all__ = ["bounding_box", "pixel_coordinates", "spatial_dimensions"]


def spatial_dimensions(tmap):
    """Numbers of the dimensions W, H, D of an im2col map: dimension 0 is C, or W with interleave."""
    first = 0 if tmap.interleave else 1
    return range(first, first + tmap.rank - 2)


def bounding_box(tmap):
    """Lower corner, and upper corner (exclusive), of the positions that a walk takes in W, H, D; without offset."""
    sizes = [tmap.size[d] for d in spatial_dimensions(tmap)]
    return tmap.lower, tuple(size + upper for size, upper in zip(sizes, tmap.upper, strict=True))


def pixel_coordinates(tmap, coords, offsets):
    """Tensor coordinates of each pixel, an int64 array of pixels by rank; the channel, or slice, is that of the start.

    Parameters
    ----------
    tmap : TensorMap
    coords : sequence of int
        Of the first pixel, its spatial ones inside the bounding box.
    offsets : sequence of int
        Added to W, H, D of every pixel.
    """
    spatial = spatial_dimensions(tmap)
    low, high = bounding_box(tmap)
    current = list(coords)
    pixels = np.empty((tmap.pixels, tmap.rank), np.int64)
    for pixel in range(tmap.pixels):
        pixels[pixel] = current
        for d, first, end in zip(spatial, low, high, strict=True):
            current[d] += tmap.traversal[d]
            if current[d] < end:
                break
            current[d] = first
        else:
            current[-1] += tmap.traversal[-1]
    pixels[:, spatial.start : spatial.stop] += np.array(offsets[: len(spatial)], np.int64)
    return pixels
