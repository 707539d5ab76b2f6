"""Consumer port: reads any eight chunks, as many at once as lie in distinct banks, eight or four."""

from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.spec import BANKS

from ..lib.logic import chosen, first_of
from .layouts import CHUNK_BITS, BanksReadLayout, ReadLayout, ScatteredLayout, ScatterWriteLayout, read_data_layout

__all__ = ["ConsumerPort", "ScatterPort"]


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


class ScatterPort(wiring.Component):
    """Turns writes of eight chunks into writes of the banks.

    Each bank has a place for one chunk that waits to be written. In each cycle every bank whose place is free, or gets
    free, takes the first lane that still waits for it; of lanes that write the same byte the last one thus wins. So a
    write takes as many cycles as the bank with the most lanes that write to it has of them, and one behind it goes on
    where a line does not hold it up. With ``params.writes_a_cycle`` of 4 or 2 a write has two or four parts, up to the
    last one that writes; of 2, all banks are free together.

    Latency: 1 cycle to the banks' write. Throughput: one write a cycle without conflicts, or one in as many cycles as
    it has parts.

    Members
    -------
    i : In(stream of ScatterWriteLayout)
        Should come from registers. Accepted with the last of its lanes.
    o : Out(ScatteredLayout)
        Registered: what waits, until it is taken.
    taken : In(BANKS)
        Banks in which it is written in this cycle.
    emptied : In(1)
        Nothing waits after this cycle: as ``taken`` tells, but sooner.
    idle : Out(1)
        What has been accepted is in the banks.
    conflict_stb : Out(1)
        High for one cycle for each cycle that a write takes beyond its first, banks that lines hold up apart.

    Attributes
    ----------
    written : Signal
        Lanes of the write at ``i`` that have been passed on; for proofs.
    part : Signal
        Part of it that is passed on; for proofs.
    """

    def __init__(self, params):
        self.written = Signal(BANKS)
        self.part = Signal(range(BANKS // params.writes_a_cycle))
        self._params = params
        super().__init__(
            {
                "i": In(stream.Signature(ScatterWriteLayout(params))),
                "o": Out(ScatteredLayout(params)),
                "taken": In(BANKS),
                "emptied": In(1),
                "idle": Out(1),
                "conflict_stb": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        ways = self._params.writes_a_cycle
        parts, lanes = BANKS // ways, range(ways)  # of a write, one after the other
        part, write = self.part, self.i.payload

        def at_hand(values):
            return [chosen(part, {p: values[p * ways + k] for p in range(parts)}) for k in lanes]

        free, left = Signal(BANKS), self.o.banks & ~self.taken
        # Where two chunks are for all banks, both go before the next ones come.
        m.d.comb += free.eq(self.emptied.replicate(BANKS) if ways == 2 else ~left)

        waiting = Signal(BANKS)
        m.d.comb += [waiting[k].eq(self.i.valid & write.strobes[k].any() & ~self.written[k]) for k in range(BANKS)]
        first = Signal(ways)  # of those that wait for the same bank
        passed_on = Signal(ways)
        waits, chunks = at_hand(waiting), at_hand(write.chunks)
        for k in lanes:
            before = [waits[j] & (chunks[j][:3] == chunks[k][:3]) for j in range(k)]
            m.d.comb += first[k].eq(waits[k] & ~reduce(or_, before, 0))
            m.d.comb += passed_on[k].eq(first[k] & free.bit_select(chunks[k][:3], 1))

        served = Signal(BANKS)  # lanes that are passed on
        complete = Signal()
        m.d.comb += [
            served.eq(Cat(passed_on & (part == p).replicate(ways) for p in range(parts))),
            complete.eq((waiting & ~served) == 0),
            self.i.ready.eq(complete),
            self.conflict_stb.eq(~complete & (passed_on == first)),
            self.idle.eq(self.o.banks == 0),
        ]
        m.d.sync += self.written.eq(self.written | served)
        with m.If(complete):
            m.d.sync += [self.written.eq(0), part.eq(0)]
        with m.Elif((Cat(waits) & ~passed_on) == 0):
            m.d.sync += part.eq(part + 1)

        values, strobes, out = at_hand(write.data), at_hand(write.strobes), self.o
        m.d.sync += out.banks.eq(left)
        if ways == 2:
            with m.If(free[0]):
                m.d.sync += [out.data[k].eq(values[k]) for k in lanes]
        for bank in range(BANKS):
            wants = [waits[k] & (chunks[k][:3] == bank) for k in lanes]
            lane = Signal(range(ways), name=f"lane{bank}")
            m.d.comb += lane.eq(first_of(wants))
            with m.If(free[bank]):
                m.d.sync += [
                    out.banks[bank].eq(Cat(wants).any()),
                    out.rows[bank].eq(chosen(lane, {k: chunks[k][3:] for k in lanes})),
                    out.strobes[bank].eq(chosen(lane, dict(enumerate(strobes)))),
                ]
                if ways == 2:
                    m.d.sync += out.second[bank].eq(wants[1] & ~wants[0])
                else:
                    m.d.sync += out.data[bank].eq(chosen(lane, dict(enumerate(values))))
        return m
