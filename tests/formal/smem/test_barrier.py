"""Barrier unit: for any traffic, memory and write-back register together are the barrier."""

from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Assume, Cover, Mux, Signal

from support.formal import Spec, proved_and_covered
from tilewright.hw.lib.layouts import packed_layout
from tilewright.hw.smem.barrier import BarrierUnit, Operation, add, decode, update
from tilewright.hw.smem.layouts import BarrierResultLayout
from tilewright.hw.smem.params import SmemParams
from tilewright.spec import BARRIER, BarrierOp
from tilewright.verify.formal import prove

PARAMS = SmemParams(1024)


class StateSpec(Spec):
    """Tracks any one barrier: a model of its memory word, and a register that performs the operations in order.

    The other half of the chunk and all other chunks are undefined.
    """

    given, made = "landed requests", "results"

    def __init__(self):
        self.dut = BarrierUnit(PARAMS)

    def specify(self, m, unit):
        landed, requests, results, back = unit.landed, unit.requests, unit.results, unit.write_back
        m.d.comb += Assume(~back.accepted | back.valid)
        m.d.comb += Assume(back.accepted | ~(back.valid & back.urgent))

        # The memory word, read and written as in the banks: a read in the cycle of a write is undefined.
        watched = AnyConst(PARAMS.addr_width - 3)
        stored = Signal(BARRIER.bits)
        newest = Signal(BARRIER.bits)
        read = Signal(BARRIER.bits)
        read_watched = Signal()
        writes = (
            back.accepted & (back.payload.chunk == watched[1:]) & back.payload.strobe.bit_select(watched[0] << 3, 1)
        )
        m.d.comb += newest.eq(Mux(writes, back.payload.data.word_select(watched[0], 64), stored))
        m.d.sync += [
            stored.eq(newest),
            read.eq(newest),
            read_watched.eq(unit.fetches.valid & (unit.fetches.payload == watched[1:]) & ~writes),
        ]
        with m.If(read_watched):
            m.d.comb += Assume(unit.fetched.word_select(watched[0], 64) == read)
        with m.If(back.accepted):
            m.d.comb += Assert(
                (back.payload.strobe == 0x00FF) | (back.payload.strobe == 0xFF00) | (back.payload.strobe == 0)
            )
        m.d.comb += Assert(back.valid | (back.payload.strobe == 0))

        # The model: every accepted operation on the watched barrier, one cycle after it was accepted.
        go_landed, go_request = landed.valid & landed.ready, requests.valid & requests.ready
        request = Signal.like(requests.payload)
        m.d.comb += request.eq(requests.payload)
        with m.If(go_landed):
            m.d.comb += request.op.eq(BarrierOp.COMPLETE_TX)
            m.d.comb += request.address.eq(landed.payload.barrier)
            m.d.comb += request.value.eq(landed.payload.bytes)
        operation = Signal(Operation)
        ours, asked = Signal(), Signal()
        state = Signal(packed_layout(BARRIER))
        expected = Signal(BarrierResultLayout())
        outcome = update(m, add(m, state, operation), operation)
        answer_due, answer_ours, flip_due, error_due = Signal(), Signal(), Signal(), Signal()
        m.d.sync += [
            operation.eq(decode(m, request)),
            ours.eq((go_landed | go_request) & (request.address[3:] == watched)),
            asked.eq(go_request),
            answer_due.eq(asked),
            answer_ours.eq(asked & ours),
            expected.eq(outcome.result),
            flip_due.eq(ours & outcome.flip),
            error_due.eq(ours & outcome.result.error),
        ]
        with m.If(ours):
            m.d.sync += state.eq(outcome.after)

        # Answers and strobes come exactly two cycles after an operation, and only then.
        was_valid = Signal()
        m.d.sync += was_valid.eq(results.valid & ~results.ready)
        m.d.comb += Assert(~(go_landed & go_request))
        m.d.comb += Assert(unit.fetches.valid == (go_landed | go_request))
        m.d.comb += Assert(results.valid == (answer_due | was_valid))
        m.d.comb += Assert(~(answer_due & was_valid))
        with m.If(answer_ours):
            m.d.comb += Assert(results.payload.as_value() == expected.as_value())
        m.d.comb += Assert((unit.flip.valid & (unit.flip.address[3:] == watched)) == flip_due)
        m.d.comb += Assert((unit.refused.valid & (unit.refused.address[3:] == watched)) == error_due)

        # Register, or else memory, equal the model.
        writes_ours = back.payload.strobe.bit_select(watched[0] << 3, 1)
        holds = back.valid & (back.payload.chunk == watched[1:]) & writes_ours
        newer = back.payload.data.word_select(watched[0], 64)
        m.d.comb += Assert(Mux(holds, newer, stored) == state.as_value())

        m.d.comb += Cover(ours & outcome.flip & holds)
        m.d.comb += Cover(ours & outcome.flip & ~holds & (stored != 0))


class ServiceSpec(Spec):
    """How long landed bytes and requests wait, if answers are accepted at once.

    Parameters
    ----------
    sparse : bool
        Landed bytes come every third cycle at most.
    """

    given = "landed requests"

    def __init__(self, *, sparse):
        self._sparse = sparse
        self.dut = BarrierUnit(PARAMS)

    def specify(self, m, unit):
        landed, requests = unit.landed, unit.requests
        m.d.comb += unit.write_back.accepted.eq(unit.write_back.valid)

        since_landed = Signal(2, init=2)  # cycles, up to two, without landed bytes being accepted
        with m.If(landed.valid & landed.ready):
            m.d.sync += since_landed.eq(0)
        with m.Elif(since_landed != 2):
            m.d.sync += since_landed.eq(since_landed + 1)
        if self._sparse:
            # Also if answers are accepted late.
            m.d.comb += Assume(~landed.valid | (since_landed == 2))
            m.d.comb += Assert(~landed.valid | landed.ready)
            m.d.comb += Assert(~unit.turn | (since_landed != 2))  # for the induction
            m.d.comb += Cover(landed.valid & requests.valid & ~requests.ready)
            return

        m.d.comb += Assume(unit.results.ready)
        landed_waits, request_waits = Signal(4), Signal(4)
        m.d.sync += landed_waits.eq(Mux(landed.valid & ~landed.ready, landed_waits + 1, 0))
        m.d.sync += request_waits.eq(Mux(requests.valid & ~requests.ready, request_waits + 1, 0))
        m.d.comb += Assert(landed_waits <= 2)
        m.d.comb += Assert(request_waits <= 4)
        m.d.comb += Cover(landed_waits == 2)
        m.d.comb += Cover(request_waits == 4)
        before, before_that = Signal(), Signal()
        m.d.sync += [before.eq(unit.fetches.valid), before_that.eq(before)]
        m.d.comb += Assert(~(unit.fetches.valid & before & before_that))


@proved_and_covered(4, 9)
def test_state(mode, depth):
    prove(StateSpec(), name=f"smem-barrier-state-{mode}", mode=mode, depth=depth)


@proved_and_covered(8, 9)
def test_waits_are_bounded(mode, depth):
    prove(ServiceSpec(sparse=False), name=f"smem-barrier-waits-{mode}", mode=mode, depth=depth, proves="F11")


def test_sparse_landed_bytes_never_wait():
    prove(ServiceSpec(sparse=True), name="smem-barrier-sparse", depth=6)
