"""Post-processing: accumulators go in, results come out."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.spec.conv import ConvOutput

from ...lib.component import alike
from ...lib.logic import delay
from ...lib.stream import Queue
from ..layouts import AccumulatorsLayout, PostJobLayout, ResultsLayout
from .residual import ResidualAdder
from .rounding import HalfRounder, Requantiser

__all__ = ["PostProcessor"]

#: Results under way and waiting: more than the cycles of the longest way, so that the rate is full.
_DEPTH = 32


class PostProcessor(wiring.Component):
    """Lanes of post-processing side by side (docs/conv.md, "Types" and "Requantisation").

    An accumulator already has its bias, with which it began. Lanes never stall: each transfer takes one of 32 places in
    the queue behind them, and ``ready`` waits for a free one. A job's results all take the same way, so that the order
    stays. Masks do not go through the lanes, but through a queue of their own.

    Latency, from an input to its output while nothing stalls: 1 cycle for ``RAW`` and ``ELEMENT``, ``HALF`` for ``F16``
    and ``BF16``, ``QUANTISED`` for ``U8`` and ``S8``, ``ADDED`` with ``add``. Throughput: one transfer a cycle.

    Parameters
    ----------
    params : ConvParams
        There are lanes for integers and for floats as its ``types`` ask for. Without them ``output`` has to fit.

    Members
    -------
    job : In(PostJobLayout)
        A checked job: to hold while ``busy``, and while ``i.valid``.
    i : In(stream of AccumulatorsLayout)
        ``ready`` depends on registers only.
    o : Out(stream of ResultsLayout)
        Registered. The same masks in the same order.
    busy : Out(1)
        Results are under way, or wait. From a register.
    """

    HALF = HalfRounder.LATENCY + 1
    QUANTISED = Requantiser.LATENCY + 1
    ADDED = QUANTISED + ResidualAdder.LATENCY

    def __init__(self, params):
        self._params = params
        self._integers = not {"i8", "i16"}.isdisjoint(params.types)
        self._floats = not {"f16", "bf16"}.isdisjoint(params.types)
        self.results = Queue(data.ArrayLayout(32, params.results), _DEPTH)
        self.masks = Queue(params.results, _DEPTH)
        self.places = Signal(range(_DEPTH + 1))  # that are taken
        #: Element n: a transfer was accepted n + 1 cycles ago, and is still in the lanes.
        self.stages = [Signal(name=f"stage{n + 1}") for n in range(self._depth)]
        super().__init__(
            {
                "job": In(PostJobLayout()),
                "i": In(stream.Signature(AccumulatorsLayout(params))),
                "o": Out(stream.Signature(ResultsLayout(params))),
                "busy": Out(1),
            }
        )

    @property
    def _depth(self):
        """Cycles of the longest way through the lanes."""
        return (self.ADDED if self._integers else self.HALF) - 1

    def elaborate(self, platform):
        m = Module()
        m.submodules.results, m.submodules.masks = self.results, self.masks
        taken, gone = Signal(), Signal()
        m.d.comb += [
            self.i.ready.eq(~self.places[-1]),
            taken.eq(self.i.valid & self.i.ready),
            gone.eq(self.o.valid & self.o.ready),
            self.busy.eq(self.places != 0),
            self.masks.i.valid.eq(taken),
            self.masks.i.payload.eq(self.i.payload.mask),
            self.masks.o.ready.eq(gone),
            # A mask is there before its results.
            self.o.valid.eq(self.results.o.valid),
            self.o.payload.data.eq(self.results.o.payload),
            self.o.payload.mask.eq(self.masks.o.payload),
            self.results.o.ready.eq(self.o.ready),
        ]
        m.d.sync += self.places.eq(self.places + taken - gone)
        leaves = self._ways(m)
        self._pass(m, taken, leaves)
        for number in range(self._params.results):
            self._lane(m, platform, number, leaves)
        return m

    def _ways(self, m):
        """After how many cycles results leave the lanes: whether it is so many, by their number."""
        output, leaves = self.job.output, {}
        if self._integers:
            quantised = (output == ConvOutput.U8) | (output == ConvOutput.S8)
            leaves[self.QUANTISED - 1] = quantised & ~self.job.add
            leaves[self.ADDED - 1] = quantised & self.job.add
        if self._floats:
            leaves[self.HALF - 1] = (output == ConvOutput.F16) | (output == ConvOutput.BF16)
        signals = {cycles: Signal(name=f"leaves{cycles}") for cycles in leaves}
        m.d.comb += [signals[cycles].eq(value) for cycles, value in leaves.items()]
        return signals

    def _pass(self, m, taken, leaves):
        """Transfers go from stage to stage until they leave: the next job may leave elsewhere."""
        direct = ~Cat(leaves.values()).any()
        m.d.sync += self.stages[0].eq(taken & ~direct)
        for cycles, (before, after) in enumerate(zip(self.stages, self.stages[1:], strict=False), 1):
            m.d.sync += after.eq(before & ~leaves[cycles] if cycles in leaves else before)
        arrived = [self.stages[cycles - 1] & here for cycles, here in leaves.items()]
        m.d.comb += self.results.i.valid.eq(Cat(taken & direct, arrived).any())

    def _lane(self, m, platform, number, leaves):
        """Whatever way is not taken computes something too, which nobody looks at."""
        job, payload = self.job, self.i.payload
        result = payload.acc[number]
        if self._integers:
            requantiser, adder = Requantiser(), ResidualAdder()
            m.submodules[f"requantiser{number}"] = alike(platform, requantiser)
            m.submodules[f"adder{number}"] = alike(platform, adder)
            is_signed = job.output == ConvOutput.S8
            m.d.comb += [
                requantiser.acc.eq(payload.acc[number]),
                requantiser.scale.eq(payload.scale[number]),
                requantiser.is_signed.eq(is_signed),
                requantiser.zero.eq(job.y_zero),
                requantiser.minimum.eq(job.minimum),
                requantiser.maximum.eq(job.maximum),
                adder.first.eq(requantiser.o),
                adder.second.eq(
                    delay(m, payload.addend[number], Requantiser.LATENCY - ResidualAdder.FIRST, name=f"addend{number}")
                ),
                adder.is_signed.eq(is_signed),
                adder.first_ratio.eq(job.ratio[0]),
                adder.second_ratio.eq(job.ratio[1]),
                adder.offset.eq(job.offset),
                adder.minimum.eq(job.add_minimum),
                adder.maximum.eq(job.add_maximum),
            ]
            result = Mux(leaves[self.QUANTISED - 1], requantiser.o, Mux(leaves[self.ADDED - 1], adder.o, result))
        if self._floats:
            half = HalfRounder()
            m.submodules[f"half{number}"] = alike(platform, half)
            m.d.comb += [half.i.eq(payload.acc[number]), half.brain.eq(job.output == ConvOutput.BF16)]
            result = Mux(leaves[self.HALF - 1], half.o, result)
        m.d.comb += self.results.i.payload[number].eq(result)
