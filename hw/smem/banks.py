"""The banks: eight memories side by side, each with its own row address."""

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from tilewright.golden.spec import BANKS

from .layouts import CHUNK_BITS, BanksReadLayout, BanksWriteLayout, read_data_layout

__all__ = ["Banks"]


class Banks(wiring.Component):
    """Eight banks of 16-byte words, one read and one write in each per cycle, at any rows; contents start as zero.

    Latency: ``read_data`` is valid in the cycle after ``read``, for that one cycle. A read in the very cycle of a write
    sees the written bytes: of the two defined answers this is the one that block RAMs without a rule of their own need
    less logic for (144 instead of 296 flip-flops a bank on ECP5), and it spares the reader of a fresh line a cycle.

    Members
    -------
    read : In(BanksReadLayout)
    read_data : Out(read_data_layout())
        By bank, not by lane.
    write : In(BanksWriteLayout)

    Attributes
    ----------
    memories : list of Memory
        For backdoor access in simulations.
    """

    def __init__(self, params):
        self.memories = [Memory(shape=CHUNK_BITS, depth=params.rows, init=[]) for _ in range(BANKS)]
        super().__init__(
            {
                "read": In(BanksReadLayout(params)),
                "read_data": Out(read_data_layout()),
                "write": In(BanksWriteLayout(params)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        for bank, memory in enumerate(self.memories):
            m.submodules[f"bank{bank}"] = memory
            write_port = memory.write_port(granularity=8)
            read_port = memory.read_port(transparent_for=(write_port,))
            m.d.comb += [
                write_port.addr.eq(self.write.rows[bank]),
                write_port.data.eq(self.write.data[bank]),
                write_port.en.eq(self.write.strobes[bank]),
                read_port.addr.eq(self.read.rows[bank]),
                read_port.en.eq(self.read.enable[bank]),
                self.read_data[bank].eq(read_port.data),
            ]
        return m
