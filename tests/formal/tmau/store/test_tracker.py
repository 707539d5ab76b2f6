"""F6: runs obey the stream rules; each takes one run of the queue, dropped ones too, and the last one the transfer."""

import pytest
from amaranth import Module, Signal
from amaranth.hdl import Assert, Cover, Elaboratable

from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.hw.tmau.store.tracker import StoreTracker
from tilewright.sim.formal import StreamRules, prove, queue_invariants


class StoreTrackerSpec(Elaboratable):
    """Counts runs and transfers that wait."""

    def __init__(self):
        self.dut = StoreTracker(TMAU_PRESETS["unit"])

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self.dut
        m.submodules.o_rules = StreamRules(dut.o)
        run = dut.run_queue.o
        goes = dut.o.valid & dut.o.ready
        taken, ended = run.valid & run.ready, dut.transfer_queue.o.valid & dut.transfer_queue.o.ready

        runs, transfers = Signal(8), Signal(8)
        m.d.sync += runs.eq(runs + (dut.runs.valid & dut.runs.ready) - taken)
        m.d.sync += transfers.eq(transfers + (dut.transfers.valid & dut.transfers.ready) - ended)
        m.d.comb += [
            *queue_invariants(dut.run_queue),
            *queue_invariants(dut.transfer_queue),
            Assert((runs == dut.run_queue.level) & (transfers == dut.transfer_queue.level)),
            Assert(~taken | (transfers != 0)),
            Assert(goes == (taken & (run.p.inside | run.p.last))),
            Assert(ended == (taken & run.p.last)),
            Assert(~goes | ((dut.o.p.last == run.p.last) & (dut.o.p.empty == ~run.p.inside))),
            Assert(~goes | ~dut.o.p.empty | dut.o.p.last),
        ]
        m.d.comb += Cover(goes & dut.o.p.empty & (transfers == 2))
        return m

    def ports(self):
        dut = self.dut
        return [dut.transfers.valid, dut.transfers.payload, dut.runs.valid, dut.runs.payload, dut.o.ready]


def test_one_run_of_the_queue_a_run():
    spec = StoreTrackerSpec()
    prove(spec, spec.ports(), name="store-tracker", depth=2, proves="F6")


@pytest.mark.long
def test_an_empty_end_is_reached():
    spec = StoreTrackerSpec()
    prove(spec, spec.ports(), name="store-tracker-cover", mode="cover", depth=8)
