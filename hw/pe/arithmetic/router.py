"""Where a decoded instruction goes: to the arithmetic, as an operation, or to Issue."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.spec.arithmetic import FUNCTIONS, Function, Operand
from tilewright.spec.pe import Operation, Source

from ...lib.logic import is_one_of
from ..issue.decode import DecodedLayout, instruction_view
from .layouts import OperationLayout

__all__ = ["Router"]

#: Divisions and roots, which take many cycles.
_ITERATES = (Function.DIV, Function.DIVU, Function.REM, Function.REMU, Function.FDIV, Function.FSQRT)


class Router(wiring.Component):
    """Sends each instruction to one of two places, in program order.

    An ARITH, mov or setp without an error becomes an operation. Of CALL, RETURN, LOOP and END, nothing is left to do.
    All others go to Issue, whose jobs wait until all operations before them have started; operations after them do not
    wait here. Combinational.

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
                **({"core_number": In(4), "stopped": In(1)} if cores > 1 else {}),
                "i": In(stream.Signature(DecodedLayout())),
                # Withdrawn if the core is stopped.
                "operations": Out(stream.Signature(OperationLayout(params))),
                "others": Out(stream.Signature(DecodedLayout())),
                "rests": In(1),  # Issue has not begun with the instruction
                "turn": In(1),  # of Issue
                "uniform_set": In(1),  # the uniform register that the instruction names is set
                "uniform": In(32),  # what is in it
                "passes": Out(1),  # strobe: the instruction is accepted without Issue
                "accepted": Out(1),  # strobe: as an operation
            }
        )

    def elaborate(self, platform):
        m = Module()
        decoded, operations, others = self.i.payload, self.operations, self.others
        is_operation, is_done = Signal(), Signal()
        m.d.comb += [
            is_operation.eq(decoded.arithmetic & self.rests & (~decoded.by_uniform | self.uniform_set)),
            operations.valid.eq(self.i.valid & is_operation),
            others.payload.eq(decoded),
            is_done.eq(decoded.done & self.rests),
            others.valid.eq(self.i.valid & ~is_operation & ~is_done),
            self.i.ready.eq(Mux(is_operation, operations.ready, is_done | others.ready)),
            self.passes.eq(is_done | (is_operation & operations.ready)),
            self.accepted.eq(operations.valid & operations.ready),
        ]
        if self._cores > 1:
            m.d.comb += is_operation.eq(
                decoded.arithmetic & self.rests & ~self.stopped & (~decoded.by_uniform | self.uniform_set)
            )
            m.d.comb += is_done.eq(decoded.done & self.rests & ~self.stopped)
        self._describe(m, decoded.word, operations.payload)
        return m

    def _describe(self, m, word, operation):
        arith, mov, setp = (instruction_view(kind, word) for kind in (Operation.ARITH, Operation.MOV, Operation.SETP))

        def having(predicate):
            return is_one_of(arith.function, [function for function, info in FUNCTIONS.items() if predicate(info)])

        m.d.comb += [
            operation.guard.eq(arith.guard),
            operation.predicate.eq(arith.predicate),
            operation.a.eq(arith.ra),
            operation.b.eq(arith.rb),
            operation.c.eq(arith.rc),
            operation.target.eq(arith.rd),
            operation.scalar.eq(arith.imm),
            operation.turn.eq(self.turn),
        ]
        with m.Switch(arith.opcode):
            with m.Case(Operation.MOV):
                # The number of the thread is operand a of a sum with 0.
                core = Mux(mov.core, self.core_number, 0) if self._cores > 1 else 0
                m.d.comb += [
                    operation.function.eq(Function.ADD),
                    operation.thread.eq(mov.source == Source.THREAD),
                    operation.scalar.eq(Mux(mov.source == Source.THREAD, 0, mov.imm | core)),
                ]
            with m.Case(Operation.SETP):
                m.d.comb += [
                    operation.function.eq(Function.EQ + setp.compare),
                    operation.a.eq(setp.rs),
                    operation.reads.eq(setp.source == Source.GIVEN),
                    operation.thread.eq(setp.source == Source.THREAD),
                    operation.target.eq(setp.pd),
                    operation.to_predicate.eq(1),
                ]
            with m.Default():
                by_register = arith.b == Operand.REGISTER
                m.d.comb += [
                    operation.function.eq(arith.function),
                    operation.part.eq(arith.part),
                    operation.ps.eq(arith.ps),
                    operation.selects.eq(having(lambda info: info.selects)),
                    operation.joins.eq(having(lambda info: info.selects and info.predicate)),
                    operation.reads.eq(
                        Cat(
                            having(lambda info: "a" in info.operands),
                            having(lambda info: "b" in info.operands) & by_register,
                            having(lambda info: "c" in info.operands),
                        )
                    ),
                    operation.scalar.eq(Mux(arith.b == Operand.UNIFORM, self.uniform, arith.imm)),
                    operation.to_predicate.eq(having(lambda info: info.predicate)),
                    operation.iterates.eq(is_one_of(arith.function, _ITERATES)),
                    operation.alternates.eq(arith.function == Function.QDIV),
                ]
