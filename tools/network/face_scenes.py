"""Scenes with faces, on which the face detector is trained: see :mod:`tilewright.tools.network.face_training`.

Faces are those of 25 × 25 pixels that scikit-image ships, from "Labeled Faces in the Wild". They are pasted with soft
edges into parts of photographs, together with objects that are not faces: patches of photographs, and faces that are
upside down, on their side or cut.
"""

from importlib.metadata import distribution

import numpy as np
from PIL import Image, ImageFilter

from tilewright.network.models.face_detector import CELL, FACE, STEP

__all__ = ["HELD_OUT", "Scenes", "load_sources"]

#: Photographs that are not in scenes, on which the detector may be judged.
HELD_OUT = ("astronaut", "camera", "coffee")

_SIDE = 96  # pixels of a scene
_SIZES = (24, 72)  # smallest and largest face, in pixels
_SKIMAGE = (
    "brick.png", "cell.png", "chelsea.png", "coins.png", "grass.png", "gravel.png", "horse.png",
    "hubble_deep_field.jpg", "ihc.png", "moon.png", "motorcycle_left.png", "page.png", "retina.jpg", "rocket.jpg",
    "text.png",
)  # fmt: skip
_SKLEARN = ("china.jpg", "flower.jpg")


def load_sources():
    """Faces [100, 25, 25] and photographs, in bytes."""
    folder = distribution("scikit-image").locate_file("skimage/data")
    faces = np.rint(255 * np.load(folder / "lfw_subset.npy")[:100]).astype(np.uint8)
    other = distribution("scikit-learn").locate_file("sklearn/datasets/images")
    paths = [folder / name for name in _SKIMAGE] + [other / name for name in _SKLEARN]
    return faces, [Image.open(path).convert("L") for path in paths]


class Scenes:
    """Draws scenes of faces and other objects.

    Parameters
    ----------
    rng : numpy.random.Generator
    faces : uint8 array [n, 25, 25]
    photographs : sequence of Image
    side : int
        Pixels of a scene, in each direction.
    """

    def __init__(self, rng, faces, photographs, side=_SIDE):
        self._rng, self._faces, self._photographs, self._side = rng, faces, photographs, side

    def draw(self):
        """Grey pixels as the model takes them [side, side], and a row (y, x, size) for each face."""
        rng, whole = self._rng, self._side
        scene = self._patch(whole)
        boxes = []
        for _ in range(rng.integers(1, 5)):
            size = int(np.exp(rng.uniform(*np.log(_SIZES))))
            y, x = rng.uniform(0.3 * size, whole - 0.3 * size, 2)
            if any(max(abs(y - v), abs(x - u)) < 0.55 * (size + side) for v, u, side in boxes):
                continue
            real = rng.random() < 0.6
            thing = self._face(size) if real else self._other(size)
            corner = (round(x - size / 2), round(y - size / 2))
            scene.paste(thing, corner, self._mask(size))
            boxes.append((corner[1] + size / 2, corner[0] + size / 2, size if real else -size))
        if rng.random() < 0.3:
            scene = scene.filter(ImageFilter.GaussianBlur(rng.uniform(0, 1.2)))
        pixels = np.asarray(scene, np.float32)
        if rng.random() < 0.5:
            pixels = pixels + rng.normal(0, rng.uniform(0, 10), pixels.shape)
        gain, shift = rng.uniform(0.6, 1.2), rng.uniform(-30, 30)
        pixels = np.clip((pixels - 127) * gain + 127 + shift, 0, 255)
        return (pixels.astype(np.float32) - 127) / 128, [box for box in boxes if box[2] > 0]

    def _patch(self, side):
        """Any part of any photograph, mirrored or not."""
        rng = self._rng
        image = self._photographs[rng.integers(len(self._photographs))]
        extent = min(image.size) * rng.uniform(0.15, 1)
        left, top = (rng.uniform(0, length - extent) for length in image.size)
        image = image.resize((side, side), Image.Resampling.BILINEAR, (left, top, left + extent, top + extent))
        return image.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if rng.random() < 0.5 else image

    def _face(self, size):
        rng = self._rng
        pixels = self._faces[rng.integers(len(self._faces))].astype(np.float64)
        pixels = 255 * (pixels / 255) ** np.exp(rng.normal(0, 0.3))
        pixels = (pixels - pixels.mean()) * rng.uniform(0.7, 1.6) + pixels.mean() + rng.normal(0, 20)
        image = Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))
        if rng.random() < 0.5:
            image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        large = image.resize((size, size), Image.Resampling.BICUBIC)
        return large.rotate(rng.normal(0, 10), Image.Resampling.BILINEAR, fillcolor=int(pixels.mean().clip(0, 255)))

    def _other(self, size):
        rng, kind = self._rng, self._rng.integers(4)
        if kind < 2:
            return self._patch(size)
        face = self._face(size)
        if kind == 2:
            return face.rotate(rng.choice([90, 180, 270]))
        half = size // 2
        left, top = ((0, 0), (half, 0), (0, half), (half, half))[rng.integers(4)]
        return face.resize((size, size), Image.Resampling.BILINEAR, (left, top, left + half, top + half))

    def _mask(self, size):
        """Between an ellipse and a square, with a soft edge."""
        rng = self._rng
        y, x = np.mgrid[-1 : 1 : size * 1j, -1 : 1 : size * 1j]
        power = rng.uniform(2, 8)
        distance = (np.abs(x / rng.uniform(0.75, 1)) ** power + np.abs(y) ** power) ** (1 / power)
        soft = rng.uniform(0.05, 0.3)
        return Image.fromarray((255 * np.clip((1 - distance) / soft, 0, 1)).astype(np.uint8))

    def batch(self, count):
        """Pixels [n, side, side, 1] and targets [n, rows, columns, 5]: whether there is a face, weight, box."""
        pixels, targets = [], []
        for _ in range(count):
            scene, boxes = self.draw()
            pixels.append(scene[..., np.newaxis])
            targets.append(_target(boxes, self._side))
        return np.stack(pixels), np.stack(targets).astype(np.float32)


def _target(boxes, side):
    """For each cell 1 if a face has its centre near, and 0 elsewhere; a weight, 0 in between; the box."""
    cells = side // CELL
    centres = CELL * (np.arange(cells) + 0.5)
    target = np.zeros((cells, cells, 5))
    target[..., 1] = 1
    for y, x, size in boxes:
        down, right = (y - centres)[:, np.newaxis], (x - centres)[np.newaxis]
        away = np.maximum(np.abs(down), np.abs(right)) / np.maximum(CELL, 0.2 * size)
        near = away < 1
        target[near, 1] = 0
        box = np.broadcast_arrays(down / CELL * STEP, right / CELL * STEP, np.log(size / FACE) * STEP)
        target[near, 2:] = np.stack(box, -1)[near]
        inside = away <= np.maximum(0.5, away.min())
        target[inside, :2] = 1
    return target
