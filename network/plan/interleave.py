"""The order of steps when kernels have shared memory of their own (docs/network.md, "Kernels").

Each stream keeps its order, so a kernel runs beside jobs only if its loads come between theirs.

Cores that share the work must not wait for each other for ever. Loads keep their order, and a core comes to a meeting
only after the layers that the meeting is about. So of a multicast and a meeting all cores have the same one first: the
meeting, if the multicast's layer or one before it needs a kernel that the meeting comes after; otherwise steps that
wait for the meeting come after the multicast (docs/many_cores.md, "Kernels beside jobs").
"""

from bisect import bisect_right
from itertools import accumulate

from .steps import Call, Jobs, Load, Touched, cast_of, far_blocks

__all__ = ["interleaved"]


def interleaved(steps, kernels, gmem_bytes, points=(), times=None):
    """``steps`` of each core in an order in which those of kernels come between the others, about when they can begin.

    Parameters
    ----------
    steps : list of list
        Steps of each core that are correct when they are executed one after the other.
    kernels : set of int
        Numbers of the layers of kernels, which share no bytes of shared memory with others.
    gmem_bytes : int
    points : sequence of int
        The layers after which cores meet.
    times : sequence of dict, optional
        Of each core ``Schedule.times`` of these steps in another order; a first guess without them.
    """
    needs = [_Needs(own, kernels, gmem_bytes, points) for own in steps]
    layers = sorted({step.layer for own in steps for step in own} - kernels)
    latest = accumulate((max(own.kernel_of(layer) for own in needs) for layer in layers), max)
    latest = dict(zip(layers, latest, strict=True))
    for own in needs:
        own.add_casts(latest)
    return [_merged(own.queues, own.needed, times and times[core]) for core, own in enumerate(needs)]


class _Needs:
    """The steps of a core in two queues, and what each waits for in the other: key True has the steps of kernels.

    Attributes
    ----------
    queues : dict of bool to list
        Steps in order.
    needed : dict of bool to list of int
        For each step the index of the last step of the other queue that must come before it; -1 for none.
    """

    def __init__(self, steps, kernels, gmem_bytes, points):
        self.queues = {kind: [step for step in steps if (step.layer in kernels) == kind] for kind in (True, False)}
        self._layers = {kind: [step.layer for step in queue] for kind, queue in self.queues.items()}
        self._points, self.needed = points, {True: [], False: []}
        wrote, read = ({kind: Touched(gmem_bytes) for kind in (True, False)} for _ in range(2))
        for step in steps:
            kind = step.layer in kernels
            before = -1
            if not isinstance(step, Call | Jobs):
                blocks = far_blocks(step)
                before = wrote[not kind].last(blocks)
                if not isinstance(step, Load):
                    before = max(before, read[not kind].last(blocks))
                if step.met >= 0:  # a meeting is after all steps of the layers before
                    before = max(before, self._last(not kind, points[step.met]))
                (read if isinstance(step, Load) else wrote)[kind].touch(blocks, len(self.needed[kind]))
            self.needed[kind].append(max([before, *self.needed[kind][-1:]]))

    def _last(self, kind, layer):
        """The last step of a kind of the layers up to ``layer``; -1 if there is none."""
        return bisect_right(self._layers[kind], layer) - 1

    def kernel_of(self, layer):
        """The last layer of a kernel that jobs of the layers up to ``layer`` need; -1 for none."""
        last = self._last(False, layer)
        needed = self.needed[False][last] if last >= 0 else -1
        return self._layers[True][needed] if needed >= 0 else -1

    def add_casts(self, latest):
        """Adds what the same order of multicasts and meetings in all cores needs.

        ``latest`` is the last layer of a kernel that any core needs for a layer of jobs, or for one before.
        """
        casts = [(number, latest[step.layer]) for number, step in enumerate(self.queues[False]) if cast_of(step)]
        for number, kernel in casts:
            self._add(False, number, self._last(True, kernel))
        for number, step in enumerate(self.queues[True]):
            if not isinstance(step, Call) and step.met >= 0:
                last = self._last(True, self._points[step.met])
                about = self._layers[True][last] if last >= 0 else -1
                self._add(True, number, max((cast for cast, kernel in casts if kernel < about), default=-1))
        self.needed = {kind: list(accumulate(needed, max)) for kind, needed in self.needed.items()}

    def _add(self, kind, number, before):
        self.needed[kind][number] = max(self.needed[kind][number], before)


def _merged(queues, needed, times):
    """The steps of both kinds, each when it can begin, about."""
    emitted, clock, order = {True: 0, False: 0}, {True: 0, False: 0}, []
    ends = {True: [], False: []}  # when each step has been done, about
    while len(order) < sum(map(len, queues.values())):
        ready = {}
        for kind, queue in queues.items():
            if emitted[kind] < len(queue) and needed[kind][emitted[kind]] < emitted[not kind]:
                other = needed[kind][emitted[kind]]
                begin = times[queue[emitted[kind]]] if times else ends[not kind][other] if other >= 0 else 0
                ready[kind] = max(clock[kind], begin)
        kind = min(ready, key=ready.get)
        step = queues[kind][emitted[kind]]
        clock[kind] = ready[kind] + (step.cycles if isinstance(step, Call | Jobs) and not times else 0)
        ends[kind].append(clock[kind])
        emitted[kind] += 1
        order.append(step)
    return order
