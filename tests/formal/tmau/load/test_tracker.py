"""F6: runs obey the stream rules, and take one row each, and with the last one the transfer; F8: and lie end to end."""

import pytest
from amaranth import Module, Mux, Signal
from amaranth.hdl import Assert, Cover, Elaboratable

from tilewright.hw.tmau.load.tracker import ResponseTracker
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.sim.formal import StreamRules, prove, queue_invariants


class TrackerSpec(Elaboratable):
    """Counts rows and runs on both sides of the queue, and remembers where the run before ended."""

    def __init__(self, bus_bytes):
        self.params = TMAU_PRESETS["unit"].replace(bus_bytes=bus_bytes)
        self.dut = ResponseTracker(self.params)

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self.dut
        m.submodules.runs_rules = StreamRules(dut.runs)
        taken = dut.runs.valid & dut.runs.ready
        pushed = dut.rows.valid & dut.rows.ready
        transfer_pushed = dut.transfers.valid & dut.transfers.ready

        rows, transfers = Signal(8), Signal(8)
        m.d.sync += rows.eq(rows + pushed - taken)
        m.d.sync += transfers.eq(transfers + transfer_pushed - (taken & dut.runs.payload.last))
        m.d.comb += [
            *queue_invariants(dut.row_queue),
            *queue_invariants(dut.transfer_queue),
            Assert(rows == dut.row_queue.level),
            Assert(transfers == dut.transfer_queue.level),
            Assert(~dut.runs.valid | ((rows != 0) & (transfers != 0))),
        ]
        self.judge_place(m, taken)
        m.d.comb += Cover(taken & dut.runs.payload.last & (transfers == 2))
        return m

    def judge_place(self, m, taken):
        """Runs lie end to end, with the gap where a row ends; a run closes the line that no other goes on with."""
        dut, run = self.dut, self.dut.runs.payload
        transfer, row = dut.transfer_queue.o.payload, dut.row_queue.o.payload
        begun, following = Signal(), Signal.like(dut.following)
        behind = Signal(len(following) + 1)  # a bit more: the last run may end at the end of the memory
        m.d.comb += behind.eq(run.end + Mux(row.skip, transfer.gap, 0))
        with m.If(taken):
            m.d.sync += [begun.eq(~run.last), following.eq(behind)]
        m.d.comb += [Assert(dut.first == ~begun), Assert(~begun | (dut.following == following))]
        length = Mux(row.folded, row.bytes, transfer.run_bytes)
        with m.If(dut.runs.valid):
            m.d.comb += [
                Assert(run.start == Mux(begun, following, transfer.smem)),
                Assert(run.end == (run.start + length)[: len(run.end)]),
                Assert(run.data_end == Mux(row.folded, run.end, run.start + transfer.data_end)[: len(run.end)]),
                Assert(run.close == (run.last | (behind[7:] != run.end[7:]))),
            ]


def ports(dut):
    return [
        *(dut.transfers.valid, dut.transfers.payload, dut.rows.valid, dut.rows.payload),
        dut.runs.ready,
    ]


@pytest.mark.parametrize("bus_bytes", [16, 32])
def test_one_row_a_run(bus_bytes):
    spec = TrackerSpec(bus_bytes)
    prove(spec, ports(spec.dut), name=f"tracker_{bus_bytes}", depth=2, proves="F6 F8")


@pytest.mark.long
def test_tracker_spec_reaches_two_transfers():
    spec = TrackerSpec(16)
    prove(spec, ports(spec.dut), name="tracker_cover", mode="cover", depth=8)
