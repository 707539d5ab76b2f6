"""The banks of shared memory, and the arbitration of their read and their write side, cycle by cycle."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from tilewright.spec import BANKS, CHUNK_BYTES

from ..lib.logic import mux_tree
from .layouts import (
    CHUNK_BITS,
    BanksReadLayout,
    BanksWriteLayout,
    ChunkWriteLayout,
    LineLayout,
    ScatteredLayout,
    read_data_layout,
)
from .signatures import WriteBackSignature

__all__ = ["PATIENCE", "Banks", "ReadArbiter", "WriteArbiter"]


class Banks(wiring.Component):
    """Eight memories of 16-byte words, each with one read and one write a cycle at rows of its own; initially zero.

    ``read_data``, by bank, is valid for one cycle, the one after ``read``. Bytes that are written in the cycle in which
    they are read are undefined: a defined answer would take a multiplexer after every bit of a block RAM that does not
    define one. ``memories`` are for backdoor access in simulations.
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
            # The read port is combinational and its register is here, so that tools see that the answer is undefined.
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


#: Cycles that a barrier or the host waits for its bank before lines must wait instead.
PATIENCE = 8


class ReadArbiter(wiring.Component):
    """Gives the read side of all banks to one reader a cycle: barrier unit, then host, then lines and consumer in turn.

    One reader for all banks, because barrier unit and host are rare, and a request of the consumer stays whole. The
    barrier unit, which reads in at most two of three cycles, never waits, because the time from landed bytes to the end
    of a phase is guaranteed. The host passes the others at most once in a row. Lines and consumer get every second of
    the remaining cycles while both wait. So the host waits at most five cycles, the others at most eleven.

    Combinational; data come one cycle after the grant.
    """

    def __init__(self, params):
        chunk_address = unsigned(params.addr_width - 4)
        super().__init__(
            {
                "barrier": In(stream.Signature(chunk_address, always_ready=True)),
                "host": In(stream.Signature(chunk_address)),
                "lines": In(stream.Signature(unsigned(params.row_width))),  # whole lines
                "consumer": In(stream.Signature(BanksReadLayout(params))),
                "banks": Out(BanksReadLayout(params)),
                "single_bank": Out(3),  # bank of the chunk that barrier unit or host read
            }
        )

    def elaborate(self, platform):
        m = Module()
        passed = Signal()  # the host was granted while others waited: it is their turn
        line_first = Signal()  # the consumer was granted last
        free = Signal()  # neither barrier unit nor host reads
        others = self.lines.valid | self.consumer.valid
        m.d.comb += [
            self.host.ready.eq(~self.barrier.valid & ~(others & passed)),
            free.eq(~self.barrier.valid & (~self.host.valid | passed)),
            self.lines.ready.eq(free & (line_first | ~self.consumer.valid)),
            self.consumer.ready.eq(free & ~(line_first & self.lines.valid)),
        ]
        with m.If(free):
            m.d.sync += passed.eq(0)
        with m.Elif(self.host.valid & self.host.ready):
            m.d.sync += passed.eq(others)

        # The address of the single chunk does not depend on the grant, which is late.
        single = Mux(self.barrier.valid, self.barrier.payload, self.host.payload)
        m.d.comb += self.single_bank.eq(single[:3])
        with m.If(self.consumer.valid & self.consumer.ready):
            m.d.comb += self.banks.eq(self.consumer.payload)
            m.d.sync += line_first.eq(1)
        with m.Elif(self.lines.valid & self.lines.ready):
            m.d.comb += self.banks.enable.eq(~0)
            m.d.comb += [self.banks.rows[b].eq(self.lines.payload) for b in range(BANKS)]
            m.d.sync += line_first.eq(0)
        with m.Else():
            m.d.comb += self.banks.enable.eq((self.barrier.valid | self.host.valid) << single[:3])
            m.d.comb += [self.banks.rows[b].eq(single[3:]) for b in range(BANKS)]
        return m


class WriteArbiter(wiring.Component):
    """Gives the write side of the banks to *wide* writers and, in other banks, to one *small* writer.

    The wide writers are lines and, with ``stores``, scattered chunks, which wait bank by bank. A line passes a chunk
    that waits in one of its banks once; the next line waits until the chunk has been written. The small writers are the
    write-back register of the barrier unit and, while that has nothing to write, the host. A small writer waits while
    a wide one writes its bank, for up to ``PATIENCE`` cycles; then, or if the write-back register is urgent, the wide
    ones wait. A line waits one cycle for each small write, and for each scattered one in its banks.

    If lines come as words, each byte has one code that selects a scattered chunk, one of the line's two words, or a bus
    that all banks share: the fill, a small write, or the second chunk of a scattered write that has two at most. The
    users of this bus wait for each other.

    Combinational; written bytes can be read in the next cycle. One write a cycle in each bank, but for small writers.

    Parameters
    ----------
    params : SmemParams
    stores : bool
        There are scattered writes.
    word_bytes : int or None
        Bytes of the words that lines come as.
    """

    def __init__(self, params, stores=False, word_bytes=None):
        self.waited = Signal(range(PATIENCE + 1))  # cycles that some small writer has been waiting
        self.passed = Signal(BANKS)  # banks of which a line was written before the chunk that waits there
        self._stores = stores
        self._words = word_bytes is not None
        self._two = stores and params.writes_a_cycle == 2  # a scattered write has two chunks at most
        scatter = {
            "scatter": In(ScatteredLayout(params)),  # stable until it has been written
            "scattered": Out(BANKS),  # banks in which it is written in this cycle
            "emptied": Out(1),  # no chunk waits after this cycle
        }
        super().__init__(
            {
                "lines": In(stream.Signature(LineLayout(params, 1, word_bytes))),
                **(scatter if stores else {}),
                "write_back": In(WriteBackSignature(params)),
                "host": In(stream.Signature(ChunkWriteLayout(params))),
                "banks": Out(BanksWriteLayout(params)),
                "stall_stb": Out(1),  # a line waits in this cycle
            }
        )

    def elaborate(self, platform):
        m = Module()
        lines, write_back, host = self.lines, self.write_back, self.host
        by_line = Signal(BANKS)  # the wide writer of the bank is the line
        strobes = Signal(data.ArrayLayout(CHUNK_BYTES, BANKS))  # of wide writers
        wide_ready = Signal()
        # Banks that wide writers request, granted or not; whether they request the shared bus; whether the fill has it.
        requested, bus_requested, filling = Signal(BANKS), Signal(), Signal()
        self._choose_wide(m, by_line, strobes, requested, bus_requested, filling, wide_ready)

        small = Signal.like(host.payload)
        small_valid = Signal()
        m.d.comb += small.eq(Mux(write_back.valid, write_back.payload, host.payload))
        m.d.comb += small_valid.eq(write_back.valid | host.valid)
        bank = small.chunk[:3]

        waited = self.waited
        blocked = (write_back.valid & ~write_back.accepted) | (host.valid & ~host.ready)
        with m.If(~blocked):
            m.d.sync += waited.eq(0)
        with m.Elif(waited != PATIENCE):
            m.d.sync += waited.eq(waited + 1)

        first = Signal()  # the small writer goes before the wide one
        conflict, accept = Signal(), Signal()
        # Looked up for both small writers, in parallel with the choice between them.
        back_conflict, host_conflict = (requested.bit_select(w.payload.chunk[:3], 1) for w in (write_back, host))
        m.d.comb += [
            first.eq((write_back.valid & write_back.urgent) | (waited == PATIENCE)),
            conflict.eq(Mux(write_back.valid, back_conflict, host_conflict) | bus_requested),
            accept.eq(first | ~conflict),
            write_back.accepted.eq(write_back.valid & accept),
            host.ready.eq(~write_back.valid & accept),
            wide_ready.eq(~(small_valid & first & conflict)),
            self.stall_stb.eq(lines.valid & ~lines.ready),
        ]

        bus = Signal(CHUNK_BITS)
        others = lines.payload.data.fill.replicate(CHUNK_BITS // 32) if self._words else small.data
        if self._two:
            others = Mux(filling, others, self.scatter.data[1])
        # A small write that waits for its bank only may have the bus, because no other writer does.
        m.d.comb += bus.eq(Mux(small_valid & (first | ~bus_requested), small.data, others))
        for b in range(BANKS):
            is_small = Signal(name=f"small{b}")
            row = lines.payload.row
            if self._stores:
                row = Mux(by_line[b], row, self.scatter.rows[b])
            m.d.comb += [
                is_small.eq(small_valid & accept & (bank == b)),
                self.banks.rows[b].eq(Mux(is_small, small.chunk[3:], row)),
                self.banks.data[b].eq(self._data(m, b, by_line[b], is_small, bus)),
                self.banks.strobes[b].eq(Mux(is_small, small.strobe, strobes[b] & wide_ready.replicate(CHUNK_BYTES))),
            ]
        return m

    def _data(self, m, b, by_line, use_bus, bus):
        """What a bank writes: one of up to four chunks, by one code for each byte."""
        line = self.lines.payload.data
        if self._words:
            chunks = len(line.word) // CHUNK_BITS
            words = [word.word_select(b % chunks, CHUNK_BITS) for word in (line.word, line.first_word)]
            filled, first = line.filled.word_select(b, CHUNK_BYTES), line.first[b // chunks]
        else:
            words = [line.word_select(b, CHUNK_BITS)]
            filled, first = Const(0, CHUNK_BYTES), Const(0)
        values = {1 + number: word for number, word in enumerate(words)} | {3: bus}
        if self._stores:
            values[0] = self.scatter.data[0 if self._two else b]
        if self._two:
            use_bus = use_bus | (~by_line & self.scatter.second[b])
        selected = []
        for byte in range(CHUNK_BYTES):
            code = Signal(2, name=f"code{b}_{byte}")
            is_first, is_word = by_line & (filled[byte] | first), by_line & (filled[byte] | ~first)
            m.d.comb += code.eq(Cat(use_bus | is_word, use_bus | is_first))
            selected.append(mux_tree(code, {number: chunk.word_select(byte, 8) for number, chunk in values.items()}))
        return Cat(selected)

    def _choose_wide(self, m, by_line, strobes, requested, bus_requested, filling, ready):
        """The line, and in each bank that it does not write the scattered chunk."""
        lines, line = self.lines, self.lines.payload
        write_line, line_banks = Signal(), Signal(BANKS)
        fills = lines.valid & line.data.fills if self._words else Const(0)
        m.d.comb += filling.eq(write_line & fills)
        of_line = [line.strobe.word_select(b, CHUNK_BYTES) for b in range(BANKS)]
        m.d.comb += line_banks.eq(Cat(strobe.any() for strobe in of_line) & lines.valid.replicate(BANKS))
        if not self._stores:
            m.d.comb += [
                write_line.eq(1),
                by_line.eq(~0),
                strobes.eq(line.strobe & lines.valid.replicate(len(line.strobe))),
                requested.eq(line_banks),
                bus_requested.eq(fills),
                lines.ready.eq(ready),
            ]
            return
        scatter, write = self.scatter, Signal(BANKS)
        # Banks whose scattered chunk cannot be written with the line; and those whose chunk cannot be written now.
        excluded, blocked = line_banks, by_line
        uses_bus = fills
        if self._two:  # the fill and the second chunk share the bus
            uses_bus = fills | (scatter.second & scatter.banks).any()
            excluded = excluded | (scatter.second & fills.replicate(BANKS))
            blocked = blocked | (scatter.second & filling.replicate(BANKS))
        m.d.comb += [
            write_line.eq((self.passed & excluded) == 0),
            by_line.eq(line_banks & write_line.replicate(BANKS)),
            write.eq(scatter.banks & ~blocked),
            requested.eq(line_banks | scatter.banks),
            bus_requested.eq(uses_bus),
            lines.ready.eq(ready & write_line),
            self.scattered.eq(write & ready.replicate(BANKS)),
            self.emptied.eq(~scatter.banks.any() | (ready & ~(write_line & (scatter.banks & excluded).any()))),
        ]
        with m.If(ready):
            m.d.sync += self.passed.eq(scatter.banks & ~write)
        for b in range(BANKS):
            scattered = scatter.strobes[b] & write[b].replicate(CHUNK_BYTES)
            m.d.comb += strobes[b].eq(Mux(by_line[b], of_line[b], scattered))
