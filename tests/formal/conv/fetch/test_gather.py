"""Gatherer: one right answer a request, in order, no read without a request, and none that never ends."""

import pytest
from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Assume, Cat, Cover, Mux, Signal, Value
from amaranth.lib import data
from amaranth.utils import ceil_log2

from support.formal import Spec
from tilewright.hw.conv.fetch.gather import Gatherer
from tilewright.hw.conv.params import ConvUnitParams
from tilewright.hw.smem.params import SmemParams
from tilewright.spec.conv import CONV_PRESETS
from tilewright.verify.formal import StreamRules, prove

SMEM = SmemParams(1024)
PARAMS = {2: ConvUnitParams(CONV_PRESETS["unit"], SMEM), 8: ConvUnitParams(CONV_PRESETS["default"], SMEM)}
#: Reads that the memory has accepted and not answered, at most.
UNANSWERED = 4
#: Cycles that a request spends in registers, at most, while no read is under way.
QUIET = 12


class GathererSpec(Spec):
    """A memory that answers whenever it likes, in order, and any request, which is followed to its answer."""

    given = "i"

    def __init__(self, lanes):
        self.lanes = lanes
        self.dut = Gatherer(PARAMS[lanes], 1)
        self.track, self.accepts, self.answers = Signal(), Signal(), Signal()

    def specify(self, m, gatherer):
        self.unanswered, self.asked, self.answered = Signal(range(UNANSWERED + 1)), Signal(), Signal()
        self._memory(m)

        # Requests that are not answered, and how many of them come before the one that is followed.
        i, o = gatherer.i, gatherer.o
        taken, self.count = Signal(), Signal(6)
        m.d.comb += taken.eq(i.valid & i.ready)
        m.d.sync += self.count.eq(self.count + taken - o.valid)
        tracking, ahead, request = Signal(), Signal(6), Signal.like(i.payload)
        with m.If(tracking):
            with m.If(o.valid):
                m.d.sync += [tracking.eq(ahead != 0), ahead.eq(ahead - 1)]
                with m.If(ahead == 0):
                    self.check(m, request)
        with m.Elif(taken & self.track):
            m.d.sync += [tracking.eq(1), ahead.eq(self.count - o.valid), request.eq(i.payload)]
        self.add_rules(m)

    def _memory(self, m):
        """Accepts and answers reads: with ``accepts`` and ``answers``, which are free."""
        reads, read_data = self.dut.reads, self.dut.read_data
        waits = Signal()
        m.d.comb += [
            reads.ready.eq(self.accepts & (self.unanswered != UNANSWERED)),
            read_data.valid.eq((self.unanswered != 0) & (self.answers | waits)),
            self.asked.eq(reads.valid & reads.ready),
            self.answered.eq(read_data.valid & read_data.ready),
        ]
        m.d.sync += [
            self.unanswered.eq(self.unanswered + self.asked - self.answered),
            waits.eq(read_data.valid & ~read_data.ready),
        ]


class OrderSpec(GathererSpec):
    """One answer a request, in order; no read without a request; nothing stops."""

    constant = "dut.read_data.payload"

    def check(self, m, request):
        m.d.comb += Assert(self.dut.o.payload.tag == request.tag)

    def add_rules(self, m):
        reads, o = self.dut.reads, self.dut.o
        m.submodules.reads_rules = StreamRules(reads)
        m.d.comb += Assert(~o.valid | (self.count != 0))
        m.d.comb += Assert((self.count != 0) | (~reads.valid & (self.unanswered == 0)))
        # Something is always under way: in the memory, or for a few cycles in registers.
        quiet = Signal(range(QUIET + 1))
        waits = (self.count != 0) & ~reads.valid & (self.unanswered == 0) & ~o.valid
        m.d.sync += quiet.eq(Mux(waits, quiet + 1, 0))
        m.d.comb += Assert(quiet < QUIET)
        m.d.comb += Cover((self.count == 6) & o.valid)


class BytesSpec(GathererSpec):
    """One byte of the memory never changes, and one of the last piece is looked at: of both bit 0, for all bits of a
    byte go the same way. The size is 16 bytes: what packing does is no matter of control.
    """

    def __init__(self, lanes):
        super().__init__(lanes)
        self.address, self.contents, self.place = AnyConst(SMEM.addr_width), AnyConst(1), AnyConst(4)

    def add_rules(self, m):
        """What the memory reads as."""
        reads, read_data, chunk = self.dut.reads, self.dut.read_data, self.address[4:]
        m.d.comb += Assume(self.dut.i.payload.size == 4)
        # Which lanes of each read want the byte's chunk, the oldest read first.
        wants, hits = Signal(data.ArrayLayout(8, UNANSWERED)), Signal(8)
        m.d.comb += hits.eq(reads.payload.lanes & Cat(one == chunk for one in reads.payload.chunks))
        with m.If(self.answered):
            m.d.sync += Value.cast(wants).eq(Value.cast(wants)[8:])
        with m.If(self.asked):
            m.d.sync += wants[(self.unanswered - self.answered)[: ceil_log2(UNANSWERED)]].eq(hits)
        for lane in range(8):
            with m.If(read_data.valid & wants[0][lane]):
                byte = Value.cast(read_data.payload[lane]).word_select(self.address[:4], 8)
                m.d.comb += Assume(byte[0] == self.contents)

    def check(self, m, request):
        place, piece = self.place, request.pieces[-1]
        inside = (piece.low <= place) & (piece.high > place)
        known = (piece.address + place)[: SMEM.addr_width] == self.address
        got = Value.cast(self.dut.o.payload.data[-1]).word_select(place, 8)[0]
        wanted = Mux(inside, self.contents, Mux(place[0], request.fill[8], request.fill[0]))
        with m.If((piece.high <= 16) & (known | ~inside)):
            m.d.comb += Assert(got == wanted)
        m.d.comb += Cover(known & inside & got & (piece.address[:4] + place > 16))


@pytest.mark.parametrize(
    ("lanes", "depth"), [(2, 13), *(pytest.param(lanes, 16, marks=pytest.mark.long) for lanes in (2, 8))]
)
def test_order(lanes, depth):
    prove(OrderSpec(lanes), name=f"conv-gather-order-{lanes}", mode="bmc", depth=depth)


@pytest.mark.parametrize(
    ("lanes", "depth"), [(2, 11), *(pytest.param(lanes, 13, marks=pytest.mark.long) for lanes in (2, 8))]
)
def test_bytes(lanes, depth):
    # From the start: the first requests, with some waits.
    prove(BytesSpec(lanes), name=f"conv-gather-bytes-{lanes}", mode="bmc", depth=depth)


@pytest.mark.long
@pytest.mark.parametrize("spec", [OrderSpec, BytesSpec])
def test_many_requests_and_two_chunks_occur(spec):
    prove(spec(2), name=f"conv-gather-cover-{spec.__name__}", mode="cover", depth=14)
