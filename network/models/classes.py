"""What the classes of ImageNet are called."""

import json
from functools import cache
from importlib.resources import files

__all__ = ["class_names"]


@cache
def class_names():
    """1000 names, in the order of the answers of a network; some are several with commas between them."""
    return tuple(json.loads(files(__package__).joinpath("imagenet_classes.json").read_text())["classes"])
