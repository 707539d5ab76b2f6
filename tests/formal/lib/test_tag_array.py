"""The tag array: at most one entry holds a tag; inserted tags are found until they are dropped or replaced."""

import pytest
from amaranth.hdl import Array, Assert, Assume, Cover, Signal

from support.formal import Spec
from tilewright.hw.lib.tag_array import TagArray
from tilewright.verify.formal import prove


class TagArraySpec(Spec):
    def __init__(self, entries):
        self.dut = TagArray(entries, 3)

    def specify(self, m, dut):
        looked_up = Signal.like(dut.tag)
        with m.If(dut.look):
            m.d.sync += looked_up.eq(dut.ahead)
        m.d.comb += [Assume(~(dut.insert & (dut.hit | dut.look))), Assume(dut.tag == looked_up)]
        holds = [present & (tag == dut.tag) for present, tag in zip(dut.present, dut.tags, strict=True)]
        for j, tag in enumerate(dut.tags):
            for k in range(j):
                m.d.comb += Assert(~(dut.present[j] & dut.present[k] & (tag == dut.tags[k])))
        m.d.comb += [Assert(dut.hit == (sum(holds) == 1)), Assert(sum(dut.match) <= 1)]
        m.d.comb += [Assert(~match | (tag == dut.tag)) for match, tag in zip(dut.match, dut.tags, strict=True)]
        ahead = [present & (tag == dut.ahead) for present, tag in zip(dut.present, dut.tags, strict=True)]
        with m.If(sum(ahead) == 1):
            m.d.comb += Assert(Array(ahead)[dut.place])
        with m.Else():
            m.d.comb += Assert((sum(ahead) == 0) & (dut.place == 0))

        # What the cycle before did.
        inserted, dropped, evicted, dropped_all = Signal(), Signal(), Signal(), Signal()
        tag, victim, was_hit = Signal.like(dut.tag), Signal.like(dut.victim), Signal()
        present_before = Signal(len(dut.present))
        dropping = dut.invalidate | dut.invalidate_all
        m.d.sync += [
            inserted.eq(dut.insert & ~dut.evict & ~dropping),
            dropped.eq(dut.invalidate),
            evicted.eq(dut.evict & ~dropping),
            dropped_all.eq(dut.invalidate_all),
            tag.eq(dut.tag),
            victim.eq(dut.victim),
            was_hit.eq(dut.hit),
            present_before.eq(dut.present),
        ]
        with m.If(inserted):
            m.d.comb += [Assert(Array(dut.tags)[victim] == tag), Assert(dut.present.bit_select(victim, 1))]
        with m.If(dropped_all):
            m.d.comb += Assert(dut.present == 0)
        with m.Elif(dropped & was_hit):
            m.d.comb += [
                Assert(~present | (other != tag)) for present, other in zip(dut.present, dut.tags, strict=True)
            ]
        with m.If(evicted):
            m.d.comb += [Assert(~dut.present.bit_select(victim, 1)), Assert(dut.victim == victim)]
        # All other tags stay.
        for k in range(len(dut.present)):
            touched = dropped_all | (dropped & was_hit) | ((inserted | evicted) & (victim == k))
            with m.If(~touched):
                m.d.comb += Assert(dut.present[k] == present_before[k])
        m.d.comb += Cover(dut.present.all() & inserted)


def test_tags():
    for entries in (1, 2, 4):
        prove(TagArraySpec(entries), name=f"lib-cam-{entries}", depth=2)


@pytest.mark.long
def test_it_fills():
    prove(TagArraySpec(4), name="lib-cam-cover", mode="cover", depth=8)
