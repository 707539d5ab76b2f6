"""Consumer port: one right answer a request, in order, in no more than eight cycles at the banks."""

from functools import reduce
from operator import or_

import pytest
from amaranth.asserts import AnyConst
from amaranth.hdl import Array, Assert, Assume, Cat, Cover, Mux, Signal

from support.formal import Spec
from tilewright.hw.smem.chunk_ports import ConsumerPort, ScatterPort
from tilewright.hw.smem.layouts import scattered_chunk
from tilewright.hw.smem.params import SmemParams
from tilewright.verify.formal import prove

PARAMS = SmemParams(1024)
HALF = SmemParams(1024, chunks_a_cycle=4)
LANE = 7


class ConsumerSpec(Spec):
    """Follows one lane and one chunk of the memory, whose contents never change.

    It is the last lane, which all others go before, and of the chunk bit 0: all bits of a lane go the same way. Of two
    answers it comes with the second one.
    """

    given, made = "reads", "fetches"

    def __init__(self, params=PARAMS):
        self.parts = 8 // params.chunks_a_cycle
        self.dut = ConsumerPort(params)

    def specify(self, m, port):
        reads, answers, fetches = port.reads, port.read_data, port.fetches

        lane, bank, row = LANE, 5, 2
        chunk, contents = 8 * row + bank, AnyConst(1)
        was_read = Signal()
        fire = fetches.valid & fetches.ready
        m.d.sync += was_read.eq(fire & fetches.payload.enable[bank] & (fetches.payload.rows[bank] == row))
        with m.If(was_read):
            m.d.comb += Assume(port.fetched[bank][0] == contents)

        # Requests that are not answered: at most one at the banks and one at the output.
        wants = reads.payload.lanes[lane] & (reads.payload.chunks[lane] == chunk)
        asked, answered = reads.valid & reads.ready, Signal()
        shown, second_part = answers.payload[lane % (8 // self.parts)][0], Signal(init=self.parts == 1)
        m.d.comb += answered.eq(answers.valid & answers.ready & second_part)
        if self.parts == 2:
            with m.If(answers.valid & answers.ready):
                m.d.sync += second_part.eq(~second_part)
        count, first, second = Signal(2), Signal(), Signal()
        m.d.sync += count.eq(count + asked - answered)
        m.d.comb += Assert(count <= 2)
        m.d.comb += Assert(~answers.valid | (count != 0))
        with m.If(answered):
            m.d.sync += first.eq(second)
        with m.If(asked & (count - answered == 0)):
            m.d.sync += first.eq(wants)
        with m.Elif(asked):
            m.d.sync += second.eq(wants)
        with m.If(answers.valid & first & second_part):
            m.d.comb += Assert(shown == contents)

        # The stream rules, for the same bit.
        untaken, was = Signal(), Signal()
        m.d.sync += [untaken.eq(answers.valid & ~answers.ready), was.eq(shown)]
        with m.If(untaken):
            m.d.comb += Assert(answers.valid & (shown == was))

        bank_cycles = Signal(4)
        with m.If(asked):
            m.d.sync += bank_cycles.eq(0)
        with m.Elif(fire):
            m.d.sync += bank_cycles.eq(bank_cycles + 1)
        m.d.comb += Assert(bank_cycles <= 8)
        m.d.comb += Cover(answers.valid & first & (bank_cycles == 3))
        m.d.comb += Cover((count == 2) & answered & asked)


@pytest.mark.parametrize(
    ("params", "depth"),
    [(PARAMS, 6), *(pytest.param(params, 12, marks=pytest.mark.long) for params in (PARAMS, HALF))],
    ids=["eight", "eight, longer", "four, longer"],
)
def test_answers(params, depth):
    # From the start on. Conflicts and overlap occur within seven cycles; in 12 there is a request of eight at the banks
    # and its answer, or shorter ones with waits.
    prove(ConsumerSpec(params), name=f"smem-consumer-{params.chunks_a_cycle}", mode="bmc", depth=depth)


@pytest.mark.long
def test_conflicts_and_overlap_occur():
    prove(ConsumerSpec(), name="smem-consumer-cover", mode="cover", depth=7)


SCATTER_HALF = SmemParams(1024, writes_a_cycle=4)
QUARTER = SmemParams(1024, writes_a_cycle=2)


class ScatterSpec(Spec):
    """Follows one lane, any one. Its data, and no other lane's, have bit 0 set: so the banks show whose they are."""

    given = "i"

    def __init__(self, params=PARAMS):
        self.dut, self.ways = ScatterPort(params), params.writes_a_cycle

    def specify(self, m, port):
        i, o = port.i, port.o
        lane = Signal(3)
        m.d.comb += lane.eq(AnyConst(3))
        for k in range(8):
            m.d.comb += Assume(i.payload.data[k][0] == (lane == k))
        remaining, free = Signal(8), Signal(8)  # chunks that wait after this cycle; banks that accept another one
        m.d.comb += [
            Assume((port.accepted & ~o.banks) == 0),
            remaining.eq(o.banks & ~port.accepted),
            Assume(port.emptied == (remaining == 0)),
        ]
        m.d.comb += free.eq(~remaining if self.ways > 2 else (remaining == 0).replicate(8))

        # What the banks get was at the input in the cycle before, if they were free there; what waits stays.
        asked, ended, freed, stays = Signal(), Signal(), Signal(8), Signal(8)
        chunk, data, strobe = Signal(PARAMS.addr_width - 4), Signal(128), Signal(16)
        m.d.sync += [
            asked.eq(i.valid),
            ended.eq(i.valid & i.ready),
            freed.eq(free),
            stays.eq(remaining),
            chunk.eq(Array(i.payload.chunks)[lane]),
            data.eq(Array(i.payload.data)[lane]),
            strobe.eq(Array(i.payload.strobes)[lane]),
        ]
        visible, shown = Signal(), []
        for bank in range(8):
            value, before = scattered_chunk(o, bank), Signal(128 + 16 + PARAMS.row_width, name=f"kept{bank}")
            waits = Cat(value, o.strobes[bank], o.rows[bank])
            m.d.sync += before.eq(waits)
            shown.append(freed[bank] & o.banks[bank] & value[0])
            with m.If(shown[bank]):
                m.d.comb += [
                    Assert(asked),
                    Assert(chunk == (o.rows[bank] << 3 | bank)),
                    Assert(o.strobes[bank] == strobe),
                    Assert(value == data),
                ]
            with m.If(stays[bank]):
                m.d.comb += [Assert(o.banks[bank]), Assert(before == waits)]
            with m.If(o.banks[bank]):
                m.d.comb += [Assert(o.strobes[bank].any()), Assert(stays[bank] | (freed[bank] & asked))]
        m.d.comb += visible.eq(reduce(or_, shown))

        written, written_before = Signal(), Signal()  # of the lane; and before this cycle
        m.d.comb += written.eq(Mux(ended, 0, written_before | visible))
        m.d.sync += written_before.eq(written)
        m.d.comb += [
            Assert(~(visible & written_before)),
            Assert(port.written.bit_select(lane, 1) == written),
            Assert(~port.written.any() | i.valid),
            Assert(~written | Array(i.payload.strobes)[lane].any()),
            Assert(port.idle == (o.banks == 0)),
        ]
        with m.If(ended):
            m.d.comb += Assert((visible | written_before) == strobe.any())

        ways, parts = self.ways, 8 // self.ways
        waiting = [i.payload.strobes[k].any() & ~port.written[k] for k in range(8)]
        by_part = [(port.written[n : n + ways], waiting[n : n + ways]) for n in range(0, 8, ways)]
        # Every cycle in which no bank is held up writes a lane, at least, but for one that finds none in its part.
        empty = [(port.part > p) & ~port.written[p * ways : (p + 1) * ways].any() for p in range(parts - 1)]
        cycles = Signal(4)
        with m.If(i.valid & i.ready):
            m.d.sync += cycles.eq(0)
        with m.Elif(port.conflict_stb):
            m.d.sync += cycles.eq(cycles + 1)
        m.d.comb += [
            Assert(cycles <= 7),
            Assert(sum(port.written) + sum(empty) >= cycles),
            Assert(~port.part.any() | i.valid),
            *(Assert((port.part <= k // ways) | ~waiting[k]) for k in range(8)),
            *(Assert((port.part >= k // ways) | ~port.written[k]) for k in range(8)),
            # A part goes on as long as one of its lanes waits.
            *(Assert((port.part != p) | ~done.any() | reduce(or_, some)) for p, (done, some) in enumerate(by_part)),
            # Some lane is left, because otherwise the write would have been accepted.
            Assert(~(port.written.any() | port.part.any()) | reduce(or_, waiting)),
            Assert(~port.conflict_stb | (i.valid & ~i.ready)),
            Assert(~i.valid | i.ready | port.conflict_stb | (remaining != 0)),
            Cover(i.valid & i.ready & (cycles == 7)),
            Cover(stays.any() & reduce(or_, shown)),
        ]


@pytest.mark.long
@pytest.mark.parametrize("params", [PARAMS, SCATTER_HALF, QUARTER], ids=["eight", "four", "two"])
def test_each_byte_once(params):
    prove(ScatterSpec(params), name=f"smem-scatter-{params.writes_a_cycle}", depth=2, proves="F6")


@pytest.mark.long
def test_eight_cycles_occur():
    prove(ScatterSpec(), name="smem-scatter-cover", mode="cover", depth=11)
