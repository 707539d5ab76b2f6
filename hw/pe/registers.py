"""Register file: the registers of all threads, one row of them read or written at a time."""

from amaranth import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In

from .layouts import (
    PREDICATES,
    ComputeRegistersSignature,
    GuardReadSignature,
    LaneReadLayout,
    LaneReadSignature,
    LaneWriteLayout,
    PredicateReadSignature,
    PredicateWriteLayout,
)
from .params import LANES

__all__ = ["PATIENCE", "PredicateFile", "RegisterFile"]

#: Cycles that a write of lanes waits for results before it gets a gap between them.
PATIENCE = 8


class RegisterFile(wiring.Component):
    """Two banks, one of the even and one of the odd registers, each a memory whose words are a register of all threads.

    A bank has a write port and two read ports: one for accumulators, the other for factors, then lane reads, then issue
    reads. What is written in a cycle is seen by reads of later ones; a register that is read in the cycle in which it
    is written reads as anything. Results are written at once. Lanes are written in the cycle in which they are
    accepted: when no result goes to the same bank; loads before moves.

    Reads of rows answer in the next cycle, one a cycle. Lane and issue reads together are accepted one a cycle.

    Members
    -------
    compute : In(ComputeRegistersSignature)
        ``starved`` in the cycle after a write of lanes has waited for ``PATIENCE`` cycles: registered.
    lane_reads, issue_reads : In(LaneReadSignature)
        They share ``data``.
    loads, moves : In(stream of LaneWriteLayout)
    """

    def __init__(self, params):
        self._params = params
        self.banks = [Memory(shape=unsigned(32 * params.threads), depth=params.regs // 2, init=[]) for _ in range(2)]
        self.write_ports = [bank.write_port(granularity=32) for bank in self.banks]
        # Each has its register in ``_row``: so tools see that nothing is read while it is written, which memories of
        # some devices cannot do by themselves.
        self.accumulator_ports = [bank.read_port(domain="comb") for bank in self.banks]
        self.other_ports = [bank.read_port(domain="comb") for bank in self.banks]
        self.waited = Signal(range(PATIENCE))
        super().__init__(
            {
                "compute": In(ComputeRegistersSignature(params)),
                "lane_reads": In(LaneReadSignature(params)),
                "issue_reads": In(LaneReadSignature(params)),
                "loads": In(stream.Signature(LaneWriteLayout(params))),
                "moves": In(stream.Signature(LaneWriteLayout(params))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        for index, bank in enumerate(self.banks):
            m.submodules[f"bank{index}"] = bank
        self._read_accumulators(m)
        self._read_others(m)
        self._write(m)
        return m

    def _read_accumulators(self, m):
        compute = self.compute
        for index, port in enumerate(self.accumulator_ports):
            m.d.comb += port.addr.eq(compute.accumulator_register[1:])
            enable = compute.accumulator_enable & (compute.accumulator_register[0] == index)
            row = self._row(m, index, port, enable, f"accumulators{index}")
            m.d.comb += compute.accumulator_rows[index].eq(row)

    def _row(self, m, index, port, enable, name):
        """The register behind a read port of a bank; it stays if what it would read is being written."""
        row, write = Signal(32 * self._params.threads, name=name, reset_less=True), self.write_ports[index]
        with m.If(enable & ~(write.en.any() & (write.addr == port.addr))):
            m.d.sync += row.eq(port.data)
        return row

    def _read_others(self, m):
        """A factor takes its bank; a lane or issue read may have the other one in the same cycle."""
        params, factor, lane, issue = (
            self._params,
            self.compute.factor_reads,
            self.lane_reads.requests,
            self.issue_reads.requests,
        )
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

        rows = []
        for index, port in enumerate(self.other_ports):
            by_factor = factor.valid & (factor.p[0] == index)
            m.d.comb += port.addr.eq(Mux(by_factor, factor.p[1:], chosen.register[1:]))
            enable = by_factor | (taken & (chosen.register[0] == index))
            rows.append(self._row(m, index, port, enable, f"others{index}"))
        factor_odd, lane_odd, group = Signal(), Signal(), Signal.like(chosen.group)
        m.d.sync += [factor_odd.eq(factor.p[0]), lane_odd.eq(chosen.register[0]), group.eq(chosen.group)]
        even_row, odd_row = rows
        lane_row = Signal(LANES * 32 * params.groups)
        m.d.comb += [
            self.compute.factor_row.eq(Mux(factor_odd, odd_row, even_row)),
            lane_row.eq(Mux(lane_odd, odd_row, even_row)),
        ]
        data = Signal.like(self.lane_reads.data)
        m.d.sync += data.eq(lane_row.word_select(group, LANES * 32))
        m.d.comb += [self.lane_reads.data.eq(data), self.issue_reads.data.eq(data)]

    def _write(self, m):
        params, compute, loads, moves = self._params, self.compute, self.loads, self.moves
        lanes, waiting, free = Signal(LaneWriteLayout(params)), Signal(), Signal()
        due = Signal()  # it has waited long enough
        with m.If(loads.valid):
            m.d.comb += lanes.eq(loads.p)
        with m.Else():
            m.d.comb += lanes.eq(moves.p)
        # Of each by itself: whether a load is there is known late, and much waits for its ready.
        load_free, move_free = (
            ~(compute.results_valid & (compute.results_register[0] == write.p.register[0])) for write in (loads, moves)
        )
        m.d.comb += [
            waiting.eq(loads.valid | moves.valid),
            free.eq(Mux(loads.valid, load_free, move_free)),
            loads.ready.eq(load_free),
            moves.ready.eq(move_free & ~loads.valid),
            due.eq(waiting & ~free & (self.waited == PATIENCE - 1)),
        ]
        m.d.sync += compute.starved.eq(due)
        with m.If(waiting & ~free):
            m.d.sync += self.waited.eq(Mux(due, 0, self.waited + 1))
        with m.Else():
            m.d.sync += self.waited.eq(0)

        lane_threads = Signal(params.threads)
        for thread in range(params.threads):
            group, lane = divmod(thread, LANES)
            m.d.comb += lane_threads[thread].eq(lanes.lanes[lane] & (lanes.group == group))
        for index, port in enumerate(self.write_ports):
            by_results, by_lanes = Signal(name=f"results_to_{index}"), Signal(name=f"lanes_to_{index}")
            m.d.comb += [
                by_results.eq(compute.results_valid & (compute.results_register[0] == index)),
                by_lanes.eq(waiting & (lanes.register[0] == index)),
                port.addr.eq(Mux(by_results, compute.results_register[1:], lanes.register[1:])),
            ]
            with m.If(by_results):
                m.d.comb += port.en.eq(compute.results_threads)
            with m.Elif(by_lanes):
                m.d.comb += port.en.eq(lane_threads)
            words = [
                Mux(by_results, compute.results_data[thread], lanes.data[thread % LANES])
                for thread in range(params.threads)
            ]
            m.d.comb += port.data.eq(Cat(words))


class PredicateFile(wiring.Component):
    """Eight predicates of every thread, in a memory of single bits for each lane of the groups.

    A write in one cycle is seen by reads of the next. Reads take one cycle, writes are always accepted.

    Members
    -------
    writes : In(stream of PredicateWriteLayout)
        Always ready.
    reads : In(GuardReadSignature(params))
    issue_reads : In(PredicateReadSignature)
    """

    def __init__(self, params):
        self._memories = [Memory(shape=1, depth=PREDICATES * params.groups, init=[]) for _ in range(LANES)]
        super().__init__(
            {
                "writes": In(stream.Signature(PredicateWriteLayout(params))),
                "reads": In(GuardReadSignature(params)),
                "issue_reads": In(PredicateReadSignature(params)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        writes = self.writes.p
        m.d.comb += self.writes.ready.eq(1)
        for lane, memory in enumerate(self._memories):
            m.submodules[f"lane{lane}"] = memory
            write, read, issue_read = memory.write_port(), memory.read_port(), memory.read_port()
            m.d.comb += [
                write.addr.eq(Cat(writes.predicate, writes.group)),
                write.data.eq(writes.values[lane]),
                write.en.eq(self.writes.valid & writes.lanes[lane]),
                read.addr.eq(Cat(self.reads.predicate, self.reads.groups[lane])),
                read.en.eq(self.reads.enable),
                self.reads.values[lane].eq(read.data),
                issue_read.addr.eq(Cat(self.issue_reads.predicate, self.issue_reads.group)),
                self.issue_reads.values[lane].eq(issue_read.data),
            ]
        return m
