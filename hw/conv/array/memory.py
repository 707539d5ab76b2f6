"""The memory of a slave."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from tilewright.spec.conv import CHANNELS_AT_ONCE

from ..layouts import BiasesLayout, WordWriteLayout

__all__ = ["Biases", "RowRotator", "SlaveMemory", "bias_columns"]


class SlaveMemory(wiring.Component):
    """Holds rows of a slave: in a convolution its weights, in lane-private mode its points of lines of X.

    With ``params.conv.rotation`` both halves of a row are read of words of their own. Latency 1; a write and a read a
    cycle.

    Parameters
    ----------
    params : ConvUnitParams

    Members
    -------
    write : In(WordWriteLayout(params))
        What is written can be read in the next cycle.
    enable : In(1)
    words : In(array of params.slave_parts range(params.words))
        Of the parts of the row: halves, or all of it.
    row : Out(8 * params.conv.row_bytes)
    """

    def __init__(self, params):
        self._params = params
        self.parts = params.slave_parts
        super().__init__(
            {
                "write": In(WordWriteLayout(params)),
                "enable": In(1),
                "words": In(data.ArrayLayout(range(params.words), self.parts)),
                "row": Out(8 * params.conv.row_bytes),
            }
        )

    def elaborate(self, platform):
        m = Module()
        size = self._params.conv.row_bytes // self.parts
        for part in range(self.parts):
            name = f"part{part}" if self.parts > 1 else "memory"
            m.submodules[name] = memory = Memory(shape=8 * size, depth=self._params.words, init=[])
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


class RowRotator(wiring.Component):
    """Turns the rows of all slaves, side by side, by ``turn`` halves of a row: part p comes from part p + ``turn``.

    Latency 1; a turn a cycle.

    Parameters
    ----------
    params : ConvUnitParams

    Members
    -------
    turn : In(range(params.row_parts))
    i : In(array of params.conv.slaves 8 * params.conv.row_bytes)
    o : Out(array of params.conv.slaves 8 * params.conv.row_bytes)
        Registered.
    """

    def __init__(self, params):
        rows = data.ArrayLayout(8 * params.conv.row_bytes, params.conv.slaves)
        self._part_bits = rows.size // params.row_parts
        super().__init__({"turn": In(range(params.row_parts)), "i": In(rows), "o": Out(rows)})

    def elaborate(self, platform):
        m = Module()
        rows = self.i.as_value()
        for bit, turns in enumerate(self.turn):
            turned, count = Signal.like(rows, name=f"turned{bit}"), self._part_bits << bit
            m.d.comb += turned.eq(Mux(turns, Cat(rows[count:], rows[:count]), rows))
            rows = turned
        m.d.sync += self.o.eq(rows)
        return m


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
