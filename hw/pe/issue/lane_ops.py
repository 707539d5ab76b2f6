"""LaneOps: mov and setp, eight threads at a time."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.spec.pe import Compare, Source

from ...lib.logic import mux_tree
from ..layouts import LaneReadSignature, LaneWriteLayout, PredicateReadSignature, PredicateWriteLayout
from ..params import LANES

__all__ = ["LaneOperationLayout", "LaneOps"]

#: Halves of a register are compared in parallel: half as many levels.
_HALF = 16
#: Lanes that are compared at once. Since setp is rare, it reads its registers again for each such part of a group.
_AT_ONCE = 2
_PARTS = LANES // _AT_ONCE


class LaneOperationLayout(data.StructLayout):
    """A mov or setp without errors."""

    def __init__(self, params):
        super().__init__(
            {
                "setp": 1,
                "source": 1,  # spec.pe.Source
                "core": 1,  # of mov: the number of the core is ORed with the immediate
                "register": unsigned(params.reg_width),  # rd or rs
                "imm": unsigned(32),
                "compare": unsigned(4),  # spec.pe.Compare
                "target": unsigned(3),  # predicate that setp writes
                "guard": 1,
                "predicate": unsigned(3),
            }
        )


class LaneOps(wiring.Component):
    """Performs one mov or setp after the other. An operation is accepted when it is done.

    Latency: mov takes one cycle, and one for each group of eight threads; setp takes one, and 13 for each group: three
    for each two threads, and one.

    Parameters
    ----------
    params : PeParams
    cores : int
        Cores of the cluster. With 1, the core number is 0.
    """

    def __init__(self, params, cores=1):
        self._params, self._cores = params, cores
        super().__init__(
            {
                **({"core_number": In(4)} if cores > 1 else {}),  # constant
                # An operation comes when no earlier instruction needs its registers any more.
                "i": In(stream.Signature(LaneOperationLayout(params))),
                "predicates": Out(PredicateReadSignature(params)),
                "reads": Out(LaneReadSignature(params)),
                "moves": Out(stream.Signature(LaneWriteLayout(params))),  # results of mov
                "predicate_writes": Out(stream.Signature(PredicateWriteLayout(params))),  # of setp; values registered
            }
        )

    def elaborate(self, platform):
        m = Module()
        operation, params = self.i.payload, self._params
        group, next_group = Signal(params.group_width), Signal(params.group_width)
        last, written = Signal(), Signal()  # the last group; its writes are accepted in this cycle
        m.d.comb += [last.eq(group == params.groups - 1), next_group.eq(group)]
        with m.If(written):
            m.d.comb += next_group.eq(Mux(last, 0, group + 1))
        m.d.sync += group.eq(next_group)

        exists, lanes = Signal(LANES), Signal(LANES)
        from_thread = operation.source == Source.THREAD
        given = operation.imm
        if self._cores > 1:
            given = given | Mux(operation.core, self.core_number, 0)
        reads, move, write = self.reads.requests, self.moves, self.predicate_writes
        m.d.comb += [
            exists.eq(Mux(last, (1 << params.threads - LANES * (params.groups - 1)) - 1, (1 << LANES) - 1)),
            lanes.eq(exists & Mux(operation.guard, self.predicates.values, -1)),
            self.predicates.predicate.eq(operation.predicate),
            self.predicates.group.eq(next_group),
            self.i.ready.eq(written & last),
            reads.payload.register.eq(operation.register),
            reads.payload.group.eq(group),
            move.payload.register.eq(operation.register),
            move.payload.group.eq(group),
            move.payload.lanes.eq(lanes),
            *(move.payload.data[lane].eq(Mux(from_thread, Cat(Const(lane, 3), group), given)) for lane in range(LANES)),
            write.payload.predicate.eq(operation.target),
            write.payload.group.eq(group),
            write.payload.lanes.eq(lanes),
        ]
        compares, part = Signal(), Signal(range(_PARTS))
        operands = Signal(data.ArrayLayout(32, _AT_ONCE))
        for lane in range(_AT_ONCE):
            words = {number: self.reads.data[_AT_ONCE * number + lane] for number in range(_PARTS)}
            thread = Cat(Const(lane, (_AT_ONCE - 1).bit_length()), part, group)
            m.d.comb += operands[lane].eq(Mux(from_thread, thread, mux_tree(part, words)))
        values = self._compare(m, compares, operands)
        earlier = Signal(LANES - _AT_ONCE)  # values of the previous parts
        with m.If(compares):
            m.d.sync += [earlier.eq(Cat(earlier, values)[_AT_ONCE:]), part.eq(part + 1)]
        m.d.comb += write.payload.values.eq(Cat(earlier, values))

        with m.FSM():
            with m.State("IDLE"), m.If(self.i.valid):  # the predicate of group 0 is read
                m.next = "MOVE"
                with m.If(operation.setp):
                    m.next = "READ"
            with m.State("MOVE"):
                m.d.comb += [move.valid.eq(1), written.eq(move.ready)]
                with m.If(written & last):
                    m.next = "IDLE"
            with m.State("READ"):
                m.d.comb += reads.valid.eq(~from_thread)
                with m.If(reads.ready | from_thread):
                    m.next = "WAIT"
            with m.State("WAIT"):
                m.next = "COMPARE"
            with m.State("COMPARE"):
                m.d.comb += compares.eq(1)
                m.next = "READ"
                with m.If(part == _PARTS - 1):
                    m.next = "WRITE"
            with m.State("WRITE"):
                m.d.comb += [write.valid.eq(1), written.eq(write.ready)]
                with m.If(written):
                    m.next = "READ"
                    with m.If(last):
                        m.next = "IDLE"
        return m

    def _compare(self, m, compares, operands):
        """Results of the comparisons of ``operands``, sampled when ``compares`` is high, with the immediate."""
        operation = self.i.payload
        values = Signal(_AT_ONCE)
        # Two's complement numbers are compared as unsigned numbers with the sign bits inverted.
        sign = Cat(Const(0, 31), operation.compare < Compare.LTU)
        for lane in range(_AT_ONCE):
            first, second = Signal(32, name=f"first{lane}"), Signal(32, name=f"second{lane}")
            m.d.comb += [first.eq(operands[lane] ^ sign), second.eq(operation.imm ^ sign)]
            low_less, high_less = Signal(name=f"low_less{lane}"), Signal(name=f"high_less{lane}")
            low_same, high_same = Signal(name=f"low_same{lane}"), Signal(name=f"high_same{lane}")
            with m.If(compares):
                m.d.sync += [
                    low_less.eq(first[:_HALF] < second[:_HALF]),
                    low_same.eq(first[:_HALF] == second[:_HALF]),
                    high_less.eq(first[_HALF:] < second[_HALF:]),
                    high_same.eq(first[_HALF:] == second[_HALF:]),
                ]
            less, same = Signal(name=f"less{lane}"), Signal(name=f"same{lane}")
            m.d.comb += [same.eq(low_same & high_same), less.eq(high_less | (high_same & low_less))]
            with m.Switch(operation.compare):
                for compare, value in (
                    ((Compare.EQ,), same),
                    ((Compare.NE,), ~same),
                    ((Compare.LT, Compare.LTU), less),
                    ((Compare.LE, Compare.LEU), less | same),
                    ((Compare.GT, Compare.GTU), ~(less | same)),
                    ((Compare.GE, Compare.GEU), ~less),
                ):
                    with m.Case(*compare):
                        m.d.comb += values[lane].eq(value)
        return values
