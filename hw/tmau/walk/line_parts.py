"""Line parts: how much of a line of pixels lies before the tensor, inside and behind it."""

from amaranth import Module, Mux, Signal, signed, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..jobs import PixelWalkLayout

__all__ = ["LineParts", "PartsLayout"]

_MOST = 1 << 10  # pixels of a walk


class PartsLayout(data.StructLayout):
    """Bytes of a line of pixels, at most those of 1024 pixels."""

    def __init__(self, params):
        bytes_ = unsigned(10 + params.bus_log2)
        super().__init__({"before": bytes_, "inside": bytes_, "behind": bytes_})


class LineParts(wiring.Component):
    """Measures the lines of a walk with ``folds``: along W, as if all other positions were inside.

    A line ends at its turn, before the tensor at position 0 and inside at the tensor's size, so that three distances
    from where it begins say all. One boundary a cycle, outermost first, goes through three stages: distance, pixels
    between it and the boundary before, bytes. The line that the walk begins in comes first.

    Latency: the first line is there seven cycles after ``start``, the others four cycles later.

    Members
    -------
    start : In(1)
        Strobe. What was being measured is given up.
    walk : In(PixelWalkLayout(params))
        From the cycle after ``start`` on.
    bytes : Out(10 + params.bus_log2)
        Of the walk. There with the first line.
    first, others : Out(PartsLayout(params))
        The line that the walk begins in, from there on; every line behind it.
    first_done, others_done : Out(1)
        They are there. Until the next ``start``.
    """

    def __init__(self, params):
        self.params = params
        self.measuring = Signal()
        self.boundary = Signal(3)  # turn, end of the tensor, begin of the tensor, begin of the line; of both lines
        super().__init__(
            {
                "start": In(1),
                "walk": In(PixelWalkLayout(params)),
                "bytes": Out(10 + params.bus_log2),
                "first": Out(PartsLayout(params)),
                "others": Out(PartsLayout(params)),
                "first_done": Out(1),
                "others_done": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        walk, boundary, measuring = self.walk, self.boundary, self.measuring
        m.d.sync += boundary.eq(boundary + 1)
        with m.If(boundary == 7):
            m.d.sync += measuring.eq(0)
        with m.If(self.start):
            m.d.sync += [measuring.eq(1), boundary.eq(0)]

        # Positions are those of the last pixel before the boundary, so that nothing has to be added to a size.
        position, begin, distance = Signal(signed(36)), Signal(signed(34)), Signal(signed(37))
        with m.Switch(boundary[:2]):
            with m.Case(0):
                m.d.comb += position.eq(walk.turns[0])
            with m.Case(1):
                m.d.comb += position.eq(walk.sizes[0])
            with m.Default():
                m.d.comb += position.eq(-1)
        m.d.comb += [begin.eq(Mux(boundary[2], walk.lows[0], walk.starts[0])), distance.eq(position - begin)]
        reach = Signal(signed(11))  # from -1: pixels up to the boundary, minus one
        reached, reaching = Signal(3), Signal()  # which boundary; there is one
        m.d.sync += [reached.eq(boundary), reaching.eq(measuring & ~self.start)]
        with m.If((distance < 0) | (boundary[:2] == 3)):
            m.d.sync += reach.eq(-1)
        with m.Elif(distance[10:-1].any()):
            m.d.sync += reach.eq(_MOST - 1)
        with m.Else():
            m.d.sync += reach.eq(distance[:10])

        before, pixels = Signal.like(reach), Signal(11)  # the boundary before; pixels from it to this one
        counted, counting = Signal(3), Signal()
        m.d.sync += [counted.eq(reached), counting.eq(reaching & ~self.start)]
        with m.If(reached[:2] == 0):
            m.d.sync += [before.eq(reach), pixels.eq(walk.last + 1)]
        with m.Elif(reach < before):
            m.d.sync += [before.eq(reach), pixels.eq(before - reach)]
        with m.Else():
            m.d.sync += pixels.eq(0)

        product = Signal.like(self.bytes)
        m.d.comb += product.eq(pixels * walk.data_bytes[: self.params.bus_log2])
        with m.If(counting), m.Switch(counted):
            for number, part in enumerate(
                (
                    *(self.bytes, self.first.behind, self.first.inside, self.first.before),
                    *(None, self.others.behind, self.others.inside, self.others.before),
                )
            ):
                if part is not None:
                    with m.Case(number):
                        m.d.sync += part.eq(product)
        m.d.sync += [
            self.first_done.eq((self.first_done | (counting & (counted == 3))) & ~self.start),
            self.others_done.eq((self.others_done | (counting & (counted == 7))) & ~self.start),
        ]
        return m
