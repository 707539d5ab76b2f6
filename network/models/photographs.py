"""Photographs for networks of ImageNet, and the names of its classes."""

import json
from functools import cache
from importlib.metadata import distribution
from importlib.resources import files

import numpy as np
from PIL import Image

from .efficientnet import SIZE

__all__ = ["PHOTOGRAPHS", "class_names", "load_photograph", "prepare"]


@cache
def class_names():
    """The names of the 1000 classes, in the order of a network's results; some have several, separated by commas."""
    return tuple(json.loads(files(__package__).joinpath("imagenet_classes.json").read_text())["classes"])


_MARGIN = 32  # pixels of 256 that preparation for these networks crops
_SKIMAGE, _SKLEARN = ("scikit-image", "skimage/data"), ("scikit-learn", "sklearn/datasets/images")

#: Package, folder and file of each photograph.
PHOTOGRAPHS = {
    "coffee": (*_SKIMAGE, "coffee.png"),
    "cat": (*_SKIMAGE, "chelsea.png"),
    "camera": (*_SKIMAGE, "camera.png"),
    "astronaut": (*_SKIMAGE, "astronaut.png"),
    "rocket": (*_SKIMAGE, "rocket.jpg"),
    "flower": (*_SKLEARN, "flower.jpg"),
    "china": (*_SKLEARN, "china.jpg"),
}


def load_photograph(name):
    """The middle of a photograph, uint8 [224, 224, 3]."""
    package, folder, file = PHOTOGRAPHS[name]
    with Image.open(distribution(package).locate_file(f"{folder}/{file}")) as image:
        side = min(image.size) * SIZE // (SIZE + _MARGIN)
        left, top = ((length - side) // 2 for length in image.size)
        box = (left, top, left + side, top + side)
        return np.asarray(image.convert("RGB").resize((SIZE, SIZE), Image.Resampling.BICUBIC, box))


def prepare(pixels):
    """The input of EfficientNet-Lite: (pixel - 127) / 128 as float32 [1, 3, 224, 224]."""
    return ((pixels.astype(np.float32) - 127) / 128).transpose(2, 0, 1)[np.newaxis]
