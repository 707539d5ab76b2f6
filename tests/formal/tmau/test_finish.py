"""F6: every command that is handed over ends exactly once, in the next cycle, with what was said about it."""

from amaranth import Module, Mux, Signal
from amaranth.hdl import Assert, Cover, Elaboratable, Value

from tilewright.golden.spec import Error
from tilewright.hw.tmau.finish import Finisher
from tilewright.hw.tmau.layouts import ErrorLayout
from tilewright.hw.tmau.params import PRESETS
from tilewright.sim.formal import prove


class FinisherSpec(Elaboratable):
    """Remembers what was handed over in the cycle before."""

    def __init__(self):
        self.dut = Finisher(PRESETS["unit"])

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self.dut
        completion, landed = dut.completions.payload, dut.landed
        transfer = dut.completions.valid & dut.completions.ready
        other = dut.finished.valid & dut.finished.ready
        reports = completion.signal & ~completion.error

        ended, expected = Signal(), Signal(ErrorLayout())
        m.d.sync += [ended.eq(transfer | other), expected.eq(dut.finished.payload)]
        with m.If(transfer):
            m.d.sync += [
                Value.cast(expected).eq(0),
                expected.code.eq(Mux(completion.error, Error.READ, Error.NONE)),
                expected.tag.eq(completion.tag),
                expected.value.eq(completion.address),
            ]
        m.d.comb += [
            Assert(~(transfer & other)),
            Assert(dut.done.valid == ended),
            Assert(~ended | (Value.cast(dut.done.record) == Value.cast(expected))),
            # The barrier hears of exactly the transfers that landed.
            Assert((landed.valid & landed.ready) == (transfer & reports)),
            # Nobody waits but a transfer for its barrier, and a command without one for a transfer.
            Assert(transfer | ~dut.completions.valid | (reports & ~landed.ready)),
            Assert(other | ~dut.finished.valid | dut.completions.valid),
            Cover(transfer & completion.error & ended),
            Cover(other & ended),
        ]
        return m

    def ports(self):
        streams = [self.dut.completions, self.dut.finished]
        return [*(port for stream in streams for port in (stream.valid, stream.payload)), self.dut.landed.ready]


def test_every_command_ends_once():
    spec = FinisherSpec()
    prove(spec, spec.ports(), name="finish", depth=2, proves="F6 F11")


def test_ends_of_both_kinds_are_reached():
    spec = FinisherSpec()
    prove(spec, spec.ports(), name="finish-cover", mode="cover", depth=4)
