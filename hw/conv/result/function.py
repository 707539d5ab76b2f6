"""Functions of results: each byte selects another one in a LUT, which a job brings."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from tilewright.spec.conv import FUNCTION_BYTES

from ...lib.logic import mux_tree, named

__all__ = ["FunctionLookup", "FunctionRowLayout"]

#: Bytes of a row: of a piece that is gathered, and as many rows as the distributed memory of an ECP5 has.
_ROW_BYTES = 16
_ROWS = FUNCTION_BYTES // _ROW_BYTES


class FunctionRowLayout(data.StructLayout):
    """The next row of a LUT, on its way from shared memory."""

    def __init__(self):
        super().__init__({"valid": 1, "bytes": data.ArrayLayout(8, _ROW_BYTES)})


class FunctionLookup(wiring.Component):
    """Replaces each byte by the byte of the job's LUT that it selects (docs/conv.md, "Functions").

    A job begins with ``start``. Its LUT comes in 16 rows, in order; results of a job with a function wait until all of
    them have arrived. Results of other jobs pass without a register.

    Latency 1 with ``function``, 0 without. Throughput: one transfer a cycle.

    Parameters
    ----------
    results : int
        Results of a transfer, each with a copy of the LUT.
    """

    def __init__(self, results):
        self._results = results
        self.memory = Memory(shape=data.ArrayLayout(8, _ROW_BYTES), depth=_ROWS, init=[])
        self.rows = Signal(range(_ROWS + 1))  # of the LUT that have arrived
        self.held = Signal()  # there are bytes in the register
        transfer = data.ArrayLayout(8, results)
        super().__init__(
            {
                "start": In(1),  # Strobe, before a job's first row and first result.
                "function": In(1),  # of the job; constant from ``start`` on
                "row": In(FunctionRowLayout()),  # only of a job with a function
                "i": In(stream.Signature(transfer)),
                "o": Out(stream.Signature(transfer)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = memory = self.memory
        write, complete = memory.write_port(), self.rows[-1]
        m.d.comb += [
            write.addr.eq(self.rows),
            write.data.eq(self.row.bytes),
            write.en.eq(self.row.valid),
            self.i.ready.eq(Mux(self.function, complete & (~self.held | self.o.ready), self.o.ready)),
            self.o.valid.eq(Mux(self.function, self.held, self.i.valid)),
        ]
        with m.If(self.start):
            m.d.sync += self.rows.eq(0)
        with m.Elif(self.row.valid):
            m.d.sync += self.rows.eq(self.rows + 1)
        with m.If(self.o.ready | ~self.held):
            m.d.sync += self.held.eq(self.function & complete & self.i.valid)
        for number in range(self._results):
            read, result = memory.read_port(domain="comb"), self.i.payload[number]
            m.d.comb += read.addr.eq(result[4:])
            found = named(m, mux_tree(result[:4], dict(enumerate(read.data))), f"found{number}")
            byte = Signal(8, name=f"byte{number}", reset_less=True)
            with m.If(self.o.ready | ~self.held):
                m.d.sync += byte.eq(found)
            m.d.comb += self.o.payload[number].eq(Mux(self.function, byte, result))
        return m
