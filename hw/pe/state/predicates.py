"""The predicates of the threads."""

from amaranth import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In

from ..layouts import PREDICATES, PredicateWriteLayout
from ..params import LANES
from ..signatures import PredicateReadSignature, ThreadReadSignature

__all__ = ["PredicateFile"]


class PredicateFile(wiring.Component):
    """Eight predicates of every thread, in a memory for each lane of the groups.

    A write in one cycle is seen by reads of the next. Reads take one cycle, writes are always accepted.

    Members
    -------
    writes : In(stream of PredicateWriteLayout)
        Always ready.
    reads : In(ThreadReadSignature(params, PREDICATES))
    issue_reads : In(PredicateReadSignature)
    """

    def __init__(self, params):
        self._memories = [Memory(shape=PREDICATES, depth=params.groups, init=[]) for _ in range(LANES)]
        super().__init__(
            {
                "writes": In(stream.Signature(PredicateWriteLayout(params))),
                "reads": In(ThreadReadSignature(params, PREDICATES)),
                "issue_reads": In(PredicateReadSignature(params)),
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
                read.addr.eq(self.reads.groups[lane]),
                read.en.eq(self.reads.enable),
                self.reads.rows[lane].eq(read.data),
                issue_read.addr.eq(self.issue_reads.group),
                self.issue_reads.rows[lane].eq(issue_read.data),
            ]
        return m
