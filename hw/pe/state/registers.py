"""Register file: the registers of all threads, one row of them read or written at a time."""

from amaranth import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ..layouts import LaneReadLayout, LaneWriteLayout
from ..params import LANES

__all__ = ["PATIENCE", "RegisterFile"]

#: Cycles that a write of lanes waits for results before it asks for a gap between them.
PATIENCE = 8


class RegisterFile(wiring.Component):
    """Two banks, one of the even and one of the odd registers, each a memory whose words are a register of all threads.

    A bank has a write port and two read ports: one for products, the other for factors, then lane reads, then issue
    reads. What is written in a cycle is seen by reads asked for in later ones. Results are written at once. Lanes are
    written in the cycle in which they are accepted: when no result goes to the same bank; loads before moves.

    Reads of rows answer in the next cycle, one a cycle. Lane and issue reads together are accepted one a cycle, and
    answer on ``lane_data`` exactly ``LANE_READ_LATENCY`` cycles after the handshake.

    Members
    -------
    product_register : In(reg_width)
    product_enable : In(1)
    product_row : Out(ArrayLayout(32, T))
        One cycle after ``product_enable``.
    factor_reads : In(stream of register numbers, always ready)
    factor_row : Out(ArrayLayout(32, T))
        One cycle after ``factor_reads``.
    lane_reads, issue_reads : In(stream of LaneReadLayout)
    lane_data : Out(ArrayLayout(32, LANES))
        Lanes of threads that do not exist are 0.
    results_valid : In(1)
    results_register : In(reg_width)
    results_threads : In(T)
        Threads whose register is written.
    results_data : In(ArrayLayout(32, T))
    loads, moves : In(stream of LaneWriteLayout)
    starved : Out(1)
        Strobe: a write of lanes has waited for ``PATIENCE`` cycles, and goes when for one cycle there is no result.
    """

    def __init__(self, params):
        self._params = params
        self.banks = [Memory(shape=unsigned(32 * params.threads), depth=params.regs // 2, init=[]) for _ in range(2)]
        self.write_ports = [bank.write_port(granularity=32) for bank in self.banks]
        self.product_ports = [bank.read_port() for bank in self.banks]
        self.other_ports = [bank.read_port() for bank in self.banks]
        self.waited = Signal(range(PATIENCE))
        row = data.ArrayLayout(32, params.threads)
        super().__init__(
            {
                "product_register": In(params.reg_width),
                "product_enable": In(1),
                "product_row": Out(row),
                "factor_reads": In(stream.Signature(unsigned(params.reg_width), always_ready=True)),
                "factor_row": Out(row),
                "lane_reads": In(stream.Signature(LaneReadLayout(params))),
                "issue_reads": In(stream.Signature(LaneReadLayout(params))),
                "lane_data": Out(data.ArrayLayout(32, LANES)),
                "results_valid": In(1),
                "results_register": In(params.reg_width),
                "results_threads": In(params.threads),
                "results_data": In(row),
                "loads": In(stream.Signature(LaneWriteLayout(params))),
                "moves": In(stream.Signature(LaneWriteLayout(params))),
                "starved": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        for index, bank in enumerate(self.banks):
            m.submodules[f"bank{index}"] = bank
        self._read_products(m)
        self._read_others(m)
        self._write(m)
        return m

    def _read_products(self, m):
        odd = Signal()  # the register that was asked for
        m.d.sync += odd.eq(self.product_register[0])
        for index, port in enumerate(self.product_ports):
            m.d.comb += [
                port.addr.eq(self.product_register[1:]),
                port.en.eq(self.product_enable & (self.product_register[0] == index)),
            ]
        even_row, odd_row = (port.data for port in self.product_ports)
        m.d.comb += self.product_row.eq(Mux(odd, odd_row, even_row))

    def _read_others(self, m):
        """A factor takes its bank; a lane or issue read may have the other one in the same cycle."""
        params, factor, lane, issue = self._params, self.factor_reads, self.lane_reads, self.issue_reads
        chosen, taken = Signal(LaneReadLayout(params)), Signal()
        with m.If(lane.valid):
            m.d.comb += chosen.eq(lane.p)
        with m.Else():
            m.d.comb += chosen.eq(issue.p)
        blocked = factor.valid & (factor.p[0] == chosen.register[0])
        m.d.comb += [
            lane.ready.eq(~blocked),
            issue.ready.eq(~blocked & ~lane.valid),
            taken.eq((lane.valid | issue.valid) & ~blocked),
        ]

        for index, port in enumerate(self.other_ports):
            by_factor = factor.valid & (factor.p[0] == index)
            m.d.comb += [
                port.addr.eq(Mux(by_factor, factor.p[1:], chosen.register[1:])),
                port.en.eq(by_factor | (taken & (chosen.register[0] == index))),
            ]
        factor_odd, lane_odd, group = Signal(), Signal(), Signal.like(chosen.group)
        m.d.sync += [factor_odd.eq(factor.p[0]), lane_odd.eq(chosen.register[0]), group.eq(chosen.group)]
        even_row, odd_row = (port.data for port in self.other_ports)
        lane_row = Signal(LANES * 32 * params.groups)
        m.d.comb += [
            self.factor_row.eq(Mux(factor_odd, odd_row, even_row)),
            lane_row.eq(Mux(lane_odd, odd_row, even_row)),
        ]
        m.d.sync += self.lane_data.eq(lane_row.word_select(group, LANES * 32))

    def _write(self, m):
        params, loads, moves = self._params, self.loads, self.moves
        lanes, waiting, free = Signal(LaneWriteLayout(params)), Signal(), Signal()
        with m.If(loads.valid):
            m.d.comb += lanes.eq(loads.p)
        with m.Else():
            m.d.comb += lanes.eq(moves.p)
        m.d.comb += [
            waiting.eq(loads.valid | moves.valid),
            free.eq(~(self.results_valid & (self.results_register[0] == lanes.register[0]))),
            loads.ready.eq(free),
            moves.ready.eq(free & ~loads.valid),
            self.starved.eq(waiting & ~free & (self.waited == PATIENCE - 1)),
        ]
        with m.If(waiting & ~free):
            m.d.sync += self.waited.eq(Mux(self.starved, 0, self.waited + 1))
        with m.Else():
            m.d.sync += self.waited.eq(0)

        lane_threads = Signal(params.threads)
        for thread in range(params.threads):
            group, lane = divmod(thread, LANES)
            m.d.comb += lane_threads[thread].eq(lanes.lanes[lane] & (lanes.group == group))
        for index, port in enumerate(self.write_ports):
            by_results, by_lanes = Signal(name=f"results_to_{index}"), Signal(name=f"lanes_to_{index}")
            m.d.comb += [
                by_results.eq(self.results_valid & (self.results_register[0] == index)),
                by_lanes.eq(waiting & (lanes.register[0] == index)),
                port.addr.eq(Mux(by_results, self.results_register[1:], lanes.register[1:])),
            ]
            with m.If(by_results):
                m.d.comb += port.en.eq(self.results_threads)
            with m.Elif(by_lanes):
                m.d.comb += port.en.eq(lane_threads)
            words = [
                Mux(by_results, self.results_data[thread], lanes.data[thread % LANES])
                for thread in range(params.threads)
            ]
            m.d.comb += port.data.eq(Cat(words))
