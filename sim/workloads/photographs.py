"""The data of all workloads: two photographs that come with scikit-learn."""

import numpy as np

from ..usage import UsageError

__all__ = ["PIXEL_BYTES", "load_photographs", "padded_pixels"]

#: Bytes of a pixel as the workloads store it: red, green, blue and 13 zero channels, because rows of a box must be
#: multiples of 16 bytes.
PIXEL_BYTES = 16


def load_photographs(crop=None):
    """Two uint8 arrays, height × width × 3: china.jpg and flower.jpg.

    Parameters
    ----------
    crop : (int, int) or None
        Height and width of a part in the middle; None for all of the 427 × 640 pixels. The width is a multiple of 8.

    Raises
    ------
    UsageError
        If scikit-learn or Pillow is not installed.
    """
    try:
        from sklearn.datasets import load_sample_images

        images = load_sample_images().images
    except ImportError as error:
        raise UsageError(f"the photographs need the packages of `pip install 'tilewright[dev]'`: {error}") from None
    if crop is None:
        return [np.ascontiguousarray(image) for image in images]
    height, width = crop
    parts = []
    for image in images:
        top, left = (image.shape[0] - height) // 2, (image.shape[1] - width) // 2
        parts.append(np.ascontiguousarray(image[top : top + height, left : left + width]))
    return parts


def padded_pixels(photographs):
    """The photographs as one NHWC array of bytes with 16 channels."""
    stacked = np.stack(photographs)
    return np.concatenate([stacked, np.zeros((*stacked.shape[:3], PIXEL_BYTES - 3), np.uint8)], axis=3)
