"""A large memory for test benches: what a script, a log or global memory lies in."""

from amaranth.hdl import Cat, ClockSignal, Instance, Module, Mux
from amaranth.lib import wiring
from amaranth.lib.memory import Memory, MemoryData
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from .verilog import VerilogPlatform

__all__ = ["WORD_ARRAY", "WordArray"]

#: The module that :class:`WordArray` becomes in Verilog; the bench's text must contain it.
WORD_ARRAY = """
module word_array (clk, read_enable, read_address, read_data, write_enable, write_address, write_mask, write_data);
  parameter WIDTH = 8, DEPTH = 1, ADDRESS = 1;
  input clk, read_enable, write_enable;
  input [ADDRESS-1:0] read_address, write_address;
  input [WIDTH-1:0] write_mask, write_data;
  output reg [WIDTH-1:0] read_data;
  reg [WIDTH-1:0] words [0:DEPTH-1];
  integer i;
  initial begin
    read_data = 0;
    for (i = 0; i < DEPTH; i = i + 1) words[i] = 0;
  end
  always @(posedge clk) begin
    if (read_enable) read_data <= words[read_address];
    if (write_enable) words[write_address] <= (words[write_address] & ~write_mask) | (write_data & write_mask);
  end
endmodule
"""


class WordArray(wiring.Component):
    """``depth`` words with one read and one write port; contents survive a reset.

    A write changes the bytes whose bit of ``write_strobe`` is set: all of them, if it is not driven. The latency of a
    read is one cycle; ``read_data`` holds while ``read_enable`` is low. A read of the word that is
    being written gives the old one. In Verilog it is one array, ``words``, that a bench may load and dump as a file:
    Amaranth's own memory would spell out every initial word.

    Parameters
    ----------
    width : int
        Bits of a word, a multiple of 8, so that a file of bytes has a word a line.
    depth : int
        Words.
    """

    def __init__(self, *, width, depth):
        if width % 8:
            raise ValueError(f"the width of a word array must be a multiple of 8, not {width!r}")
        self.width = width
        self.depth = depth
        address = ceil_log2(depth) or 1
        super().__init__(
            {
                "read_enable": In(1),
                "read_address": In(address),
                "read_data": Out(width),
                "write_enable": In(1),
                "write_address": In(address),
                "write_data": In(width),
                "write_strobe": In(width // 8, init=-1),
            }
        )
        #: Contents in the Python simulator.
        self.contents = MemoryData(shape=width, depth=depth, init=[])

    def elaborate(self, platform):
        m = Module()
        if isinstance(platform, VerilogPlatform):
            m.submodules.array = self._instance()
        else:
            m.submodules.memory = memory = Memory(self.contents)
            read = memory.read_port()
            write = memory.write_port(granularity=8)
            m.d.comb += [
                read.en.eq(self.read_enable),
                read.addr.eq(self.read_address),
                self.read_data.eq(read.data),
                write.en.eq(Mux(self.write_enable, self.write_strobe, 0)),
                write.addr.eq(self.write_address),
                write.data.eq(self.write_data),
            ]
        return m

    def _instance(self):
        others = ("read_data", "write_strobe")
        ports = {f"i_{name}": getattr(self, name) for name in self.signature.members if name not in others}
        ports["i_write_mask"] = Cat(byte.replicate(8) for byte in self.write_strobe)
        parameters = {"p_WIDTH": self.width, "p_DEPTH": self.depth, "p_ADDRESS": len(self.read_address)}
        # Nothing in the design reads a log, and Yosys would drop it.
        return Instance(
            "word_array", a_keep=True, **parameters, i_clk=ClockSignal(), **ports, o_read_data=self.read_data
        )
