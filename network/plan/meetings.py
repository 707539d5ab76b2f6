"""Loads that several cores share, and where cores wait for each other (docs/many_cores.md, "Meetings")."""

from bisect import bisect_left

import numpy as np

from ..lower.places import BLOCK
from .steps import Load, Meet, Store, far_blocks

__all__ = ["find_meetings", "share_loads", "with_meetings"]


def share_loads(steps, kernels):
    """Makes multicasts of loads that all cores have in common, in the same order.

    Parameters
    ----------
    steps : list of list
        Of each core. Loads are changed.
    kernels : set of int
        Numbers of layers whose order may differ between cores.
    """
    count = 0
    for layer in sorted({step.layer for own in steps for step in own} - kernels):
        keys = [_keys(own, layer) for own in steps]
        shared = [key for key in keys[0] if all(key in others for others in keys[1:])]
        if any([key for key in others if key in keys[0]] != shared for others in keys[1:]):
            continue
        for key in shared:
            for others in keys:
                others[key].cast = count
            count += 1


def _keys(steps, layer):
    """The loads of a layer by their transfers, and by how many equal ones came before."""
    seen, keys = {}, {}
    for step in steps:
        if isinstance(step, Load) and step.layer == layer:
            transfers = tuple(step.transfers)
            seen[transfers] = seen.get(transfers, -1) + 1
            keys[transfers, seen[transfers]] = step
    return keys


def find_meetings(steps, gmem_bytes):
    """The layers after which cores meet, so that none accesses what another one has not written, or still reads.

    Steps that wait for a meeting get its number.

    Parameters
    ----------
    steps : list of list
        Of each core. Each step of a layer accesses in global memory only what other cores write in layers before.
    gmem_bytes : int
    """
    size = -(-gmem_bytes // BLOCK)
    wrote, read = ([np.full(size, -1, np.int32) for _ in steps] for _ in range(2))
    layers = {}
    for core, own in enumerate(steps):
        for step in own:
            # A multicast is a load of the first core.
            if isinstance(step, Store) or (isinstance(step, Load) and (core == 0 or step.cast < 0)):
                layers.setdefault(step.layer, []).append((core, step))
    points = []  # layers after which cores meet
    for layer in sorted(layers):
        for core, step in layers[layer]:
            memories = wrote if isinstance(step, Load) else wrote + read
            others = [memory for number, memory in enumerate(memories) if number % len(steps) != core]
            needed = max((int(memory[some].max()) for some in far_blocks(step) for memory in others), default=-1)
            if needed < 0:
                continue
            if not points or points[-1] < needed:
                points.append(needed)
            step.met = bisect_left(points, needed)
        for core, step in layers[layer]:
            for some in far_blocks(step):
                (read if isinstance(step, Load) else wrote)[core][some] = layer
    return points


def with_meetings(steps, points):
    """The steps of a core with a :class:`Meet` after the last step of the layers that it is about."""
    ends = [max((place + 1 for place, step in enumerate(steps) if step.layer <= layer), default=0) for layer in points]
    result, done = [], 0
    for number, (layer, end) in enumerate(zip(points, ends, strict=True)):
        result += [*steps[done:end], Meet(number, layer)]
        done = max(done, end)
    return result + steps[done:]
