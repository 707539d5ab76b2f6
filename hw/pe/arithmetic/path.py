"""The data path of the arithmetic: rows of the register file become operands, and functions of them results."""

from amaranth.hdl import Const, Module, Mux, Signal, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from tilewright.spec.arithmetic import FUNCTIONS, Function

from ...lib.logic import delay, is_one_of
from .division import DivideRow
from .floats import FloatLane
from .integers import IntegerRow
from .quotient import QuotientLane

__all__ = ["ArithmeticPath", "OperandsLayout", "path_latency"]

#: Cycles from the start of an operation to its operands.
_READ = 2


class OperandsLayout(data.StructLayout):
    """An operation whose registers are being read: how operands follow from rows."""

    def __init__(self, params):
        threads = unsigned(params.threads)
        super().__init__(
            {
                "valid": 1,  # otherwise no operation begins
                "fetches": 1,  # only operand c is read, for the operation that follows
                "keeps": 1,  # operand c was read before
                "function": unsigned(8),
                "part": unsigned(3),
                "a_bank": 1,
                "b_bank": 1,
                "c_bank": 1,
                "c_right": 1,  # operand c comes from a right port
                "reads": unsigned(3),
                "thread": 1,
                "scalar": unsigned(32),
                "iterates": 1,
                "divided": 1,  # operand a is the result of DivideRow
                "threads": threads,  # that take part
                "first": threads,  # predicate ``ps``
                "second": threads,  # predicate ``part``
            }
        )


def path_latency(params, multiply):
    """Cycles from the start of an operation, which reads its registers, to the write of its result.

    Not ``multiply``, the cycles of a multiply: if both start in the same cycle, they must write in different ones.
    """
    latencies = [IntegerRow.LATENCY]
    if "f32" in params.units:
        latencies.append(FloatLane.LATENCY)
    if "div" in params.units:
        latencies.append(QuotientLane.LATENCY)
    cycles = _READ + max(latencies) + 1
    return cycles + (cycles == multiply)


class ArithmeticPath(wiring.Component):
    """Functions of all threads.

    In the cycle of ``operands`` the rows are at the inputs, and ``latency`` − 1 cycles later the results are at
    ``results``. Both are registered. Throughput: one function a cycle. Divisions and roots do not come this way: ``divided`` says that their results are ready, and an operation that adds
    0 to them writes them.

    Parameters
    ----------
    params : PeParams
    latency : int
        ``path_latency``.
    """

    def __init__(self, params, latency):
        self._params, self._latency = params, latency
        row = data.ArrayLayout(32, params.threads)
        looks_up = "lookup" in params.units
        super().__init__(
            {
                "operands": In(OperandsLayout(params)),
                "left": In(row).array(2),
                "right": In(row).array(2),
                "results": Out(row),
                "holds": Out(params.threads),  # results for a predicate
                "threads": Out(params.threads),  # that take part
                "divided": Out(1),
                "division_threads": Out(params.threads),  # those of the division
                **(
                    {"entry_write": In(1), "entry": In(range(params.lookup_words)), "entry_data": In(32)}
                    if looks_up
                    else {}
                ),
            }
        )

    def elaborate(self, platform):
        m = Module()
        params, source = self._params, self.operands
        total = self._latency - _READ  # cycles from operands to results
        m.submodules.integers = integers = IntegerRow(
            params.threads, params.lookup_words if "lookup" in params.units else None
        )
        if "lookup" in params.units:
            m.d.comb += [getattr(integers, name).eq(getattr(self, name)) for name in ("entry_write", "entry", "entry_data")]
        quotients = self._divide(m)
        words = self._operands(m, integers)
        function = integers.function
        sources = [(None, integers.o, IntegerRow.LATENCY)]
        holds = delay(m, integers.holds, total - 1 - IntegerRow.LATENCY, name="held")
        if "f32" in params.units:
            lanes, floats, compared = [], Signal.like(self.results), Signal(params.threads)
            for thread in range(params.threads):
                m.submodules[f"float{thread}"] = lane = FloatLane()
                m.d.comb += [
                    lane.function.eq(function),
                    lane.part.eq(integers.part),
                    *(getattr(lane, name).eq(words[name][thread]) for name in "abc"),
                    floats[thread].eq(lane.o),
                    compared[thread].eq(lane.holds),
                ]
                lanes.append(lane)
            of_floats = [function for function, info in FUNCTIONS.items() if info.unit == "f32"]
            sources.append((of_floats, floats, FloatLane.LATENCY))
            compared = delay(m, compared, total - 1 - FloatLane.LATENCY, name="compared")
            is_float = delay(m, is_one_of(function, of_floats), total - 1, name="is_float")
            holds = Mux(is_float, compared, holds)
        if quotients is not None:
            sources.append(([Function.QDIV], quotients, QuotientLane.LATENCY))
        result = None
        for number, (functions, value, cycles) in enumerate(sources):
            value = delay(m, value.as_value(), total - 1 - cycles, name=f"value{number}_")
            if functions is None:
                result = value
            else:
                chosen = delay(m, is_one_of(function, functions), total - 1, name=f"chosen{number}_")
                result = Mux(chosen, value, result)
        m.d.sync += [self.results.eq(result), self.holds.eq(holds)]
        return m

    def _operands(self, m, integers):
        """The registers of the operands; returns them by name."""
        params, source = self._params, self.operands
        row = data.ArrayLayout(32, params.threads)
        words = {name: Signal(row, name=name, reset_less=True) for name in "abc"}
        left, right = self.left, self.right
        with m.If(source.valid):
            for thread in range(params.threads):
                a = Mux(source.a_bank, left[1][thread], left[0][thread])
                if "div" in params.units or "f32" in params.units:
                    a = Mux(source.divided, self._division.o[thread], a)
                a = Mux(source.reads[0] | source.divided, a, Mux(source.thread, Const(thread), 0))
                b = Mux(source.b_bank, right[1][thread], right[0][thread])
                m.d.sync += [
                    words["a"][thread].eq(a),
                    words["b"][thread].eq(Mux(source.reads[1], b, source.scalar)),
                ]
        with m.If(source.fetches | (source.valid & ~source.keeps)):
            for thread in range(params.threads):
                by_bank = (Mux(source.c_right, right[bank][thread], left[bank][thread]) for bank in range(2))
                even, odd = by_bank
                m.d.sync += words["c"][thread].eq(Mux(source.c_bank, odd, even))
        m.d.sync += [
            integers.function.eq(source.function),
            integers.part.eq(source.part),
            integers.first.eq(source.first),
            integers.second.eq(source.second),
        ]
        m.d.comb += [getattr(integers, name).eq(value) for name, value in words.items()]
        m.d.comb += self.threads.eq(delay(m, source.threads, self._latency - 1, name="threads"))
        if quotients := getattr(self, "_quotients", None):
            for thread, lane in enumerate(quotients):
                m.d.comb += [getattr(lane, name).eq(words[name][thread]) for name in "abc"]
        if "div" in params.units or "f32" in params.units:
            starts, threads = Signal(), Signal(params.threads)
            division = self._division
            m.d.sync += starts.eq(source.valid & source.iterates)
            with m.If(source.valid & source.iterates):
                m.d.sync += threads.eq(source.threads)
            m.d.comb += [
                division.start.eq(starts),
                division.function.eq(integers.function),
                division.a.eq(words["a"]),
                division.b.eq(words["b"]),
                # Not the previous result, while a division is on its way.
                self.divided.eq(division.done & ~starts & ~(source.valid & source.iterates)),
                self.division_threads.eq(threads),
            ]
        return words

    def _divide(self, m):
        """Builds divisions; returns the pipelined quotients of all threads, or None."""
        params = self._params
        if "div" in params.units or "f32" in params.units:
            m.submodules.division = self._division = DivideRow(
                params.threads, integers="div" in params.units, floats="f32" in params.units
            )
        if "div" not in params.units:
            return None
        self._quotients, values = [], Signal(data.ArrayLayout(32, params.threads))
        for thread in range(params.threads):
            m.submodules[f"quotient{thread}"] = lane = QuotientLane()
            self._quotients.append(lane)
            m.d.comb += values[thread].eq(lane.o)
        return values
