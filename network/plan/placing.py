"""Where buffers of layers lie in shared memory (docs/network.md, "Tiles")."""

from functools import partial
from itertools import pairwise

import numpy as np

from ..lower.places import LINE, Held
from .costs import HANDED
from .layer_steps import held_store, image_at, layer_steps
from .move_steps import move_steps
from .schedule import RESERVED
from .steps import Jobs, Load
from .tiles import held_bytes

__all__ = ["Placer"]

#: Bytes of shared and of global memory that are not told apart.
_NEAR, _FAR = 128, 1024


class Placer:
    """Makes steps of layers, with buffers at one end of shared memory or the other, the first ones first or last there.

    Of these ways that one is taken behind which the first job of the next layer, or range, is expected to end first.

    Parameters
    ----------
    machine : Machine
    tensors : dict of str to int
        Addresses of tensors in global memory, which ends at ``end``.
    end : int
    weights : function
        Address of a layer's image in global memory; of None that of the identity.
    """

    def __init__(self, machine, tensors, end, weights):
        self._machine, self._tensors, self._end, self._weights = machine, tensors, end, weights
        self._held = {}  # addresses in shared memory of tensors that stay there

    def steps(self, layers, tiles, stored):
        """Steps of all layers, in their order, as a list.

        Parameters
        ----------
        layers : sequence of Layer
        tiles : sequence of list of (Layer, Split)
            Ranges of each layer; none of moves.
        stored : collection of str
            Tensors that have to lie in global memory.
        """
        rooms = [self._room(number, layer) for number, layer in enumerate(layers)]
        ranges = [(number, *tile) for number, group in enumerate(tiles) for tile in group or [(layers[number], None)]]
        timeline, steps, image = _Timeline(self._machine, self._end), [], None
        for (number, *tile), behind in pairwise([*ranges, None]):
            again = bool(behind) and behind[0] == number  # another range of the layer follows
            best = None
            for image_there, way in self._ways(rooms[number], *tile, image):
                one = list(way())
                following = self._ways(rooms[behind[0]], *behind[1:], image_there if again else None) if behind else ()
                expected = _expected(timeline, following, one)
                if best is None or expected < best[0]:
                    best = expected, one, image_there
            _, made, image = best
            image = image if again else None
            output = layers[number].output
            if isinstance(output, Held) and output.name in stored and not again:
                made.append(held_store(output, self._held[output.name], self._tensors))
            timeline = timeline.behind(made)
            for step in made:
                step.layer = number
            steps += made
        return steps

    def _room(self, number, layer):
        """Where buffers may lie: behind, or in front of, what stays, which neighbours have at other ends."""
        low, high = RESERVED, self._machine.smem_bytes // LINE * LINE
        found, left = held_bytes(layer)
        if left:
            self._held[layer.output.name] = high - left if number % 2 else low
        return (low + found, high - left) if number % 2 else (low + left, high - found)

    def _ways(self, room, part, split, image):
        """Functions that make the steps of a range, which :meth:`steps` chooses from, each behind its :func:`image_at`.

        ``image`` is that of the range before.
        """
        (low, high), tensors, conv = room, self._tensors, self._machine.conv
        if split is None:
            return [(None, lambda down=down: move_steps(part, low, high, down, tensors, conv, self._weights(None)))
                    for down in (False, True)]  # fmt: skip
        assert split.room <= high - low, f"{part.name} was cut for more room than there is"
        weights, ways = self._weights(part), []
        for base in {low: None, high - split.room: None}:
            for down in (False, True):
                there = image_at(split, base, down, weights)
                found = there is not None and there == image
                ways.append((there, partial(layer_steps, part, split, base, down, tensors, weights, conv,
                                            self._held, found)))  # fmt: skip
        return ways


class _Timeline:
    """Until when memory is used by steps that begin as soon as they can, each kind in its order.

    ``end`` is that of the last jobs.
    """

    def __init__(self, machine, far_bytes):
        self.end = self.loaded = self._stored = 0
        self._machine = machine
        # By jobs and stores, so that nothing may be loaded to it; until it has come; until it has been written.
        self._used, self._landed = np.zeros((2, -(-machine.smem_bytes // _NEAR)), np.int64)
        self._written = np.zeros(-(-far_bytes // _FAR), np.int64)

    def behind(self, steps):
        """The timeline behind more steps."""
        made = object.__new__(_Timeline)
        made.__dict__.update(self.__dict__)
        made._used, made._landed, made._written = (times.copy() for times in (self._used, self._landed, self._written))
        for step in steps:
            if isinstance(step, Jobs):
                made._jobs(step)
            else:
                made._moved(step)
        return made

    def _jobs(self, step):
        near, weights = ([_near(*span) for span in spans] for spans in ((*step.reads, *step.writes), step.weights))
        start = max(self.end, _last(self._landed, near + weights) + HANDED)
        self.end = start + step.cycles
        _touch(self._used, weights, start + step.held if step.early else self.end)
        _touch(self._used, near, self.end)

    def _moved(self, step):
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


def _expected(timeline, following, steps):
    """When the first jobs of the best way to go on end behind steps, and when theirs do."""
    behind = timeline.behind(steps)
    ends = (behind.behind(_to_first_jobs(way())).end for _, way in following)
    return min(ends, default=0), behind.end, behind.loaded


def _to_first_jobs(steps):
    for step in steps:
        yield step
        if isinstance(step, Jobs):
            return


def _last(times, places):
    return max((int(times[place].max(initial=0)) for place in places), default=0)


def _touch(times, places, time):
    for place in places:
        times[place] = time


def _near(first, end):
    return slice(first // _NEAR, -(-end // _NEAR))


def _far(transfer):
    """From the first to the last byte, also where rows of a box have others between them.

    What two tensors have a part of is the second one's, so that nobody waits for the other one's.
    """
    first, end = transfer.far, transfer.far + transfer.size
    if transfer.map:
        (cut, rows), row = transfer.map, transfer.coords[-2]
        first += row * cut.base.row_pitch
        end = first + rows * cut.step[0] * cut.base.row_pitch
    return slice(first // _FAR, max(end // _FAR, first // _FAR + 1))
