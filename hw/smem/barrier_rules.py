"""What an operation does to a barrier: the arithmetic of docs/tmau.md, "Barriers", without time."""

from amaranth.hdl import Cat, Module, Mux, signed, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from tilewright.golden.spec import BARRIER, BarrierOp

from ..lib.formats import packed_layout
from .layouts import BarrierRequestLayout, BarrierResultLayout

__all__ = ["BarrierDecode", "BarrierSums", "BarrierUpdate", "OperationLayout", "SumsLayout"]

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
