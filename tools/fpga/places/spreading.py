"""An analytic placement: nets pull objects together, tiles that are too full push them apart.

The method is that of ePlace (Lu and others, ACM TODAES 20, 2015): tables are charges, their potential is found by a
Fourier transform, and Nesterov's method follows the gradient of smoothed wire lengths and of that potential, of which
more and more counts.
"""

import numpy as np

from .device import PER_TILE

__all__ = ["Field", "Motion"]

#: Objects that no net pulls fill the device up to this part: so a small design stays together.
_FULL = 0.75
_FILLER = 4  # tables of one


class Field:
    """Forces on objects.

    Parameters
    ----------
    objects : Objects
    room : array
        As of :meth:`~.device.Device.capacity`.
    """

    def __init__(self, objects, room):
        self._objects, self._nets, self._room = objects, objects.nets, room
        self._count = objects.areas.shape[1]
        missing = np.maximum(_FULL * room.sum() - objects.areas.sum(1), 0)
        self.fillers = int(missing.min() / _FILLER)
        fill = np.repeat(missing[:, None] / max(self.fillers, 1), self.fillers, axis=1)
        self.areas = np.concatenate([objects.areas, fill], axis=1)
        self.pulls = np.bincount(objects.pins, minlength=self.areas.shape[1]).astype(float)
        height, width = room.shape
        squares = (np.fft.fftfreq(2 * width) * 2 * np.pi)[None, :] ** 2
        squares = squares + (np.fft.fftfreq(2 * height) * 2 * np.pi)[:, None] ** 2
        squares[0, 0] = np.inf  # the mean charge has no field
        self._squares = squares

    def pull(self, at, smooth):
        """Gradient of the wire length at (2, n) positions; ends up to ``smooth`` tiles from the outermost count too."""
        pins, starts, nets = self._objects.pins, self._objects.starts, self._nets
        gradient = np.zeros_like(at)
        for axis in range(2):
            place = at[axis][pins]
            for sign in (1, -1):  # the outermost one on either side
                outer = np.maximum.reduceat(sign * place, starts)
                weight = np.exp((sign * place - outer[nets]) / smooth)
                total = np.add.reduceat(weight, starts)
                mean = np.add.reduceat(weight * place, starts) / total
                part = sign * weight / total[nets] * (1 + sign * (place - mean[nets]) / smooth)
                gradient[axis] += np.bincount(pins, part, at.shape[1])
        return gradient

    def push(self, at):
        """Forces of what overlaps, (2, n), and the part of all tables that is above what its tile has room for."""
        height, width = self._room.shape
        corner = at.astype(int)
        part = at - corner
        tile = corner[1] * width + corner[0]
        corners = [
            ((1 - part[0]) * (1 - part[1]), tile), (part[0] * (1 - part[1]), tile + 1),
            ((1 - part[0]) * part[1], tile + width), (part[0] * part[1], tile + width + 1),
        ]  # fmt: skip

        def charge(area, objects):
            """What ``objects``, a slice, bring to each tile."""
            parts = (np.bincount(tiles[objects], (weight * area)[objects], width * height) for weight, tiles in corners)
            return sum(parts).reshape(height, width)

        force = np.zeros_like(at)
        for area in self.areas:
            target = area.sum() / self._room.sum()
            rho = charge(area, slice(None)) / PER_TILE + target * (1 - self._room / PER_TILE)
            for axis, field in enumerate(self._fields(rho - rho.mean())):
                force[axis] += area * sum(weight * field.ravel()[tiles] for weight, tiles in corners)
        tables, real = self.areas[0], slice(self._count)
        most = self._room * max(tables.sum() / self._room.sum(), 0.85)
        return force, np.maximum(charge(tables, real) - most, 0).sum() / max(tables[real].sum(), 1)

    def _fields(self, rho):
        """The field along columns and along rows; charges are mirrored at the edges, which nothing crosses."""
        height, width = rho.shape
        mirrored = np.concatenate([rho, rho[:, ::-1]], axis=1)
        potential = np.fft.fft2(np.concatenate([mirrored, mirrored[::-1]])) / self._squares
        for axis, size in ((1, width), (0, height)):
            wave = np.fft.fftfreq(2 * size) * 2 * np.pi
            wave = wave[None, :] if axis else wave[:, None]
            yield np.fft.ifft2(-1j * wave * potential).real[:height, :width]


class Motion:
    """Positions on their way, by Nesterov's method. How the gradient changed tells how long a step may be.

    Attributes
    ----------
    at : array (2, n)
        Where the next gradient is to be found.
    """

    def __init__(self, at, limits):
        self.at, self._low, self._high = at, 0.5, limits
        self._main, self._momentum, self._last = at.copy(), 1.0, None

    def put(self, which, places):
        """Moves objects to places where they stay until the next step."""
        self.at[:, which] = self._main[:, which] = places

    def step(self, gradient):
        """Goes against a gradient, (2, n)."""
        if self._last is None:
            length = 0.5 / np.abs(gradient).max()
        else:
            moved, turned = self.at - self._last[0], gradient - self._last[1]
            length = np.sqrt((moved**2).sum() / max((turned**2).sum(), 1e-30))
        self._last = self.at.copy(), gradient.copy()
        main = np.clip(self.at - length * gradient, self._low, self._high)
        momentum = (1 + np.sqrt(4 * self._momentum**2 + 1)) / 2
        self.at = np.clip(main + (self._momentum - 1) / momentum * (main - self._main), self._low, self._high)
        self._main, self._momentum = main, momentum
