"""Ports of engines that compute: reads and writes of any eight chunks, as many at once as lie in distinct banks."""

from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.spec import BANKS

from ..lib.logic import lowest_set, mux_tree
from .layouts import CHUNK_BITS, BanksReadLayout, ReadLayout, ScatteredLayout, ScatterWriteLayout, read_data_layout

__all__ = ["ConsumerPort", "ScatterPort"]


class ConsumerPort(wiring.Component):
    """Turns reads of eight chunks into reads of the banks, and routes the chunks to their lanes.

    A read takes as many cycles as the largest number of *different* chunks in one bank; lanes that want the same chunk
    share it. In each cycle every bank serves the first lane that waits for it, and all lanes that want the same chunk.
    With ``params.chunks_a_cycle`` of 4 a read has two parts, lanes 0 to 3 and lanes 4 to 7, one after the other. The
    second takes a cycle even if its lanes want nothing. Each part has an answer of its own, so that the logic that
    extracts elements handles four chunks at a time.

    Latency: 2 cycles without conflicts. The request is registered and compared lane by lane, then the banks read; a
    multiplexer of eight banks follows their outputs. Throughput: one part a cycle without conflicts.

    The multiplexer of the first lane also serves barrier unit and host, which have the banks in other cycles.
    """

    def __init__(self, params):
        self._params = params
        super().__init__(
            {
                "reads": In(stream.Signature(ReadLayout(params))),
                # One answer a part, in order; chunks of lanes that want nothing are undefined.
                "read_data": Out(stream.Signature(read_data_layout(params.chunks_a_cycle))),
                "fetches": Out(stream.Signature(BanksReadLayout(params))),
                "fetched": In(read_data_layout()),  # in the cycle after the handshake
                "other_bank": In(3),  # bank that another block may read in this cycle
                "other_chunk": Out(CHUNK_BITS),  # its chunk, in the next cycle
                "conflict_stb": Out(1),  # a part of a request takes another cycle at the banks
            }
        )

    def elaborate(self, platform):
        m = Module()
        ways = self._params.chunks_a_cycle
        parts, lanes = BANKS // ways, range(ways)  # of a request; of a part
        fire = Signal()  # the banks read in this cycle
        served = Signal(ways)  # lanes whose chunks they read
        rest = Signal(ways)  # lanes that still wait after this cycle
        part, last = Signal(range(parts)), Signal()  # the current part; it is the last

        # The request, shifted so that the lanes of the current part come first; and, to keep the choice below small,
        # which lanes (j < k of a part) have the same bank or the same chunk.
        waiting = Signal()
        wanted = Signal(BANKS)
        chunks = Signal(data.ArrayLayout(self._params.addr_width - 4, BANKS))
        same_bank = Signal(data.ArrayLayout(ways, BANKS))
        same_chunk = Signal(data.ArrayLayout(ways, BANKS))
        load, step = Signal(), Signal()  # the registers step to the next request or part; it is a request
        m.d.comb += [
            last.eq(part == parts - 1),
            load.eq(~waiting | last),
            step.eq(~waiting | (fire & (rest == 0))),
            self.reads.ready.eq(load & step),
        ]
        with m.If(step):
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
                        chunk, other = request.chunks[k], request.chunks[k - k % ways + j]
                        m.d.sync += [same_bank[k][j].eq(other[:3] == chunk[:3]), same_chunk[k][j].eq(other == chunk)]
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
                self.fetches.payload.rows[bank].eq(mux_tree(lowest_set(wants), rows)),
            ]
        m.d.comb += rest.eq(wanted[:ways] & ~served)

        # The outputs of the banks are valid for one cycle. Chunks of an answer that is incomplete, or not accepted at
        # once, are stored; the next answer must not overtake it.
        fresh = Signal(ways)
        banks = Signal(data.ArrayLayout(3, ways))
        stored = Signal(read_data_layout(ways))
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
        m.d.comb += answer.payload.eq(stored)
        for k in lanes:
            chunk = Signal(CHUNK_BITS, name=f"chunk{k}")
            m.d.comb += chunk.eq(mux_tree(banks[k], dict(enumerate(self.fetched))))
            if k == 0:
                m.d.comb += self.other_chunk.eq(chunk)
            with m.If(fresh[k]):
                m.d.sync += stored[k].eq(chunk)
                m.d.comb += answer.payload[k].eq(chunk)
        return m


class ScatterPort(wiring.Component):
    """Turns writes of eight chunks into writes of the banks.

    Each bank has one slot for a chunk that waits to be written. In each cycle every bank whose slot is or becomes empty
    accepts the first lane that waits for it; so of lanes that write the same byte the last one wins. A write takes as
    many cycles as the largest number of lanes that write one bank; then the next one begins, except in banks that lines
    hold up. With ``params.writes_a_cycle`` of 4 or 2 a write has two or four parts, up to the last one that writes.
    With 2, the slots of all banks become empty together.

    Latency: 1 cycle to the write. Throughput: one write a cycle without conflicts, or one in as many cycles as it has
    parts. ``i`` should come from registers; it is accepted with the last of its lanes.
    """

    def __init__(self, params):
        self.written = Signal(BANKS)  # lanes of the write at ``i`` that have been passed on
        self.part = Signal(range(BANKS // params.writes_a_cycle))  # the part of it that is passed on
        self._params = params
        super().__init__(
            {
                "i": In(stream.Signature(ScatterWriteLayout(params))),
                "o": Out(ScatteredLayout(params)),  # the slots
                "accepted": In(BANKS),  # banks in which the chunk is written in this cycle
                "emptied": In(1),  # all slots are empty after this cycle; earlier than ``accepted`` in the cycle
                "idle": Out(1),  # all accepted writes are in the banks
                "conflict_stb": Out(1),  # a write takes another cycle, not because of a line
            }
        )

    def elaborate(self, platform):
        m = Module()
        ways = self._params.writes_a_cycle
        parts, lanes = BANKS // ways, range(ways)  # of a write; of a part
        part, write = self.part, self.i.payload

        def current(values):
            return [mux_tree(part, {p: values[p * ways + k] for p in range(parts)}) for k in lanes]

        free, remaining = Signal(BANKS), self.o.banks & ~self.accepted
        # Two slots that all banks share are refilled together.
        m.d.comb += free.eq(self.emptied.replicate(BANKS) if ways == 2 else ~remaining)

        waiting = Signal(BANKS)
        m.d.comb += [waiting[k].eq(self.i.valid & write.strobes[k].any() & ~self.written[k]) for k in range(BANKS)]
        first = Signal(ways)  # the first of the lanes that wait for its bank
        forward = Signal(ways)
        waits, chunks = current(waiting), current(write.chunks)
        for k in lanes:
            earlier = [waits[j] & (chunks[j][:3] == chunks[k][:3]) for j in range(k)]
            m.d.comb += first[k].eq(waits[k] & ~reduce(or_, earlier, 0))
            m.d.comb += forward[k].eq(first[k] & free.bit_select(chunks[k][:3], 1))

        served = Signal(BANKS)  # lanes that are forwarded
        complete = Signal()
        m.d.comb += [
            served.eq(Cat(forward & (part == p).replicate(ways) for p in range(parts))),
            complete.eq((waiting & ~served) == 0),
            self.i.ready.eq(complete),
            self.conflict_stb.eq(~complete & (forward == first)),
            self.idle.eq(self.o.banks == 0),
        ]
        m.d.sync += self.written.eq(self.written | served)
        with m.If(complete):
            m.d.sync += [self.written.eq(0), part.eq(0)]
        with m.Elif((Cat(waits) & ~forward) == 0):
            m.d.sync += part.eq(part + 1)

        values, strobes, out = current(write.data), current(write.strobes), self.o
        m.d.sync += out.banks.eq(remaining)
        if ways == 2:
            with m.If(free[0]):
                m.d.sync += [out.data[k].eq(values[k]) for k in lanes]
        for bank in range(BANKS):
            wants = [waits[k] & (chunks[k][:3] == bank) for k in lanes]
            lane = Signal(range(ways), name=f"lane{bank}")
            m.d.comb += lane.eq(lowest_set(wants))
            with m.If(free[bank]):
                m.d.sync += [
                    out.banks[bank].eq(Cat(wants).any()),
                    out.rows[bank].eq(mux_tree(lane, {k: chunks[k][3:] for k in lanes})),
                    out.strobes[bank].eq(mux_tree(lane, dict(enumerate(strobes)))),
                ]
                if ways == 2:
                    m.d.sync += out.second[bank].eq(wants[1] & ~wants[0])
                else:
                    m.d.sync += out.data[bank].eq(mux_tree(lane, dict(enumerate(values))))
        return m
