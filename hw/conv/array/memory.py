"""The memory of a slave."""

from amaranth.hdl import Module
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ..layouts import WordWriteLayout

__all__ = ["SlaveMemory"]


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
