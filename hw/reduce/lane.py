"""A lane of sixteen bytes: every reduction of every element type, or of every integer."""

from amaranth.hdl import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.spec import Reduction

from ..bus.bursts import WriteWordLayout
from .floats import FloatSums, is_summed
from .integer import IntegerReducer, OperationLayout, reduce_integers

__all__ = ["Combiner", "OperandsLayout", "ReduceLane"]


class ReduceLane(wiring.Component):
    """Combines what lies at a destination with what comes, sixteen bytes at once.

    Floats are added by :class:`FloatSums`. All other work is done on eight bytes at a time.

    Latency: ``latency`` enabled cycles, whatever the operation: 6 with floats, otherwise 2. Throughput: sixteen bytes
    an enabled cycle.

    Specification: docs/tmau.md, "Stores and reductions".

    Parameters
    ----------
    floats : bool
        Elements of floats come.
    decoded : bool
        As of :class:`IntegerReducer`.

    Members
    -------
    old, source : In(128)
        What lies there, and what comes.
    reduction : In(4)
        ``spec.Reduction``. With NONE the result is the source.
    element : In(4)
        ``spec.Element``. For a type that the reduction does not have, the result has no meaning.
    operation : In(OperationLayout()) if decoded
        The same two, decoded.
    enable : In(1)
        Advances the pipeline; without it, every register holds.
    o : Out(128)
    """

    def __init__(self, floats, decoded=False):
        self._floats, self._decoded = floats, decoded
        self.latency = FloatSums.LATENCY if floats else IntegerReducer.LATENCY
        super().__init__(
            {
                "old": In(128),
                "source": In(128),
                "reduction": In(4),
                "element": In(4),
                **({"operation": In(OperationLayout())} if decoded else {}),
                "enable": In(1),
                "o": Out(128),
            }
        )

    def elaborate(self, platform):
        m = Module()
        names = ("old", "source", "enable", *(("operation",) if self._decoded else ("reduction", "element")))
        operands = {name: getattr(self, name) for name in names}
        others = reduce_integers(m, "integer", self._floats, decoded=self._decoded, **operands)
        if self._floats:
            self._join_floats(m, others)
        else:
            m.d.comb += self.o.eq(others)
        return m

    def _join_floats(self, m, others):
        """The output: sums of floats, or what the rest of the lane made ready earlier."""
        m.submodules.sums = sums = FloatSums()
        chosen = self._delayed(m, (self.reduction == Reduction.ADD) & is_summed(self.element), self.latency)
        others = self._delayed(m, others, self.latency - IntegerReducer.LATENCY)
        m.d.comb += [
            *(getattr(sums, name).eq(getattr(self, name)) for name in ("old", "source", "element", "enable")),
            self.o.eq(Mux(chosen, sums.o, others)),
        ]

    def _delayed(self, m, value, cycles):
        """``value`` after as many enabled cycles."""
        for _ in range(cycles):
            later = Signal(len(value))
            with m.If(self.enable):
                m.d.sync += later.eq(value)
            value = later
        return value


_LANE_BYTES = 16


class OperandsLayout(data.StructLayout):
    """What a new bus word is made of."""

    def __init__(self, bus_bytes):
        super().__init__(
            {
                "old": unsigned(8 * bus_bytes),  # what memory holds
                "word": WriteWordLayout(bus_bytes),  # what is to be combined with it
                "reduction": unsigned(4),  # spec.Reduction
                "element": unsigned(4),  # spec.Element
                "operation": OperationLayout(),  # the same two, decoded
                "swallow": unsigned(1),  # no new word is to be made
            }
        )


class Combiner(wiring.Component):
    """A lane for each 16 bytes of the bus word, and beside them what tells where a word is.

    Latency: that of a lane. Throughput: one word a cycle. ``i.ready`` depends combinationally on ``o.ready``.

    Parameters
    ----------
    bus_bytes : int
        Bytes of a bus word: 16, 32 or 64.
    floats : bool
        As of :class:`ReduceLane`.

    Members
    -------
    i : In(stream of OperandsLayout)
    o : Out(stream of WriteWordLayout)
        Strobes are those of ``word``.
    busy : Out(1)
        A word is in here.
    """

    def __init__(self, bus_bytes, floats):
        self._bus_bytes = bus_bytes
        self.lanes = [ReduceLane(floats, decoded=True) for _ in range(bus_bytes // _LANE_BYTES)]
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
                lane.reduction.eq(operands.reduction),
                lane.element.eq(operands.element),
                lane.operation.eq(operands.operation),
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
        m.d.comb += [
            self.o.valid.eq(valid),
            self.o.payload.strobe.eq(strobe),
            self.busy.eq(Cat(stages).any()),
        ]
        return m
