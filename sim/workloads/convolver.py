"""Runs layers on the convolution engine, in jobs that fit shared memory; the first layer of a real network.

The stem of EfficientNet-Lite0 turns a photograph into 32 feature maps.
"""

import json
from importlib.resources import files

import numpy as np
from PIL import Image

from tilewright.golden import Conv, ConvLayer, ConvPlan, ConvShape, PostProcessing
from tilewright.golden.conv.plan import granularities
from tilewright.spec.conv import ConvError

from .findings import Findings, Totals, Worker

__all__ = ["Convolver", "load_stem", "play_stem"]

_SIZE = 224  # of the network's input
_COLUMNS = 8  # of feature maps in the picture
#: Merged kernel columns, by name of the row of the table: a whole kernel row as one pixel, or each pixel separately.
_WAYS = {"windows": 3, "pixels": 1}


class Convolver(Worker):
    """Runs convolutions as jobs, strip by strip, each with all of its operands in shared memory.

    All of shared memory is written before a job. After the job all of it must equal the golden model's.

    Parameters and attributes are those of a ``Worker``, whose session is of a core with a convolution engine alone.

    Attributes
    ----------
    params : ConvUnitParams
    """

    def __init__(self, session, **options):
        super().__init__(session, **options)
        self.params = session.params.conv

    def convolve(self, x, k, kind, *, stride, zeros, post, merge, case):
        """Runs a layer and returns its results from the hardware, N × Ho × Wo × Co.

        The padding gives ⌈size / stride⌉ points; its smaller half is before the first pixel.

        Parameters
        ----------
        x : array of shape (1, H, W, C)
        k : array of shape (Co, Kh, Kw, C)
        kind : str
            Type of both.
        stride, zeros, post
            See ``ConvLayer``.
        merge : int
            Kernel columns that are merged to one pixel; the blocks take the fewest cycles.
        case : str
            Name of its totals in ``cases``.
        """
        heights, widths = (_around(x.shape[axis], k.shape[axis], stride[axis - 1]) for axis in (1, 2))
        lines = -(-x.shape[1] // stride[0])
        results, first = [], 0
        while first < lines:
            count = lines - first
            while (layer := self._strip(x, k, kind, stride, zeros, post, merge, heights, widths, first, count)) is None:
                count = (count + 1) // 2
            results.append(self._run(layer, case))
            first += count
        return np.concatenate(results, axis=1)

    def _strip(self, x, k, kind, stride, zeros, post, merge, heights, widths, first, count):
        """The layer for some lines of points; None if it does not fit shared memory."""
        top = first * stride[0] - heights[0]
        bottom = top + (count - 1) * stride[0] + k.shape[1]
        rows = x[:, max(top, 0) : bottom]
        padding = (max(-top, 0), max(bottom - x.shape[1], 0), *widths)
        options = {"stride": stride, "padding": padding, "zeros": zeros, "post": post, "params": self.params.conv}
        shape = ConvShape.of(rows.shape, len(k), k.shape[1:3], stride, padding)
        plans = [ConvPlan(shape, self.params.conv, size, merge, raster=True)
                 for size in granularities(self.params.conv.row_bytes)]  # fmt: skip
        best = min(plans, key=lambda plan: max(plan.mac_cycles, plan.fetch_cycles))
        plan = {"block_bytes": best.block_bytes, "merge": merge, "raster": True}
        layer = ConvLayer(rows, k, kind, plan=plan, **options)
        if len(layer.smem) <= self.params.smem.size_bytes:
            return layer
        if count == 1:
            raise ValueError(f"a line of {x.shape[2]} pixels does not fit {self.params.smem.size_bytes} bytes")
        return None

    def _run(self, layer, case):
        """Runs a job, compares it, adds to the totals; returns the results."""
        session, size = self.session, len(layer.smem)
        session.shared_memory.write(0, layer.smem)
        run = session.run(jobs=[layer.word])
        seen = session.shared_memory.read(0, size)
        expected = layer.smem.copy()
        Conv(expected, self.params.conv).execute(layer.word)

        (end,) = run.jobs
        plan = layer.plan
        one = Totals("MACs", parts=1, work=plan.shape.macs, cycles=end.cycle - run.queued[0], limit=plan.limit)
        where = f"after {self.totals.parts} jobs"
        one.require(seen, expected, f"shared memory {where}")
        if end.code != ConvError.NONE:
            one.problems.append(f"{end.code.name} of a job {where}")
        self.count(one, case)
        return layer.result(seen)


def _around(size, taps, step):
    """Padding before and after, so that there are ⌈size / step⌉ points."""
    padding = max((-(-size // step) - 1) * step + taps - size, 0)
    return padding // 2, padding - padding // 2


def load_stem():
    """Weights of the layer: int8, 32 × 3 × 3 × 3, and its :class:`PostProcessing`; batch normalisation is folded."""
    stem = json.loads(files(__package__).joinpath("stem.json").read_text())
    weights = np.array([list(bytes.fromhex(row)) for row in stem["weights"]], np.uint8).view(np.int8)
    scale = np.array([int(bits, 16) for bits in stem["scale"]], np.uint32).view(np.float32)
    # ReLU6 is the clamp, because 255 represents 6.
    post = PostProcessing(output="u8", bias=tuple(stem["bias"]), scale=tuple(scale.tolist()))
    return weights.reshape(-1, 3, 3, 3), post, stem["x_zero"]


def play_stem(convolver, photographs):
    """Convolves a photograph, with a kernel row as one pixel and without."""
    photo = photographs[0]
    if not convolver.small:
        photo = _square(photo)
    weights, post, zero = load_stem()
    maps = {}
    for case, merge in _WAYS.items():
        maps[case] = convolver.convolve(photo[np.newaxis], weights, "u8s8", stride=(2, 2), zeros=(zero, 0), post=post,
                                        merge=merge, case=case)  # fmt: skip
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
