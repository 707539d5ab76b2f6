"""The order of work: each set is released once, weights are there when they are used, and no bank is begun too early.

The plan, what sets there are and when anything comes is anything, but for what other blocks promise.
"""

from amaranth.hdl import Array, Assert, Assume, Cover, Elaboratable, Module, Signal

from tilewright.golden.spec.conv.params import CONV_PRESETS
from tilewright.hw.conv.array.sequencer import Sequencer
from tilewright.hw.conv.layouts import ACCUMULATOR_BANKS
from tilewright.hw.conv.params import ConvUnitParams
from tilewright.hw.smem.params import SmemParams
from tilewright.sim.formal import StreamRules, prove

PARAMS = ConvUnitParams(CONV_PRESETS["unit"].replace(weight_bytes=256), SmemParams(1024))
LATENCY = 2
_PLAN = ("lanes", "stays", "granularity", "out_channels")


class SequencerSpec(Elaboratable):
    """The sequencer in one job, which begins in the first cycle."""

    def __init__(self):
        self.dut = dut = Sequencer(PARAMS, LATENCY)
        self.ports = [dut.start, dut.sets.valid, dut.sets.payload, dut.written, dut.tile.ready, dut.tiles.ready]
        self.ports += [dut.plan]

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self.dut
        plan = dut.plan
        m.submodules.sets_rules = StreamRules(dut.sets, assume=True)
        for name in _PLAN:
            before = Signal(plan[name].shape(), name=f"{name}_before")
            m.d.sync += before.eq(plan[name])
            m.d.comb += Assume(dut.start | (plan[name] == before))
        begun = Signal()
        m.d.sync += begun.eq(1)
        m.d.comb += [
            Assume(dut.start == ~begun),
            Assume(begun | ~dut.sets.valid),
            Assume((plan.granularity <= 4) & (plan.out_channels != 0)),
        ]
        self.add(m, begun)
        return m


class WeightsSpec(SequencerSpec):
    """What is written goes on from what is freed, in whole blocks, and not once round."""

    def add(self, m, begun):
        dut, plan = self.dut, self.dut.plan
        taken = dut.sets.valid & dut.sets.ready
        sets, released = Signal(range(PARAMS.sets)), Signal()
        m.d.sync += [sets.eq(sets + taken), released.eq(taken)]
        m.d.comb += [
            Assert(dut.number == sets),
            Assert(dut.release == released),
            Assert(~dut.release | dut.valid),
        ]

        ring, block = dut.ring_bytes, Signal(5)
        size, room = Signal.like(dut.freed), Signal.like(dut.freed)
        m.d.comb += [
            block.eq(1 << plan.granularity),
            size.eq(dut.written - dut.freed),
            room.eq(dut.row - dut.freed),
            Assume(begun | (dut.written == 0)),
            Assume(size <= ring),
            Assume((dut.written & (block - 1)[:5]) == 0),
        ]
        # Weights are never taken back: neither by what is written, nor by what is freed.
        was, was_freed = Signal.like(dut.written), Signal.like(dut.freed)
        m.d.sync += [was.eq(dut.written), was_freed.eq(dut.freed)]
        m.d.comb += Assume(~begun | ((dut.written - was)[: len(was)] <= ring))
        m.d.comb += Assume(~begun | ((was - dut.freed)[: len(was)] <= size))
        with m.If(begun & ~plan.lanes):
            m.d.comb += [
                Assert((dut.row & (block - 1)[:5]) == 0),
                Assert((dut.freed & (block - 1)[:5]) == 0),
                Assert(plan.stays | (dut.row == dut.freed)),
                Assert((was - dut.freed)[: len(was)] >= room),
            ]
        # A step's rows begin where ``row`` was, and were written before, and not freed.
        there, low, number = Signal(), Signal(range(ring)), Signal.like(dut.number)
        m.d.sync += [there.eq(room < size), low.eq(dut.row), number.eq(dut.number)]
        words = ring // PARAMS.conv.row_bytes
        with m.If(dut.valid):
            m.d.comb += Assert(dut.set == number)
            with m.If(~plan.lanes):
                m.d.comb += [
                    Assert(there),
                    Assert(dut.step.word == low // 16 | dut.step.channel * words),
                    Assert(dut.step.part == low % 16 >> plan.granularity),
                ]
            with m.Else():
                m.d.comb += Assert(dut.step.word == number)


class BanksSpec(SequencerSpec):
    """Sets make tiles: one is the first one if it is behind a last one."""

    def add(self, m, begun):
        dut = self.dut
        flags, within = dut.sets.payload, Signal()
        with m.If(dut.sets.valid & dut.sets.ready):
            m.d.sync += within.eq(~flags.last)
        m.d.comb += Assume(flags.first == ~within)

        # From the first step of a tile on a bank is taken, until its tile has been read.
        taken, done = Signal(ACCUMULATOR_BANKS), Signal(ACCUMULATOR_BANKS)
        age = [Signal(range(LATENCY + 2), name=f"age{bank}") for bank in range(ACCUMULATOR_BANKS)]
        begins = Signal()
        read = dut.tiles.valid & dut.tiles.ready
        last = Signal()  # the last step of a tile
        m.d.sync += last.eq(dut.sets.valid & dut.sets.ready & flags.last)
        m.d.comb += begins.eq(dut.valid & dut.step.first & (dut.step.channel == 0))
        for bank in range(ACCUMULATOR_BANKS):
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
            m.d.comb += [
                Assert(done.bit_select(offered, 1)),
                Assert(Array(age)[offered] >= LATENCY),
            ]
        m.submodules.tiles_rules = StreamRules(dut.tiles)
        full = Signal()
        m.d.sync += full.eq(full | done.all())
        m.d.comb += Cover(full & (done == 0) & begins)


def test_sets_and_weights():
    spec = WeightsSpec()
    prove(spec, spec.ports, name="conv-sequencer-weights", depth=3)


def test_banks():
    """For so many cycles, in which all banks are taken and read."""
    spec = BanksSpec()
    prove(spec, spec.ports, name="conv-sequencer-banks", mode="bmc", depth=24)
    prove(spec, spec.ports, name="conv-sequencer-banks-cover", mode="cover", depth=24)
