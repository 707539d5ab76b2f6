"""Consumer port: reads any eight chunks, as many at once as lie in distinct banks."""

from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.golden.spec import BANKS

from ..lib.crossbar import LaneCrossbar
from .layouts import CHUNK_BITS, BanksReadLayout, ReadLayout, read_data_layout

__all__ = ["ConsumerPort"]


class ConsumerPort(wiring.Component):
    """Turns reads of eight chunks into reads of the banks, and brings the chunks to their lanes.

    A read takes as many cycles at the banks as the bank with the most *different* wanted chunks has of them; lanes that
    want the same chunk share it. In each cycle every bank serves the first lane that still waits for it, and all lanes
    that want the same chunk as that one.

    Latency: 2 cycles from a request to its answer without conflicts: the request is registered and compared lane by
    lane first, then the banks read; from the banks' outputs the answer goes through the crossbar alone. Throughput: one
    request a cycle without conflicts.

    Members
    -------
    reads : In(stream of ReadLayout)
    read_data : Out(stream of read_data_layout())
        One answer a request, in order. Lanes that wanted nothing read as anything.
    fetches : Out(stream of BanksReadLayout)
        To the banks; once accepted, ``fetched`` has the data in the next cycle.
    fetched : In(read_data_layout())
    conflict_stb : Out(1)
        High for one cycle for each cycle that a request takes at the banks beyond the first.
    """

    def __init__(self, params):
        self._params = params
        super().__init__(
            {
                "reads": In(stream.Signature(ReadLayout(params))),
                "read_data": Out(stream.Signature(read_data_layout())),
                "fetches": Out(stream.Signature(BanksReadLayout(params))),
                "fetched": In(read_data_layout()),
                "conflict_stb": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        lanes = range(BANKS)
        fire = Signal()  # the banks read in this cycle
        served = Signal(BANKS)  # lanes whose chunks they read
        rest = Signal(BANKS)  # lanes that still wait after this cycle

        # The request, and, so that the choice below is a few gates only, which lanes (j < k) agree on the bank or the
        # chunk.
        waiting = Signal()
        wanted = Signal(BANKS)
        chunks = Signal(data.ArrayLayout(self._params.addr_width - 4, BANKS))
        same_bank = Signal(data.ArrayLayout(BANKS, BANKS))
        same_chunk = Signal(data.ArrayLayout(BANKS, BANKS))
        m.d.comb += self.reads.ready.eq(~waiting | (fire & (rest == 0)))
        with m.If(self.reads.ready):
            request = self.reads.payload
            m.d.sync += [waiting.eq(self.reads.valid), wanted.eq(request.lanes), chunks.eq(request.chunks)]
            for k in lanes:
                for j in range(k):
                    m.d.sync += [
                        same_bank[k][j].eq(request.chunks[j][:3] == request.chunks[k][:3]),
                        same_chunk[k][j].eq(request.chunks[j] == request.chunks[k]),
                    ]
        with m.Elif(fire):
            m.d.sync += wanted.eq(rest)

        # The first waiting lane of every bank gives the row.
        first = Signal(BANKS)
        for k in lanes:
            m.d.comb += first[k].eq(wanted[k] & ~(wanted & same_bank[k]).any())
            m.d.comb += served[k].eq(wanted[k] & (first[k] | (first & same_chunk[k]).any()))
        for bank in range(BANKS):
            # AND-OR and not a chain of multiplexers: at most one lane is the first of a bank.
            picks = [first[k] & (chunks[k][:3] == bank) for k in lanes]
            rows = [chunks[k][3:] & picks[k].replicate(self._params.row_width) for k in lanes]
            m.d.comb += [
                self.fetches.payload.enable[bank].eq(Cat(picks).any()),
                self.fetches.payload.rows[bank].eq(reduce(or_, rows)),
            ]
        m.d.comb += rest.eq(wanted & ~served)

        # The banks hold their data for a cycle only. Chunks of an answer that is not complete, or not taken at once,
        # are kept in `held`; the next answer must not overtake it.
        fresh = Signal(BANKS)
        held = Signal(read_data_layout())
        m.submodules.crossbar = crossbar = LaneCrossbar(CHUNK_BITS, BANKS)
        answer = self.read_data
        m.d.comb += [
            self.fetches.valid.eq(waiting & (~answer.valid | answer.ready)),
            fire.eq(self.fetches.valid & self.fetches.ready),
            self.conflict_stb.eq(fire & (rest != 0)),
        ]
        with m.If(fire):
            m.d.sync += Cat(crossbar.sel[lane] for lane in lanes).eq(Cat(chunks[lane][:3] for lane in lanes))
            m.d.sync += answer.valid.eq(rest == 0)
        with m.Elif(answer.ready):
            m.d.sync += answer.valid.eq(0)
        m.d.sync += fresh.eq(served & fire.replicate(BANKS))
        for lane in lanes:
            m.d.comb += crossbar.i[lane].eq(self.fetched[lane])
            m.d.comb += answer.payload[lane].eq(held[lane])
            with m.If(fresh[lane]):
                m.d.comb += answer.payload[lane].eq(crossbar.o[lane])
                m.d.sync += held[lane].eq(crossbar.o[lane])
        return m
