"""Global memory as an AXI4 port sees it: settable latency, random pauses, injected errors."""

from amaranth import unsigned
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In
from amaranth.utils import ceil_log2

from tilewright.hw.bus.axi4 import Axi4Signature

from ..hdl.word_array import WordArray
from .memory_sides import MAX_LATENCY, MIN_LATENCY, READ_CHANNELS, WRITE_CHANNELS, ReadSide, WriteSide
from .stall import Stall

__all__ = ["CHANNELS", "MAX_LATENCY", "MIN_LATENCY", "MemoryModel"]

#: Channels that pause, each with a ``Stall`` of its number in this tuple.
CHANNELS = READ_CHANNELS + WRITE_CHANNELS


class MemoryModel(wiring.Component):
    """An AXI4 subordinate that answers in order from an array of bus words.

    With latency L, a read address accepted in cycle t brings its first beat valid in cycle t + L, or as soon after it
    as the earlier bursts are through; then one beat a cycle. The last beat of data of a write, accepted in cycle t,
    brings its response in cycle t + L. A write is in the array when its last beat has been accepted, so a read that is
    asked for after the response sees it. Data are accepted when their address has been. One address a cycle of either
    direction is accepted, until ``outstanding`` bursts wait. Bursts are INCR, and start at a bus word; the order is
    that of the requests, over all IDs.

    The first ``words`` words of the array show the global addresses from ``base`` on. A beat outside answers DECERR,
    and one that answers with an error changes nothing; a write with several such beats answers DECERR if one of them
    does.

    Parameters
    ----------
    addr_width, data_width, id_width : int
        Of the AXI port.
    depth : int
        Bus words of the array.
    outstanding : int
        Bursts of either direction that may wait, a power of two.

    Members
    -------
    axi : In(Axi4Signature(addr_width, data_width, id_width))
        The port, seen from the subordinate.
    latency : In(range(MAX_LATENCY + 1))
        :data:`MIN_LATENCY` to :data:`MAX_LATENCY`. To be changed only while nothing is in flight, as all below.
    base : In(addr_width - ceil_log2(data_width // 8))
    words : In(range(depth + 1))
        Bus-word address of the array's first word, and how many there are: at first all.
    ar_stall, r_stall, aw_stall, w_stall, b_stall : In(8)
    seed : In(16)
    start : In(1)
        Probabilities of pauses of ARREADY, RVALID, AWREADY, WREADY and BVALID, as in ``Stall``.
    error_first, error_last : In(addr_width - ceil_log2(data_width // 8))
    error_response : In(2)
        Beats whose bus-word address lies from the first to the last, both inclusive, answer ``error_response``
        (2 SLVERR, 3 DECERR; 0 switches it off).
    error_reads, error_writes : In(1)
        Whether they do so when read and when written.
    """

    def __init__(self, *, addr_width, data_width, id_width=2, depth, outstanding=1024):
        self._outstanding = outstanding
        word = unsigned(addr_width - ceil_log2(data_width // 8))
        #: The contents.
        self.array = WordArray(width=data_width, depth=depth)
        super().__init__(
            {"axi": In(Axi4Signature(addr_width, data_width, id_width))}
            | {f"{channel}_stall": In(8) for channel in CHANNELS}
            | {
                "latency": In(range(MAX_LATENCY + 1), init=MIN_LATENCY),
                "base": In(word),
                "words": In(range(self.array.depth + 1), init=self.array.depth),
                "seed": In(16),
                "start": In(1),
                "error_first": In(word),
                "error_last": In(word),
                "error_response": In(2),
                "error_reads": In(1),
                "error_writes": In(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.array = array = self.array
        m.submodules.reads = reads = ReadSide(self.axi, array, outstanding=self._outstanding)
        m.submodules.writes = writes = WriteSide(self.axi, array, outstanding=self._outstanding)
        for side, erring in ((reads, self.error_reads), (writes, self.error_writes)):
            m.d.comb += [
                side.latency.eq(self.latency),
                side.base.eq(self.base),
                side.words.eq(self.words),
                side.error_first.eq(self.error_first),
                side.error_last.eq(self.error_last),
            ]
            with m.If(erring):
                m.d.comb += side.error_response.eq(self.error_response)

        for number, channel in enumerate(CHANNELS):
            side = reads if channel in READ_CHANNELS else writes
            stall = m.submodules[f"{channel}_stall"] = Stall(number)
            m.d.comb += [
                stall.probability.eq(getattr(self, f"{channel}_stall")),
                stall.seed.eq(self.seed),
                stall.start.eq(self.start),
                getattr(side, f"{channel}_go").eq(stall.go),
            ]
        return m
