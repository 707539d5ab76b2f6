"""F17: reductions lose no write: an old word is asked for only when no burst before can change it any more.

One burst is tracked from the cycle in which it is taken until its response: any burst, because the solver chooses when
``track`` is set. The blocks around are free: they keep the stream rules, and answer only what was requested. The lanes
are left out, as no rule depends on what they compute.
"""

import pytest
from amaranth.hdl import Assert, Assume, Cover, Elaboratable, Module, Mux, Signal

from tilewright.golden.spec import PAGE_BYTES, Reduction
from tilewright.hw.reduce.unit import Reducer
from tilewright.sim.formal import StreamRules, prove
from tilewright.sim.harness.axi_monitor import OutstandingBursts

ADDR_WIDTH = 14
BUS_BYTES = 16
PAGE_WORDS = PAGE_BYTES // BUS_BYTES
MAX_BURST = 2
ENTRIES = 4


def is_reducing(burst):
    return (burst.reduction != Reduction.NONE) & ~burst.empty


def overlap(one, other):
    """Two bursts have a word in common."""
    return (one.word <= other.word + other.beats_minus_one) & (other.word <= one.word + one.beats_minus_one)


class ReducerSpec(Elaboratable):
    """The reducer with a tracked burst. With ``clearance`` words more between two bursts the proof must fail."""

    def __init__(self, clearance=0, entries=ENTRIES):
        self.dut = Reducer(ADDR_WIDTH, BUS_BYTES, MAX_BURST, entries)
        self.dut.combiner.lanes = []
        self.clearance = clearance
        self.track = Signal()

    @property
    def ports(self):
        dut, axi = self.dut, self.dut.axi
        streams = [part for port in (dut.i.bursts, dut.i.words, dut.o.responses) for part in (port.payload, port.valid)]
        readies = [dut.i.responses.ready, dut.o.bursts.ready, dut.o.words.ready, axi.arready]
        return [*streams, *readies, axi.rid, axi.rdata, axi.rresp, axi.rlast, axi.rvalid, self.track]

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self.dut
        for number, stream in enumerate((dut.i.bursts, dut.i.words, dut.o.responses)):
            m.submodules[f"given_rules{number}"] = StreamRules(stream, assume=True)
        for number, stream in enumerate((dut.o.bursts, dut.o.words, dut.i.responses)):
            m.submodules[f"made_rules{number}"] = StreamRules(stream)
        m.submodules.request_rules = StreamRules(dut.reader.requests.o)
        burst = dut.i.bursts.payload
        m.d.comb += Assume(burst.beats_minus_one < MAX_BURST)
        m.d.comb += Assume(burst.word % PAGE_WORDS + burst.beats_minus_one < PAGE_WORDS)

        # From here on a burst is taken when it leaves the registers at the input.
        arriving = dut.arriving
        m.d.comb += Assert(arriving.o.valid | ~arriving.skidded)
        for valid, held in ((arriving.o.valid, arriving.o.payload), (arriving.skidded, arriving.skid)):
            m.d.comb += Assert(~valid | (held.beats_minus_one < MAX_BURST))
            m.d.comb += Assert(~valid | (held.word % PAGE_WORDS + held.beats_minus_one < PAGE_WORDS))

        taken = arriving.o.valid & arriving.o.ready
        sent = dut.o.bursts.valid & dut.o.bursts.ready
        responded = dut.o.responses.valid & dut.o.responses.ready
        total, behind = Signal(12), Signal(12)  # bursts without response: taken, sent
        m.d.sync += [total.eq(total + taken - responded), behind.eq(behind + sent - responded)]
        m.d.comb += Assume(~dut.o.responses.valid | (behind != 0))
        # A response more than the counter of plain bursts holds is out of the question: no port has as many in flight.
        m.d.comb += Assume(total < 1024)

        self._check_hazards(m, taken, responded, total)
        self._check_reads(m, taken)
        self._check_words(m, sent)
        self._counts(m, total, behind)
        return m

    def _check_hazards(self, m, taken, responded, total):
        dut, came, table = self.dut, self.dut.arriving.o.payload, self.dut.reader.table
        tracking, burst, ahead = Signal(), Signal.like(came), Signal(12)
        with m.If(tracking):
            m.d.sync += ahead.eq(ahead - responded)
            with m.If(responded & (ahead == 0)):
                m.d.sync += tracking.eq(0)
        with m.Elif(taken & self.track):
            m.d.sync += [tracking.eq(1), burst.eq(came), ahead.eq(total - responded)]

        wider = Signal.like(burst)
        m.d.comb += wider.eq(burst)
        m.d.comb += wider.beats_minus_one.eq(burst.beats_minus_one + self.clearance)
        with m.If(tracking & taken & is_reducing(came)):
            m.d.comb += [Assert(is_reducing(burst)), Assert(~overlap(wider, came)), Cover(ahead == 2)]
        m.d.comb += Cover(dut.arriving.o.valid & table.clash & dut.reader.requests.i.ready & ~table.full)

        # Where the tracked burst is.
        reductions = sum(table.used)
        with m.If(tracking & is_reducing(burst)):
            m.d.comb += Assert(ahead < reductions)
            for k, (used, entry) in enumerate(zip(table.used, table.entries, strict=True)):
                with m.If((table.head + ahead)[: len(table.head)] == k):
                    place = burst.word % PAGE_WORDS
                    m.d.comb += [
                        Assert(used & (entry.page == burst.word // PAGE_WORDS)),
                        Assert((entry.first == place) & (entry.last == place + burst.beats_minus_one)),
                    ]
        with m.If(tracking & ~is_reducing(burst)):
            m.d.comb += Assert((ahead >= reductions) & (ahead - reductions < dut.plain))
        with m.If(tracking):
            m.d.comb += Assert(burst.word % PAGE_WORDS + burst.beats_minus_one < PAGE_WORDS)

    def _check_reads(self, m, taken):
        """Every reducing burst is asked for once, when it is taken."""
        dut, reader, axi = self.dut, self.dut.reader, self.dut.axi
        came, asked = dut.arriving.o.payload, reader.requests.i
        reduces = taken & is_reducing(came)
        m.d.comb += [
            Assert(reduces == (asked.valid & asked.ready)),
            Assert(reduces == (reader.pending.i.valid & reader.pending.i.ready)),
            Assert(~reduces | (asked.payload.word == came.word)),
            Assert(~reduces | (asked.payload.beats_minus_one == came.beats_minus_one)),
            Assert(~axi.arvalid | (axi.arid == 2)),
        ]
        accepted, ended = axi.arvalid & axi.arready, axi.rvalid & axi.rready & axi.rlast
        reads = Signal(8)  # bursts that the bus has accepted and not answered in full
        m.d.sync += reads.eq(reads + accepted - ended)
        m.d.comb += Assume(~axi.rvalid | (reads != 0))
        shown = reader.requests.o.valid + reader.requests.skidded
        m.d.comb += [
            Assert(reader.requests.o.valid | ~reader.requests.skidded),
            Assert(reader.pending.level == reader.outcomes.level + reads + shown),
        ]

    def _check_words(self, m, sent):
        """Each word is a beat of its burst, and a reducing one meets an old word."""
        dut, due, old = self.dut, self.dut.sequencer.beats, self.dut.reader.words
        came, went = dut.i.words.valid & dut.i.words.ready, dut.o.words.valid & dut.o.words.ready
        reduces = due.payload.tag.reduction != Reduction.NONE
        combines = dut.combiner.i.valid & dut.combiner.i.ready
        noted, burst = dut.sequencer.bursts, dut.o.bursts.payload
        m.d.comb += [
            Assert(came == (due.valid & due.ready)),
            Assert((came & reduces) == combines),
            Assert(combines == (old.valid & old.ready)),
            # A plain word overtakes no other, and passes as it is.
            Assert(~(came & ~reduces) | (went & ~dut.combiner.busy & (dut.o.words.payload == dut.i.words.payload))),
            Assert(~went | dut.combiner.busy | (came & ~reduces)),
            # What is sent is no reduction any more; a refused burst has its words noted, which are swallowed.
            Assert(~sent | (burst.reduction == Reduction.NONE)),
            Assert((noted.valid & noted.ready) == (sent & (~burst.empty | dut.reader.waiting))),
            Cover(went & dut.combiner.busy),
            Cover(came & ~reduces),
            Cover(came & due.payload.tag.failed),
        ]

    def _counts(self, m, total, behind):
        dut, reader, table = self.dut, self.dut.reader, self.dut.reader.table
        reductions = sum(table.used)
        m.d.comb += [
            Assert(total == dut.plain + reductions),
            Assert(total == behind + reader.pending.level),
            Assert(reader.pending.level <= reductions),
            Assert((reader.pending.level == 0) | (dut.plain == 0)),
            Assert(table.tail == (table.head + reductions)[: len(table.head)]),
        ]
        for k, used in enumerate(table.used):
            m.d.comb += Assert(used == ((k - table.head)[: len(table.head)] < reductions))
        for queue in (reader.pending, reader.outcomes, reader.old_words, dut.sequencer.queue):
            waiting = Mux(queue.level == 0, 0, queue.level - 1)
            m.d.comb += Assert((queue.tail - queue.head)[: len(queue.head)] == waiting[: len(queue.head)])
            m.d.comb += Assert(queue.level <= queue.depth)


class RoomSpec(ReducerSpec):
    """The bus ends bursts where it must. Then there is always space for what it brings, and it is there when needed.

    The data are left constant: no rule is about them.
    """

    @property
    def ports(self):
        free = {id(port) for port in (self.dut.i.words.payload, self.dut.axi.rdata)}
        return [port for port in super().ports if id(port) not in free]

    def elaborate(self, platform):
        m = super().elaborate(platform)
        dut, axi = self.dut, self.dut.axi
        m.submodules.outstanding = outstanding = OutstandingBursts(8)
        m.d.comb += [
            outstanding.push.eq(axi.arvalid & axi.arready),
            outstanding.length.eq(axi.arlen),
            outstanding.beat.eq(axi.rvalid & axi.rready),
            Assume(~axi.rvalid | (axi.rlast == outstanding.last)),
            Assert(~axi.rvalid | axi.rready),
        ]
        due = dut.sequencer.beats
        with m.If(due.valid & (due.payload.tag.reduction != Reduction.NONE)):
            m.d.comb += Assert(dut.reader.words.valid)
        return m


def test_no_old_word_is_read_too_early():
    spec = ReducerSpec()
    prove(spec, spec.ports, name="reduce-unit", depth=2, proves="F17")


def test_proof_finds_bursts_that_are_too_close():
    spec = ReducerSpec(clearance=1)
    with pytest.raises(AssertionError, match="Assert failed"):
        prove(spec, spec.ports, name="reduce-unit-clearance", mode="bmc", depth=6)


def test_room_for_old_words():
    spec = RoomSpec(entries=2)
    prove(spec, spec.ports, name="reduce-unit-room", mode="bmc", depth=10)


def test_every_case_is_reached():
    spec = ReducerSpec()
    prove(spec, spec.ports, name="reduce-unit-cover", mode="cover", depth=16)
