"""The check of a job: the rules of docs/conv.md, "Checks"."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.spec.conv import CHANNEL_BYTES, JOB, ConvError

from ...lib.layouts import packed_layout
from .calculator import SUM, Calculator, Step
from .rules import CheckedJobLayout, JobKind, JobRules

__all__ = ["JobChecker"]

#: Bits of addresses and pitches: what is larger is larger than all of them.
_BITS = 32


def _place(name, *steps, when=None):
    """The steps that tell where a tensor of a span ends: ``steps`` make its span."""
    return (
        *(step._replace(when=step.when or when) for step in steps),
        Step(name, more=True, when=when, keep="address"),
        Step("y", when=when, keep=name),
    )


def _pixels(name, item, channels, columns, rows):
    """The steps that make the span of a map of features."""
    return (
        Step(item, channels, more=True, fresh=True),
        Step(f"{name}_pitch0", columns),
        Step(f"{name}_pitch1", rows),
        Step(f"{name}_pitch2", "batch"),
    )


def _steps():
    """All of the arithmetic. Counts are stored minus one, as pitches are multiplied by them."""
    results, *outer = _pixels("y", "result", "out_channels", "out_width", "out_height")
    return (
        # Whether pixels of X adjoin.
        Step("element", "channels", more=True, fresh=True),
        Step("x_pitch0", keep="apart"),
        # Y comes first, for what is read must not overlap with it.
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
        # The second operand may be Y, if it is so wholly.
        *(
            step
            for made, given in (("y", "addend"), *((f"y_pitch{n}", f"addend_pitch{n}") for n in range(3)))
            for step in (Step(made, more=True, fresh=True, when="adds"), Step(given, when="adds", keep="other"))
        ),
    )


class JobChecker(wiring.Component):
    """Finds the first rule that a job breaks. Spans are worked out exactly, one bit of a product a cycle.

    Of the last job that broke none it keeps what that writes: the span of Y, and of its barriers. So it says of the
    next one whether it reads any of that as X or K.

    In a core that is stopped every job is refused whose check ends then, whatever rules it breaks.

    Latency, from the cycle in which a job is offered to the one in which it is offered further: at most
    ``most_cycles``, and less than half of that for usual sizes. One job at a time.

    Parameters
    ----------
    params : ConvUnitParams
    cores : int
        Of the cluster that it is in.

    Members
    -------
    i : In(stream of JOB.bits)
        Packed jobs. One is taken in the cycle after ``o`` has been: there is no other copy of it here. ``ready`` comes
        from a register.
    o : Out(stream of CheckedJobLayout())
        ``valid``, code, field and flags come from registers; ``word`` is that of ``i``.
    stopped : In(1) if cores > 1
        The core is stopped.
    """

    def __init__(self, params, cores=1):
        self.params, self._cores = params, cores
        self.calculator = Calculator(_BITS, _steps())
        self.rules = JobRules(params)
        self.ends = Signal()  # all is known; only the last rules are looked at
        super().__init__(
            {"i": In(stream.Signature(JOB.bits)), "o": Out(stream.Signature(CheckedJobLayout()))}
            | ({"stopped": In(1)} if cores > 1 else {})
        )

    @property
    def most_cycles(self):
        """The longest latency."""
        return self.calculator.most_cycles + JobRules.SPANS + 3

    def elaborate(self, platform):
        m = Module()
        m.submodules.calculator = calculator = self.calculator
        m.submodules.rules = rules = self.rules
        job = Signal(packed_layout(JOB))
        m.d.comb += [
            job.eq(self.i.payload),
            rules.job.eq(job),
            self.o.p.word.eq(self.i.payload),
            self.o.p.code.eq(rules.code),
            self.o.p.field.eq(rules.field),
        ]
        if self._cores > 1:
            stopped = Signal()
            with m.If(self.ends):
                m.d.sync += stopped.eq(self.stopped)
            with m.If(stopped):
                m.d.comb += [self.o.p.code.eq(ConvError.STOPPED), self.o.p.field.eq(0)]
        accepted, known_apart = Signal(), Signal()
        with m.If(calculator.ended & (calculator.keep == calculator.keeps["apart"])):
            m.d.sync += known_apart.eq(1)
        with m.If(calculator.start):
            m.d.sync += known_apart.eq(0)
        kind = JobKind(self.params, job)
        self._connect(m, job, kind)
        begins = Signal()
        with m.FSM():
            with m.State("Wait"):
                m.d.comb += [begins.eq(self.i.valid), calculator.start.eq(begins), rules.start.eq(begins)]
                with m.If(begins):
                    m.next = "Calculate"
            with m.State("Calculate"):
                # Meanwhile the rules that need no spans, from when it is known whether pixels of X adjoin.
                m.d.comb += rules.looking.eq(known_apart & ~rules.spans & ~rules.done)
                with m.If(~calculator.busy):
                    m.next = "Look"
            with m.State("Look"):
                m.d.comb += [self.ends.eq(1), rules.looking.eq(1)]
                with m.If(rules.done):
                    m.next = "Offer"
            with m.State("Offer"):
                m.d.comb += self.o.valid.eq(1)
                with m.If(self.o.ready):
                    m.d.comb += accepted.eq(self.o.p.code == ConvError.NONE)
                    m.next = "Take"
            with m.State("Take"):
                m.d.comb += self.i.ready.eq(1)
                m.next = "Wait"
        end = self._find(m, begins, rules.found)
        self._follow(m, job, kind, begins, accepted, end)
        return m

    def _connect(self, m, job, kind):
        """What the steps name."""
        self.calculator.drive(
            m,
            job,
            element=1 << kind.wide,
            result=1 << kind.result_log2,
            record=CHANNEL_BYTES,  # those of a barrier are as many
            columns=job.kernel[0],
            rows=job.kernel[1],
            early=kind.early,
            convolution=kind.convolution,
            depthwise=kind.depthwise,
            weights=kind.weights,
            scales=kind.table,
            adds=kind.add,
        )

    def _find(self, m, begins, found):
        """Keeps what the steps find, from the job's begin on."""
        calculator, address = self.calculator, self.params.smem.addr_width
        keep, total = calculator.keep, calculator.sum
        known, other = Signal.like(found), Signal()  # the second operand is not Y
        end, before = Signal(address + 1), Signal()  # of Y; a tensor begins before that
        below, beyond, differs = Signal(), Signal(), Signal()
        m.d.comb += [
            below.eq((calculator.term < total) | calculator.over),
            differs.eq((calculator.term != total) | calculator.over),
            beyond.eq(calculator.over | total[address + 1 :].any() | (total[address] & total[:address].any())),
            found.eq(known),
            found.overlap.addend.eq(known.overlap.addend & other),
        ]
        with m.If(begins):
            m.d.sync += [known.eq(0), other.eq(0)]
        with m.If(calculator.begun), m.Switch(keep):
            with m.Case(calculator.keeps["apart"]):
                m.d.sync += known.apart.eq(differs)
            with m.Case(calculator.keeps["pitch"]), m.If(calculator.count.any() & below):
                m.d.sync += known.pitch.eq(1)
            with m.Case(calculator.keeps["address"]):
                m.d.sync += before.eq(calculator.term[: address + 1] < end)
            with m.Case(calculator.keeps["other"]), m.If(differs):
                m.d.sync += other.eq(1)
            for name in ("barrier", "x", "k", "table", "addend"):
                with m.Case(calculator.keeps[name]):
                    m.d.sync += [known.outside[name].eq(beyond), known.overlap[name].eq(before & below)]
        with m.If(calculator.ended & (keep == calculator.keeps["made"])):
            m.d.sync += [end.eq(total), known.outside.y.eq(beyond)]
        return end

    def _follow(self, m, job, kind, begins, accepted, end):
        """Keeps what an accepted job writes, up to ``end`` of Y, and looks for it in X and K of the next one."""
        calculator, address = self.calculator, self.params.smem.addr_width
        starts = [Signal(address, name=f"{name}_start") for name in ("y", "barrier")]
        ends = [Signal(address + 1, name=f"{name}_end") for name in ("y", "barrier")]  # 0: nothing is written
        with m.If(accepted):
            m.d.sync += [starts[0].eq(job.y), starts[1].eq(job.barrier), ends[0].eq(end)]
            size = Mux(kind.early, 2 * CHANNEL_BYTES, CHANNEL_BYTES)
            m.d.sync += ends[1].eq(Mux(job.signal, job.barrier[:address] + size, 0))
        before, behind = Signal(2), Signal(2)
        m.d.comb += behind.eq(Cat(start < calculator.sum for start in starts))
        with m.If(begins):
            m.d.sync += [self.o.p.x_follows.eq(0), self.o.p.k_follows.eq(0)]
        with m.If(calculator.begun), m.Switch(calculator.keep):
            with m.Case(calculator.keeps["address"]):
                m.d.sync += before.eq(Cat(calculator.term[: address + 1] < stop for stop in ends))
            for name in ("x", "k"):
                with m.Case(calculator.keeps[name]):
                    m.d.sync += self.o.p[f"{name}_follows"].eq((before & behind).any())
