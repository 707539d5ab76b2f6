"""Post-processing of accumulators to results."""

from itertools import pairwise

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from tilewright.spec.conv import ConvOutput

from ...lib.component import shared_module
from ...lib.logic import delay
from ...lib.stream import Queue
from ..layouts import AccumulatorsLayout, PostJobLayout
from .function import FunctionLookup, FunctionRowLayout
from .residual import ResidualAdder
from .rounding import HalfRounder, Requantiser

__all__ = ["PostProcessor"]

#: Results under way and waiting: more than the cycles of the longest way, so that the rate is full.
_DEPTH = 32


class PostProcessor(wiring.Component):
    """Parallel lanes of post-processing (docs/conv.md, "Types" and "Requantisation").

    Accumulators include their biases. The lanes never stall: each transfer reserves one of 32 entries of the queue
    after them, and ``i.ready`` is high while one is free. All results of a job have the same latency, so that they stay
    in order. A LUT of a function follows the queue, because its results may have to wait for it.

    Latency, from an input to its output without stalls: 1 cycle for ``RAW`` and ``ELEMENT``, ``HALF`` for ``F16`` and
    ``BF16``, ``QUANTISED`` for ``U8`` and ``S8``, ``ADDED`` with ``add``; with a function one more. Throughput: one
    transfer a cycle.

    Parameters
    ----------
    params : ConvParams
        ``types`` decides whether there are lanes for integers and for floats. Jobs must not use missing lanes.
    """

    HALF = HalfRounder.LATENCY + 1
    QUANTISED = Requantiser.LATENCY + 1
    ADDED = QUANTISED + ResidualAdder.LATENCY

    def __init__(self, params):
        self._params = params
        self._integers = not {"i8", "i16"}.isdisjoint(params.types)
        self._floats = not {"f16", "bf16"}.isdisjoint(params.types)
        self.results = Queue(data.ArrayLayout(32, params.results), _DEPTH)
        self.places = Signal(range(_DEPTH + 1))  # reserved entries
        #: Element n: a transfer was accepted n + 1 cycles ago, and is still in the lanes.
        self.stages = [Signal(name=f"stage{n + 1}") for n in range(self._depth)]
        self.lookup = FunctionLookup(params.results) if params.functions else None
        # The start of a job, and the rows of its LUT, as for ``FunctionLookup``.
        functions = {"start": In(1), "function_row": In(FunctionRowLayout())} if params.functions else {}
        super().__init__(
            functions
            | {
                "job": In(PostJobLayout()),  # of a checked job; constant while ``busy`` or ``i.valid``
                "i": In(stream.Signature(AccumulatorsLayout(params))),
                # Results, each in the low bits of 32, higher bits undefined; with a function these may change.
                "o": Out(stream.Signature(data.ArrayLayout(32, params.results))),
                "busy": Out(1),  # results are under way or wait
            }
        )

    @property
    def _depth(self):
        """The longest latency of the lanes."""
        return (self.ADDED if self._integers else self.HALF) - 1

    def elaborate(self, platform):
        m = Module()
        m.submodules.results = self.results
        accepted = Signal()
        m.d.comb += [
            self.i.ready.eq(~self.places[-1]),
            accepted.eq(self.i.valid & self.i.ready),
            self.busy.eq(self.places != 0),
        ]
        if self.lookup is None:
            connect(m, self.results.o, flipped(self.o))
        else:
            m.submodules.lookup = lookup = self.lookup
            results = self.results.o
            m.d.comb += [
                lookup.i.valid.eq(results.valid),
                results.ready.eq(lookup.i.ready),
                self.o.valid.eq(lookup.o.valid),
                lookup.o.ready.eq(self.o.ready),
                *(byte.eq(result[:8]) for byte, result in zip(lookup.i.payload, results.payload, strict=True)),
                *(
                    o.eq(Cat(byte, result[8:]))
                    for o, byte, result in zip(self.o.payload, lookup.o.payload, results.payload, strict=True)
                ),
                lookup.start.eq(self.start),
                lookup.row.eq(self.function_row),
                lookup.function.eq(self.job.function),
            ]
        m.d.sync += self.places.eq(self.places + accepted - (self.o.valid & self.o.ready))
        leaves = self._exits(m)
        self._pass(m, accepted, leaves)
        for number in range(self._params.results):
            self._lane(m, platform, number, leaves)
        return m

    def _exits(self, m):
        """Flags of the job by latency: whether its results leave the lanes after that number of cycles."""
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

    def _pass(self, m, accepted, leaves):
        """Moves transfers from stage to stage until they leave; those of the next job may leave at another stage."""
        direct = ~Cat(leaves.values()).any()
        m.d.sync += self.stages[0].eq(accepted & ~direct)
        for cycles, (stage, following) in enumerate(pairwise(self.stages), 1):
            m.d.sync += following.eq(stage & ~leaves[cycles] if cycles in leaves else stage)
        exits = [self.stages[cycles - 1] & exits for cycles, exits in leaves.items()]
        m.d.comb += self.results.i.valid.eq(Cat(accepted & direct, exits).any())

    def _lane(self, m, platform, number, leaves):
        """One lane; only the result with the job's latency is used."""
        job, payload = self.job, self.i.payload
        result = payload.acc[number]
        if self._integers:
            requantiser, adder = Requantiser(zero_first=self._params.zero_first), ResidualAdder()
            m.submodules[f"requantiser{number}"] = shared_module(platform, requantiser, self._params.zero_first)
            m.submodules[f"adder{number}"] = shared_module(platform, adder)
            is_signed = job.output == ConvOutput.S8
            if self._params.zero_first:
                m.d.comb += requantiser.zero_first.eq(job.zero_first)
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
            m.submodules[f"half{number}"] = shared_module(platform, half)
            m.d.comb += [half.i.eq(payload.acc[number]), half.brain.eq(job.output == ConvOutput.BF16)]
            result = Mux(leaves[self.HALF - 1], half.o, result)
        m.d.comb += self.results.i.payload[number].eq(result)
