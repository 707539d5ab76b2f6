"""F3, F6 of the write side: bursts hold, their words leave in the order in which they were granted and are not mixed,
and each answer goes to its core.

That all words of a granted burst are there is the proof of CoreWrites; order in queues is that of tests/formal/lib.
"""

import pytest
from amaranth.hdl import Assert, Cat, Cover, Elaboratable, Module, Signal, Value
from amaranth.lib.wiring import Out, flipped

from tilewright.hw.bus.axi4 import Axi4WriteSignature, forward_channels
from tilewright.hw.cluster.memory.write_side import WriteSide
from tilewright.sim.formal import prove, queue_invariants

CORES = 2
REQUEST = ("addr", "len", "size", "burst", "prot", "cache")


class SideSpec(Elaboratable):
    """Plain ports, as a member of an array cannot be an input of the proof."""

    def __init__(self):
        self.dut = WriteSide(CORES, 12, 32, max_burst=2, words=4, bursts=2)
        signature = Axi4WriteSignature(12, 32, 2)
        self.managers = [signature.create(path=(f"manager{number}",)) for number in range(CORES)]

    @property
    def ports(self):
        axi = self.dut.axi
        free = [
            Value.cast(getattr(port, name))
            for port in self.managers
            for name, member in port.signature.members.items()
            if member.flow == Out
        ]
        return [*free, axi.awready, axi.wready, axi.bid, axi.bresp, axi.bvalid]

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self.dut
        axi = dut.axi
        for port, manager in zip(dut.ports, self.managers, strict=True):
            forward_channels(m, flipped(port), manager)
        self._hold(m, axi.awvalid, axi.awready, Cat(axi.awid, *(getattr(axi, "aw" + name) for name in REQUEST)))
        self._hold(m, axi.wvalid, axi.wready, Cat(axi.wdata, axi.wstrb, axi.wlast))
        m.d.comb += Assert(dut.requests.o.valid | ~dut.requests.skidded)
        for queue in (dut.turns, dut.words):
            m.d.comb += queue_invariants(queue)
        self._grants(m)
        self._words(m)
        self._answers(m)
        return m

    def _hold(self, m, valid, ready, payload):
        waiting, before = Signal(), Signal(len(payload))
        m.d.sync += [waiting.eq(valid & ~ready), before.eq(payload)]
        with m.If(waiting):
            m.d.comb += Assert(valid & (payload == before))

    def _grants(self, m):
        """A burst that is granted goes to AW and to the turns, in one cycle."""
        dut, buffer, turns = self.dut, self.dut.requests, self.dut.turns
        goes = [core.requests.valid & core.requests.ready for core in dut.cores]
        m.d.comb += [
            Assert((buffer.i.valid & buffer.i.ready) == Cat(goes).any()),
            Assert((turns.i.valid & turns.i.ready) == Cat(goes).any()),
            Assert(~Cat(goes).all()),
        ]
        for number, (core, gone) in enumerate(zip(dut.cores, goes, strict=True)):
            request = core.requests.payload
            with m.If(gone):
                m.d.comb += Assert(turns.i.payload == 1 << number)
                m.d.comb += Assert(buffer.i.payload.id == Cat(request.id, number == 1))
                m.d.comb += [Assert(getattr(buffer.i.payload, name) == getattr(request, name)) for name in REQUEST]

    def _words(self, m):
        """A word is that of the core whose turn it is, which changes behind a last word only."""
        dut, turn, words = self.dut, self.dut.turns.o, self.dut.words.i
        for place in range(dut.turns.depth):
            probe = dut.turns.memory.read_port(domain="comb")
            m.d.comb += probe.addr.eq(dut.turns.head + place)
            with m.If(place < dut.turns.level):
                m.d.comb += Assert((probe.data == 1) | (probe.data == 2))
        taken = [core.words.valid & core.words.ready for core in dut.cores]
        m.d.comb += Assert((words.valid & words.ready) == Cat(taken).any())
        for number, (core, took) in enumerate(zip(dut.cores, taken, strict=True)):
            with m.If(took):
                m.d.comb += Assert(turn.valid & (turn.payload == 1 << number) & (words.payload == core.words.payload))
                m.d.comb += Assert((turn.valid & turn.ready) == core.words.payload.last)
        inside, whose = Signal(), Signal(CORES)  # a burst has begun and has not ended
        with m.If(Cat(taken).any()):
            m.d.sync += [inside.eq(~words.payload.last), whose.eq(Cat(taken))]
        with m.If(inside):
            m.d.comb += [
                Assert(turn.valid & (turn.payload == whose)),
                Assert(Cat(taken) & ~whose == 0),
                Cover(Cat(taken).any()),
            ]

    def _answers(self, m):
        """An answer is, a cycle after the bus gave it, with the core that its ID names."""
        dut, axi = self.dut, self.dut.axi
        came, ident, response = Signal(), Signal(3), Signal(2)
        m.d.sync += [came.eq(axi.bvalid), ident.eq(axi.bid), response.eq(axi.bresp)]
        m.d.comb += [Assert(axi.bready), Assert(sum((core.answers.valid for core in dut.cores), 0) == came)]
        for number, core in enumerate(dut.cores):
            m.d.comb += Assert(dut.answered[number] == core.answers.valid)
            with m.If(core.answers.valid):
                m.d.comb += Assert(ident == Cat(core.answers.payload.id, number == 1))
                m.d.comb += Assert(response == core.answers.payload.resp.as_value())


def test_bursts_are_not_mixed():
    spec = SideSpec()
    prove(spec, spec.ports, name="cluster-write-side", depth=2, proves="F3 F6")


@pytest.mark.long
def test_every_case_is_reached():
    spec = SideSpec()
    prove(spec, spec.ports, name="cluster-write-side-cover", mode="cover", depth=12)
