"""A lane of sixteen bytes: every reduction of every element type, or of every integer; and a bus word of lanes."""

from amaranth.hdl import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.spec import Reduction

from ..bus.bursts import WriteWordLayout
from .floats import FloatSums, delayed, is_summed
from .integer import IntegerReducer, OperationLayout, reduce_integers

__all__ = ["Combiner", "OperandsLayout", "ReduceLane"]

_LANE_BYTES = 16


class ReduceLane(wiring.Component):
    """Combines sixteen bytes at a destination (``old``) with new ones (``source``).

    Floats are added by :class:`FloatSums`; IntegerReducers do all other work. With reduction NONE the result is the
    source; for an element type that the reduction does not have it is undefined.

    Latency: ``latency`` cycles with ``enable`` for all operations, 6 with floats, 2 without. Throughput: sixteen bytes
    a cycle with ``enable``.

    Specification: docs/tmau.md, "Stores and reductions".

    Parameters
    ----------
    floats : bool
        There are floats.
    """

    def __init__(self, floats):
        self._floats = floats
        self.latency = FloatSums.LATENCY if floats else IntegerReducer.LATENCY
        super().__init__(
            {
                "old": In(128),
                "source": In(128),
                "reduction": In(4),  # spec.Reduction
                "element": In(4),  # spec.Element
                "operation": In(OperationLayout()),  # both, decoded
                "enable": In(1),  # advances the pipeline
                "o": Out(128),
            }
        )

    def elaborate(self, platform):
        m = Module()
        operands = {name: getattr(self, name) for name in ("old", "source", "enable", "operation")}
        result = reduce_integers(m, "integer", self._floats, **operands)
        if self._floats:
            m.submodules.sums = sums = FloatSums()
            for name in ("old", "source", "element", "enable"):
                m.d.comb += getattr(sums, name).eq(getattr(self, name))
            is_sum = (self.reduction == Reduction.ADD) & is_summed(self.element)
            result = Mux(
                delayed(m, is_sum, self.latency, self.enable),
                sums.o,
                delayed(m, result, self.latency - IntegerReducer.LATENCY, self.enable),
            )
        m.d.comb += self.o.eq(result)
        return m


class OperandsLayout(data.StructLayout):
    """What a new bus word is made of."""

    def __init__(self, bus_bytes):
        super().__init__(
            {
                "old": unsigned(8 * bus_bytes),  # the contents of memory
                "word": WriteWordLayout(bus_bytes),  # what is combined with them
                "reduction": unsigned(4),  # spec.Reduction
                "element": unsigned(4),  # spec.Element
                "operation": OperationLayout(),  # both, decoded
                "swallow": unsigned(1),  # make no new word
            }
        )


class Combiner(wiring.Component):
    """A lane for each 16 bytes of a bus word; valid and strobes pass beside them.

    Latency: that of a lane. Throughput: one word a cycle. ``i.ready`` depends combinationally on ``o.ready``. ``busy``
    says that a word is in a lane.

    Parameters
    ----------
    bus_bytes : int
        Bytes of a bus word: 16, 32 or 64.
    floats : bool
        See :class:`ReduceLane`.
    """

    def __init__(self, bus_bytes, floats):
        self._bus_bytes = bus_bytes
        self.lanes = [ReduceLane(floats) for _ in range(bus_bytes // _LANE_BYTES)]
        self._latency = self.lanes[0].latency
        super().__init__(
            {
                "i": In(stream.Signature(OperandsLayout(bus_bytes))),
                "o": Out(stream.Signature(WriteWordLayout(bus_bytes))),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        operands = self.i.payload
        advance = Signal()
        m.d.comb += [advance.eq(~self.o.valid | self.o.ready), self.i.ready.eq(advance)]

        lane_bits = 8 * _LANE_BYTES
        for k, lane in enumerate(self.lanes):
            m.submodules[f"lane{k}"] = lane
            m.d.comb += [
                lane.old.eq(operands.old.word_select(k, lane_bits)),
                lane.source.eq(operands.word.data.word_select(k, lane_bits)),
                *(getattr(lane, name).eq(operands[name]) for name in ("reduction", "element", "operation")),
                lane.enable.eq(advance),
                self.o.payload.data.word_select(k, lane_bits).eq(lane.o),
            ]

        valid, strobe = self.i.valid & ~operands.swallow, operands.word.strobe
        stages = []
        for k in range(self._latency):
            stage_valid, stage_strobe = Signal(name=f"valid{k}"), Signal(self._bus_bytes, name=f"strobe{k}")
            with m.If(advance):
                m.d.sync += [stage_valid.eq(valid), stage_strobe.eq(strobe)]
            stages.append(stage_valid)
            valid, strobe = stage_valid, stage_strobe
        m.d.comb += [self.o.valid.eq(valid), self.o.payload.strobe.eq(strobe), self.busy.eq(Cat(stages).any())]
        return m
