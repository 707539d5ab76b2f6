"""Programs of all cores are made together (docs/many_cores.md, "Meetings").

No core waits for what another one does only later.
"""

from .port import Port
from .schedule import Schedule

__all__ = ["Together", "make_schedules"]


def make_schedules(streams, machine, source):
    """A :class:`Schedule` for each core.

    Parameters
    ----------
    streams : list of Streams
        Of each core.
    machine : Machine
    source : int
        Global address of 16 bytes that fences may read.
    """
    together = Together(len(streams), machine.ports)
    schedules = [Schedule(own, machine, source, core, together) for core, own in enumerate(streams)]
    nexts, events = {}, -1  # what each core would do next
    while True:
        if together.events != events:  # something that others may wait for
            nexts, events = {core: each.next() for core, each in enumerate(schedules)}, together.events
        ready = [core for core, step in nexts.items() if step]
        if not ready:
            break
        core = min(ready, key=lambda core: nexts[core][0])
        schedules[core].hand_over(nexts[core][1])
        nexts[core] = schedules[core].next()
    for schedule in schedules:
        schedule.end()
    return tuple(schedules)


class Together:
    """What cores know of each other: when each comes to a meeting, is ready for a multicast, and gets it."""

    def __init__(self, cores, ports):
        self.cores, self.everyone, self.events = cores, (1 << cores) - 1, 0
        self._met, self._ready, self._brought = {}, {}, {}
        self.ports = {way: Port(ports) for way in ("load", "store")} if cores > 1 else {}

    def meet(self, number, core, time):
        """A core comes to a meeting."""
        self._add(self._met, number, core, time)

    def all_met(self, number):
        """When all cores have come to a meeting; None if not all are known to."""
        return self._all(self._met, number, self.cores)

    def free(self, cast, core, time):
        """A core is ready for a multicast."""
        self._add(self._ready, cast.number, core, time)

    def all_free(self, cast):
        """When all cores of its group but the first one are ready for a multicast; None if not all are known to be."""
        return self._all(self._ready, cast.number, len(cast.cores) - 1)

    def bring(self, cast, time):
        """The bytes of a multicast land."""
        self._brought[cast.number] = time
        self.events += 1

    def brought(self, number):
        """When they do; None if it is not known."""
        return self._brought.get(number)

    def _add(self, times, number, core, time):
        times.setdefault(number, {})[core] = time
        self.events += 1

    @staticmethod
    def _all(times, number, count):
        found = times.get(number, {})
        return max(found.values(), default=0) if len(found) == count else None
