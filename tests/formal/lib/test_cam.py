"""The tag array: at most one entry holds a tag; what was inserted is there, what was invalidated is not."""

import pytest
from amaranth.hdl import Array, Assert, Assume, Cover, Elaboratable, Module, Signal

from tilewright.hw.lib.cam import TagArray
from tilewright.sim.formal import prove


class TagArraySpec(Elaboratable):
    def __init__(self, entries):
        self.dut = TagArray(entries, 3)

    @property
    def ports(self):
        dut = self.dut
        return [dut.tag, dut.insert, dut.evict, dut.invalidate, dut.invalidate_all]

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self.dut
        m.d.comb += Assume(~(dut.insert & dut.hit))
        holds = [present & (tag == dut.tag) for present, tag in zip(dut.present, dut.tags, strict=True)]
        for j, tag in enumerate(dut.tags):
            for k in range(j):
                m.d.comb += Assert(~(dut.present[j] & dut.present[k] & (tag == dut.tags[k])))
        m.d.comb += Assert(dut.hit == (sum(holds) == 1))
        with m.If(dut.hit):
            m.d.comb += Assert(Array(holds)[dut.index])
        with m.Else():
            m.d.comb += Assert(dut.index == 0)

        # What the cycle before did to the tag that is looked up now.
        inserted, dropped, evicted, dropped_all = Signal(), Signal(), Signal(), Signal()
        updated = Signal.like(dut.tag)
        victim = Signal.like(dut.victim)
        dropping = dut.invalidate | dut.invalidate_all
        m.d.sync += [
            inserted.eq(dut.insert & ~dut.evict & ~dropping),
            dropped.eq(dut.invalidate),
            evicted.eq(dut.evict & ~dropping),
            dropped_all.eq(dut.invalidate_all),
            updated.eq(dut.tag),
            victim.eq(dut.victim),
        ]
        with m.If(inserted & (dut.tag == updated)):
            m.d.comb += Assert(dut.hit & (dut.index == victim))
        with m.If((dropped & (dut.tag == updated)) | dropped_all):
            m.d.comb += Assert(~dut.hit)
        with m.If(evicted):
            m.d.comb += Assert(~(dut.hit & (dut.index == victim)) & (dut.victim == victim))
        # Whatever else happens, a tag that is not dropped and whose entry is not filled or emptied stays.
        held, tag, place = Signal(), Signal.like(dut.tag), Signal.like(dut.index)
        m.d.sync += [held.eq(dut.hit), tag.eq(dut.tag), place.eq(dut.index)]
        touched = dropped_all | dropped | ((inserted | evicted) & (victim == place))
        with m.If(held & (dut.tag == tag) & ~touched):
            m.d.comb += Assert(dut.hit & (dut.index == place))
        m.d.comb += Cover(dut.present.all() & inserted)
        return m


def test_tags():
    for entries in (1, 2, 4):
        spec = TagArraySpec(entries)
        prove(spec, spec.ports, name=f"lib-cam-{entries}", depth=2)


@pytest.mark.long
def test_it_fills():
    spec = TagArraySpec(4)
    prove(spec, spec.ports, name="lib-cam-cover", mode="cover", depth=8)
