"""F2: a command waits for at most one of each other processor; each says whose it is, and its end goes there."""

from amaranth.hdl import Assert, Assume, Cat, Cover, Elaboratable, Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import connect

from tilewright.hw.bus.commands import command_layout
from tilewright.hw.tmau.processors import ProcessorShare
from tilewright.sim.formal import StreamRules, prove

N, OWN_BITS = 3, 14


class ShareSpec(Elaboratable):
    """Of a command the tag is free and the rest, which passes beside it, constant."""

    def __init__(self):
        self.dut = ProcessorShare(N)
        signature = stream.Signature(command_layout())
        self.sources = [signature.create(path=(f"source{number}",)) for number in range(N)]
        self.tags = [Signal(16, name=f"tag{number}") for number in range(N)]

    @property
    def ports(self):
        ended = self.dut.ended
        return [self.dut.merged.ready, ended.valid, ended.tag, *self.tags, *(port.valid for port in self.sources)]

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self.dut
        m.submodules.merged_rules = StreamRules(dut.merged)
        m.d.comb += Assert(dut.buffer.o.valid | ~dut.buffer.skidded)
        for number, (source, tag) in enumerate(zip(self.sources, self.tags, strict=True)):
            m.d.comb += source.payload.tag.eq(tag)
            connect(m, source=source, dut=dut.commands[number])
            m.submodules[f"rules{number}"] = StreamRules(source, assume=True)
            taken = dut.buffer.i.payload
            with m.If(source.valid & source.ready):
                m.d.comb += Assert(taken.tag == Cat(tag[:OWN_BITS], (number >> 0) & 1 == 1, (number >> 1) & 1 == 1))
            for other in range(N):
                if other != number:
                    self._wait(m, number, other)
            done = dut.done[number]
            m.d.comb += Assert(done.valid == (dut.ended.valid & (dut.ended.tag[OWN_BITS:] == number)))
            m.d.comb += Assert(done.tag == dut.ended.tag[:OWN_BITS])
        takes = [source.valid & source.ready for source in self.sources]
        m.d.comb += Assert((dut.buffer.i.valid & dut.buffer.i.ready) == Cat(takes).any())
        m.d.comb += Assume(dut.ended.tag[OWN_BITS:] < N)
        m.d.comb += Assert(sum((done.valid for done in dut.done), 0) == dut.ended.valid)
        return m

    def _wait(self, m, one, other):
        source, theirs = self.sources[one], self.sources[other]
        passed = Signal(2, name=f"passed{one}{other}")
        m.d.sync += passed.eq(Mux(source.valid & ~source.ready, passed + (theirs.valid & theirs.ready), 0))
        mask, before = self.dut.arbiter.arbiter.mask, Signal(name=f"before{one}{other}")
        for position in range(N + 1):
            with m.If(mask == (1 << N) - (1 << position)):
                m.d.comb += before.eq((one - position) % N < (other - position) % N)
        m.d.comb += [
            Assert(~mask & (~mask + 1)[:N] == 0),
            Assert((passed == 0) | before),
            Assert(passed <= 1),
            Cover(passed == 1),
        ]


def test_nobody_waits_long():
    spec = ShareSpec()
    prove(spec, spec.ports, name="tmau-processors", depth=2, proves="F2")
