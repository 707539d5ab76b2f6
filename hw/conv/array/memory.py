"""Memories of the array: rows of slaves, and biases."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from tilewright.spec.conv import CHANNELS_AT_ONCE

from ..layouts import BiasesLayout, WordWriteLayout

__all__ = ["Biases", "SlaveMemory", "bias_columns"]


class SlaveMemory(wiring.Component):
    """Holds rows of a slave: its weights in a convolution, its points of lines of X in lane-private mode.

    With ``params.conv.rotation`` the two halves of a row are read from words of their own. Latency 1; a write and a
    read a cycle.

    Parameters
    ----------
    params : ConvUnitParams
    """

    def __init__(self, params):
        self._params = params
        super().__init__(
            {
                "write": In(WordWriteLayout(params)),  # can be read in the next cycle
                "enable": In(1),
                "words": In(data.ArrayLayout(range(params.words), params.slave_parts)),  # one for each part of the row
                "row": Out(8 * params.conv.row_bytes),
            }
        )

    def elaborate(self, platform):
        m = Module()
        parts = self._params.slave_parts
        size = self._params.conv.row_bytes // parts
        for part in range(parts):
            m.submodules[f"part{part}"] = memory = Memory(shape=8 * size, depth=self._params.words, init=[])
            write, read = memory.write_port(granularity=8), memory.read_port()
            m.d.comb += [
                write.addr.eq(self.write.word),
                write.data.eq(self.write.data.as_value().word_select(part, 8 * size)),
                write.en.eq(self.write.strobe.word_select(part, size)),
                read.addr.eq(self.words[part]),
                read.en.eq(self.enable),
                self.row.word_select(part, 8 * size).eq(read.data),
            ]
        return m


def bias_columns(params):
    """Biases that are read at once: of all slaves, or of all elements of a row."""
    return max(params.conv.slaves, params.conv.row_bytes // 2)


class Biases(wiring.Component):
    """Holds the biases of two passes, with which sums of floats begin.

    In a convolution there is one for each slave and each of its four channels; in lane-private mode one for each
    element of a row, the same for all places. A write is readable in the next cycle. A read a cycle.

    Parameters
    ----------
    params : ConvUnitParams
    """

    def __init__(self, params):
        self._params = params
        super().__init__(
            {
                "lanes": In(1),  # lane-private mode; as ``granularity``, constant while biases arrive
                "granularity": In(range(7)),
                "i": In(BiasesLayout(params)),
                "half": In(1),  # the half for this pass
                "channel": In(range(CHANNELS_AT_ONCE)),  # t; 0 in lane-private mode
                # By slave, or by element; combinational from ``half`` and ``channel``.
                "o": Out(data.ArrayLayout(32, bias_columns(params))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        i, columns, slaves = self.i, bias_columns(self._params), self._params.conv.slaves
        m.submodules.memory = memory = Memory(shape=data.ArrayLayout(32, columns), depth=2 * CHANNELS_AT_ONCE, init=[])
        write, read = memory.write_port(granularity=1), memory.read_port(domain="comb")
        count = len(i.entries)
        # The bits of a column that its channel must have, apart from those that select an entry of ``i``.
        mask = Signal(range(columns))
        m.d.comb += [
            mask.eq(Mux(self.lanes, (1 << self.granularity >> 1) - 1, slaves - 1) & ~(count - 1)),
            write.addr.eq(i.half << 2 | Mux(self.lanes, 0, i.channel >> exact_log2(slaves))),
            read.addr.eq(self.half << 2 | self.channel),
            self.o.eq(read.data),
        ]
        for column in range(columns):
            m.d.comb += [
                write.data[column].eq(i.entries[column % count]),
                write.en[column].eq(i.valid & (((i.channel ^ column) & mask) == 0)),
            ]
        return m
