"""F6: every command that is handed over ends exactly once, in the next cycle, with what was said about it."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.hdl import Assert, Cover, Elaboratable, Value

from tilewright.golden.spec import Error
from tilewright.hw.tmau.front.finish import Finisher
from tilewright.hw.tmau.layouts import ErrorLayout
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.sim.formal import StreamRules, prove


class FinisherSpec(Elaboratable):
    """Remembers what was handed over in the cycle before."""

    def __init__(self):
        self.dut = Finisher(TMAU_PRESETS["unit"])
        self.streams = [self.dut.completions, self.dut.stores, self.dut.finished]

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self.dut
        m.submodules.landed_rules = StreamRules(dut.landed)
        for number, stream in enumerate(self.streams):
            m.submodules[f"rules{number}"] = StreamRules(stream, assume=True)
        landed, reports = dut.landed, dut.completions.payload.signal & ~dut.completions.payload.error
        load, store, other = taken = [stream.valid & stream.ready for stream in self.streams]

        ended, expected = Signal(), Signal(ErrorLayout(TMAU_PRESETS["unit"]))
        stored, moved = Signal(), Signal.like(dut.done.bytes)
        m.d.sync += [ended.eq(load | store | other), stored.eq(store), moved.eq(0)]
        m.d.sync += expected.eq(dut.finished.payload)
        for transfer, completion in ((load, dut.completions.payload), (store, dut.stores.payload)):
            with m.If(transfer):
                m.d.sync += [
                    Value.cast(expected).eq(0),
                    expected.tag.eq(completion.tag),
                    expected.address.eq(completion.address),
                    moved.eq(completion.bytes),
                ]
                with m.If(completion.error):
                    m.d.sync += expected.code.eq(Mux(completion.write, Error.WRITE, Error.READ))
        self.judge_turns(m, taken, landed.ready | ~reports)
        m.d.comb += [
            Assert((load + store + other) <= 1),
            Assert(dut.done.valid == ended),
            Assert(~ended | (Value.cast(dut.done.record) == Value.cast(expected))),
            Assert(~ended | ((dut.done.bytes == moved) & (dut.done.stored == stored))),
            # The barrier hears of exactly the transfers that landed.
            Assert((landed.valid & landed.ready) == (load & reports)),
            Cover(load & dut.completions.payload.error & ended),
            Cover(other & ended),
            Cover(store & ended),
        ]
        return m

    def judge_turns(self, m, taken, free):
        """While the barrier takes what it is told, a command ends in every cycle that one waits, and none waits for
        more than one of each other stream."""
        mask = self.dut.arbiter.mask
        m.d.comb += Assert(((mask << 1)[:3] & ~mask) == 0, "ones from a position on")
        waits = [stream.valid & ~end for stream, end in zip(self.streams, taken, strict=True)]
        m.d.comb += Assert(Cat(taken).any() | ~Cat(stream.valid for stream in self.streams).any() | ~free)
        for me, waiting in enumerate(waits):
            for other, end in enumerate(taken):
                if other != me:
                    passed = Signal(name=f"passed{me}{other}")  # the other has ended once while this one waited
                    m.d.sync += passed.eq(waiting & (passed | end))
                    m.d.comb += Assert(~(passed & end & waiting))
                    # The one that has passed already comes behind this one in the order of turns.
                    behind = mask[me] & ~mask[other] if me > other else mask[me] | ~mask[other]
                    m.d.comb += Assert(~passed | behind)

    def ports(self):
        return [*(port for stream in self.streams for port in (stream.valid, stream.payload)), self.dut.landed.ready]


def test_every_command_ends_once():
    spec = FinisherSpec()
    prove(spec, spec.ports(), name="finish", depth=2, proves="F6 F11")


def test_ends_of_both_kinds_are_reached():
    spec = FinisherSpec()
    prove(spec, spec.ports(), name="finish-cover", mode="cover", depth=4)
