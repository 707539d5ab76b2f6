"""Who reads and who writes the banks in each cycle."""

from amaranth.hdl import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.golden.spec import BANKS, CHUNK_BYTES

from .layouts import (
    CHUNK_BITS,
    BanksReadLayout,
    BanksWriteLayout,
    ChunkWriteLayout,
    LineLayout,
    read_data_layout,
    write_back_signature,
)

__all__ = ["PATIENCE", "ReadArbiter", "WriteArbiter"]

#: Cycles that a barrier or the host waits for its bank to be free before lines must wait instead.
PATIENCE = 8


class ReadArbiter(wiring.Component):
    """Gives the read side of all banks to one reader a cycle: barrier unit over host over lines and consumer by turns.

    One reader a cycle and not one a bank: barrier unit and host are rare, and the consumer's plan for a request stays
    whole. The barrier unit is never refused, because the time from landed bytes to a phase's end is promised; it reads
    in at most two of three cycles. The host passes the others at most once in a row, and of these each gets half of
    what is left while both wait. So the host waits at most five cycles, the others at most eleven.

    Latency: none; data come one cycle after the grant, in ``chunk`` for barrier unit and host.

    Members
    -------
    barrier : In(stream of unsigned(params.addr_width - 4), always ready)
    host : In(stream of unsigned(params.addr_width - 4))
    lines : In(stream of unsigned(params.row_width))
        Whole lines, for the TMAU.
    consumer : In(stream of BanksReadLayout)
    banks : Out(BanksReadLayout)
    banks_data : In(read_data_layout())
    chunk : Out(CHUNK_BITS)
        The chunk that ``barrier`` or ``host`` addressed in the cycle before.
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
                "banks_data": In(read_data_layout()),
                "chunk": Out(CHUNK_BITS),
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
        bank = Signal(range(BANKS))
        m.d.sync += bank.eq(single[:3])
        m.d.comb += self.chunk.eq(self.banks_data[bank])
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
    """Gives the write side of the banks to a *wide* writer and, in a bank that it leaves alone, to one *small* writer.

    The wide writers are lines and, with ``stores``, scattered writes; while both wait they go by turns. The small
    writers are the barrier unit's write-back register and, while that has nothing to write, the host. A small writer
    waits while a wide one writes its bank, up to ``PATIENCE`` cycles; then, or if the write-back register is urgent,
    the wide one waits. A line waits only in cycles in which a small write, or in its turn a scattered one, happens, so
    no longer than one cycle for each of them.

    Latency: none; the written bytes can be read in the next cycle (and in the same, see ``Banks``). Throughput: one
    wide write a cycle while no small writer needs its turn.

    Parameters
    ----------
    params : SmemParams
    stores : bool
        There are scattered writes.

    Members
    -------
    lines : In(stream of LineLayout)
    scatter : In(stream of BanksWriteLayout) if stores
    write_back : In(write_back_signature(params))
    host : In(stream of ChunkWriteLayout)
    banks : Out(BanksWriteLayout)
    stall_stb : Out(1)
        High for one cycle for each cycle that a line waits.

    Attributes
    ----------
    waited : Signal
        Cycles, up to ``PATIENCE``, that some small writer has been waiting; for proofs.
    scatter_first : Signal
        A line was written last; for proofs.
    """

    def __init__(self, params, stores=False):
        self.waited = Signal(range(PATIENCE + 1))
        self.scatter_first = Signal()
        self._stores = stores
        scatter = {"scatter": In(stream.Signature(BanksWriteLayout(params)))} if stores else {}
        super().__init__(
            {
                "lines": In(stream.Signature(LineLayout(params))),
                **scatter,
                "write_back": In(write_back_signature(params)),
                "host": In(stream.Signature(ChunkWriteLayout(params))),
                "banks": Out(BanksWriteLayout(params)),
                "stall_stb": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        lines, write_back, host = self.lines, self.write_back, self.host
        wide = Signal.like(self.banks)
        wide_valid, wide_ready = Signal(), Signal()
        self._choose_wide(m, wide, wide_valid, wide_ready)

        small = Signal.like(host.payload)
        small_valid = Signal()
        m.d.comb += small.eq(Mux(write_back.valid, write_back.payload, host.payload))
        m.d.comb += small_valid.eq(write_back.valid | host.valid)
        bank, row = small.chunk[:3], small.chunk[3:]

        waited = self.waited
        blocked = (write_back.valid & ~write_back.taken) | (host.valid & ~host.ready)
        with m.If(~blocked):
            m.d.sync += waited.eq(0)
        with m.Elif(waited != PATIENCE):
            m.d.sync += waited.eq(waited + 1)

        strobed = Signal(BANKS)  # banks that the wide writer writes
        m.d.comb += strobed.eq(Cat(strobe.any() for strobe in wide.strobes))
        first = Signal()  # the small writer goes before the wide one
        clash = Signal()
        taken = Signal()
        m.d.comb += [
            first.eq((write_back.valid & write_back.urgent) | (waited == PATIENCE)),
            clash.eq(strobed.bit_select(bank, 1)),
            taken.eq(first | ~(wide_valid & clash)),
            write_back.taken.eq(write_back.valid & taken),
            host.ready.eq(~write_back.valid & taken),
            wide_ready.eq(~(small_valid & first & clash)),
            self.stall_stb.eq(lines.valid & ~lines.ready),
        ]

        for b in range(BANKS):
            m.d.comb += [
                self.banks.rows[b].eq(wide.rows[b]),
                self.banks.data[b].eq(wide.data[b]),
                self.banks.strobes[b].eq(wide.strobes[b] & (wide_valid & wide_ready).replicate(CHUNK_BYTES)),
            ]
            with m.If(small_valid & taken & (bank == b)):
                m.d.comb += [
                    self.banks.rows[b].eq(row),
                    self.banks.data[b].eq(small.data),
                    self.banks.strobes[b].eq(small.strobe),
                ]
        return m

    def _choose_wide(self, m, wide, valid, ready):
        """The line, or by turns the scattered write."""
        lines, line = self.lines, self.lines.payload
        m.d.comb += [
            wide.rows.eq(Cat(line.row for _ in range(BANKS))),
            wide.data.eq(line.data),
            wide.strobes.eq(line.strobe),
            valid.eq(lines.valid),
            lines.ready.eq(ready),
        ]
        if self._stores:
            scatter, scatter_first = self.scatter, self.scatter_first
            with m.If(scatter.valid & (scatter_first | ~lines.valid)):
                m.d.comb += [wide.eq(scatter.payload), valid.eq(1), scatter.ready.eq(ready), lines.ready.eq(0)]
            with m.If(lines.valid & lines.ready):
                m.d.sync += scatter_first.eq(1)
            with m.Elif(scatter.valid & scatter.ready):
                m.d.sync += scatter_first.eq(0)
