"""Barriers in shared memory: the arithmetic of docs/tmau.md, "Barriers", and the unit that performs it."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.spec import BARRIER, BarrierOp

from ..lib.layouts import packed_layout
from .layouts import CHUNK_BITS, BarrierRequestLayout, BarrierResultLayout, LandedLayout
from .signatures import BarrierEventSignature, WriteBackSignature

__all__ = ["BarrierUnit", "Operation", "Outcome", "Sums", "add", "decode", "update"]

_VALUE_BITS = 21
_ARRIVALS_BITS = BARRIER["expected"].width
#: Parts in which both counts are compared with the amounts of an operation.
_PARTS = 8


class Operation(data.Struct):
    """An operation, decoded as far as possible before the state of the barrier is known."""

    refused: unsigned(1)  # in any state
    init: unsigned(1)
    try_wait: unsigned(1)
    value: unsigned(_ARRIVALS_BITS)  # INIT: arrivals to expect; TRY_WAIT: parity in bit 0
    arrivals: unsigned(_VALUE_BITS)  # to subtract from pending; 0 unless it is an arrival
    bytes: signed(_VALUE_BITS + 1)  # to subtract from transactions: negative for EXPECT_TX


class Sums(data.Struct):
    """The state of a barrier, and its counts after an operation, before it is known whether they fit."""

    before: packed_layout(BARRIER)
    # The new state, if nothing is refused.
    expected: unsigned(_ARRIVALS_BITS)
    pending: signed(_VALUE_BITS + 1)
    transactions: signed(_VALUE_BITS + 2)
    phase: unsigned(1)
    zero: unsigned(_PARTS)  # parts of both counts that become zero


class Outcome(data.Struct):
    """The state of a barrier after an operation, and the answer."""

    after: packed_layout(BARRIER)  # equal to the state before unless ``changed``
    changed: unsigned(1)
    flip: unsigned(1)  # the phase completes
    result: BarrierResultLayout()


def decode(m, request):
    """The ``Operation`` of a request."""
    operation, value, misaligned = Signal(Operation), request.value, request.address[:3].any()
    m.d.comb += [operation.value.eq(value), operation.refused.eq(misaligned)]
    with m.Switch(request.op):
        with m.Case(BarrierOp.INIT):
            m.d.comb += operation.init.eq(1)
            m.d.comb += operation.refused.eq(misaligned | (value == 0) | (value >> _ARRIVALS_BITS).any())
        with m.Case(BarrierOp.ARRIVE):
            m.d.comb += operation.arrivals.eq(value)
            m.d.comb += operation.refused.eq(misaligned | (value == 0))
        with m.Case(BarrierOp.EXPECT_TX):
            m.d.comb += operation.bytes.eq(-value)
        with m.Case(BarrierOp.COMPLETE_TX):
            m.d.comb += operation.bytes.eq(value)
        with m.Case(BarrierOp.TRY_WAIT):
            m.d.comb += operation.try_wait.eq(1)
        with m.Default():
            m.d.comb += operation.refused.eq(1)
    return operation


def add(m, before, operation):
    """The ``Sums`` of a barrier and an operation."""
    sums = Signal(Sums)
    m.d.comb += [
        sums.before.eq(before),
        sums.expected.eq(Mux(operation.init, operation.value, before.expected)),
        sums.pending.eq(before.pending - operation.arrivals),
        sums.transactions.eq(Mux(operation.init, 0, before.transactions - operation.bytes)),
        sums.phase.eq(before.phase & ~operation.init),
        # Computed from the operands, in parallel with the subtractions.
        sums.zero.eq(Cat(_equal(before.pending, operation.arrivals), _equal(before.transactions, operation.bytes))),
    ]
    return sums


def _equal(count, amount):
    """_PARTS / 2 bits: parts in which two numbers of the same sign are equal. The next cycle joins them."""
    differ = count ^ amount
    step = -(-len(differ) * 2 // _PARTS)
    return Cat(~differ[low : low + step].any() for low in range(0, len(differ), step))


def update(m, sums, operation):
    """The ``Outcome`` of an operation."""
    outcome, transactions = Signal(Outcome), sums.transactions
    after, result = outcome.after, outcome.result
    # Truncation to the field must not change the count: cheaper than two comparisons.
    complete = operation.init | sums.zero.all()
    overflow = (sums.pending < 0) | (transactions[: BARRIER["transactions"].width].as_signed() != transactions)
    refused = operation.refused | overflow
    m.d.comb += [
        result.error.eq(refused),
        result.done.eq(~refused & Mux(operation.try_wait, sums.before.phase != operation.value[0], outcome.flip)),
        outcome.changed.eq(~refused & ~operation.try_wait),
        outcome.flip.eq(outcome.changed & complete & ~operation.init),
        after.eq(sums.before),
    ]
    with m.If(outcome.changed):
        # Bits outside of fields become zero.
        m.d.comb += [
            after.eq(0),
            after.expected.eq(sums.expected),
            after.pending.eq(Mux(complete, sums.expected, sums.pending)),
            after.transactions.eq(transactions),
            after.phase.eq(sums.phase ^ outcome.flip),
        ]
    return outcome


class BarrierUnit(wiring.Component):
    """Performs barrier operations, one after the other, for processors and for bytes that land.

    An operation that is accepted in cycle w reads the memory in w and is added in w + 1. From w + 2 on its answer and
    ``flip`` or ``refused`` are visible, and its new state is in the *write-back register*. This holds one barrier, and
    is written to memory when the write side is free, or when another barrier replaces it; operations on that barrier
    use the register instead of the memory. So a barrier in memory may be out of date; software must not write a live
    barrier except by operations, but such a write disturbs no other barrier.

    Landed bytes go before requests, but pass a request that could go once at most. A request does not directly follow
    an operation, nor do landed bytes directly follow landed bytes: at most two of three cycles read. Landed bytes that
    come at least three cycles apart never wait.

    Latency 2. Throughput: a request, or landed bytes, every second cycle; while both wait, two landed and one request
    in five cycles. With ``params.paced`` a request waits until the previous answer has left the register, so that
    requests alone come every third cycle. While an answer is not accepted, no request is.
    """

    def __init__(self, params):
        self.turn = Signal()  # a request was passed, and is next
        self._params = params
        super().__init__(
            {
                "landed": In(stream.Signature(LandedLayout(params))),  # as COMPLETE_TX, without an answer
                "requests": In(stream.Signature(BarrierRequestLayout(params))),
                "results": Out(stream.Signature(BarrierResultLayout())),  # one for each request, in order
                # Reads of the chunk with the barrier, which is at ``fetched`` in the next cycle.
                "fetches": Out(stream.Signature(unsigned(params.addr_width - 4), always_ready=True)),
                "fetched": In(CHUNK_BITS),
                "write_back": Out(WriteBackSignature(params)),
                "flip": Out(BarrierEventSignature(params)),  # a phase has completed
                "refused": Out(BarrierEventSignature(params)),  # an operation that names this address
            }
        )

    def elaborate(self, platform):
        m = Module()
        request = Signal(BarrierRequestLayout(self._params))
        busy = Signal()  # an operation is added
        busy_landed = Signal()  # it is of landed bytes
        address = Signal(self._params.addr_width)
        operation, before = Signal(Operation), Signal(packed_layout(BARRIER))

        # Cycle w: choose an operation and read its barrier.
        go_landed, go_request = self._choose(m, request, busy, busy_landed)
        m.d.sync += [
            busy.eq(go_landed | go_request),
            busy_landed.eq(go_landed),
            operation.eq(decode(m, request)),
            address.eq(request.address),
        ]
        # Cycle w + 1: add.
        fresh, answers = Signal(), Signal()  # the outcome is that of a new operation, which has an answer
        m.d.sync += [fresh.eq(busy), answers.eq(busy & ~busy_landed)]
        sums, last_sums, last_operation = add(m, before, operation), Signal(Sums), Signal(Operation)
        with m.If(busy):
            m.d.sync += [last_sums.eq(sums), last_operation.eq(operation)]
        outcome = update(m, last_sums, last_operation)
        may_change = fresh & ~last_operation.refused & ~last_operation.try_wait  # earlier in the cycle than ``changed``
        self._update_state(m, before, outcome, busy, fresh & outcome.changed, may_change, address, request.address)
        # From cycle w + 2 on: the answer and the strobes.
        results, last_result = self.results, Signal.like(self.results.payload)
        m.d.comb += results.payload.eq(Mux(answers, outcome.result, last_result))
        with m.If(answers):
            m.d.sync += last_result.eq(outcome.result)
        with m.If(results.ready):
            m.d.sync += results.valid.eq(0)
        with m.If(busy & ~busy_landed):
            m.d.sync += results.valid.eq(1)
        m.d.comb += [self.flip.valid.eq(fresh & outcome.flip), self.refused.valid.eq(fresh & outcome.result.error)]
        m.d.sync += [self.flip.address.eq(address), self.refused.address.eq(address)]
        return m

    def _choose(self, m, request, busy, busy_landed):
        """Drives ``request`` with landed bytes, a request, or neither."""
        landed, requests, turn = self.landed, self.requests, self.turn
        may_answer = ~self.results.valid | (Const(0) if self._params.paced else self.results.ready)
        may_request, go_landed, go_request = Signal(), Signal(), Signal()
        m.d.comb += [
            may_request.eq(requests.valid & ~busy & may_answer),
            landed.ready.eq(~busy_landed & ~(may_request & turn)),
            requests.ready.eq(~busy & may_answer & (~landed.valid | turn)),
            go_landed.eq(landed.valid & landed.ready),
            go_request.eq(requests.valid & requests.ready),
            request.op.eq(Mux(go_landed, BarrierOp.COMPLETE_TX, requests.payload.op)),
            request.address.eq(Mux(go_landed, landed.payload.barrier, requests.payload.address)),
            request.value.eq(Mux(go_landed, landed.payload.bytes, requests.payload.value)),
            # go_landed | go_request: where both could go, one does. The grant of the banks depends on this.
            self.fetches.valid.eq((landed.valid & ~busy_landed) | may_request),
            self.fetches.payload.eq(request.address[4:]),
        ]
        with m.If(go_landed):
            m.d.sync += turn.eq(may_request)
        with m.Elif(go_request):
            m.d.sync += turn.eq(0)
        return go_landed, go_request

    def _update_state(self, m, before, outcome, busy, changed, may_change, address, next_address):
        """The state before the operation at ``address``, and the write-back register, which has the state after it.

        The register follows every operation, even without a change, so that the next one on the same barrier does not
        depend on the outcome.
        """
        back = self.write_back
        state = outcome.after
        word = Signal(self._params.addr_width - 3)  # the barrier in the write-back register
        dirty, was_dirty = Signal(), Signal()  # it is newer than the memory; it was before
        current = Signal()  # the barrier is in the write-back register
        # It was there before, and was written to memory in the cycle of the read.
        evicted, evicted_state = Signal(), Signal.like(state)
        hit = Signal()
        m.d.comb += [dirty.eq(was_dirty | changed), hit.eq(dirty & (word == next_address[3:]))]
        m.d.sync += [
            current.eq(Mux(busy, address[3:] == next_address[3:], hit)),
            evicted.eq(busy & hit),
            evicted_state.eq(state),
            # If another barrier replaces it, ``urgent`` made sure that it is written.
            was_dirty.eq(dirty & ~back.accepted),
        ]
        read = self.fetched.word_select(address[3], BARRIER.bits)
        m.d.comb += [
            before.eq(Mux(current, state, Mux(evicted, evicted_state, read))),
            back.valid.eq(was_dirty | may_change),
            back.urgent.eq(busy & ~current),
            back.payload.chunk.eq(word[1:]),
            back.payload.data.eq(Cat(state, state)),
            back.payload.strobe.eq(Cat((dirty & ~word[0]).replicate(8), (dirty & word[0]).replicate(8))),
        ]
        with m.If(busy):
            m.d.sync += word.eq(address[3:])
