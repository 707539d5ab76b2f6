"""Consumer port: reads any eight chunks, as many at once as lie in distinct banks, eight or four."""

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.golden.spec import BANKS

from ..lib.choice import chosen, first_of
from .layouts import CHUNK_BITS, BanksReadLayout, ReadLayout, read_data_layout

__all__ = ["ConsumerPort"]


class ConsumerPort(wiring.Component):
    """Turns reads of eight chunks into reads of the banks, and brings the chunks to their lanes.

    A read takes as many cycles at the banks as the bank with the most *different* wanted chunks has of them; lanes that
    want the same chunk share it. In each cycle every bank serves the first lane that still waits for it, and all lanes
    that want the same chunk as that one. With ``params.chunks_a_cycle`` of 4 a read has two parts, lanes 0 to 3 and
    lanes 4 to 7: the second follows the first, and takes a cycle even if none of its lanes wants anything. Each part
    has an answer of its own, so that whoever cuts something out of chunks does so for four of them at once.

    Latency: 2 cycles from a request to its answer without conflicts: the request is registered and compared lane by
    lane first, then the banks read; from the banks' outputs the answer goes through the choice of a bank alone.
    Throughput: one part a cycle without conflicts.

    The choice of a bank for the first lane serves others too, in cycles behind those in which they have the banks.

    Members
    -------
    reads : In(stream of ReadLayout)
    read_data : Out(stream of read_data_layout(params.chunks_a_cycle))
        One answer a part, in order. Lanes that wanted nothing read as anything.
    fetches : Out(stream of BanksReadLayout)
        To the banks; once accepted, ``fetched`` has the data in the next cycle.
    fetched : In(read_data_layout())
    other_bank : In(3)
        Bank of what somebody else may read in this cycle.
    other_chunk : Out(CHUNK_BITS)
        If it did, its chunk, in the next cycle.
    conflict_stb : Out(1)
        High for one cycle for each cycle that a part of a request takes at the banks beyond the first.
    """

    def __init__(self, params):
        self._params = params
        super().__init__(
            {
                "reads": In(stream.Signature(ReadLayout(params))),
                "read_data": Out(stream.Signature(read_data_layout(params.chunks_a_cycle))),
                "fetches": Out(stream.Signature(BanksReadLayout(params))),
                "fetched": In(read_data_layout()),
                "other_bank": In(3),
                "other_chunk": Out(CHUNK_BITS),
                "conflict_stb": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        ways = self._params.chunks_a_cycle
        parts, lanes = BANKS // ways, range(ways)  # of a request, one after the other
        fire = Signal()  # the banks read in this cycle
        served = Signal(ways)  # lanes whose chunks they read
        rest = Signal(ways)  # lanes that still wait after this cycle
        part, ends = Signal(range(parts)), Signal()  # the one at hand; it is the last

        # The request, the lanes of the part at hand first; and, so that the choice below is a few gates only, which
        # lanes (j < k of a part) agree on the bank or the chunk.
        waiting = Signal()
        wanted = Signal(BANKS)
        chunks = Signal(data.ArrayLayout(self._params.addr_width - 4, BANKS))
        same_bank = Signal(data.ArrayLayout(ways, BANKS))
        same_chunk = Signal(data.ArrayLayout(ways, BANKS))
        load, moves = Signal(), Signal()  # what moves is another request, and not the next part; it does
        m.d.comb += [
            ends.eq(part == parts - 1),
            load.eq(~waiting | ends),
            moves.eq(~waiting | (fire & (rest == 0))),
            self.reads.ready.eq(load & moves),
        ]
        with m.If(moves):
            with m.If(load):
                request = self.reads.payload
                m.d.sync += [
                    waiting.eq(self.reads.valid),
                    wanted.eq(request.lanes),
                    chunks.eq(request.chunks),
                    part.eq(0),
                ]
                for k in range(BANKS):
                    for j in range(k % ways):
                        chunk, before = request.chunks[k], request.chunks[k - k % ways + j]
                        m.d.sync += [
                            same_bank[k][j].eq(before[:3] == chunk[:3]),
                            same_chunk[k][j].eq(before == chunk),
                        ]
            with m.Else():
                m.d.sync += part.eq(part + 1)
                for state in (wanted, chunks, same_bank, same_chunk):
                    bits = Value.cast(state)
                    m.d.sync += bits.eq(bits >> len(bits) // parts)
        with m.Elif(fire):
            m.d.sync += wanted[:ways].eq(rest)

        # The first waiting lane of every bank gives the row.
        first = Signal(ways)
        for k in lanes:
            m.d.comb += first[k].eq(wanted[k] & ~(wanted[:ways] & same_bank[k]).any())
            m.d.comb += served[k].eq(wanted[k] & (first[k] | (first & same_chunk[k]).any()))
        for bank in range(BANKS):
            wants = [wanted[k] & (chunks[k][:3] == bank) for k in lanes]
            rows = {k: chunks[k][3:] for k in lanes}
            m.d.comb += [
                self.fetches.payload.enable[bank].eq(Cat(wants).any()),
                self.fetches.payload.rows[bank].eq(chosen(first_of(wants), rows)),
            ]
        m.d.comb += rest.eq(wanted[:ways] & ~served)

        # The banks hold their data for a cycle only. Chunks of an answer that is not complete, or not taken at once,
        # are kept in `held`; the next answer must not overtake it.
        fresh = Signal(ways)
        banks = Signal(data.ArrayLayout(3, ways))
        held = Signal(read_data_layout(ways))
        answer = self.read_data
        m.d.comb += [
            self.fetches.valid.eq(waiting & (~answer.valid | answer.ready)),
            fire.eq(self.fetches.valid & self.fetches.ready),
            self.conflict_stb.eq(fire & (rest != 0)),
        ]
        m.d.sync += banks[0].eq(self.other_bank)
        with m.If(fire):
            m.d.sync += [banks[k].eq(chunks[k][:3]) for k in lanes]
            m.d.sync += answer.valid.eq(rest == 0)
        with m.Elif(answer.ready):
            m.d.sync += answer.valid.eq(0)
        m.d.sync += fresh.eq(served & fire.replicate(ways))
        m.d.comb += answer.payload.eq(held)
        for k in lanes:
            found = Signal(CHUNK_BITS, name=f"found{k}")
            m.d.comb += found.eq(chosen(banks[k], dict(enumerate(self.fetched))))
            if k == 0:
                m.d.comb += self.other_chunk.eq(found)
            with m.If(fresh[k]):
                m.d.sync += held[k].eq(found)
                m.d.comb += answer.payload[k].eq(found)
        return m
