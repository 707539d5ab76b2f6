"""Loads that several cores share, and where cores wait for each other (docs/many_cores.md, "Meetings")."""

from bisect import bisect_left
from collections import Counter
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

import numpy as np

from ..lower.places import BLOCK
from .steps import Cast, Load, Meet, Store, far_blocks, order_of

__all__ = ["find_meetings", "share_loads", "with_meetings"]


def share_loads(steps, kernels, groups):
    """Makes multicasts of loads that several cores have in common.

    Parameters
    ----------
    steps : list of list
        Of each core. Loads are changed.
    kernels : set of int
        Numbers of layers whose order may differ between cores.
    groups : int
        The most groups of cores; those that save most words have multicasts.
    """
    shared, saved = [], Counter()  # loads by core of each multicast, in order; bytes that groups need not read again
    for layer in sorted({step.layer for own in steps for step in own} - kernels):
        keys = [_keys(own, layer) for own in steps]
        cores = {key: tuple(core for core, own in enumerate(keys) if key in own) for own in keys for key in own}
        for key in _in_order(keys, cores):
            shared.append({core: keys[core][key] for core in cores[key]})
            saved[cores[key]] += (len(cores[key]) - 1) * sum(each.size for each in key[0])
    numbers = {cores: number for number, (cores, _) in enumerate(saved.most_common(groups))}
    turns = Counter()
    for loads in shared:
        cores = tuple(loads)
        if cores in numbers:
            cast = Cast(turns.total(), cores, numbers[cores], turns[cores])
            turns[cores] += 1
            for load in loads.values():
                load.cast = cast


def _in_order(keys, cores):
    """The loads of a layer that several cores have, in an order that is that of each core; none if there is none."""
    before = TopologicalSorter()
    for own in keys:
        shared = [key for key in own if len(cores[key]) > 1]
        for key, following in pairwise([*shared, None]):
            before.add(key)
            if following:
                before.add(following, key)
    try:
        return list(before.static_order())
    except CycleError:
        return []


def _keys(steps, layer):
    """The loads of a layer by their transfers, and by how many equal ones came before."""
    seen, keys = Counter(), {}
    for step in steps:
        if isinstance(step, Load) and step.layer == layer:
            transfers = tuple(step.transfers)
            keys[transfers, seen[transfers]] = step
            seen[transfers] += 1
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
            # A multicast is a load of the core that issues it.
            if isinstance(step, Store) or (isinstance(step, Load) and order_of(step, core) < 0):
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
