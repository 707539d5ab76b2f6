"""The predicates of the threads."""

from amaranth import Cat, Module
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In

from ..layouts import PREDICATES, PredicateWriteLayout
from ..params import LANES
from ..signatures import GuardReadSignature, PredicateReadSignature

__all__ = ["PredicateFile"]


class PredicateFile(wiring.Component):
    """Eight predicates of every thread, in a memory of single bits for each lane of the groups.

    A write in one cycle is seen by reads of the next. Reads take one cycle, writes are always accepted.

    Members
    -------
    writes : In(stream of PredicateWriteLayout)
        Always ready.
    reads : In(GuardReadSignature(params))
    issue_reads : In(PredicateReadSignature)
    """

    def __init__(self, params):
        self._memories = [Memory(shape=1, depth=PREDICATES * params.groups, init=[]) for _ in range(LANES)]
        super().__init__(
            {
                "writes": In(stream.Signature(PredicateWriteLayout(params))),
                "reads": In(GuardReadSignature(params)),
                "issue_reads": In(PredicateReadSignature(params)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        writes = self.writes.p
        m.d.comb += self.writes.ready.eq(1)
        for lane, memory in enumerate(self._memories):
            m.submodules[f"lane{lane}"] = memory
            write, read, issue_read = memory.write_port(), memory.read_port(), memory.read_port()
            m.d.comb += [
                write.addr.eq(Cat(writes.predicate, writes.group)),
                write.data.eq(writes.values[lane]),
                write.en.eq(self.writes.valid & writes.lanes[lane]),
                read.addr.eq(Cat(self.reads.predicate, self.reads.groups[lane])),
                read.en.eq(self.reads.enable),
                self.reads.values[lane].eq(read.data),
                issue_read.addr.eq(Cat(self.issue_reads.predicate, self.issue_reads.group)),
                self.issue_reads.values[lane].eq(issue_read.data),
            ]
        return m
