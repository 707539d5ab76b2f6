"""Old words and sources become new words."""

from amaranth.hdl import Cat, Module, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..bus.writes import WriteWordLayout
from .integer import OperationLayout
from .lane import ReduceLane

__all__ = ["Combiner", "OperandsLayout"]

_LANE_BYTES = 16


class OperandsLayout(data.StructLayout):
    """What a new bus word is made of."""

    def __init__(self, bus_bytes):
        super().__init__(
            {
                "old": unsigned(8 * bus_bytes),  # what memory holds
                "word": WriteWordLayout(bus_bytes),  # what is to be combined with it
                "reduction": unsigned(4),  # golden.spec.Reduction
                "element": unsigned(4),  # golden.spec.Element
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
