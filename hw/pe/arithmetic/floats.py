"""Floating point of all threads of the processing engine (docs/pe.md, "Arithmetic")."""

from amaranth.hdl import Module
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ...lib.component import shared_module
from ...lib.logic import delay
from .float_control import FloatDecoder
from .float_lane import FloatLane

__all__ = ["FloatRow"]


class FloatRow(wiring.Component):
    """A :class:`FloatLane` for each thread, and what they share: all compute the same function.

    Latency: ``LATENCY`` cycles for all functions. Throughput: one a cycle; nothing stalls it.

    Parameters
    ----------
    threads : int
    """

    LATENCY = FloatLane.LATENCY

    def __init__(self, threads):
        words = data.ArrayLayout(32, threads)
        super().__init__(
            {
                "function": In(8),  # Function of unit f32, not FDIV and FSQRT; the results of others are undefined
                "part": In(1),  # of FH, FBF, HF, BFF: the half
                "a": In(words),
                "b": In(words),
                "c": In(words),
                "o": Out(words),
                "holds": Out(threads),  # values of a comparison, together with ``o``
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.decoder = decoder = FloatDecoder()
        m.d.comb += [decoder.function.eq(self.function), decoder.part.eq(self.part)]
        controls = [decoder.o]
        for stage in range(1, self.LATENCY):
            controls.append(delay(m, controls[-1], 1, name=f"control_{stage}"))
        for thread in range(len(self.holds)):
            lane = FloatLane()
            m.submodules[f"lane_{thread}"] = shared_module(platform, lane)
            m.d.comb += [
                *(getattr(lane, name).eq(getattr(self, name)[thread]) for name in "abc"),
                *(port.eq(control) for port, control in zip(lane.controls, controls, strict=True)),
                self.o[thread].eq(lane.o),
                self.holds[thread].eq(lane.holds),
            ]
        return m
