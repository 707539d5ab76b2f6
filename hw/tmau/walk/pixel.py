"""Line parts: how much of a line of pixels lies before the tensor, inside and behind it."""

from amaranth.hdl import Module, Mux, Signal, signed, unsigned
from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.wiring import In, Out

from ..jobs import PixelWalkLayout
from ..layouts import BoxRunLayout, prefetch_members
from .address import AddressGenerator

__all__ = ["LineParts", "PartsLayout", "PixelWalker"]

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
    """

    def __init__(self, params):
        self.params = params
        self.measuring = Signal()
        self.boundary = Signal(3)  # turn, end of the tensor, begin of the tensor, begin of the line; of both lines
        super().__init__(
            {
                # Strobe. What was being measured is given up.
                "start": In(1),
                # From the cycle after ``start`` on.
                "walk": In(PixelWalkLayout(params)),
                # Of the walk. There with the first line.
                "bytes": Out(10 + params.bus_log2),
                # The line that the walk begins in, from there on; every line behind it.
                "first": Out(PartsLayout(params)),
                "others": Out(PartsLayout(params)),
                # They are there. Until the next ``start``.
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


_SPATIAL = 3  # W, H, D; after them comes N


class _Part(enum.Enum, shape=2):
    """What of a line comes next, with ``folds``."""

    LINE = 0  # where it lies
    BEFORE = 1
    INSIDE = 2
    BEHIND = 3


class PixelWalker(wiring.Component):
    """Visits pixels one a cycle, without a gap from one transfer to the next; each is a run, and a row.

    A step advances W; if that leaves the bounding box, W starts over and H advances, and so on to N, which is not
    bounded. Latency 1 from ``i`` to the first run.

    Of a walk with ``folds`` a run is what a line has before the tensor, inside, or behind it. A line takes a cycle, and
    one more for each of its runs. Latency 9 to the first run, and 13 at least to that of the second line.
    """

    def __init__(self, params):
        self.params = params
        self.address_generator = AddressGenerator(addr_width=params.addr_width, levels=_SPATIAL + 1)
        self.positions = Signal(data.ArrayLayout(signed(34), _SPATIAL + 1))  # of the pixel at the output
        self.walk = Signal(PixelWalkLayout(params))  # of the transfer under way
        self.left = Signal(10)  # pixels after that at the output
        # Which dimensions are at their last positions. Found out with the positions, so that no comparison is on the
        # way from one pixel to the next: from the positions at which a step leads to the last one.
        self.ends = Signal(_SPATIAL)
        self.nears = Signal(data.ArrayLayout(signed(37), _SPATIAL))
        self.single = Signal(_SPATIAL)  # rounds of one position
        if params.folds_pixels:
            self.parts = LineParts(params)
            self.part = Signal(_Part)
            self.turned = Signal()  # the line is not the one that the walk began in
            self.over = Signal()  # the last run has been made
            self.address = Signal(params.addr_width)  # of the line's first byte inside
            self.line_inside = Signal()  # as far as the line is
            self.made = Signal()  # there is a run, which is
            self.run = Signal(data.StructLayout({"bytes": self.parts.bytes.shape(), "inside": 1, "last": 1}))
            self.bytes = Signal.like(self.parts.bytes)  # of the walk, after that run
        super().__init__(
            {
                # Taken while idle, or with the last run of the transfer before.
                "i": In(stream.Signature(PixelWalkLayout(params))),
                # ``last + 1`` of them, or with ``folds`` as many pixels.
                "o": Out(stream.Signature(BoxRunLayout(params))),
                # Registered: a walk is under way.
                "busy": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.address = address = self.address_generator
        step, walk = Signal(), self.walk

        m.d.comb += [
            self.o.valid.eq(self.busy),
            step.eq(self.o.valid & self.o.ready),
            # What is at the input goes into the registers whether it is valid or not: fewer signals enable them.
            self.i.ready.eq(~self.busy | (self.o.valid & self.o.ready & self.o.payload.last)),
        ]
        with m.If(self.i.ready):
            m.d.sync += self.busy.eq(self.i.valid)

        # x + 1 turns the lowest zero of x into a one: the innermost dimension that is not at its end. N never is.
        turning, advance = Signal(_SPATIAL + 1), Signal(_SPATIAL + 1)
        m.d.comb += [turning.eq(self.ends), advance.eq(~turning & (turning + 1))]
        # What comes next, if anything does, begins a walk: known without waiting for whether it comes.
        loading = Signal()
        m.d.comb += loading.eq(~self.busy | (self.o.valid & self.o.payload.last))
        with m.If(self.i.ready | step):
            m.d.sync += self.left.eq(Mux(loading, self.i.payload.last, self.left - 1))
        for k, starts in enumerate(self.i.payload.starts):
            goes_on = self.positions[k] + walk.steps[k] + 1
            lows = walk.lows[k] if k < _SPATIAL else 0
            with m.If(self.i.ready | (step & advance[k:].any())):
                m.d.sync += self.positions[k].eq(Mux(loading, starts, Mux(advance[k], goes_on, lows)))
        for k, turn in enumerate(self.i.payload.turns):
            is_last = Mux(advance[k], self.positions[k] >= self.nears[k], self.single[k])
            with m.If(self.i.ready | (step & advance[k:].any())):
                m.d.sync += self.ends[k].eq(Mux(loading, self.i.payload.starts[k] >= turn, is_last))
        with m.If(self.i.ready):
            m.d.sync += walk.eq(self.i.payload)
            for k, turn in enumerate(self.i.payload.turns):
                m.d.sync += [
                    self.single[k].eq(self.i.payload.lows[k] >= turn),
                    self.nears[k].eq(turn - self.i.payload.steps[k] - 1),
                ]

        inside = Signal(_SPATIAL + 1)
        for k, position in enumerate(self.positions):
            m.d.comb += inside[k].eq((position >= 0) & (position <= walk.sizes[k]))
        m.d.comb += [
            address.load.eq(self.i.ready),
            address.loading.eq(loading),
            address.step.eq(step),
            address.over.eq(turning),
            address.origins.eq(self.i.payload.origins),
            address.strides.eq(walk.strides),
            self.o.payload.address.eq(address.address),
            self.o.payload.bytes.eq(walk.data_bytes),
            self.o.payload.inside.eq(inside.all() & ~walk.outside),
            self.o.payload.skip.eq(1),
            self.o.payload.last.eq(self.left == 0),
            self.o.payload.store.eq(walk.store),
            *(self.o.payload[name].eq(walk[name]) for name in prefetch_members(self.params)),
        ]
        if self.params.folds_pixels:
            turns = Signal()
            self._lines(m, turns, inside[1:].all())
            with m.If(walk.folds):
                m.d.comb += [
                    turning[0].eq(1),
                    step.eq(turns),
                    self.o.valid.eq(self.made),
                    self.o.payload.address.eq(self.address),
                    self.o.payload.bytes.eq(self.run.bytes),
                    self.o.payload.inside.eq(self.run.inside),
                    self.o.payload.folded.eq(1),
                    self.o.payload.last.eq(self.run.last),
                ]
        return m

    def _lines(self, m, turns, inside):
        """Runs of a walk with ``folds``: the parts of a line that are not empty, one after the other, line by line."""
        m.submodules.parts = parts = self.parts
        walk, part, line, run = self.walk, self.part, Signal(PartsLayout(self.params)), self.run
        m.d.comb += [
            parts.start.eq(self.i.ready),
            parts.walk.eq(walk),
            line.eq(Mux(self.turned, parts.others, parts.first)),
        ]
        length, following = Signal.like(self.bytes), Signal(_Part)
        with m.Switch(part):
            with m.Case(_Part.BEFORE):
                m.d.comb += length.eq(line.before)
            with m.Case(_Part.INSIDE):
                m.d.comb += length.eq(line.inside)
            with m.Case(_Part.BEHIND):
                m.d.comb += length.eq(line.behind)
        with m.If((part == _Part.LINE) & line.before.any()):
            m.d.comb += following.eq(_Part.BEFORE)
        with m.Elif(((part == _Part.LINE) | (part == _Part.BEFORE)) & line.inside.any()):
            m.d.comb += following.eq(_Part.INSIDE)
        with m.Elif((part != _Part.BEHIND) & line.behind.any()):
            m.d.comb += following.eq(_Part.BEHIND)

        free, moves, makes, ends = Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            free.eq(~self.made | self.o.ready),
            moves.eq(free & ~self.over & Mux(self.turned, parts.others_done, parts.first_done)),
            makes.eq(moves & (part != _Part.LINE)),
            ends.eq(self.bytes <= length),
            turns.eq(makes & (following == _Part.LINE)),
        ]
        with m.If(free):
            m.d.sync += self.made.eq(makes)
        with m.If(moves):
            m.d.sync += part.eq(following)
        with m.If(makes):
            m.d.sync += [
                self.bytes.eq(self.bytes - length),
                self.over.eq(ends),
                self.turned.eq(self.turned | turns),
                run.bytes.eq(Mux(ends, self.bytes, length)),
                run.inside.eq((part == _Part.INSIDE) & self.line_inside),
                run.last.eq(ends),
            ]
        with m.Elif(moves):
            m.d.sync += [
                self.address.eq(self.address_generator.address + line.before),
                self.line_inside.eq(inside & ~walk.outside),
            ]
            with m.If(~self.turned):
                m.d.sync += self.bytes.eq(parts.bytes)
        with m.If(self.i.ready):
            m.d.sync += [part.eq(_Part.LINE), self.over.eq(~self.i.payload.folds), self.turned.eq(0)]
