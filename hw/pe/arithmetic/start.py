"""Start of arithmetic: an operation starts when its registers, the ports for them and its unit are free."""

from itertools import pairwise

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from ...lib.stream import SkidBuffer
from ..layouts import PREDICATES
from .layouts import ArithmeticAccessSignature, ArithmeticRegistersSignature, OperationLayout, TargetLayout
from .path import OperandsLayout

__all__ = ["ArithmeticStart"]


class ArithmeticStart(wiring.Component):
    """Starts operations in order, one a cycle, and writes their results a fixed time later.

    An operation passes two stages. The first waits for loads, multiplies and stores before it that use its registers
    (``access``). The second waits for operations in flight that write its registers or predicates, for ports of the
    register file and for the slot in which its result is written; then it starts. From then on it does not stall. Three
    operands of which all are even, or all odd, registers take two cycles.

    A division runs beside other operations. When it is done, an operation that this block inserts writes its result.

    Parameters
    ----------
    params : PeParams
    latency : int
        Cycles from the start of an operation to the write of its result.

    Attributes
    ----------
    starts : Signal
        Strobe: an operation starts; for counters and proofs.
    buffer : SkidBuffer
    second, on, divides, busy : Signal
        The operation that is next; which items in flight it depends on; whether on the division; on any; for proofs.
    """

    def __init__(self, params, latency):
        self._params, self._latency = params, latency
        self._iterates = "div" in params.units or "f32" in params.units
        self.starts, self._inserts = Signal(), Signal()
        self.buffer = SkidBuffer(OperationLayout(params))
        self.second, self.second_valid = Signal(OperationLayout(params)), Signal()
        self.on, self.divides, self.busy = Signal(latency), Signal(), Signal()
        self._waits = Signal()  # an operation waits for loads, multiplies or stores
        super().__init__(
            {
                "i": In(stream.Signature(OperationLayout(params))),  # ``i.ready`` is a register
                "access": Out(ArithmeticAccessSignature(params)),
                "registers": Out(ArithmeticRegistersSignature(params)),
                # A multiply that has started writes the bank in the cycle in which an operation would that starts now.
                "writes_ahead": In(2),
                "operands": Out(OperandsLayout(params)),
                "divided": In(1),
                "division_threads": In(params.threads),
                "results": In(params.threads * 32),
                "holds": In(params.threads),
                "threads": In(params.threads),
                "predicate_numbers": Out(range(PREDICATES)).array(3),  # guard, ``ps``, ``part``
                "predicate_rows": In(params.threads).array(3),  # combinational
                "predicate_write": Out(1),
                "predicate_target": Out(range(PREDICATES)),
                "predicate_values": Out(params.threads),
                "predicate_threads": Out(params.threads),
                # Writes that have not taken place: of operations in flight, and of the division.
                "in_flight": Out(TargetLayout(params)).array(self._latency + 1),
                "written": Out(1),  # strobe, a cycle late: an operation started that will write this register
                "written_register": Out(params.reg_width),
                "turn": In(1),  # of Issue
                "pending": Out(1),  # an operation of another turn waits here
                "quiet": Out(1),  # no operation waits or is in flight
                "stall_operand": Out(1),  # strobes of cycles in which an operation waits
                "stall_port": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        params, registers = self._params, self.registers
        m.submodules.buffer = buffer = self.buffer
        connect(m, arithmetic=flipped(self.i), buffer=buffer.i)
        first, first_valid = buffer.o.payload, buffer.o.valid
        second, second_valid = self.second, self.second_valid
        starts, inserts = self.starts, self._inserts
        passes = Signal()  # from the first stage to the second
        waiting = Signal(3)
        m.d.comb += [
            passes.eq(first_valid & self.access.clear & (~second_valid | starts)),
            self._waits.eq(first_valid & ~self.access.clear),
            buffer.o.ready.eq(self.access.clear & (~second_valid | starts)),
            self.access.operation.eq(first),
            waiting.eq(Cat(first_valid, second_valid, buffer.skidded)),
            self.pending.eq((waiting & Cat(item.turn != self.turn for item in (first, second, buffer.skid))).any()),
        ]
        with m.If(passes):
            m.d.sync += [second.eq(first), second_valid.eq(1)]
        with m.Elif(starts):
            m.d.sync += second_valid.eq(0)

        # What is in flight. Item n started n + 1 cycles ago; the last one writes in this cycle.
        flight = [Signal(TargetLayout(params), name=f"flight{n}") for n in range(self._latency)]
        division = Signal(TargetLayout(params))
        m.d.sync += [
            flight[0].valid.eq((starts & ~second.iterates) | inserts),
            flight[0].target.eq(Mux(inserts, division.target, second.target)),
            flight[0].to_predicate.eq(second.to_predicate & ~inserts),
        ]
        m.d.sync += [later.eq(earlier) for earlier, later in pairwise(flight)]
        busy = self._wait(m, first, second, passes, flight, division)
        self._start(m, second, second_valid, busy, division)
        last = flight[-1]
        m.d.comb += [
            *(self.in_flight[n].eq(item) for n, item in enumerate((*flight, division))),
            registers.results_valid.eq(last.valid & ~last.to_predicate),
            registers.results_register.eq(last.target),
            registers.results_threads.eq(self.threads),
            registers.results_data.eq(self.results),
            self.predicate_write.eq(last.valid & last.to_predicate),
            self.predicate_target.eq(last.target),
            self.predicate_values.eq(self.holds),
            self.predicate_threads.eq(self.threads),
            self.quiet.eq(~waiting.any() & ~Cat(item.valid for item in self.in_flight).any()),
        ]
        m.d.sync += [self.written.eq(starts & ~second.to_predicate), self.written_register.eq(second.target)]
        return m

    @staticmethod
    def depends(operation, target):
        """Whether ``operation`` reads what ``target`` writes."""
        reads = Cat(operation.reads[n] & (operation[name] == target.target) for n, name in enumerate("abc")).any()
        numbers = Cat(
            operation.guard & (operation.predicate == target.target[:3]),
            operation.selects & (operation.ps == target.target[:3]),
            operation.joins & (operation.part == target.target[:3]),
        ).any()
        return target.valid & Mux(target.to_predicate, numbers, reads)

    def _wait(self, m, first, second, passes, flight, division):
        """Whether the operation of the second stage depends on one in flight: a register."""
        starts, inserts = self.starts, self._inserts
        starting = Signal(TargetLayout(self._params))
        m.d.comb += [
            starting.valid.eq(starts),
            starting.target.eq(second.target),
            starting.to_predicate.eq(second.to_predicate),
        ]
        # Which items of ``flight`` it depends on: found when it enters, and moved with them from then on.
        on, following = self.on, Signal(self._latency)
        divides, still_divides = self.divides, Signal()  # it depends on the division
        same = Signal()  # the operation that enters uses, or writes, the register of the division
        uses = [first.reads[n] & (first[name] == division.target) for n, name in enumerate("abc")]
        m.d.comb += same.eq(
            division.valid & (Cat(uses).any() | (~first.to_predicate & (first.target == division.target)))
        )
        of_starting = self.depends(first, starting)
        again = starting.valid & second.iterates & ~first.to_predicate & (first.target == second.target)
        with m.If(passes):
            m.d.comb += [
                following.eq(
                    Cat(
                        Mux(inserts, same, of_starting & ~second.iterates),
                        *(self.depends(first, item) for item in flight[:-1]),
                    )
                ),
                still_divides.eq((same & ~inserts) | (of_starting & second.iterates) | again),
            ]
        with m.Else():
            m.d.comb += [following.eq(Cat(inserts & divides, on)), still_divides.eq(divides & ~inserts)]
        busy = self.busy
        m.d.sync += [on.eq(following), divides.eq(still_divides), busy.eq(following.any() | still_divides)]
        return busy

    def _start(self, m, operation, valid, busy, division):
        """Grants of ports and of the slot for the result, and the start."""
        registers, starts, inserts = self.registers, self.starts, self._inserts
        a_bank, b_bank, c_bank = (operation[name][0] for name in "abc")
        # Operand a is read on the left and b on the right. c is read where its bank is free, or in a cycle of its own.
        reads_a, reads_b, reads_c = operation.reads
        c_left, c_right, alone, fetched = Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            c_left.eq(reads_c & ~(reads_a & (a_bank == c_bank))),
            c_right.eq(reads_c & ~c_left),
            alone.eq(c_right & reads_b & (b_bank == c_bank)),
        ]
        busy_ports, blocked = Signal(), Signal()
        left, right = registers.left_busy, registers.right_busy
        m.d.comb += [
            busy_ports.eq(
                (reads_a & left.bit_select(a_bank, 1))
                | (reads_b & right.bit_select(b_bank, 1))
                | (c_left & left.bit_select(c_bank, 1))
                | (c_right & right.bit_select(c_bank, 1))
            ),
            blocked.eq(
                registers.crowded
                | (~operation.to_predicate & ~operation.iterates & self.writes_ahead.bit_select(operation.target[0], 1))
            ),
        ]
        can, fetches, alternated = Signal(), Signal(), Signal()
        m.d.sync += alternated.eq(starts & operation.alternates)
        taken = (operation.iterates & division.valid) | (operation.alternates & alternated)  # the unit
        m.d.comb += [
            can.eq(valid & ~busy & ~busy_ports & ~blocked & ~inserts & ~taken),
            fetches.eq(can & alone & ~fetched),
            starts.eq(can & (~alone | fetched)),
            self.stall_operand.eq(valid & busy | ~valid & self._waits),
            self.stall_port.eq(valid & ~busy & ~starts),
        ]
        m.d.sync += fetched.eq((fetched | fetches) & ~starts)
        if self._iterates:
            m.d.comb += inserts.eq(
                division.valid & self.divided & ~registers.crowded
                & ~self.writes_ahead.bit_select(division.target[0], 1)
            )  # fmt: skip
            with m.If(starts & operation.iterates):
                m.d.sync += [division.valid.eq(1), division.target.eq(operation.target)]
            with m.Elif(inserts):
                m.d.sync += division.valid.eq(0)

        for bank in range(2):
            is_a, is_b, is_c = (value == bank for value in (a_bank, b_bank, c_bank))
            uses_b = reads_b & is_b & ~fetches
            m.d.comb += [
                registers.left_enable[bank].eq(starts & ((reads_a & is_a) | (c_left & is_c))),
                registers.left_address[bank].eq(Mux(reads_a & is_a, operation.a[1:], operation.c[1:])),
                registers.right_enable[bank].eq((starts & (uses_b | (c_right & is_c))) | (fetches & is_c)),
                registers.right_address[bank].eq(Mux(uses_b, operation.b[1:], operation.c[1:])),
                registers.right_wanted[bank].eq(valid & ~busy & ((reads_b & is_b) | (c_right & is_c))),
            ]
        numbers = (operation.predicate, operation.ps, operation.part)
        m.d.comb += [number.eq(value) for number, value in zip(self.predicate_numbers, numbers, strict=True)]
        guard, ps, part = self.predicate_rows
        operands = self.operands
        names = ("function", "part", "reads", "thread", "scalar", "iterates")
        m.d.sync += [
            *(operands[name].eq(operation[name]) for name in names),
            operands.valid.eq(starts | inserts),
            operands.fetches.eq(fetches),
            operands.keeps.eq(fetched),
            operands.a_bank.eq(a_bank),
            operands.b_bank.eq(b_bank),
            operands.c_bank.eq(c_bank),
            operands.c_right.eq(c_right),
            operands.threads.eq(Mux(operation.guard, guard, -1)),
            operands.first.eq(ps),
            operands.second.eq(part),
            operands.divided.eq(0),
        ]
        with m.If(inserts):
            m.d.sync += [
                operands.function.eq(0),  # MOV: operand b, 0, is added to a
                operands.reads.eq(0),
                operands.thread.eq(0),
                operands.scalar.eq(0),
                operands.iterates.eq(0),
                operands.divided.eq(1),
                operands.threads.eq(self.division_threads),
            ]
