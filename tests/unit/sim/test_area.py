"""What Yosys makes of components whose cells are known."""

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from tilewright.hw.tmau.params import PRESETS
from tilewright.sim.area import cost
from tilewright.sim.area_rooms import REDUCTIONS, rooms


class Unanimity(wiring.Component):
    """Four inputs in one table, and a register of four bits."""

    i: In(8)
    o: Out(1)
    count: Out(4)

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.o.eq(self.i[:4].all())
        m.d.sync += self.count.eq(self.i[:4])
        return m


def test_tables_flip_flops_and_levels():
    found = cost(Unanimity())
    assert found.luts == 1
    assert found.flip_flops == 4
    assert (found.memories, found.multipliers) == (0, 0)
    assert found.levels == 1


def test_every_room_can_be_made():
    made = {name: make() for name, make in rooms(PRESETS["unit"]).items()}
    assert set(REDUCTIONS) <= set(made)
    assert all(type(room).__name__ == name for name, room in made.items())
