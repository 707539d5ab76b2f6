"""The descriptor cache: each command is looked up, counted and handed on once, and none uses what was invalidated."""

import pytest
from amaranth.hdl import Assert, Assume, Cover, Module, Mux, Signal
from amaranth.lib import wiring

from support.formal import Spec
from tilewright.hw.tmau.descriptor.cache import DescriptorCache
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.spec import TENSOR_OPCODES, Error, Opcode
from tilewright.verify.formal import prove

PARAMS = TMAU_PRESETS["unit"]  # two entries


class AnyCheck(wiring.Component):
    """A descriptor check that may find anything, whenever it likes."""

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.words.ready.eq(1)
        return m


class NoStore(wiring.Component):
    """Descriptors are not looked at here, but where they lie is."""

    def elaborate(self, platform):
        m = Module()
        with m.If(self.read):
            m.d.sync += self.shown.eq(self.read_place)
        return m


class CacheSpec(Spec):
    given, made = "i", "o fetch"

    def __init__(self):
        self.dut = DescriptorCache(PARAMS)
        self.dut.check = AnyCheck(self.dut.check.signature)
        self.dut.store = NoStore(self.dut.store.signature)
        self.found = [self.dut.check.done, self.dut.check.fault]

    def specify(self, m, dut):
        done, good = dut.check.done, dut.check.fault.code == Error.NONE
        asked, taken = dut.fetch.valid & dut.fetch.ready, dut.i.valid & dut.i.ready

        # Of what comes next the descriptor is told a cycle before.
        told = Signal(64)
        with m.If(dut.moves):
            m.d.sync += told.eq(dut.ahead)
        m.d.comb += [Assume(dut.moves == (~dut.i.valid | dut.i.ready)), Assume(dut.i.payload.descriptor == told)]

        fetching, fresh = Signal(), Signal()  # a descriptor is on its way, and was not invalidated since
        stored, looked_up = Signal(), Signal()  # one may be there, now and as the command was looked up
        dropped = dut.invalidate_all
        m.d.sync += [
            fetching.eq((fetching | asked) & ~done),
            fresh.eq(asked | (fresh & ~dropped)),
            stored.eq((stored | (done & good & fresh)) & ~dropped),
            looked_up.eq(stored),
        ]
        m.d.comb += [Assume(~done | fetching), Assume(~dut.windows.confine_global)]
        m.d.comb += Assert(~dut.hit_stb | looked_up)

        counted = Signal()
        command = dut.i.payload
        named = sum(command.opcode == opcode for opcode in TENSOR_OPCODES)
        wanted = named & ~command.descriptor[:6].any()
        strobes = dut.hit_stb | dut.miss_stb
        m.d.sync += counted.eq((counted | strobes) & ~taken)
        m.d.comb += [
            Assert(~(dut.hit_stb & dut.miss_stb) & ~(strobes & counted)),
            Assert(~taken | ((counted | strobes) == wanted)),
            Assert(dut.miss_stb == asked),
        ]
        # Commands are not taken in two cycles behind each other: then the queue in front tells what comes next.
        was_taken = Signal()
        m.d.sync += was_taken.eq(taken)
        m.d.comb += Assert(~(taken & was_taken))
        # What is taken comes to the output in that cycle or in the next one, and nothing else comes there.
        early, late, filled = Signal(), Signal(), Signal()
        tag, before = dut.o.payload.command.tag, Signal(16)
        m.d.comb += early.eq(taken & dut.o.valid & ~filled & ~late)
        m.d.sync += [late.eq(taken & ~early), filled.eq(dut.o.valid & ~dut.o.ready), before.eq(command.tag)]
        m.d.comb += [
            Assert(dut.o.valid == (early | late | filled)),
            Assert(~(late & filled)),
            Assert(~early | (tag == command.tag)),
            Assert(~late | (tag == before)),
        ]

        # Dimensions of the command at the output may be read as long as it is there.
        m.d.comb += Assert(~(fetching & dut.o.valid & (dut.store.shown == dut.place)))

        # Behind a REPLACE nothing is looked up until all is quiet.
        holding = Signal()
        replaced = taken & (command.opcode == Opcode.REPLACE) & ~command.descriptor[:6].any()
        m.d.sync += holding.eq(Mux(replaced, 1, holding & ~dut.quiescent))
        m.d.comb += Assert(~(holding & (taken | strobes)))

        hits = Signal(2)
        m.d.sync += hits.eq(hits + (dut.hit_stb & (hits != 3)))
        m.d.comb += [Cover(hits == 2), Cover(done & good & ~fresh), Cover(holding & dut.i.valid & stored)]


@pytest.mark.parametrize("depth", [6, pytest.param(10, marks=pytest.mark.long)])
def test_commands_and_invalidations(depth):
    prove(CacheSpec(), name="descriptor-cache", mode="bmc", depth=depth)


@pytest.mark.long
def test_hits_and_dropped_descriptors_are_reached():
    prove(CacheSpec(), name="descriptor-cache-cover", mode="cover", depth=12)
