"""Biases of a pass, where sums of floats begin with them."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from tilewright.golden.spec.conv.params import CHANNELS_AT_ONCE

from ..layouts import BiasesLayout

__all__ = ["Biases", "bias_columns"]


def bias_columns(params):
    """Biases that are read at once: of all slaves, or of all elements of a row."""
    return max(params.conv.slaves, params.conv.row_bytes // 2)


class Biases(wiring.Component):
    """Holds the biases of two passes, as sums of floats begin: in a convolution of each of four channels those of all
    slaves; in lane-private mode those of all elements of a row, the same for each place.

    Written in one cycle, readable in the next. A read a cycle.

    Parameters
    ----------
    params : ConvUnitParams

    Members
    -------
    lanes : In(1)
        Lane-private mode. This and the next one are constant while biases come.
    granularity : In(range(7))
    i : In(BiasesLayout(params))
    half : In(1)
        Of passes 0, 2, … or 1, 3, ….
    channel : In(range(4))
        t; 0 in lane-private mode.
    o : Out(array of bias_columns(params) 32)
        Combinational from these two: number s is that of slave s, or number i that of element i.
    """

    def __init__(self, params):
        self._params = params
        super().__init__(
            {
                "lanes": In(1),
                "granularity": In(range(7)),
                "i": In(BiasesLayout(params)),
                "half": In(1),
                "channel": In(range(CHANNELS_AT_ONCE)),
                "o": Out(data.ArrayLayout(32, bias_columns(params))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        i, columns, slaves = self.i, bias_columns(self._params), self._params.conv.slaves
        m.submodules.memory = memory = Memory(shape=data.ArrayLayout(32, columns), depth=2 * CHANNELS_AT_ONCE, init=[])
        write, read = memory.write_port(granularity=1), memory.read_port(domain="comb")
        many = len(i.entries)
        # Channels side by side in the columns, of which an answer has ``many``, from a multiple of it on.
        beside = Signal(range(columns))
        m.d.comb += [
            beside.eq(Mux(self.lanes, (1 << self.granularity >> 1) - 1, slaves - 1) & ~(many - 1)),
            write.addr.eq(i.half << 2 | Mux(self.lanes, 0, i.channel >> exact_log2(slaves))),
            read.addr.eq(self.half << 2 | self.channel),
            self.o.eq(read.data),
        ]
        for column in range(columns):
            m.d.comb += [
                write.data[column].eq(i.entries[column % many]),
                write.en[column].eq(i.valid & (((i.channel ^ column) & beside) == 0)),
            ]
        return m
