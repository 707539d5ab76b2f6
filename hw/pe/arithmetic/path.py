"""The data path of the arithmetic: rows of the register file become operands, and functions of them results."""

from amaranth.hdl import Const, Module, Mux, Signal, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from tilewright.spec.arithmetic import FUNCTIONS, Function

from ...lib.logic import delay, is_one_of
from .division import DivideRow
from .floats import FloatRow
from .integers import IntegerRow
from .quotient import QuotientRow, ShortDivider

__all__ = ["QUOTIENTS_EVERY", "ArithmeticPath", "OperandsLayout", "path_latency"]

#: Cycles from the start of an operation to its operands.
_READ = 2
#: Cycles from one short quotient to the next, which is the number of threads that share a divider.
QUOTIENTS_EVERY = 2


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
                "divided": 1,  # operand a is the result of the division
                "threads": threads,  # that take part
                "first": threads,  # predicate ``ps``
                "second": threads,  # predicate ``part``
            }
        )


def path_latency(params, multiply):
    """Cycles from the start of an operation, which reads its registers, to the write of its result.

    Not ``multiply``, the cycles of a multiply: if both start in the same cycle, they must write in different ones.
    """
    latencies = {
        "alu": IntegerRow.LATENCY, "f32": FloatRow.LATENCY, "div": ShortDivider.LATENCY + QUOTIENTS_EVERY
    }  # fmt: skip
    cycles = _READ + max(latencies[unit] for unit in params.units if unit in latencies) + 1
    return cycles + (cycles == multiply)


class ArithmeticPath(wiring.Component):
    """Functions of all threads.

    In the cycle of ``operands`` the rows are at the inputs, and ``latency`` − 1 cycles later the results are at
    ``results``. Both are registered. Throughput: one function a cycle. Divisions and roots do not come this way:
    ``divided`` says that their results are ready, and an operation that adds 0 to them writes them.

    Parameters
    ----------
    params : PeParams
    latency : int
        ``path_latency``.
    """

    def __init__(self, params, latency):
        self._params, self._latency = params, latency
        self._looks_up = "lookup" in params.units
        self._divides = "div" in params.units or "f32" in params.units
        row = data.ArrayLayout(32, params.threads)
        super().__init__(
            {
                "operands": In(OperandsLayout(params)),
                "left": In(row).array(2),
                "right": In(row).array(2),
                "results": Out(row),
                "holds": Out(params.threads),  # results for a predicate
                "threads": Out(params.threads),  # that take part
                "divided": Out(1),
                "division_threads": Out(params.threads),  # that take part in the division
                **(
                    {"entry_write": In(1), "entry": In(range(params.lookup_words)), "entry_data": In(32)}
                    if self._looks_up
                    else {}
                ),
            }
        )

    def elaborate(self, platform):
        m = Module()
        params, source = self._params, self.operands
        row = data.ArrayLayout(32, params.threads)
        # The operands, in registers, with what goes with them.
        words = {name: Signal(row, name=name, reset_less=True) for name in "abc"}
        names = ("function", "part", "first", "second")
        at = {name: Signal.like(source[name], name=name, reset_less=True) for name in names}
        m.d.sync += [register.eq(source[name]) for name, register in at.items()]
        m.d.comb += self.threads.eq(delay(m, source.threads, self._latency - 1, name="threads"))

        m.submodules.integers = integers = IntegerRow(params.threads, params.lookup_words if self._looks_up else None)
        m.d.comb += [integers.first.eq(at["first"]), integers.second.eq(at["second"])]
        if self._looks_up:
            names = ("entry_write", "entry", "entry_data")
            m.d.comb += [getattr(integers, name).eq(getattr(self, name)) for name in names]
        rows = [(integers, None, IntegerRow.LATENCY)]
        if "f32" in params.units:
            m.submodules.floats = floats = FloatRow(params.threads)
            of_floats = [function for function, info in FUNCTIONS.items() if info.unit == "f32"]
            rows.append((floats, of_floats, FloatRow.LATENCY))
        if "div" in params.units:
            m.submodules.quotients = quotients = QuotientRow(params.threads, QUOTIENTS_EVERY)
            rows.append((quotients, [Function.QDIV], quotients.latency))
            starts = Signal()
            m.d.sync += starts.eq(source.valid & (source.function == Function.QDIV))
            m.d.comb += quotients.start.eq(starts)
        m.d.comb += [integers.function.eq(source.function), integers.part.eq(source.part)]  # they are decoded early
        for unit, *_ in rows:
            given = words if unit is integers else at | words
            m.d.comb += [getattr(unit, name).eq(given[name]) for name in unit.signature.members if name in given]
        self._operands(m, words, self._divide(m, at, words))
        self._choose(m, at["function"], rows)
        return m

    def _operands(self, m, words, quotients):
        """Operands from rows; ``quotients`` are results of the division, or None."""
        source, left, right = self.operands, self.left, self.right
        with m.If(source.valid):
            for thread in range(self._params.threads):
                a = Mux(source.a_bank, left[1][thread], left[0][thread])
                reads = source.reads[0]
                if quotients is not None:
                    a, reads = Mux(source.divided, quotients[thread], a), reads | source.divided
                b = Mux(source.b_bank, right[1][thread], right[0][thread])
                m.d.sync += [
                    words["a"][thread].eq(Mux(reads, a, Mux(source.thread, Const(thread), 0))),
                    words["b"][thread].eq(Mux(source.reads[1], b, source.scalar)),
                ]
        with m.If(source.fetches | (source.valid & ~source.keeps)):
            for thread in range(self._params.threads):
                even, odd = (Mux(source.c_right, right[bank][thread], left[bank][thread]) for bank in range(2))
                m.d.sync += words["c"][thread].eq(Mux(source.c_bank, odd, even))

    def _divide(self, m, at, words):
        """Divisions and roots; returns their results, or None."""
        if not self._divides:
            return None
        params, source = self._params, self.operands
        m.submodules.division = division = DivideRow(
            params.threads, integers="div" in params.units, floats="f32" in params.units
        )
        begins, starts = source.valid & source.iterates, Signal()
        m.d.sync += starts.eq(begins)
        with m.If(begins):
            m.d.sync += self.division_threads.eq(source.threads)
        m.d.comb += [
            division.start.eq(starts),
            division.function.eq(at["function"]),
            division.a.eq(words["a"]),
            division.b.eq(words["b"]),
            # Not the previous result, while a division is on its way.
            self.divided.eq(division.done & ~starts & ~begins),
        ]
        return division.o

    def _choose(self, m, function, rows):
        """The results of the row that has the function."""
        cycles = self._latency - _READ - 1  # from the operands to the register of the results
        results = holds = None
        for number, (unit, functions, latency) in enumerate(rows):
            value = delay(m, unit.o.as_value(), cycles - latency, name=f"results{number}_")
            compared = holds
            if "holds" in unit.signature.members:
                compared = delay(m, unit.holds, cycles - latency, name=f"holds{number}_")
            if functions is None:
                results, holds = value, compared
                continue
            chosen = delay(m, is_one_of(function, functions), cycles, name=f"chosen{number}_")
            results = Mux(chosen, value, results)
            holds = compared if compared is holds else Mux(chosen, compared, holds)
        m.d.sync += [self.results.as_value().eq(results), self.holds.eq(holds)]
