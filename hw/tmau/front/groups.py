"""Groups: which transfers to global memory, committed together, are still under way.

Specification: docs/tmau.md, "Groups and waits".
"""

from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ...lib.stream import Queue
from ..params import MAX_GROUPS

__all__ = ["GroupTracker"]


class GroupTracker(wiring.Component):
    """Counts committed groups whose jobs are not all done, and those whose sources are not all read.

    Jobs are numbered in the order in which they go to the store half. A group is known by the number that follows its
    last job, and finished when the store half has come to that number; so an empty group is finished with the one
    before it. Counts are exact two cycles after a strobe, and before that never too small.

    Members
    -------
    issued : In(1)
        Strobe: a job goes to the store half.
    read_stb, done_stb : In(1)
        Strobe for each job, in order, after ``issued``: its source has been read; it is complete.
    commit : In(1)
        Strobe, only while not ``full``: jobs issued in earlier cycles and not in an earlier group are a group.
    unfinished, unread : Out(range(MAX_GROUPS + 1))
    full : Out(1)
    """

    def __init__(self, params):
        # Bits of a job's number. Half of the numbers is more than jobs can be in the store half.
        self._width = 6 + (params.commands_in_flight + params.max_outstanding).bit_length()
        super().__init__(
            {
                "issued": In(1),
                "read_stb": In(1),
                "done_stb": In(1),
                "commit": In(1),
                "unfinished": Out(range(MAX_GROUPS + 1)),
                "unread": Out(range(MAX_GROUPS + 1)),
                "full": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        issued = Signal(self._width)
        m.d.sync += issued.eq(issued + self.issued)
        ready = []
        for name, strobe, level in (("read", self.read_stb, self.unread), ("done", self.done_stb, self.unfinished)):
            m.submodules[name] = boundaries = Queue(self._width, MAX_GROUPS)
            passed = Signal(self._width, name=f"jobs_{name}")
            ahead = Signal(self._width, name=f"ahead_{name}")  # of the oldest boundary; modulo, so the sign tells
            m.d.sync += passed.eq(passed + strobe)
            m.d.comb += [
                ahead.eq(passed - boundaries.o.p),
                boundaries.i.p.eq(issued),
                boundaries.i.valid.eq(self.commit),
                boundaries.o.ready.eq(~ahead[-1]),
                level.eq(boundaries.level),
            ]
            ready.append(boundaries.i.ready)
        m.d.comb += self.full.eq(~(ready[0] & ready[1]))
        return m
