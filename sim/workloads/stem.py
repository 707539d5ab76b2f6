"""The first layer of a real network: the stem of EfficientNet-Lite0 turns a photograph into 32 feature maps."""

import json
from importlib.resources import files

import numpy as np
from PIL import Image

from tilewright.golden import PostProcessing

from .findings import Findings

__all__ = ["SUMMARY", "load_stem", "play"]

SUMMARY = "a photograph through the first layer of EfficientNet-Lite0: 3 x 3, stride 2, 32 feature maps"

_SIZE = 224  # of the network's input
_COLUMNS = 8  # of feature maps in the picture
#: Merged kernel columns, by name of the row of the table: a whole kernel row as one pixel, or each pixel separately.
_WAYS = {"windows": {"merge": 3}, "pixels": {"merge": 1}}


def load_stem():
    """Weights of the layer: int8, 32 × 3 × 3 × 3, and its :class:`PostProcessing`; batch normalisation is folded."""
    stem = json.loads(files(__package__).joinpath("stem.json").read_text())
    weights = np.array([list(bytes.fromhex(row)) for row in stem["weights"]], np.uint8).view(np.int8)
    scale = np.array([int(bits, 16) for bits in stem["scale"]], np.uint32).view(np.float32)
    # ReLU6 is the clamp, because 255 represents 6.
    post = PostProcessing(output="u8", bias=tuple(stem["bias"]), scale=tuple(scale.tolist()))
    return weights.reshape(-1, 3, 3, 3), post, stem["x_zero"]


def play(convolver, photographs):
    """Convolves a photograph, with a kernel row as one pixel and without."""
    photo = photographs[0]
    if not convolver.small:
        photo = _square(photo)
    weights, post, zero = load_stem()
    maps = {}
    for case, way in _WAYS.items():
        maps[case] = convolver.convolve(photo[np.newaxis], weights, "u8s8", stride=(2, 2), zeros=(zero, 0), post=post,
                                        case=case, **way)  # fmt: skip
    convolver.totals.require(maps["pixels"], maps["windows"], "feature maps by single pixels")
    first, second = (convolver.cases[case].cycles for case in _WAYS)
    height, width, _ = maps["windows"][0].shape
    return Findings(
        facts=(
            f"{photo.shape[1]} x {photo.shape[0]} pixels to {maps['windows'].shape[3]} maps of {width} x {height}; "
            f"{first:,} cycles with a kernel row as one pixel, {second:,} pixel by pixel",
        ),
        pictures={"The 32 feature maps of the first layer": _tiled(maps["windows"][0])},
        cases=convolver.cases,
    )


def _square(photo):
    """The middle of a photograph, as large as the network takes it."""
    side = min(photo.shape[:2])
    top, left = (photo.shape[0] - side) // 2, (photo.shape[1] - side) // 2
    part = Image.fromarray(photo[top : top + side, left : left + side])
    return np.array(part.resize((_SIZE, _SIZE), Image.Resampling.BICUBIC))


def _tiled(maps):
    """Feature maps side by side, in grey."""
    height, width, count = maps.shape
    rows = maps.transpose(2, 0, 1).reshape(count // _COLUMNS, _COLUMNS, height, width)
    grey = rows.transpose(0, 2, 1, 3).reshape(-1, _COLUMNS * width)
    return np.repeat(grey[..., np.newaxis], 3, axis=2)
