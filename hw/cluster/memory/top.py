"""The memory side of a cluster."""

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import ceil_log2

from ...bus.axi4 import Axi4Signature, forward_channels
from .layouts import CORE_ID_WIDTH, PAGE_LOG2
from .reads import ReadSide
from .reductions import ReductionGate
from .writes import WriteSide

__all__ = ["MemorySide"]


class MemorySide(wiring.Component):
    """The AXI4 ports of all cores become one (docs/cluster.md, "Memory side").

    Of one core: wires. Of several: requests and words pass three registers, beats and answers two.

    Parameters
    ----------
    cores : int
        1 to 16.
    addr_width, data_width : int
        Of the bus.
    max_burst : int
        Bus words of a burst at most, a power of two up to 256.
    read_words : int
        Bus words that a core may have asked for and not taken, a power of two from two bursts to 1024. A core alone
        reads at full rate from a memory whose latency is at most this number of cycles, less two bursts and ten.
    write_bursts : int
        Bursts of a core that have left and whose answers it has not taken, 2 to 32, a power of two.
    groups : int
        Groups of pages of 4 KiB in which reductions do not wait for each other, a power of two.
    reductions : bool
        Cores have reductions into global memory.
    """

    def __init__(
        self,
        cores,
        addr_width,
        data_width,
        *,
        max_burst=16,
        read_words=256,
        write_bursts=32,
        groups=64,
        reductions=True,
    ):
        if not isinstance(cores, int) or not 1 <= cores <= 16:
            raise ValueError(f"cores must be an int from 1 to 16, not {cores!r}")
        if not isinstance(max_burst, int) or not 1 <= max_burst <= 256 or max_burst & (max_burst - 1):
            raise ValueError(f"max_burst must be a power of two from 1 to 256, not {max_burst!r}")
        if not isinstance(read_words, int) or read_words < 2 * max_burst:
            raise ValueError(f"read_words must be an int of at least two bursts, {2 * max_burst}, not {read_words!r}")
        self._cores = cores
        if cores > 1:
            size = {"addr_width": addr_width, "data_width": data_width, "max_burst": max_burst}
            self.reads = ReadSide(cores, **size, words=read_words, reductions=reductions)
            # A burst comes while another one goes.
            self.writes = WriteSide(cores, **size, words=2 * max_burst, bursts=write_bursts)
            self.gate = ReductionGate(addr_width - PAGE_LOG2, cores, groups) if reductions else None
        super().__init__(
            {
                # Those of the cores.
                "ports": In(Axi4Signature(addr_width, data_width, CORE_ID_WIDTH)).array(cores),
                # The number of the core lies above its ID.
                "axi": Out(Axi4Signature(addr_width, data_width, CORE_ID_WIDTH + ceil_log2(cores))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        if self._cores == 1:
            forward_channels(m, self.axi, flipped(self.ports[0]))
            return m
        m.submodules.reads = reads = self.reads
        m.submodules.writes = writes = self.writes
        for side in (reads, writes):
            forward_channels(m, self.axi, side.axi)
            for port, inner in zip(self.ports, side.ports, strict=True):
                forward_channels(m, port, inner)
        if self.gate:
            m.submodules.gate = gate = self.gate
            for number in range(self._cores):
                connect(m, reads=reads.pages[number], gate=gate.pages[number])
            m.d.comb += [
                reads.granted.eq(gate.granted),
                gate.answered.eq(writes.answered),
                gate.failed.eq(reads.failed),
            ]
        return m
