"""The banks: eight memories side by side, each with its own row address."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from tilewright.golden.spec import BANKS

from .layouts import CHUNK_BITS, BanksReadLayout, BanksWriteLayout, read_data_layout

__all__ = ["Banks"]


class Banks(wiring.Component):
    """Eight banks of 16-byte words, one read and one write in each per cycle, at any rows; contents start as zero.

    Latency: ``read_data`` is valid in the cycle after ``read``, for that one cycle. Bytes that are written in the very
    cycle in which they are read read as anything, the others of their chunk as what they are: either defined answer
    would need a choice behind every bit of a block RAM without a rule of its own.

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
        # Yosys makes no logic for a read of what is being written.
        attributes = {"no_rw_check": 1}
        self.memories = [Memory(shape=CHUNK_BITS, depth=params.rows, init=[], attrs=attributes) for _ in range(BANKS)]
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
            # The register of the read port stands here: so tools see that no answer is defined.
            read_port = memory.read_port(domain="comb")
            word = Signal(CHUNK_BITS, name=f"word{bank}", reset_less=True)
            with m.If(self.read.enable[bank]):
                m.d.sync += word.eq(read_port.data)
            m.d.comb += [
                write_port.addr.eq(self.write.rows[bank]),
                write_port.data.eq(self.write.data[bank]),
                write_port.en.eq(self.write.strobes[bank]),
                read_port.addr.eq(self.read.rows[bank]),
                self.read_data[bank].eq(word),
            ]
        return m
