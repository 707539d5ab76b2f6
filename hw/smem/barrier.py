"""What an operation does to a barrier: the arithmetic of docs/tmau.md, "Barriers", without time."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.spec import BARRIER, BarrierOp

from ..lib.layouts import packed_layout
from .layouts import (
    CHUNK_BITS,
    BarrierEventSignature,
    BarrierRequestLayout,
    BarrierResultLayout,
    LandedLayout,
    WriteBackSignature,
)

__all__ = ["BarrierDecode", "BarrierSums", "BarrierUnit", "BarrierUpdate", "OperationLayout", "SumsLayout"]

_VALUE_BITS = 21
_ARRIVALS_BITS = BARRIER["expected"].width
#: Of both counts, as they are compared with what an operation takes.
_PARTS = 8


class OperationLayout(data.StructLayout):
    """An operation with all that can be worked out before the barrier's state is known."""

    def __init__(self):
        super().__init__(
            {
                "refused": unsigned(1),  # whatever the state is
                "init": unsigned(1),
                "try_wait": unsigned(1),
                "value": unsigned(_ARRIVALS_BITS),  # of init: arrivals to expect; of try_wait: parity in bit 0
                "arrivals": unsigned(_VALUE_BITS),  # to take from pending; 0 unless it is an arrival
                "bytes": signed(_VALUE_BITS + 1),  # to take from transactions: negative for expect_tx
            }
        )


class BarrierDecode(wiring.Component):
    """Request to operation. Combinational.

    Members
    -------
    request : In(BarrierRequestLayout)
    operation : Out(OperationLayout)
    """

    def __init__(self, params):
        super().__init__({"request": In(BarrierRequestLayout(params)), "operation": Out(OperationLayout())})

    def elaborate(self, platform):
        m = Module()
        value, operation = self.request.value, self.operation
        m.d.comb += operation.value.eq(value)
        misaligned = self.request.address[:3].any()
        m.d.comb += operation.refused.eq(misaligned)
        with m.Switch(self.request.op):
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
        return m


class SumsLayout(data.StructLayout):
    """A barrier's state, and its counts less what an operation takes, before it is known whether they fit."""

    def __init__(self):
        super().__init__(
            {
                "before": packed_layout(BARRIER),
                # The new state, if nothing is refused.
                "expected": unsigned(_ARRIVALS_BITS),
                "pending": signed(_VALUE_BITS + 1),
                "transactions": signed(_VALUE_BITS + 2),
                "phase": unsigned(1),
                "met": unsigned(_PARTS),  # nothing is left of these parts of both counts
            }
        )


class BarrierSums(wiring.Component):
    """The half of an operation on a barrier that adds. Combinational.

    Members
    -------
    before : In(packed_layout(BARRIER))
    operation : In(OperationLayout)
    sums : Out(SumsLayout)
    """

    def __init__(self):
        super().__init__(
            {"before": In(packed_layout(BARRIER)), "operation": In(OperationLayout()), "sums": Out(SumsLayout())}
        )

    def elaborate(self, platform):
        m = Module()
        before, operation, sums = self.before, self.operation, self.sums
        m.d.comb += [
            sums.before.eq(before),
            sums.expected.eq(Mux(operation.init, operation.value, before.expected)),
            sums.pending.eq(before.pending - operation.arrivals),
            sums.transactions.eq(Mux(operation.init, 0, before.transactions - operation.bytes)),
            sums.phase.eq(before.phase & ~operation.init),
            # Found from the operands: beside the subtractions and not behind them.
            sums.met.eq(Cat(_met(before.pending, operation.arrivals), _met(before.transactions, operation.bytes))),
        ]
        return m


def _met(count, amount):
    """Parts in which two numbers of the same sign are equal, _PARTS / 2 bits: whether all are is for the next cycle."""
    differ = count ^ amount
    step = -(-len(differ) * 2 // _PARTS)
    return Cat(~differ[low : low + step].any() for low in range(0, len(differ), step))


class BarrierUpdate(wiring.Component):
    """The other half: new state and answer. Combinational.

    Members
    -------
    sums : In(SumsLayout)
    operation : In(OperationLayout)
    after : Out(packed_layout(BARRIER))
        Equal to the state before unless ``changed``.
    changed : Out(1)
    flip : Out(1)
        The phase completes.
    result : Out(BarrierResultLayout)
    """

    def __init__(self):
        super().__init__(
            {
                "sums": In(SumsLayout()),
                "operation": In(OperationLayout()),
                "after": Out(packed_layout(BARRIER)),
                "changed": Out(1),
                "flip": Out(1),
                "result": Out(BarrierResultLayout()),
            }
        )

    def elaborate(self, platform):
        m = Module()
        sums, after, operation = self.sums, self.after, self.operation
        transactions = sums.transactions
        # Cutting the count to its field must not change it: a matter of the top bits, cheaper than two comparisons.
        complete = operation.init | sums.met.all()
        overflow = (sums.pending < 0) | (transactions[: BARRIER["transactions"].width].as_signed() != transactions)
        refused = operation.refused | overflow
        m.d.comb += [
            self.result.error.eq(refused),
            self.result.done.eq(~refused & Mux(operation.try_wait, sums.before.phase != operation.value[0], self.flip)),
            self.changed.eq(~refused & ~operation.try_wait),
            self.flip.eq(self.changed & complete & ~operation.init),
            after.eq(sums.before),
        ]
        with m.If(self.changed):
            # Bits that belong to no field become zero.
            m.d.comb += [
                after.eq(0),
                after.expected.eq(sums.expected),
                after.pending.eq(Mux(complete, sums.expected, sums.pending)),
                after.transactions.eq(transactions),
                after.phase.eq(sums.phase ^ self.flip),
            ]
        return m


class BarrierUnit(wiring.Component):
    """Carries out barrier operations, one after the other, for processors and for bytes that land.

    An operation in cycle w (its handshake) reads the memory in w, is added in w + 1, and from w + 2 on its new state is
    in the *write-back register*, its answer and ``flip`` or ``refused`` are visible: a few gates make them of what has
    been added. The register holds one barrier and is written to memory when the write side is free, or when another
    barrier takes its place; operations on the barrier that it holds use it in place of the memory. A read of a barrier
    from memory may thus come too early; writing a live barrier other than through operations is a mistake of software,
    but disturbs no other barrier.

    Landed bytes go before requests, except that a request which could go is passed over once at most. A request does
    not directly follow an operation, nor do landed bytes directly follow landed bytes: so at most two of three cycles
    read. Landed bytes that come at least three cycles apart never wait.

    Latency: 2 cycles. Throughput: a request, or landed bytes, every second cycle; while both wait, two landed and one
    request in five cycles. With ``params.paced`` a request waits until the answer before it has left the register, so
    that requests alone come every third cycle.

    Members
    -------
    landed : In(stream of LandedLayout)
        Same as complete_tx, without an answer.
    requests : In(stream of BarrierRequestLayout)
    results : Out(stream of BarrierResultLayout)
        One a request, in order. While one is not taken, no request is accepted.
    fetches : Out(stream of unsigned(params.addr_width - 4), always ready)
        Read of the chunk that holds the barrier, always granted at once.
    fetched : In(CHUNK_BITS)
        That chunk, in the cycle after.
    write_back : Out(WriteBackSignature)
    flip : Out(BarrierEventSignature)
        A phase has completed.
    refused : Out(BarrierEventSignature)
        An operation was refused; the address is the one that it named.

    Attributes
    ----------
    turn : Signal
        A request was passed over, and is next; for proofs.
    """

    def __init__(self, params):
        self.turn = Signal()
        self._params = params
        super().__init__(
            {
                "landed": In(stream.Signature(LandedLayout(params))),
                "requests": In(stream.Signature(BarrierRequestLayout(params))),
                "results": Out(stream.Signature(BarrierResultLayout())),
                "fetches": Out(stream.Signature(unsigned(params.addr_width - 4), always_ready=True)),
                "fetched": In(CHUNK_BITS),
                "write_back": Out(WriteBackSignature(params)),
                "flip": Out(BarrierEventSignature(params)),
                "refused": Out(BarrierEventSignature(params)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.decode = decode = BarrierDecode(self._params)
        m.submodules.sums = sums = BarrierSums()
        m.submodules.update = update = BarrierUpdate()
        busy = Signal()  # an operation is being worked out
        busy_landed = Signal()  # it is one of landed bytes
        address = Signal(self._params.addr_width)
        operation = Signal(OperationLayout())

        # Cycle w: choose an operation and read its barrier.
        go_landed, go_request = self._choose(m, decode.request, busy, busy_landed)
        m.d.sync += [
            busy.eq(go_landed | go_request),
            busy_landed.eq(go_landed),
            operation.eq(decode.operation),
            address.eq(decode.request.address),
        ]
        # Cycle w + 1: add.
        m.d.comb += sums.operation.eq(operation)
        fresh, answers = Signal(), Signal()  # one has been worked out; it has an answer
        m.d.sync += [fresh.eq(busy), answers.eq(busy & ~busy_landed)]
        with m.If(busy):
            m.d.sync += [update.sums.eq(sums.sums), update.operation.eq(operation)]
        self._update_state(m, sums.before, update, busy, fresh, address, decode.request.address)
        # From cycle w + 2 on: the answer and the strobes.
        results, kept = self.results, Signal.like(self.results.payload)
        m.d.comb += results.payload.eq(Mux(answers, update.result, kept))
        with m.If(answers):
            m.d.sync += kept.eq(update.result)
        with m.If(results.ready):
            m.d.sync += results.valid.eq(0)
        with m.If(busy & ~busy_landed):
            m.d.sync += results.valid.eq(1)
        m.d.comb += [self.flip.valid.eq(fresh & update.flip), self.refused.valid.eq(fresh & update.result.error)]
        m.d.sync += [self.flip.address.eq(address), self.refused.address.eq(address)]
        return m

    def _choose(self, m, chosen, busy, busy_landed):
        """Which of the two goes: landed bytes, a request, or neither."""
        landed, requests, turn = self.landed, self.requests, self.turn
        may_answer = ~self.results.valid | (Const(0) if self._params.paced else self.results.ready)
        may_request, go_landed, go_request = Signal(), Signal(), Signal()
        m.d.comb += [
            may_request.eq(requests.valid & ~busy & may_answer),
            landed.ready.eq(~busy_landed & ~(may_request & turn)),
            requests.ready.eq(~busy & may_answer & (~landed.valid | turn)),
            go_landed.eq(landed.valid & landed.ready),
            go_request.eq(requests.valid & requests.ready),
            chosen.op.eq(Mux(go_landed, BarrierOp.COMPLETE_TX, requests.payload.op)),
            chosen.address.eq(Mux(go_landed, landed.payload.barrier, requests.payload.address)),
            chosen.value.eq(Mux(go_landed, landed.payload.bytes, requests.payload.value)),
            # go_landed | go_request: where both could go, one does. The banks' grant hangs on this.
            self.fetches.valid.eq((landed.valid & ~busy_landed) | may_request),
            self.fetches.payload.eq(chosen.address[4:]),
        ]
        with m.If(go_landed):
            m.d.sync += turn.eq(may_request)
        with m.Elif(go_request):
            m.d.sync += turn.eq(0)
        return go_landed, go_request

    def _update_state(self, m, before, update, busy, fresh, address, next_address):
        """The barrier's state before the operation at ``address``; and after it, in the write-back register.

        The register follows every operation, also one that changes nothing: the next one on the same barrier does not
        depend on what this one did.
        """
        back = self.write_back
        kept_state = update.after
        kept_word = Signal(self._params.addr_width - 3)  # the barrier that the write-back register holds
        dirty, was_dirty = Signal(), Signal()  # it is ahead of the memory; it has been before
        may_change = fresh & ~update.operation.refused & ~update.operation.try_wait  # known early
        ahead = Signal()  # the write-back register, and not what was read, is the barrier's state
        # What it held before is: that was written in the cycle of the read.
        left, left_state = Signal(), Signal.like(kept_state)
        held = Signal()
        m.d.comb += [dirty.eq(was_dirty | (fresh & update.changed)), held.eq(dirty & (kept_word == next_address[3:]))]
        m.d.sync += [
            ahead.eq(Mux(busy, address[3:] == next_address[3:], held)),
            left.eq(busy & held),
            left_state.eq(kept_state),
            # If another barrier takes its place, urgent saw to it that it is taken.
            was_dirty.eq(dirty & ~back.taken),
        ]
        read = self.fetched.word_select(address[3], BARRIER.bits)
        m.d.comb += [
            before.eq(Mux(ahead, kept_state, Mux(left, left_state, read))),
            back.valid.eq(was_dirty | may_change),
            back.urgent.eq(busy & ~ahead),
            back.payload.chunk.eq(kept_word[1:]),
            back.payload.data.eq(Cat(kept_state, kept_state)),
            back.payload.strobe.eq(Cat((dirty & ~kept_word[0]).replicate(8), (dirty & kept_word[0]).replicate(8))),
        ]
        with m.If(busy):
            m.d.sync += kept_word.eq(address[3:])
