"""The data of all workloads: two photographs that come with scikit-learn."""

from importlib.metadata import distribution

import numpy as np

from tilewright.extras import require

__all__ = ["PIXEL_BYTES", "load_photographs", "padded_pixels"]

#: Bytes of a pixel in the workloads: red, green, blue and 13 zero channels, because the rows of a box must be multiples
#: of 16 bytes.
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
        If packages of the extra ``sim`` are not installed.
    """
    require("sim")
    images = [_photograph(name) for name in ("china", "flower")]
    if crop is None:
        return images
    height, width = crop
    parts = []
    for image in images:
        top, left = (image.shape[0] - height) // 2, (image.shape[1] - width) // 2
        parts.append(np.ascontiguousarray(image[top : top + height, left : left + width]))
    return parts


def _photograph(name):
    from PIL import Image  # the help of commands with photographs does not need it

    # Read as a file, because the import of scikit-learn takes seconds.
    with Image.open(distribution("scikit-learn").locate_file(f"sklearn/datasets/images/{name}.jpg")) as image:
        return np.array(image)


def padded_pixels(photographs):
    """The photographs as one NHWC array of bytes with 16 channels."""
    stacked = np.stack(photographs)
    return np.concatenate([stacked, np.zeros((*stacked.shape[:3], PIXEL_BYTES - 3), np.uint8)], axis=3)
