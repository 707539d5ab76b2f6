"""The check of a job (docs/conv.md, "Checks")."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from tilewright.spec.conv import CHANNEL_BYTES, FUNCTION_ALIGNMENT, FUNCTION_BYTES, JOB, ConvError

from ...lib.layouts import packed_layout
from .calculator import SUM, Calculator, Step
from .rules import CheckedJobLayout, JobKind, JobRules

__all__ = ["JobChecker"]

#: Bits of addresses and pitches; larger sums are larger than all of them.
_BITS = 32


def _place(name, *steps, when=None):
    """The steps for the end of a tensor; ``steps`` compute its span."""
    return (
        *(step._replace(when=step.when or when) for step in steps),
        Step(name, more=True, when=when, keep="address"),
        Step("y", when=when, keep=name),
    )


def _pixels(name, item, channels, columns, rows):
    """The steps for the span of a feature map."""
    return (
        Step(item, channels, more=True, fresh=True),
        Step(f"{name}_pitch0", columns),
        Step(f"{name}_pitch1", rows),
        Step(f"{name}_pitch2", "batch"),
    )


def _steps():
    """All arithmetic. Counts are stored minus one, which is how often a pitch counts."""
    results, *outer = _pixels("y", "result", "out_channels", "out_width", "out_height")
    return (
        # Whether pixels of X are contiguous.
        Step("element", "channels", more=True, fresh=True),
        Step("x_pitch0", keep="apart"),
        # Y comes first: tensors that are read are compared with it.
        results,
        *(step._replace(keep="pitch") for step in outer),
        Step("y", more=True, keep="made"),
        *_place("barrier", Step("record", "early", more=True, fresh=True), when="signal"),
        *_place("x", *_pixels("x", "element", "channels", "width", "height")),
        *_place(
            "k",
            Step("element", "channels", more=True, fresh=True, when="convolution"),
            Step(SUM, "columns", when="convolution"),
            Step(SUM, "rows", when="convolution"),
            Step("k_pitch", "out_channels", when="convolution"),
            # Kh · Kw - 1 = (Kh - 1) · Kw + Kw - 1 pitches.
            Step("k_pitch", "columns", more=True, fresh=True, when="depthwise"),
            Step(SUM, "rows", fresh=True, when="depthwise"),
            Step("k_pitch", "columns", when="depthwise"),
            Step("element", "channels", more=True, when="depthwise"),
            when="weights",
        ),
        *_place("table", Step("record", "out_channels", more=True, fresh=True), when="scales"),
        *_place("addend", *_pixels("addend", "result", "out_channels", "out_width", "out_height"), when="adds"),
        # The second operand may be Y itself.
        *(
            step
            for suffix in ("", "_pitch0", "_pitch1", "_pitch2")
            for step in (
                Step(f"y{suffix}", more=True, fresh=True, when="adds"),
                Step(f"addend{suffix}", when="adds", keep="other"),
            )
        ),
    )


class JobChecker(wiring.Component):
    """Finds the first rule that a job breaks. Spans are computed exactly, one bit of a product a cycle.

    It keeps the spans of Y and of the barriers of the last legal job, and reports whether the next job reads any of
    these bytes as X or K.

    In a stopped core every job whose check ends is refused, whatever rules it breaks.

    Latency from ``i`` to ``o``: at most ``most_cycles``, and less than half of that for usual sizes. One job at a time.

    Parameters
    ----------
    params : ConvUnitParams
    cores : int
        Cores of the cluster that the engine is in.
    """

    def __init__(self, params, cores=1):
        self._params, self._cores = params, cores
        self.calculator = Calculator(_BITS, _steps())
        self.rules = JobRules(params)
        self.ends = Signal()  # all spans are known, and the last rules are checked
        super().__init__(
            {
                # Packed jobs. A job is accepted in the cycle after ``o`` has been; ``o`` depends on it until then.
                "i": In(stream.Signature(JOB.bits)),
                "o": Out(stream.Signature(CheckedJobLayout())),
                **({"stopped": In(1)} if cores > 1 else {}),
            }
        )

    @property
    def most_cycles(self):
        """The maximum latency."""
        return self.calculator.most_cycles + self.rules.span_rules + 3

    def elaborate(self, platform):
        m = Module()
        m.submodules.calculator = calculator = self.calculator
        m.submodules.rules = rules = self.rules
        job = Signal(packed_layout(JOB))
        m.d.comb += [
            job.eq(self.i.payload),
            rules.job.eq(job),
            self.o.payload.word.eq(self.i.payload),
            self.o.payload.code.eq(rules.code),
            self.o.payload.field.eq(rules.field),
        ]
        if self._cores > 1:
            stopped = Signal()
            with m.If(self.ends):
                m.d.sync += stopped.eq(self.stopped)
            with m.If(stopped):
                m.d.comb += [self.o.payload.code.eq(ConvError.STOPPED), self.o.payload.field.eq(0)]
        accepted, apart_known = Signal(), Signal()
        with m.If(calculator.ended & (calculator.keep == calculator.keeps["apart"])):
            m.d.sync += apart_known.eq(1)
        with m.If(calculator.start):
            m.d.sync += apart_known.eq(0)
        kind = JobKind(self._params, job)
        self._connect(m, job, kind)
        begins = Signal()
        with m.FSM():
            with m.State("Wait"):
                m.d.comb += [begins.eq(self.i.valid), calculator.start.eq(begins), rules.start.eq(begins)]
                with m.If(begins):
                    m.next = "Calculate"
            with m.State("Calculate"):
                # Meanwhile the rules that need no spans are checked, as soon as ``apart`` is known.
                m.d.comb += rules.advance.eq(apart_known & ~rules.spans & ~rules.done)
                with m.If(~calculator.busy):
                    m.next = "Check"
            with m.State("Check"):
                m.d.comb += [self.ends.eq(1), rules.advance.eq(1)]
                with m.If(rules.done):
                    m.next = "Offer"
            with m.State("Offer"):
                m.d.comb += self.o.valid.eq(1)
                with m.If(self.o.ready):
                    m.d.comb += accepted.eq(self.o.payload.code == ConvError.NONE)
                    m.next = "Accept"
            with m.State("Accept"):
                m.d.comb += self.i.ready.eq(1)
                m.next = "Wait"
        end = self._compare(m, begins, rules.errors)
        if self._params.conv.function_table:
            self._place_function(m, job, kind, end)
        self._follow(m, job, kind, begins, accepted, end)
        return m

    def _connect(self, m, job, kind):
        """Connects the terms, counts and conditions of the steps."""
        self.calculator.drive(
            m,
            job,
            element=1 << kind.wide,
            result=1 << kind.result_log2,
            record=CHANNEL_BYTES,  # a barrier has the same size
            columns=job.kernel[0],
            rows=job.kernel[1],
            early=kind.early,
            convolution=kind.convolution,
            depthwise=kind.depthwise,
            weights=kind.weights,
            scales=kind.table,
            adds=kind.add,
        )

    def _compare(self, m, begins, errors):
        """Compares sums with terms, and keeps the errors of the job. Returns the end of Y."""
        calculator, address = self.calculator, self._params.smem.addr_width
        keep, total = calculator.keep, calculator.sum
        known, differs_from_y = Signal.like(errors), Signal()  # the second operand is not Y
        end, before = Signal(address + 1), Signal()  # the end of Y; the tensor begins before it
        below, beyond, differs = Signal(), Signal(), Signal()
        m.d.comb += [
            below.eq((calculator.term < total) | calculator.over),
            differs.eq((calculator.term != total) | calculator.over),
            beyond.eq(calculator.over | total[address + 1 :].any() | (total[address] & total[:address].any())),
            errors.eq(known),
            errors.overlap.addend.eq(known.overlap.addend & differs_from_y),
        ]
        with m.If(begins):
            m.d.sync += [known.eq(0), differs_from_y.eq(0)]
        with m.If(calculator.begun), m.Switch(keep):
            with m.Case(calculator.keeps["apart"]):
                m.d.sync += known.apart.eq(differs)
            with m.Case(calculator.keeps["pitch"]), m.If(calculator.count.any() & below):
                m.d.sync += known.pitch.eq(1)
            with m.Case(calculator.keeps["address"]):
                m.d.sync += before.eq(calculator.term[: address + 1] < end)
            with m.Case(calculator.keeps["other"]), m.If(differs):
                m.d.sync += differs_from_y.eq(1)
            for name in ("barrier", "x", "k", "table", "addend"):
                with m.Case(calculator.keeps[name]):
                    m.d.sync += [known.outside[name].eq(beyond), known.overlap[name].eq(before & below)]
        with m.If(calculator.ended & (keep == calculator.keeps["made"])):
            m.d.sync += [end.eq(total), known.outside.y.eq(beyond)]
        return end

    def _place_function(self, m, job, kind, end):
        """The rules for the LUT, whose span is constant: they take no steps, so that a check takes no longer.

        They hold if it is aligned, which is checked before.
        """
        errors, address = self.rules.errors, self._params.smem.addr_width
        first, piece, size = job.function_table, exact_log2(FUNCTION_ALIGNMENT), exact_log2(FUNCTION_BYTES)
        outside = first[address:].any() | (first[size:address].all() & first[:size].any())
        pieces = first[piece:address]
        overlap = (pieces < (end + FUNCTION_ALIGNMENT - 1) >> piece) & (
            job.y[piece:address] < pieces + (FUNCTION_BYTES >> piece)
        )
        m.d.comb += [
            errors.outside.function_table.eq(kind.function & outside),
            errors.overlap.function_table.eq(kind.function & overlap),
        ]

    def _follow(self, m, job, kind, begins, accepted, end):
        """Keeps the spans that an accepted job writes, and compares those of X and K of the next job with them."""
        calculator, address = self.calculator, self._params.smem.addr_width
        starts = [Signal(address, name=f"{name}_start") for name in ("y", "barrier")]
        ends = [Signal(address + 1, name=f"{name}_end") for name in ("y", "barrier")]  # 0: nothing is written
        with m.If(accepted):
            m.d.sync += [starts[0].eq(job.y), starts[1].eq(job.barrier), ends[0].eq(end)]
            size = Mux(kind.early, 2 * CHANNEL_BYTES, CHANNEL_BYTES)
            m.d.sync += ends[1].eq(Mux(job.signal, job.barrier[:address] + size, 0))
        before, after = Signal(2), Signal(2)  # X or K begins before the end of a span, and ends after its start
        m.d.comb += after.eq(Cat(start < calculator.sum for start in starts))
        with m.If(begins):
            m.d.sync += [self.o.payload.x_follows.eq(0), self.o.payload.k_follows.eq(0)]
        with m.If(calculator.begun), m.Switch(calculator.keep):
            with m.Case(calculator.keeps["address"]):
                m.d.sync += before.eq(Cat(calculator.term[: address + 1] < end for end in ends))
            for name in ("x", "k"):
                with m.Case(calculator.keeps[name]):
                    m.d.sync += self.o.payload[f"{name}_follows"].eq((before & after).any())
