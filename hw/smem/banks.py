"""The banks: eight memories side by side, each with its own row address."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from tilewright.spec import BANKS, CHUNK_BYTES

from ..lib.logic import chosen
from .layouts import (
    CHUNK_BITS,
    BanksReadLayout,
    BanksWriteLayout,
    ChunkWriteLayout,
    LineLayout,
    ScatteredLayout,
    WriteBackSignature,
    read_data_layout,
)

__all__ = ["PATIENCE", "Banks", "ReadArbiter", "WriteArbiter"]


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


#: Cycles that a barrier or the host waits for its bank to be free before lines must wait instead.
PATIENCE = 8


class ReadArbiter(wiring.Component):
    """Gives the read side of all banks to one reader a cycle: barrier unit over host over lines and consumer by turns.

    One reader a cycle and not one a bank: barrier unit and host are rare, and the consumer's plan for a request stays
    whole. The barrier unit is never refused, because the time from landed bytes to a phase's end is promised; it reads
    in at most two of three cycles. The host passes the others at most once in a row, and of these each gets half of
    what is left while both wait. So the host waits at most five cycles, the others at most eleven.

    Latency: none; data come one cycle after the grant.

    Members
    -------
    barrier : In(stream of unsigned(params.addr_width - 4), always ready)
    host : In(stream of unsigned(params.addr_width - 4))
    lines : In(stream of unsigned(params.row_width))
        Whole lines, for the TMAU.
    consumer : In(stream of BanksReadLayout)
    banks : Out(BanksReadLayout)
    single_bank : Out(3)
        Bank of the chunk that ``barrier`` or ``host`` reads, if one of them does.
    """

    def __init__(self, params):
        chunk_address = unsigned(params.addr_width - 4)
        super().__init__(
            {
                "barrier": In(stream.Signature(chunk_address, always_ready=True)),
                "host": In(stream.Signature(chunk_address)),
                "lines": In(stream.Signature(unsigned(params.row_width))),
                "consumer": In(stream.Signature(BanksReadLayout(params))),
                "banks": Out(BanksReadLayout(params)),
                "single_bank": Out(3),
            }
        )

    def elaborate(self, platform):
        m = Module()
        passed = Signal()  # the host was granted while others waited: now it is their turn
        line_first = Signal()  # the consumer was granted last
        left = Signal()  # barrier unit and host leave the banks to the others
        others = self.lines.valid | self.consumer.valid
        m.d.comb += [
            self.host.ready.eq(~self.barrier.valid & ~(others & passed)),
            left.eq(~self.barrier.valid & (~self.host.valid | passed)),
            self.lines.ready.eq(left & (line_first | ~self.consumer.valid)),
            self.consumer.ready.eq(left & ~(line_first & self.lines.valid)),
        ]
        with m.If(left):
            m.d.sync += passed.eq(0)
        with m.Elif(self.host.valid & self.host.ready):
            m.d.sync += passed.eq(others)

        # The single chunk's address does not depend on the grant, which comes late.
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
    """Gives the write side of the banks to *wide* writers and, in a bank that they leave alone, to one *small* writer.

    The wide writers are lines and, with ``stores``, scattered writes, which wait bank by bank. A line goes before what
    waits in its banks, but not twice in a row: then it waits itself, until that has been written. The small writers are
    the barrier unit's write-back register and, while that has nothing to write, the host. A small writer waits while a
    wide one writes its bank, up to ``PATIENCE`` cycles; then, or if the write-back register is urgent, the wide ones
    wait. A line waits only in cycles in which a small write, or a scattered one in a bank of the line, happens, so no
    longer than one cycle for each of them.

    Lines may come as words. Then one code for each byte chooses among a scattered write, the line's two words, and
    what all banks have in common: the fill, a small write, or the second chunk of a scattered write that has two at
    most. These wait for each other.

    Latency: none; the written bytes can be read in the next cycle. Throughput: one write a cycle in each bank, while no
    small writer needs its turn.

    Parameters
    ----------
    params : SmemParams
    stores : bool
        There are scattered writes.
    word_bytes : int or None
        Of the words that lines come as.

    Members
    -------
    lines : In(stream of LineLayout(params, 1, word_bytes))
    scatter : In(ScatteredLayout) if stores
        What waits in each bank; it stays until it has been written.
    scattered : Out(BANKS) if stores
        Banks in which it is written in this cycle.
    emptied : Out(1) if stores
        Nothing waits there after this cycle.
    write_back : In(WriteBackSignature)
    host : In(stream of ChunkWriteLayout)
    banks : Out(BanksWriteLayout)
    stall_stb : Out(1)
        High for one cycle for each cycle that a line waits.

    Attributes
    ----------
    waited : Signal
        Cycles, up to ``PATIENCE``, that some small writer has been waiting; for proofs.
    passed : Signal
        Banks of which a line was written before what waits there; for proofs.
    """

    def __init__(self, params, stores=False, word_bytes=None):
        self.waited = Signal(range(PATIENCE + 1))
        self.passed = Signal(BANKS)
        self._stores = stores
        self._words = word_bytes is not None
        self._two = stores and params.writes_a_cycle == 2  # chunks of a scattered write at most
        scatter = {"scatter": In(ScatteredLayout(params)), "scattered": Out(BANKS), "emptied": Out(1)}
        super().__init__(
            {
                "lines": In(stream.Signature(LineLayout(params, 1, word_bytes))),
                **(scatter if stores else {}),
                "write_back": In(WriteBackSignature(params)),
                "host": In(stream.Signature(ChunkWriteLayout(params))),
                "banks": Out(BanksWriteLayout(params)),
                "stall_stb": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        lines, write_back, host = self.lines, self.write_back, self.host
        by_line = Signal(BANKS)  # of the wide writers the line writes the bank
        strobes = Signal(data.ArrayLayout(CHUNK_BYTES, BANKS))  # of wide writers
        wide_ready = Signal()
        # Banks that they wait for, whichever goes; one waits for what all banks have in common; the fill is that.
        wanted, common_wanted, filling = Signal(BANKS), Signal(), Signal()
        self._choose_wide(m, by_line, strobes, wanted, common_wanted, filling, wide_ready)

        small = Signal.like(host.payload)
        small_valid = Signal()
        m.d.comb += small.eq(Mux(write_back.valid, write_back.payload, host.payload))
        m.d.comb += small_valid.eq(write_back.valid | host.valid)
        bank = small.chunk[:3]

        waited = self.waited
        blocked = (write_back.valid & ~write_back.taken) | (host.valid & ~host.ready)
        with m.If(~blocked):
            m.d.sync += waited.eq(0)
        with m.Elif(waited != PATIENCE):
            m.d.sync += waited.eq(waited + 1)

        first = Signal()  # the small writer goes before the wide one
        clash, taken = Signal(), Signal()
        # Looked up for each small writer: which of them goes is found beside it.
        back_clash, host_clash = (wanted.bit_select(writer.payload.chunk[:3], 1) for writer in (write_back, host))
        m.d.comb += [
            first.eq((write_back.valid & write_back.urgent) | (waited == PATIENCE)),
            clash.eq(Mux(write_back.valid, back_clash, host_clash) | common_wanted),
            taken.eq(first | ~clash),
            write_back.taken.eq(write_back.valid & taken),
            host.ready.eq(~write_back.valid & taken),
            wide_ready.eq(~(small_valid & first & clash)),
            self.stall_stb.eq(lines.valid & ~lines.ready),
        ]

        common = Signal(CHUNK_BITS)
        others = lines.payload.data.fill.replicate(CHUNK_BITS // 32) if self._words else small.data
        if self._two:
            others = Mux(filling, others, self.scatter.data[1])
        # A small write that its bank alone keeps waiting may show here: nothing else does then.
        m.d.comb += common.eq(Mux(small_valid & (first | ~common_wanted), small.data, others))
        for b in range(BANKS):
            here = Signal(name=f"small{b}")
            row = lines.payload.row
            if self._stores:
                row = Mux(by_line[b], row, self.scatter.rows[b])
            m.d.comb += [
                here.eq(small_valid & taken & (bank == b)),
                self.banks.rows[b].eq(Mux(here, small.chunk[3:], row)),
                self.banks.data[b].eq(self._data(m, b, by_line[b], here, common)),
                self.banks.strobes[b].eq(Mux(here, small.strobe, strobes[b] & wide_ready.replicate(CHUNK_BYTES))),
            ]
        return m

    def _data(self, m, b, by_line, here, common):
        """What a bank writes: of at most four chunks, by one code for each byte. A bit is two tables of an ECP5."""
        line = self.lines.payload.data
        if self._words:
            places = len(line.word) // CHUNK_BITS
            words = [word.word_select(b % places, CHUNK_BITS) for word in (line.word, line.first_word)]
            filled, first = line.filled.word_select(b, CHUNK_BYTES), line.first[b // places]
        else:
            words = [line.word_select(b, CHUNK_BITS)]
            filled, first = Const(0, CHUNK_BYTES), Const(0)
        chunks = {1 + number: word for number, word in enumerate(words)} | {3: common}
        if self._stores:
            chunks[0] = self.scatter.data[0 if self._two else b]
        if self._two:
            here = here | (~by_line & self.scatter.second[b])
        made = []
        for byte in range(CHUNK_BYTES):
            code = Signal(2, name=f"code{b}_{byte}")
            is_first, is_word = by_line & (filled[byte] | first), by_line & (filled[byte] | ~first)
            m.d.comb += code.eq(Cat(here | is_word, here | is_first))
            made.append(chosen(code, {number: chunk.word_select(byte, 8) for number, chunk in chunks.items()}))
        return Cat(made)

    def _choose_wide(self, m, by_line, strobes, wanted, common_wanted, filling, ready):
        """The line, and in each bank that it leaves alone what is scattered there."""
        lines, line = self.lines, self.lines.payload
        line_goes, line_banks = Signal(), Signal(BANKS)
        fills = lines.valid & line.data.fills if self._words else Const(0)
        m.d.comb += filling.eq(line_goes & fills)
        of_line = [line.strobe.word_select(b, CHUNK_BYTES) for b in range(BANKS)]
        m.d.comb += line_banks.eq(Cat(strobe.any() for strobe in of_line) & lines.valid.replicate(BANKS))
        if not self._stores:
            m.d.comb += [
                line_goes.eq(1),
                by_line.eq(~0),
                strobes.eq(line.strobe & lines.valid.replicate(len(line.strobe))),
                wanted.eq(line_banks),
                common_wanted.eq(fills),
                lines.ready.eq(ready),
            ]
            return
        scatter, goes = self.scatter, Signal(BANKS)
        # Banks that the line needs, and in which nothing scattered can go if the line does; where nothing can.
        needed, held = line_banks, by_line
        common = fills
        if self._two:  # the fill and the second chunk need what all banks have in common
            common = fills | (scatter.second & scatter.banks).any()
            needed = needed | (scatter.second & fills.replicate(BANKS))
            held = held | (scatter.second & filling.replicate(BANKS))
        m.d.comb += [
            line_goes.eq((self.passed & needed) == 0),
            by_line.eq(line_banks & line_goes.replicate(BANKS)),
            goes.eq(scatter.banks & ~held),
            wanted.eq(line_banks | scatter.banks),
            common_wanted.eq(common),
            lines.ready.eq(ready & line_goes),
            self.scattered.eq(goes & ready.replicate(BANKS)),
            self.emptied.eq(~scatter.banks.any() | (ready & ~(line_goes & (scatter.banks & needed).any()))),
        ]
        with m.If(ready):
            m.d.sync += self.passed.eq(scatter.banks & ~goes)
        for b in range(BANKS):
            scattered = scatter.strobes[b] & goes[b].replicate(CHUNK_BYTES)
            m.d.comb += strobes[b].eq(Mux(by_line[b], of_line[b], scattered))
