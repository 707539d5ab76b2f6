"""F6: every command that is handed over ends exactly once, with what was said about it."""

from amaranth.hdl import Assert, Cover, Mux, Signal, Value

from support.formal import Spec, proved_and_covered
from tilewright.hw.tmau.finish import Finisher
from tilewright.hw.tmau.layouts import ErrorLayout
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.spec import Error
from tilewright.verify.formal import prove


class FinisherSpec(Spec):
    """Remembers the load that was handed over and has not ended, and what ended in the cycle before."""

    given, made = "completions stores finished", "landed"

    def __init__(self):
        self.dut = Finisher(TMAU_PRESETS["unit"])
        self.streams = [self.dut.completions, self.dut.stores, self.dut.finished]

    def specify(self, m, dut):
        came, store, other = (stream.valid & stream.ready for stream in self.streams)

        load, waits = Signal.like(dut.completions.payload), Signal()  # a load that has not ended
        reports = load.signal & ~load.error
        landed = dut.landed.valid & dut.landed.ready
        ends = waits & (landed | ~reports)
        m.d.sync += waits.eq(came | (waits & ~ends))
        with m.If(came):
            m.d.sync += load.eq(dut.completions.payload)

        ended, expected = Signal(), Signal(ErrorLayout(TMAU_PRESETS["unit"]))
        stored, moved = Signal(), Signal.like(dut.done.bytes)
        m.d.sync += [ended.eq(ends | store | other), stored.eq(store), moved.eq(0)]
        m.d.sync += expected.eq(dut.finished.payload)
        for transfer, completion in ((ends, load), (store, dut.stores.payload)):
            with m.If(transfer):
                m.d.sync += [
                    Value.cast(expected).eq(0),
                    expected.tag.eq(completion.tag),
                    expected.address.eq(completion.address),
                    moved.eq(completion.bytes),
                ]
                with m.If(completion.error):
                    m.d.sync += expected.code.eq(Mux(completion.write, Error.WRITE, Error.READ))
        self.judge_turns(m, waits, store, other)
        m.d.comb += [
            Assert((ends + store + other) <= 1),
            Assert(dut.done.valid == ended),
            Assert(~ended | (Value.cast(dut.done.record) == Value.cast(expected))),
            Assert(~ended | ((dut.done.bytes == moved) & (dut.done.stored == stored))),
            # The barrier hears of exactly the transfers that landed, from the cycle after their handshake on.
            Assert(dut.landed.valid == (waits & reports)),
            Assert(~dut.landed.valid | (dut.landed.payload.barrier == load.barrier)),
            Assert(~dut.landed.valid | (dut.landed.payload.bytes == load.bytes)),
            # A load is accepted whenever none waits.
            Assert(dut.completions.ready == ~waits),
            # What the registers hold.
            Assert(dut.load_valid == waits),
            Assert(~waits | (Value.cast(dut.load) == Value.cast(load))),
            Cover(ends & load.error & ended),
            Cover(other & ended),
            Cover(store & ended),
        ]

    def judge_turns(self, m, waits, store, other):
        """While the barrier takes what it is told, and loads come as fast as they can, each of the other two streams
        waits for three cycles at most: no load stays for more than one, and every second cycle without a load is its
        own."""
        dut = self.dut
        m.d.comb += Assert(~(store | other) | ~waits, "a load goes first")
        for name, stream, turn in (("store", dut.stores, dut.turn), ("other", dut.finished, ~dut.turn)):
            waited = Signal(3, name=f"{name}_waited")
            stays = stream.valid & ~stream.ready & (~waits | dut.landed.ready)
            m.d.sync += waited.eq(Mux(stays, waited + 1, Mux(stream.valid & ~stream.ready, waited, 0)))
            m.d.comb += [
                Assert(waited <= 3),
                # Three cycles are those of a load, of the other one, and of a load.
                Assert((waited != 1) | turn | ~waits),
                Assert((waited < 2) | turn),
                Assert((waited != 3) | ~waits),
            ]


@proved_and_covered(2, 4)
def test_every_command_ends_once(mode, depth):
    prove(FinisherSpec(), name=f"finish-{mode}", mode=mode, depth=depth, proves="F6 F11")
