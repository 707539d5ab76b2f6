"""Consumer port: one right answer a request, in order, in no more than eight cycles at the banks."""

import pytest
from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Assume, Cover, Elaboratable, Module, Signal

from tilewright.hw.smem.consumer import ConsumerPort
from tilewright.hw.smem.params import SmemParams
from tilewright.sim.formal import StreamRules, prove

PARAMS = SmemParams(1024)
HALF = SmemParams(1024, chunks_a_cycle=4)
LANE = 7


class ConsumerSpec(Elaboratable):
    """Follows one lane and one chunk of the memory, whose contents never change.

    It is the last lane, which all others go before, and of the chunk bit 0: all bits of a lane go the same way. Of two
    answers it comes with the second one.
    """

    def __init__(self, params=PARAMS):
        self.parts = 8 // params.chunks_a_cycle
        self.port = port = ConsumerPort(params)
        self.inputs = [port.reads.valid, port.reads.payload, port.read_data.ready, port.fetches.ready, port.fetched]
        self.inputs += [port.other_bank]

    def elaborate(self, platform):
        m = Module()
        m.submodules.port = port = self.port
        reads, answers, fetches = port.reads, port.read_data, port.fetches
        m.submodules.reads_rules = StreamRules(reads, assume=True)
        m.submodules.fetches_rules = StreamRules(fetches)

        lane, bank, row = LANE, 5, 2
        chunk, contents = 8 * row + bank, AnyConst(1)
        was_read = Signal()
        fire = fetches.valid & fetches.ready
        m.d.sync += was_read.eq(fire & fetches.payload.enable[bank] & (fetches.payload.rows[bank] == row))
        with m.If(was_read):
            m.d.comb += Assume(port.fetched[bank][0] == contents)

        # Requests that are not answered: at most one at the banks and one at the output.
        wants = reads.payload.lanes[lane] & (reads.payload.chunks[lane] == chunk)
        asked, answered = reads.valid & reads.ready, Signal()
        shown, second_part = answers.payload[lane % (8 // self.parts)][0], Signal(init=self.parts == 1)
        m.d.comb += answered.eq(answers.valid & answers.ready & second_part)
        if self.parts == 2:
            with m.If(answers.valid & answers.ready):
                m.d.sync += second_part.eq(~second_part)
        count, first, second = Signal(2), Signal(), Signal()
        m.d.sync += count.eq(count + asked - answered)
        m.d.comb += Assert(count <= 2)
        m.d.comb += Assert(~answers.valid | (count != 0))
        with m.If(answered):
            m.d.sync += first.eq(second)
        with m.If(asked & (count - answered == 0)):
            m.d.sync += first.eq(wants)
        with m.Elif(asked):
            m.d.sync += second.eq(wants)
        with m.If(answers.valid & first & second_part):
            m.d.comb += Assert(shown == contents)

        # The stream rules, for the same bit.
        untaken, was = Signal(), Signal()
        m.d.sync += [untaken.eq(answers.valid & ~answers.ready), was.eq(shown)]
        with m.If(untaken):
            m.d.comb += Assert(answers.valid & (shown == was))

        bank_cycles = Signal(4)
        with m.If(asked):
            m.d.sync += bank_cycles.eq(0)
        with m.Elif(fire):
            m.d.sync += bank_cycles.eq(bank_cycles + 1)
        m.d.comb += Assert(bank_cycles <= 8)
        m.d.comb += Cover(answers.valid & first & (bank_cycles == 3))
        m.d.comb += Cover((count == 2) & answered & asked)
        return m


@pytest.mark.parametrize(
    ("params", "depth"),
    [(PARAMS, 6), *(pytest.param(params, 12, marks=pytest.mark.long) for params in (PARAMS, HALF))],
    ids=["eight", "eight, longer", "four, longer"],
)
def test_answers(params, depth):
    # From the start on. Conflicts and overlap occur within seven cycles; in 12 there is a request of eight at the banks
    # and its answer, or shorter ones with waits.
    spec = ConsumerSpec(params)
    prove(spec, spec.inputs, name=f"smem-consumer-{params.chunks_a_cycle}", mode="bmc", depth=depth)


@pytest.mark.long
def test_conflicts_and_overlap_occur():
    spec = ConsumerSpec()
    prove(spec, spec.inputs, name="smem-consumer-cover", mode="cover", depth=7)
