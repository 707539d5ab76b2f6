"""The predicates of the threads."""

from amaranth import Cat, Module, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ..params import LANES

__all__ = ["PREDICATES", "PredicateFile", "PredicateWriteLayout"]

#: Predicates of a thread.
PREDICATES = 8


class PredicateWriteLayout(data.StructLayout):
    """Sets one predicate of threads of a group."""

    def __init__(self, params):
        super().__init__(
            {
                "predicate": unsigned(3),
                "group": unsigned(params.group_width),
                "lanes": unsigned(LANES),  # threads whose predicate is written
                "values": unsigned(LANES),
            }
        )


class PredicateFile(wiring.Component):
    """Eight predicates of every thread, in a memory for each lane of the groups.

    A write in one cycle is seen by reads asked for in the next. Reads take one cycle, writes are always accepted.

    Members
    -------
    writes : In(stream of PredicateWriteLayout)
        Always ready.
    groups : In(unsigned(params.group_width)), one a lane
        The sequencer's read port: lane l asks for thread l of group ``groups[l]``.
    enable : In(1)
        The sequencer asks; otherwise ``rows`` stays.
    rows : Out(8), one a lane
        The predicates of that thread, in the cycle after.
    issue_group : In(unsigned(params.group_width))
        The read port of the issuing room.
    issue_rows : Out(8), one a lane
        In the cycle after.
    """

    def __init__(self, params):
        self._memories = [Memory(shape=PREDICATES, depth=params.groups, init=[]) for _ in range(LANES)]
        super().__init__(
            {
                "writes": In(stream.Signature(PredicateWriteLayout(params))),
                "groups": In(unsigned(params.group_width)).array(LANES),
                "enable": In(1),
                "rows": Out(PREDICATES).array(LANES),
                "issue_group": In(params.group_width),
                "issue_rows": Out(PREDICATES).array(LANES),
            }
        )

    def elaborate(self, platform):
        m = Module()
        writes = self.writes.p
        chosen = Signal(PREDICATES)
        m.d.comb += [self.writes.ready.eq(1), chosen.eq(1 << writes.predicate)]
        for lane, memory in enumerate(self._memories):
            m.submodules[f"lane{lane}"] = memory
            write = memory.write_port(granularity=1)
            read, issue_read = memory.read_port(), memory.read_port()
            m.d.comb += [
                write.addr.eq(writes.group),
                write.data.eq(Cat(writes.values[lane]).replicate(PREDICATES)),
                write.en.eq(chosen & (self.writes.valid & writes.lanes[lane]).replicate(PREDICATES)),
                read.addr.eq(self.groups[lane]),
                read.en.eq(self.enable),
                self.rows[lane].eq(read.data),
                issue_read.addr.eq(self.issue_group),
                self.issue_rows[lane].eq(issue_read.data),
            ]
        return m
