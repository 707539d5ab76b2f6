"""The registers and predicates of the threads."""

from amaranth.hdl import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from .arithmetic.layouts import ArithmeticRegistersSignature
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

__all__ = ["PATIENCE", "PredicateFile", "PredicateRows", "RegisterFile"]

#: Cycles that a lane write waits for results before it requests a gap between them.
PATIENCE = 8


class RegisterFile(wiring.Component):
    """Two banks, for even and odd registers. A memory word is one register of all threads.

    A bank has one write port and two read ports: one for accumulators, the other for factors, lane reads and issue
    reads, in this order of priority. Row reads answer in the next cycle. Lane and issue reads share ``data``, and
    together are accepted one a cycle.

    A write is visible to reads of later cycles; a register that is read in the cycle in which it is written reads an
    undefined value. Results are always written at once. A lane write is accepted in a cycle in which no result goes to
    its bank; loads have priority over moves. ``compute.starved`` is registered: it is set one cycle after a lane write
    has waited for ``PATIENCE`` cycles.
    """

    def __init__(self, params):
        self._params = params
        self.banks = [Memory(shape=unsigned(32 * params.threads), depth=params.regs // 2, init=[]) for _ in range(2)]
        self._write_ports = [bank.write_port(granularity=32) for bank in self.banks]
        # The registers of the read ports are in ``_row``. This shows tools that an address is never read and written
        # in the same cycle, which the block RAMs of some devices do not support.
        self._accumulator_ports = [bank.read_port(domain="comb") for bank in self.banks]
        self._other_ports = [bank.read_port(domain="comb") for bank in self.banks]
        super().__init__(
            {
                "compute": In(ComputeRegistersSignature(params)),
                "lane_reads": In(LaneReadSignature(params)),
                "issue_reads": In(LaneReadSignature(params)),
                "loads": In(stream.Signature(LaneWriteLayout(params))),
                "moves": In(stream.Signature(LaneWriteLayout(params))),
                **({"arithmetic": In(ArithmeticRegistersSignature(params))} if params.units else {}),
            }
        )

    def elaborate(self, platform):
        m = Module()
        for index, bank in enumerate(self.banks):
            m.submodules[f"bank{index}"] = bank
        compute = self.compute
        for index, port in enumerate(self._accumulator_ports):
            address = compute.accumulator_register[1:]
            enable = compute.accumulator_enable & (compute.accumulator_register[0] == index)
            if self._params.units:
                m.d.comb += self.arithmetic.left_busy[index].eq(enable)
                address = Mux(enable, address, self.arithmetic.left_address[index])
                enable = enable | self.arithmetic.left_enable[index]
            m.d.comb += port.addr.eq(address)
            row = self._row(m, index, port, enable, f"accumulators{index}")
            m.d.comb += compute.accumulator_rows[index].eq(row)
            if self._params.units:
                m.d.comb += self.arithmetic.left_rows[index].eq(row)
        self._read_others(m)
        self._write(m)
        return m

    def _row(self, m, index, port, enable, name):
        """The register of a read port, which keeps its value while the same address is written."""
        row, write = Signal(32 * self._params.threads, name=name, reset_less=True), self._write_ports[index]
        with m.If(enable & ~(write.en.any() & (write.addr == port.addr))):
            m.d.sync += row.eq(port.data)
        return row

    def _read_others(self, m):
        """A factor read blocks its bank; a lane or issue read may use the other bank in the same cycle."""
        params, factor = self._params, self.compute.factor_reads
        lane, issue = self.lane_reads.requests, self.issue_reads.requests
        request, accepted = Signal(LaneReadLayout(params)), Signal()
        m.d.comb += request.eq(Mux(lane.valid, lane.payload, issue.payload))
        blocked = factor.valid & (factor.payload[0] == request.register[0])
        if params.units:
            # A lane read that had to wait for the arithmetic goes first in the next cycle.
            turn, waits = Signal(), Signal()
            wanted = self.arithmetic.right_wanted.bit_select(request.register[0], 1)
            m.d.comb += waits.eq((lane.valid | issue.valid) & wanted & ~turn & ~blocked)
            m.d.sync += turn.eq(waits | (turn & blocked & (lane.valid | issue.valid)))
            blocked = blocked | (wanted & ~turn)
        m.d.comb += [
            lane.ready.eq(~blocked),
            issue.ready.eq(~blocked & ~lane.valid),
            accepted.eq((lane.valid | issue.valid) & ~blocked),
        ]

        rows = []
        for index, port in enumerate(self._other_ports):
            by_factor = factor.valid & (factor.payload[0] == index)
            address, enable = request.register[1:], accepted & (request.register[0] == index)
            if params.units:
                arithmetic = self.arithmetic
                m.d.comb += arithmetic.right_busy[index].eq(by_factor | turn)
                wanted = arithmetic.right_wanted[index] & ~turn
                address = Mux(wanted, arithmetic.right_address[index], address)
                enable = enable | arithmetic.right_enable[index]
            m.d.comb += port.addr.eq(Mux(by_factor, factor.payload[1:], address))
            row = self._row(m, index, port, by_factor | enable, f"others{index}")
            rows.append(row)
            if params.units:
                m.d.comb += arithmetic.right_rows[index].eq(row)
        factor_odd, lane_odd, group = Signal(), Signal(), Signal.like(request.group)
        m.d.sync += [factor_odd.eq(factor.payload[0]), lane_odd.eq(request.register[0]), group.eq(request.group)]
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
        waited, patience_over = Signal(range(PATIENCE)), Signal()
        m.d.comb += lanes.eq(Mux(loads.valid, loads.payload, moves.payload))
        # Computed separately for both, because loads.valid is late and many registers depend on loads.ready.
        results = [compute, self.arithmetic] if params.units else [compute]
        load_free, move_free = (
            ~Cat(
                result.results_valid & (result.results_register[0] == write.payload.register[0]) for result in results
            ).any()
            for write in (loads, moves)
        )
        m.d.comb += [
            waiting.eq(loads.valid | moves.valid),
            free.eq(Mux(loads.valid, load_free, move_free)),
            loads.ready.eq(load_free),
            moves.ready.eq(move_free & ~loads.valid),
            patience_over.eq(waiting & ~free & (waited == PATIENCE - 1)),
        ]
        if params.units:
            with m.If(patience_over):
                m.d.sync += self.arithmetic.crowded.eq(1)
            with m.Elif(~waiting | free):
                m.d.sync += self.arithmetic.crowded.eq(0)
        m.d.sync += [compute.starved.eq(patience_over), waited.eq(Mux(waiting & ~free & ~patience_over, waited + 1, 0))]

        lane_threads = Signal(params.threads)
        for thread in range(params.threads):
            group, lane = divmod(thread, LANES)
            m.d.comb += lane_threads[thread].eq(lanes.lanes[lane] & (lanes.group == group))
        for index, port in enumerate(self._write_ports):
            by_lanes = Signal(name=f"lanes_to_{index}")
            m.d.comb += by_lanes.eq(waiting & (lanes.register[0] == index))
            address, enable = lanes.register[1:], Mux(by_lanes, lane_threads, 0)
            row = [lanes.data[thread % LANES] for thread in range(params.threads)]
            for number, result in enumerate(results):  # at most one of them writes the bank
                writes = Signal(name=f"results{number}_to_{index}")
                m.d.comb += writes.eq(result.results_valid & (result.results_register[0] == index))
                address = Mux(writes, result.results_register[1:], address)
                enable = Mux(writes, result.results_threads, enable)
                row = [Mux(writes, word, other) for word, other in zip(result.results_data, row, strict=True)]
            m.d.comb += [port.addr.eq(address), port.data.eq(Cat(*row)), port.en.eq(enable)]


class PredicateFile(wiring.Component):
    """Eight predicates of every thread: for each lane, a memory of single bits.

    Writes are always accepted, and visible to reads of the next cycle. Reads take one cycle.
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
        writes = self.writes.payload
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


class PredicateRows(wiring.Component):
    """The same for an engine with arithmetic: a memory whose word is one predicate of all threads.

    ``rows`` follow ``numbers`` combinationally. Other reads take one cycle. Writes are visible in the next cycle.
    """

    def __init__(self, params):
        self._params = params
        number = range(PREDICATES)
        self.memory = Memory(shape=unsigned(params.threads), depth=PREDICATES, init=[])
        super().__init__(
            {
                "write": In(1),
                "target": In(number),
                "values": In(params.threads),
                "threads": In(params.threads),  # whose predicate is written
                "numbers": In(number).array(3),
                "rows": Out(params.threads).array(3),
                "reads": In(GuardReadSignature(params)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = memory = self.memory
        write = memory.write_port(granularity=1)
        m.d.comb += [
            write.addr.eq(self.target),
            write.data.eq(self.values),
            write.en.eq(Mux(self.write, self.threads, 0)),
        ]
        for number, row in zip(self.numbers, self.rows, strict=True):
            port = memory.read_port(domain="comb")
            m.d.comb += [port.addr.eq(number), row.eq(port.data)]
        port = memory.read_port(domain="comb")
        m.d.comb += port.addr.eq(self.reads.predicate)
        with m.If(self.reads.enable):
            for lane in range(min(LANES, self._params.threads)):
                of_lane = Cat(port.data[lane::LANES])
                m.d.sync += self.reads.values[lane].eq(of_lane.bit_select(self.reads.groups[lane], 1))
        return m
