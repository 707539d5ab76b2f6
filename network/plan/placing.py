"""Addresses of buffers in shared memory (docs/network.md, "Tiles")."""

from functools import partial
from itertools import pairwise, zip_longest

import numpy as np

from ..lower.channel_kernel import ChannelKernel
from ..lower.kernels import Kernel
from ..lower.places import LINE, Held
from ..lower.recurrent_kernel import RecurrentKernel
from ..tiling.costs import HANDED
from ..tiling.splits import held_bytes
from .channel_steps import channel_bytes, channel_steps
from .kernel_steps import kernel_steps, least_bytes
from .layer_steps import held_store, image_at, layer_steps
from .move_steps import move_steps
from .recurrent_steps import recurrent_steps
from .steps import Call, Jobs, Load, Store

__all__ = ["Placer", "kernel_bytes"]

#: By the class of a kernel: what makes its steps, and the fewest bytes of shared memory that a layer needs.
_KERNELS = {Kernel: (kernel_steps, least_bytes), ChannelKernel: (channel_steps, channel_bytes),
            RecurrentKernel: (recurrent_steps, lambda layer: layer.kernel.least_bytes)}  # fmt: skip
#: Bytes of shared and of global memory that the timeline treats as one.
_NEAR, _FAR = 128, 1024


class Placer:
    """Makes the steps of layers, with buffers at either end of shared memory or where it is free, in either order.

    Of these placements the one is chosen after which the first job of the next layer, or range, ends first.

    Parameters
    ----------
    machine : Machine
    tensors : sequence of dict of str to int
        For each core the addresses of tensors in global memory, which ends at ``end``.
    end : int
    weights : function
        Address in global memory of a layer's image, or of the identity for None.
    anywhere : bool
        Whether buffers may lie elsewhere than at the ends.
    kernels : collection of int
        Numbers of the layers of kernels that have room of their own.
    kernel_room : int
        Bytes at the end of shared memory that only they use.
    """

    def __init__(self, machine, tensors, end, weights, *, anywhere, kernels=(), kernel_room=0):
        self._machine, self._tensors, self._end, self._weights = machine, tensors, end, weights
        self._anywhere, self._kernels, self._kernel_room = anywhere, kernels, kernel_room
        self._held = {}  # addresses in shared memory of tensors that stay there

    def steps(self, layers, tiles, stored):
        """For each core the steps of all layers, in their order, as a list.

        Buffers of a layer lie at the same addresses in all cores, as is best for the first one.

        Parameters
        ----------
        layers : sequence of Layer
        tiles : sequence of list of list of (Layer, Split)
            Of each layer the ranges of each core; none of moves and kernels.
        stored : collection of str
            Tensors that have to lie in global memory.
        """
        rooms = [self._room(number, layer) for number, layer in enumerate(layers)]
        alone = [[(layer, None)] * self._machine.cores for layer in layers]
        ranges = [(number, tile) for number, group in enumerate(tiles)
                  for tile in (zip_longest(*group) if any(group) else [alone[number]])]  # fmt: skip
        timeline, image = _Timeline(self._machine, self._end), None
        steps = [[] for _ in range(self._machine.cores)]
        for (number, tile), following in pairwise([*ranges, None]):
            again = bool(following) and following[0] == number  # another range of the layer follows
            best = None
            for next_image, placement in self._placements(timeline, rooms[number], tile, image):
                candidate = list(placement(0))
                later, others = timeline.after(candidate), ()
                if following:
                    room, next_tile = rooms[following[0]], following[1]
                    others = self._placements(later, room, next_tile, next_image if again else None)
                expected = _expected(later, others)
                if best is None or expected < best[0]:
                    best = expected, candidate, next_image, placement
            _, chosen, image, placement = best
            image = image if again else None
            output = layers[number].output
            made = [chosen, *(list(placement(core)) if tile[core] else [] for core in range(1, len(steps)))]
            if isinstance(output, Held) and output.name in stored and not again:
                for own, tensors in zip(made, self._tensors, strict=True):
                    own.append(held_store(output, self._held[output.name], tensors))
            timeline = timeline.after(chosen)
            for own, more in zip(steps, made, strict=True):
                for step in more:
                    step.layer = number
                own += more
        return steps

    def _room(self, number, layer):
        """Where buffers may lie: between the tensors that stay. Those of neighbours are at opposite ends."""
        low, high = self._machine.reserved, self._machine.smem_bytes // LINE * LINE
        if number in self._kernels:
            return high - self._kernel_room, high
        high -= self._kernel_room
        source_bytes, output_bytes = held_bytes(layer)
        if output_bytes:
            output = layer.sums.output if layer.sums else layer.output
            self._held[output.name] = high - output_bytes if number % 2 else low
        return (low + source_bytes, high - output_bytes) if number % 2 else (low + output_bytes, high - source_bytes)

    def _placements(self, timeline, room, tile, image):
        """The placements of a range: what :func:`image_at` gives for the first core, and what makes steps of any core.

        Parameters
        ----------
        timeline : _Timeline
            Where memory is free first.
        room : (int, int)
        tile : sequence of (Layer, Split) or None
            The range of each core.
        image : what :func:`image_at` gave for the range before
        """
        (low, high), machine, (part, split) = room, self._machine, tile[0]
        if split is None:
            return [(None, partial(self._whole_steps, part, low, high, down)) for down in (False, True)]
        size = max(each[1].room for each in tile if each)
        assert size <= high - low, f"{part.name} was cut for more room than there is"
        weights, placements = [each and self._weights(each[0]) for each in tile], []
        free = timeline.free_bases(low, high, size) if self._anywhere else ()
        for base in dict.fromkeys((low, high - size, *free)):
            for down in (False, True):
                own_image = image_at(split, base, down, weights[0])
                loaded = own_image is not None and own_image == image
                placements.append((own_image, lambda core, base=base, down=down, loaded=loaded: layer_steps(
                    *tile[core], base, down, self._tensors[core], weights[core], machine.conv, self._held, loaded,
                    machine.shared)))  # fmt: skip
        return placements

    def _whole_steps(self, layer, low, high, down, core):
        """Steps of a core of a layer of moves or of a kernel."""
        machine, place = self._machine, (low, high, down, self._tensors[core])
        share = (core, machine.cores) if machine.shared else (0, 1)
        if not layer.kernel:
            return move_steps(layer, *place, machine.conv, self._weights(None), share)
        return _KERNELS[type(layer.kernel)][0](layer, *place, self._weights(layer), share)


def kernel_bytes(layer):
    """The fewest bytes of shared memory for the layer of a kernel; 0 for others."""
    return _KERNELS[type(layer.kernel)][1](layer) if layer.kernel else 0


class _Timeline:
    """When memory is free if steps begin as soon as they can, each kind in its order.

    ``end`` is when the last jobs end, ``loaded`` when the last load does.
    """

    def __init__(self, machine, far_bytes):
        self.end = self.loaded = self._stored = self._called = 0
        self._machine = machine
        # When jobs and stores no longer use shared memory; when loads to it have landed; when global memory is written.
        self._used, self._landed = np.zeros((2, -(-machine.smem_bytes // _NEAR)), np.int64)
        self._written = np.zeros(-(-far_bytes // _FAR), np.int64)

    def after(self, steps):
        """The timeline after more steps."""
        later = object.__new__(_Timeline)
        later.__dict__.update(self.__dict__)
        later._used, later._landed, later._written = self._used.copy(), self._landed.copy(), self._written.copy()
        add = {Jobs: later._jobs, Call: later._call, Load: later._transfers, Store: later._transfers}
        for step in steps:
            add[type(step)](step)
        return later

    def free_bases(self, low, high, size):
        """Addresses where ``size`` bytes between ``low`` and ``high`` are free first: all of them, and on average."""
        if not size:
            return []
        count, first = -(-size // _NEAR), low // _NEAR
        times = np.maximum(self._used, self._landed)[first : high // _NEAR]
        windows = np.lib.stride_tricks.sliding_window_view(times, count)
        return [_NEAR * (first + int(values.argmin())) for values in (windows.max(axis=1), windows.sum(axis=1))]

    def _jobs(self, step):
        near, weights = ([_near(*span) for span in spans] for spans in ((*step.reads, *step.writes), step.weights))
        start = max(self.end, _last(self._landed, near + weights) + HANDED)
        self.end = start + step.cycles
        _touch(self._used, weights, start + step.held if step.early else self.end)
        _touch(self._used, near, self.end)

    def _call(self, step):
        near = [_near(*span) for span in (*step.reads, *step.writes)]
        self._called = max(self._called, _last(self._landed, near)) + step.cycles
        _touch(self._used, near, self._called)

    def _transfers(self, step):
        machine = self._machine
        near = [_near(each.near, each.near + each.size) for each in step.transfers]
        far = [_far(each) for each in step.transfers]
        cycles = sum(each.size // machine.bus_bytes for each in step.transfers)
        if isinstance(step, Load):
            self.loaded = max(self.loaded, _last(self._used, near), _last(self._written, far)) + cycles
            _touch(self._landed, near, self.loaded + machine.latency)
        else:
            self._stored = max(self._stored, _last(self._used, near)) + cycles
            for times in (self._used, self._landed):  # jobs that write there wait for it too
                _touch(times, near, self._stored)
            _touch(self._written, far, self._stored + machine.latency)


def _expected(later, placements):
    """When the first jobs of the best of the next placements end, and when the jobs and loads before them do."""
    ends = (later.after(_to_first_jobs(placement(0))).end for _, placement in placements)
    return min(ends, default=0), later.end, later.loaded


def _to_first_jobs(steps):
    for step in steps:
        yield step
        if isinstance(step, Jobs | Call):
            return


def _last(times, places):
    return max((int(times[place].max(initial=0)) for place in places), default=0)


def _touch(times, places, time):
    for place in places:
        times[place] = time


def _near(first, end):
    return slice(first // _NEAR, -(-end // _NEAR))


def _far(transfer):
    """From the first to the last byte, including bytes between the rows of a box.

    A block that two tensors share counts for the second one only.
    """
    first, end = transfer.far, transfer.far + transfer.size
    if transfer.map:
        (cut, rows, _), row = transfer.map, transfer.coords[-2]
        first += row * cut.base.row_pitch
        end = first + rows * cut.step[0] * cut.base.row_pitch
    return slice(first // _FAR, max(end // _FAR, first // _FAR + 1))
