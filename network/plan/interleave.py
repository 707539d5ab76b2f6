"""The order of steps when kernels have shared memory of their own (docs/network.md, "Kernels").

Each stream keeps its order, so a kernel runs beside jobs only if its loads come between theirs.
"""

from bisect import bisect_right

from .steps import Call, Jobs, Load, Touched, far_blocks, is_cast

__all__ = ["interleaved"]


def interleaved(steps, kernels, gmem_bytes, points=()):
    """``steps`` in an order in which steps of kernels come between the others, about when they can begin.

    Parameters
    ----------
    steps : list
        Steps that are correct when they are executed one after the other.
    kernels : set of int
        Numbers of the layers of kernels, which share no bytes of shared memory with others.
    gmem_bytes : int
    points : sequence of int
        The layers after which cores meet.
    """
    queues = {True: [], False: []}
    for step in steps:
        queues[step.layer in kernels].append(step)
    needed = _needed(steps, kernels, gmem_bytes, points)
    emitted, times, order = {True: 0, False: 0}, {True: 0, False: 0}, []
    ends = {True: [], False: []}  # when each step has been done, about
    while len(order) < len(steps):
        ready = {}
        for kind, queue in queues.items():
            if emitted[kind] < len(queue) and needed[kind][emitted[kind]] < emitted[not kind]:
                other = needed[kind][emitted[kind]]
                ready[kind] = max(times[kind], ends[not kind][other] if other >= 0 else 0)
        kind = min(ready, key=ready.get)
        step = queues[kind][emitted[kind]]
        times[kind] = ready[kind] + (step.cycles if isinstance(step, Call | Jobs) else 0)
        ends[kind].append(times[kind])
        emitted[kind] += 1
        order.append(step)
    return order


def _needed(steps, kernels, gmem_bytes, points):
    """For each step, by whether it is of a kernel, the last step of the other kind that must come before; or -1."""
    layers = {kind: [step.layer for step in steps if (step.layer in kernels) == kind] for kind in (True, False)}
    wrote, read = ({kind: Touched(gmem_bytes) for kind in (True, False)} for _ in range(2))
    needed = {True: [], False: []}
    for step in steps:
        kind = step.layer in kernels
        before = needed[kind][-1] if needed[kind] else -1
        if not isinstance(step, Call | Jobs):
            blocks = far_blocks(step)
            before = max(before, wrote[not kind].last(blocks))
            if not isinstance(step, Load):
                before = max(before, read[not kind].last(blocks))
            # A meeting is after all steps of the layers before. So is a multicast: other cores may be ready for it
            # only when they are done.
            done = points[step.met] if step.met >= 0 else -1
            if is_cast(step):
                done = max(done, step.layer - 1)
            before = max(before, bisect_right(layers[not kind], done) - 1)
            (read if isinstance(step, Load) else wrote)[kind].touch(blocks, len(needed[kind]))
        needed[kind].append(before)
    return needed
