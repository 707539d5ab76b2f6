"""F10: an index is taken for inside exactly if its coordinate is, for every start, size, step and index."""

from amaranth import Module, Mux, Signal, signed
from amaranth.hdl import Assert, Assume, Elaboratable

from tilewright.hw.tmau.walk.address import BoundsDistance, BoundsInterval
from tilewright.verify.formal import prove


class BoundsSpec(Elaboratable):
    """The compare of the specification: 0 <= c + i * t < size."""

    def __init__(self):
        self.distance, self.interval = BoundsDistance(), BoundsInterval()
        self.index = Signal(8)

    def elaborate(self, platform):
        m = Module()
        m.submodules.distance, m.submodules.interval = distance, interval = self.distance, self.interval
        m.d.comb += [interval.below.eq(distance.below), interval.above.eq(distance.above)]
        m.d.comb += distance.traversal.eq(interval.traversal)
        step = interval.traversal + 1
        # No box reaches beyond 256 elements.
        m.d.comb += Assume((self.index < interval.count) & (self.index * step < 256) & (interval.count <= 256))
        coordinate = Signal(signed(34))
        m.d.comb += coordinate.eq(distance.coord + self.index * step)
        inside = (coordinate >= 0) & (coordinate <= distance.size)
        taken = (interval.interval.first <= self.index) & (self.index < interval.interval.end)
        m.d.comb += Assert(taken == inside)
        m.d.comb += Assert((interval.empty == 0) | ~taken)
        m.d.comb += distance.count.eq(interval.count)
        for distance_to, limited in (
            (-distance.coord, distance.start),
            (distance.size - distance.coord + 1, distance.end),
        ):
            count = interval.count
            m.d.comb += Assert(limited == Mux(distance_to < 0, 0, Mux(distance_to < count, distance_to, count)))
        return m

    @property
    def ports(self):
        return [self.distance.coord, self.distance.size, self.interval.traversal, self.interval.count, self.index]


def test_interval_is_the_coordinate_compare():
    prove(BoundsSpec(), name="bounds", depth=1, proves="F10")
