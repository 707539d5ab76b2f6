"""F3, F4, F17: nothing overtakes what it depends on.

One entry that changes a place, one read of an ID and one line that is written back are followed, each chosen by the
solver: while they are under way no quick read of that place and none of that ID is handed on, and memory is not asked
for that line. A line has one place at most. LineStage carries out entries as it takes them.
"""

import pytest
from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Assume, Cat, Cover, Signal, Value

from support.formal import Spec, proved_and_covered
from tilewright.hw.cluster.l2.lookup import MOST_BACK, Lookup
from tilewright.hw.cluster.l2.params import Geometry, Kind
from tilewright.verify.formal import prove, queue_invariants

GEOMETRY = Geometry(addr_width=6, data_width=32, id_width=1, sets=2, ways=2, misses=2, line_bytes=8)


class LookupSpec(Spec):
    """The lookup; with ``early`` it is told of the end of each entry before that has come, and the proof must fail."""

    given, made = "accesses", "entries quick fills"

    def __init__(self, early=False):
        self.dut = Lookup(GEOMETRY)
        self.early = early
        self.follows = Signal(3)  # what passes now is followed

    def specify(self, m, dut):
        access = dut.accesses.payload
        taken = dut.entries.valid & dut.entries.ready
        m.d.comb += [
            Assume(access.kind.as_value() <= Kind.DISCARD.value),
            Assume(~access.full | (access.kind == Kind.WRITE)),
            dut.done.eq(taken),
        ]
        if self.early:
            m.d.comb += dut.done.eq(dut.entries.valid & (dut.queue.level == 1) & ~dut.entries.ready)
        under_way, back = Signal(3), Signal(8)
        m.d.comb += [
            under_way.eq(dut.number - dut.carried),
            back.eq(dut.back - dut.landed),
            Assume(~dut.filled | (dut.room != GEOMETRY.misses)),
            Assume(~dut.arrived | (back != 0)),
            Assert(back <= MOST_BACK),
            Assert(~dut.few | (back < MOST_BACK)),
            Assert(dut.room <= GEOMETRY.misses),
            # That the queues keep what they hold is proved in tests/formal/lib.
            *queue_invariants(dut.asked),
        ]
        if not self.early:
            m.d.comb += [Assert(under_way == dut.queue.level), Assert(under_way <= GEOMETRY.entries)]
            m.d.comb += queue_invariants(dut.queue)
        self._watch(m)

    def _watch(self, m):
        """One set of the memories, and what of it is in the stages."""
        dut, here = self.dut, Signal()
        m.d.comb += here.eq(AnyConst(1))
        names, states, notes = (memory.read_port(domain="comb") for memory in (dut.names, dut.states, dut.notes))
        m.d.comb += [port.addr.eq(here) for port in (names, states, notes)]
        comparing = dut.comparing & (dut.compared.part.line[0] == here)
        deciding = dut.deciding & (dut.access.part.line[0] == here)
        m.d.comb += Assert(~(comparing & deciding))
        m.d.comb += Assert(~(dut.comparing & dut.deciding & (dut.compared.part.line[0] == dut.access.part.line[0])))
        for row, port in zip(dut.rows, (names, states, notes), strict=True):
            m.d.comb += Assert(~comparing | (Value.cast(row.data) == Value.cast(port.data)))
        tag = dut.access.part.line[1:]
        one_hot = ~dut.deciding | (dut.chosen.any() & (dut.chosen & (dut.chosen - 1) == 0))
        m.d.comb += [
            Assert(~deciding | (Value.cast(dut.note) == Value.cast(notes.data))),
            *(Assert(~deciding | (dut.hits[w] == (names.data[w].valid & (names.data[w].tag == tag)))) for w in (0, 1)),
            *(Assert(~(deciding & dut.chosen[w]) | (Value.cast(dut.old) == Value.cast(names.data[w]))) for w in (0, 1)),
            Assert(~(names.data[0].valid & names.data[1].valid & (names.data[0].tag == names.data[1].tag))),
            Assert(one_hot),
        ]
        self._follow_place(m, here, states, deciding)
        self._follow_id(m)
        self._follow_line(m, here, notes, deciding)

    def _between(self, number, low, high):
        """Whether a number lies from ``low`` to before ``high``, counted from the oldest under way."""
        base, width = self.dut.carried, len(self.dut.number)
        return ((number - base)[:width] >= (low - base)[:width]) & ((number - base)[:width] < (high - base)[:width])

    def _followed(self, m, name, begins, number, ends):
        """An entry that is followed: whether it is under way, and its number."""
        live, own = Signal(name=f"{name}_live"), Signal.like(number, name=f"{name}_number")
        with m.If(live & ends(own)):
            m.d.sync += live.eq(0)
        with m.If(~live & begins):
            m.d.sync += [live.eq(1), own.eq(number)]
        return live, own

    def _follow_place(self, m, here, states, deciding):
        """An entry that brings a line to a place, or writes it: no quick read of the place until it is done."""
        dut, way, item = self.dut, Signal(), self.dut.queue.i
        m.d.comb += way.eq(AnyConst(1))
        changes = item.payload.fresh | (item.payload.kind == Kind.WRITE)
        pushed = item.valid & item.ready & (item.payload.place == Cat(here, way)) & changes
        live, own = self._followed(
            m, "place", pushed & self.follows[0], dut.number, lambda own: dut.done & (dut.carried == own)
        )
        changed = Signal.like(dut.number)
        for number in (0, 1):
            with m.If(way == number):
                m.d.comb += changed.eq(states.data[number].changed)
        hit = (dut.hits >> way)[0]
        quick = dut.quick.valid & (dut.quick.payload.place == Cat(here, way))
        m.d.comb += [
            Assert(~live | self._between(own, dut.carried, dut.number)),
            Assert(~live | self._between(changed, own, dut.number)),
            Assert(~(live & deciding & hit & dut.settled)),
            Assert(~(live & quick)),
            Cover(live & dut.quick.valid),
        ]

    def _follow_id(self, m):
        """A read that waits: no quick read of its ID until it is done."""
        dut, ident, item = self.dut, Signal(), self.dut.queue.i
        m.d.comb += ident.eq(AnyConst(1))
        noted = dut.waits.read_port(domain="comb")
        m.d.comb += noted.addr.eq(ident)
        pushed = item.valid & item.ready & (item.payload.kind == Kind.READ) & (item.payload.id == ident)
        live, own = self._followed(
            m, "id", pushed & self.follows[1], dut.number, lambda own: dut.done & (dut.carried == own)
        )
        m.d.comb += [
            Assert(~live | self._between(own, dut.carried, dut.number)),
            Assert(~live | self._between(noted.data, own, dut.number)),
            Assert(~(live & dut.quick.valid & (dut.quick.payload.id == ident))),
            Cover(live & dut.quick.valid),
        ]

    def _follow_line(self, m, here, notes, deciding):
        """A line that is written back: memory is not asked for it until it has arrived."""
        dut, tag, item = self.dut, Signal(GEOMETRY.tag_width), self.dut.queue.i
        m.d.comb += tag.eq(AnyConst(len(tag)))
        evicted = item.valid & item.ready & item.payload.evicts & (item.payload.victim == Cat(here, tag))
        live, own = self._followed(
            m, "line", evicted & self.follows[2], dut.back, lambda own: dut.arrived & (dut.landed == own)
        )
        behind, noted = (own - dut.landed)[:8], (notes.data.back - dut.landed)[:8]
        asks = dut.asked.i.valid & dut.asked.i.ready & (dut.asked.i.payload == Cat(here, tag))
        m.d.comb += [
            Assert(~live | (behind < (dut.back - dut.landed)[:8])),
            Assert(~live | ((noted >= behind) & (noted < (dut.back - dut.landed)[:8]))),
            Assert(~(live & deciding & dut.clear)),
            Assert(~(live & asks)),
            Cover(live & deciding & (dut.access.part.line == Cat(here, tag)) & ~dut.clear),
        ]


@proved_and_covered(2, 24)
def test_nothing_overtakes_what_it_depends_on(mode, depth):
    prove(LookupSpec(), name=f"cluster-l2-lookup-{mode}", mode=mode, depth=depth, proves="F3 F4 F17")


@pytest.mark.long
def test_proof_finds_entries_that_end_too_early():
    with pytest.raises(AssertionError, match="Assert failed"):
        prove(LookupSpec(early=True), name="cluster-l2-lookup-early", mode="bmc", depth=16)
