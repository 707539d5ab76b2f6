"""F6: a transfer ends once, in order, and its completion holds until it is taken."""

import pytest
from amaranth import Module, Signal
from amaranth.hdl import Assert, Cover, Elaboratable

from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.hw.tmau.store.finish import StoreFinisher
from tilewright.sim.formal import StreamRules, prove


class StoreFinishSpec(Elaboratable):
    """Counts, modulo 16, what has come and what has ended."""

    def __init__(self):
        self.dut = StoreFinisher(TMAU_PRESETS["unit"])

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self.dut
        m.submodules.responses_rules = StreamRules(dut.responses, assume=True)
        m.submodules.completions_rules = StreamRules(dut.completions)
        end, response = dut.queue.o.p, dut.responses.p
        came = dut.ends.valid & dut.ends.ready
        final = dut.responses.valid & dut.responses.ready & response.last
        completes = dut.completions.valid & dut.completions.ready

        waiting, queue = Signal(8), dut.queue
        m.d.sync += waiting.eq(waiting + came - dut.done_stb)
        read = queue.o.valid + queue.fetched  # of the queue's items those that have left its memory
        m.d.comb += [
            Assert(waiting == queue.level),
            Assert(waiting <= dut.params.commands_in_flight),
            Assert(read <= waiting),
            Assert((waiting != dut.params.commands_in_flight) | (read != 0)),
            Assert(queue.tail == (queue.head + waiting - read)[: len(queue.tail)]),
            # Each last response ends one transfer, and each transfer for the bus takes one.
            Assert(~final | (dut.done_stb & ~end.loop)),
            Assert(~dut.done_stb | (final != end.loop)),
            Assert(completes == (final & ~end.quiet)),
            Assert(~completes | ((dut.completions.p.tag == end.tag) & (dut.completions.p.bytes == end.bytes))),
            # A response that found an error is told of with this completion or a later one.
            Assert(~(completes & (response.error | end.error)) | dut.completions.p.error),
        ]
        m.d.comb += Cover(completes & dut.completions.p.error & ~response.error & ~end.error & (waiting == 2))
        return m

    def ports(self):
        dut = self.dut
        return [
            *(dut.ends.valid, dut.ends.payload, dut.responses.valid, dut.responses.payload),
            dut.completions.ready,
        ]


def test_one_end_a_transfer():
    spec = StoreFinishSpec()
    prove(spec, spec.ports(), name="store-finish", depth=3, proves="F6")


@pytest.mark.long
def test_errors_are_passed_on():
    spec = StoreFinishSpec()
    prove(spec, spec.ports(), name="store-finish-cover", mode="cover", depth=8)
