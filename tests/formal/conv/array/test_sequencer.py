"""The order of work: each set is released once, weights are there when they are used, and no bank is begun too early.

The plan, what sets there are and when anything comes is anything, but for what other blocks promise.
"""

import pytest
from amaranth.hdl import Array, Assert, Assume, Cat, Cover, Signal

from support.formal import Spec
from tilewright.hw.conv.array.sequencer import Sequencer
from tilewright.hw.conv.array.weights import next_word
from tilewright.hw.conv.params import ConvUnitParams
from tilewright.hw.smem.params import SmemParams
from tilewright.spec.conv import CONV_PRESETS
from tilewright.verify.formal import prove

PARAMS = ConvUnitParams(CONV_PRESETS["unit"].replace(weight_bytes=256), SmemParams(1024))
FLOATS = PARAMS.replace(conv=PARAMS.conv.replace(types=("f16",)))
LATENCY, LOOP = 2, 6
_PLAN = ("lanes", "stays", "granularity", "out_channels", "last_pass")


class SequencerSpec(Spec):
    """The sequencer in job after job, the first of which begins in the first cycle."""

    given = "sets"

    more = ()  # members of the plan that are looked at besides

    def __init__(self, params=PARAMS):
        self.dut = Sequencer(params, LATENCY, LOOP)

    def specify(self, m, dut):
        plan = dut.plan
        for name in (*_PLAN, *self.more):
            before = Signal(plan[name].shape(), name=f"{name}_before")
            m.d.sync += before.eq(plan[name])
            m.d.comb += Assume(dut.start | (plan[name] == before))
        begun = Signal()
        m.d.sync += begun.eq(1)
        m.d.comb += [
            Assume(begun | dut.start),
            Assume(~(dut.start & dut.busy)),
            Assume(begun | ~dut.sets.valid),
            Assume((plan.granularity <= 4) & (plan.out_channels != 0)),
        ]
        self.add(m, begun)


class WeightsSpec(SequencerSpec):
    """What is written goes on from what is freed, in whole blocks, and not once round.

    When a job begins, what is written has come to its first word, or further.
    """

    def add(self, m, begun):
        dut, plan = self.dut, self.dut.plan
        taken = dut.sets.valid & dut.sets.ready
        sets, released = Signal(range(PARAMS.sets)), Signal()
        m.d.sync += [sets.eq(sets + (taken & ~plan.lanes)), released.eq(taken & ~plan.lanes)]
        m.d.comb += [Assert(dut.number == sets), Assert(dut.release == released), Assert(~dut.release | dut.valid)]

        ring, block = PARAMS.quarter_bytes, Signal(5)
        size, room, first = (Signal.like(dut.freed) for _ in range(3))
        m.d.comb += [
            block.eq(1 << plan.granularity),
            size.eq(dut.written - dut.freed),
            room.eq(dut.row - dut.freed),
            Assume(begun | (dut.written == 0)),
            Assume(size <= ring),
            Assume((dut.written & (block - 1)[:5]) == 0),
            first.eq(next_word(PARAMS, dut.freed)),
            Assume(~dut.start | ((dut.written - first)[: len(first)] <= ring)),
        ]
        # Weights are never taken back: neither by what is written, nor by what is freed.
        was, was_freed = Signal.like(dut.written), Signal.like(dut.freed)
        m.d.sync += [was.eq(dut.written), was_freed.eq(dut.freed)]
        m.d.comb += Assume(~begun | ((dut.written - was)[: len(was)] <= ring))
        m.d.comb += Assume(~begun | ((was - dut.freed)[: len(was)] <= size))
        with m.If(begun & ~dut.start & ~plan.lanes):
            m.d.comb += [
                Assert((dut.row & (block - 1)[:5]) == 0),
                Assert((dut.freed & (block - 1)[:5]) == 0),
                Assert(plan.stays | (dut.row == dut.freed)),
                Assert((was - dut.freed)[: len(was)] >= room),
            ]
        # A step's rows begin where ``row`` was, and were written before, and not freed. The plan may be the next job's.
        there, low, number = Signal(), Signal(range(ring)), Signal.like(dut.number)
        word, size_log2, lanes = Signal.like(dut.lane_read.words[0]), Signal.like(plan.granularity), Signal()
        m.d.sync += [size_log2.eq(plan.granularity), lanes.eq(plan.lanes)]
        m.d.sync += [there.eq(room < size), low.eq(dut.row), number.eq(dut.number), word.eq(dut.lane_read.words[0])]
        words = ring // PARAMS.conv.row_bytes
        with m.If(dut.valid):
            m.d.comb += Assert(dut.set == number)
            with m.If(~lanes):
                m.d.comb += [
                    Assert(there),
                    Assert(dut.step.read.words[0] == low // 16 | dut.step.channel * words),
                    Assert(dut.step.part == low % 16 >> size_log2),
                ]
            with m.Else():
                m.d.comb += Assert(dut.step.read.words[0] == word)


class BanksSpec(SequencerSpec):
    """Sets make tiles: one is the first one if it is behind a last one."""

    made = "tiles"

    def add(self, m, begun):
        dut = self.dut
        flags, within = dut.sets.payload, Signal()
        with m.If(dut.sets.valid & dut.sets.ready):
            m.d.sync += within.eq(~flags.last)
        # In lane-private mode the first half of the units begins with the set.
        m.d.comb += [Assume(flags.first == ~within), Assume(~dut.plan.lanes | (dut.halves.first[0] == flags.first))]

        # From the first step of a tile on a bank is taken, until its tile has been read.
        taken, done = Signal(PARAMS.accumulator_banks), Signal(PARAMS.accumulator_banks)
        age = [Signal(range(LATENCY + 2), name=f"age{bank}") for bank in range(PARAMS.accumulator_banks)]
        begins = Signal()
        read = dut.tiles.valid & dut.tiles.ready
        last = Signal()  # the last step of a tile
        m.d.sync += last.eq(dut.sets.valid & dut.sets.ready & flags.last)
        m.d.comb += begins.eq(dut.valid & dut.step.halves.first[0] & (dut.step.channel == 0))
        for bank in range(PARAMS.accumulator_banks):
            mine = dut.step.bank == bank
            with m.If(dut.valid & mine):
                m.d.sync += [taken[bank].eq(1), done[bank].eq(last), age[bank].eq(0)]
            with m.Elif(age[bank] != LATENCY + 1):
                m.d.sync += age[bank].eq(age[bank] + 1)
            with m.If(read & (dut.tiles.payload == bank)):
                m.d.sync += [taken[bank].eq(0), done[bank].eq(0)]
        bank = dut.step.bank
        m.d.comb += [
            Assert(~begins | ~taken.bit_select(bank, 1)),
            Assert(~dut.valid | begins | taken.bit_select(bank, 1)),
            Assert(~(dut.valid & done.bit_select(bank, 1))),
        ]
        with m.If(dut.tiles.valid):
            offered = dut.tiles.payload
            m.d.comb += [Assert(done.bit_select(offered, 1)), Assert(Array(age)[offered] >= LATENCY)]
        readable = Cat(each >= LATENCY for each in age)
        m.d.comb += Assert(dut.busy | dut.overlaps | ((taken & ~(done & readable)) == 0))
        m.d.comb += Assert(dut.busy | ~within)
        full = Signal()
        m.d.sync += full.eq(full | done.all())
        jobs = Signal(2)
        m.d.sync += jobs.eq(jobs + (dut.start & (jobs != 3)))
        m.d.comb += Cover(full & (done == 0) & begins)
        m.d.comb += Cover((jobs == 2) & begins & done.any())


class FloatsSpec(SequencerSpec):
    """One job. Accumulators of floats are used again ``LOOP`` cycles later, or after that; a pass has its biases.

    Two passes at most have biases that are not computed, which is what the table has room for.
    """

    more = ("floats", "bias")

    def add(self, m, begun):
        dut, plan = self.dut, self.dut.plan
        flags, within, taken = dut.sets.payload, Signal(), dut.sets.valid & dut.sets.ready
        with m.If(taken):
            m.d.sync += within.eq(~flags.last)
        m.d.comb += [Assume(flags.first == ~within), Assume(plan.floats), Assume(dut.start == ~begun)]
        m.d.comb += Assume(~plan.lanes | (dut.halves.first[0] == flags.first))
        # Weights of a set that are there stay: see WeightsSpec.
        there, stay = Signal(), Signal()
        m.d.comb += [there.eq(dut.written != dut.row), Assume(~stay | there)]
        m.d.sync += stay.eq(there & ~taken)

        age = Array(Signal(range(LOOP + 1), init=LOOP, name=f"age{place}") for place in range(16))
        place = dut.step.bank << 2 | dut.step.channel
        for each in age:
            with m.If(each != LOOP):
                m.d.sync += each.eq(each + 1)
        with m.If(dut.valid):
            m.d.sync += age[place].eq(1)
            m.d.comb += Assert(dut.step.halves.first[0] | (age[place] >= LOOP))

        # The step that leaves is of the pass that was under way a cycle ago.
        given, over, half = Signal(4), Signal(4), Signal()
        ends = taken & flags.last & flags.final
        m.d.sync += [given.eq(given + dut.biases), over.eq(over + ends), half.eq(over[0])]
        m.d.comb += [Assume(begun | ~dut.biases), Assume((given + dut.biases)[:4] - over <= 2), Assume(over != 15)]
        biased = Signal()
        m.d.sync += biased.eq((given > over) | ~plan.bias)
        with m.If(dut.valid):
            m.d.comb += [Assert(biased), Assert(dut.step.half == half)]
        again = Signal()
        m.d.sync += again.eq(again | (dut.valid & ~dut.step.halves.first[0] & (age[place] == LOOP)))
        m.d.comb += Cover(again & (over == 2) & plan.bias)


def test_sets_and_weights():
    prove(WeightsSpec(), name="conv-sequencer-weights", depth=3)


@pytest.mark.parametrize("depth", [16, pytest.param(24, marks=pytest.mark.long)])
def test_banks(depth):
    """In 24 cycles all banks are taken and read."""
    prove(BanksSpec(), name="conv-sequencer-banks", mode="bmc", depth=depth)


@pytest.mark.long
def test_banks_are_taken_and_read():
    prove(BanksSpec(), name="conv-sequencer-banks-cover", mode="cover", depth=24)


def test_floats():
    """For 20 cycles, in which several passes end."""
    prove(FloatsSpec(FLOATS), name="conv-sequencer-floats", mode="bmc", depth=20)
    prove(FloatsSpec(FLOATS), name="conv-sequencer-floats-cover", mode="cover", depth=24)
