"""The pixel walker: visits the pixels of an im2col transfer (docs/tmau.md, "Im2col mode")."""

from amaranth.hdl import Module, Mux, Signal, signed, unsigned
from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.wiring import In, Out

from ..jobs import PixelWalkLayout
from ..layouts import BoxRunLayout, prefetch_members
from .address import AddressGenerator

__all__ = ["LineParts", "PartsLayout", "PixelWalker"]

_MOST = 1 << 10  # pixels of the longest walk


class PartsLayout(data.StructLayout):
    """Bytes of a line of up to 1024 pixels: before the tensor, inside, and after it."""

    def __init__(self, params):
        bytes_ = unsigned(10 + params.bus_log2)
        super().__init__({"before": bytes_, "inside": bytes_, "behind": bytes_})


class LineParts(wiring.Component):
    """Measures the lines of a walk with ``folds`` along W, as if all other positions were inside.

    Three boundaries divide a line: position 0, the size of the tensor, and the turn, where the line ends. One boundary
    a cycle, outermost first, passes three stages: distance from the start of the line, pixels between the boundary and
    the previous one, bytes. The first line, which may begin anywhere, is measured before all other lines.

    Latency: seven cycles from ``start`` to the first line, eleven to the others.
    """

    def __init__(self, params):
        self._params = params
        self.measuring = Signal()
        self.boundary = Signal(3)  # turn, end of the tensor, start of the tensor, start of the line; twice
        super().__init__(
            {
                "start": In(1),  # Strobe. Aborts the current measurement.
                "walk": In(PixelWalkLayout(params)),  # Valid from the cycle after ``start``.
                "bytes": Out(10 + params.bus_log2),  # Of the whole walk. Valid with the first line.
                "first": Out(PartsLayout(params)),  # The first line of the walk, from its start.
                "others": Out(PartsLayout(params)),  # All other lines.
                # The results are valid, until the next ``start``.
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

        # Positions of the last pixel before the boundary, so that sizes need no increment.
        position, begin, distance = Signal(signed(36)), Signal(signed(34)), Signal(signed(37))
        with m.Switch(boundary[:2]):
            with m.Case(0):
                m.d.comb += position.eq(walk.turns[0])
            with m.Case(1):
                m.d.comb += position.eq(walk.sizes[0])
            with m.Default():
                m.d.comb += position.eq(-1)
        m.d.comb += [begin.eq(Mux(boundary[2], walk.lows[0], walk.starts[0])), distance.eq(position - begin)]
        reach = Signal(signed(11))  # number of pixels up to the boundary, minus one; at least -1
        reached, reaching = Signal(3), Signal()  # number of that boundary; it is valid
        m.d.sync += [reached.eq(boundary), reaching.eq(measuring & ~self.start)]
        with m.If((distance < 0) | (boundary[:2] == 3)):
            m.d.sync += reach.eq(-1)
        with m.Elif(distance[10:-1].any()):
            m.d.sync += reach.eq(_MOST - 1)
        with m.Else():
            m.d.sync += reach.eq(distance[:10])

        before, pixels = Signal.like(reach), Signal(11)  # of the previous boundary; pixels between both
        counted, counting = Signal(3), Signal()
        m.d.sync += [counted.eq(reached), counting.eq(reaching & ~self.start)]
        with m.If(reached[:2] == 0):
            m.d.sync += [before.eq(reach), pixels.eq(walk.last + 1)]
        with m.Elif(reach < before):
            m.d.sync += [before.eq(reach), pixels.eq(before - reach)]
        with m.Else():
            m.d.sync += pixels.eq(0)

        product = Signal.like(self.bytes)
        m.d.comb += product.eq(pixels * walk.data_bytes[: self._params.bus_log2])
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
    """The next part of a line, with ``folds``."""

    LINE = 0  # its address
    BEFORE = 1
    INSIDE = 2
    BEHIND = 3


class PixelWalker(wiring.Component):
    """Visits one pixel a cycle, without a gap between transfers; each pixel is a run and ends a row.

    A step advances W; if that leaves the bounding box, W starts again and H advances, and so on up to N, which is not
    bounded. Latency 1 from ``i`` to the first run.

    In a walk with ``folds`` the pixels of a line before the tensor, inside, and after it form one run each. A line
    takes one cycle, plus one for each of its runs. Latency 9 to the first run, at least 13 to the second line.
    """

    def __init__(self, params):
        self._params = params
        self.address_generator = AddressGenerator(addr_width=params.addr_width, levels=_SPATIAL + 1)
        self.positions = Signal(data.ArrayLayout(signed(34), _SPATIAL + 1))  # of the pixel at the output
        self.walk = Signal(PixelWalkLayout(params))  # of the current transfer
        self.left = Signal(10)  # pixels after the one at the output
        # Dimensions at the last position of their round. Computed one step ahead, so that no comparison delays a step:
        # a position of at least ``nears`` is the last but one.
        self.ends = Signal(_SPATIAL)
        self.nears = Signal(data.ArrayLayout(signed(37), _SPATIAL))
        self.single = Signal(_SPATIAL)  # dimensions whose rounds have one position
        if params.folds_pixels:
            self.parts = LineParts(params)
            self.part = Signal(_Part)
            self.turned = Signal()  # the current line is not the first one
            self.over = Signal()  # the last run has been made
            self.address = Signal(params.addr_width)  # of the line's first byte inside
            self.line_inside = Signal()  # all positions but W are inside
            self.run_valid = Signal()
            self.run = Signal(data.StructLayout({"bytes": self.parts.bytes.shape(), "inside": 1, "last": 1}))
            self.bytes = Signal.like(self.parts.bytes)  # of the walk after that run
        super().__init__(
            {
                # Accepted while idle, or with the last run of the previous transfer.
                "i": In(stream.Signature(PixelWalkLayout(params))),
                "o": Out(stream.Signature(BoxRunLayout(params))),  # In total ``last + 1`` pixels.
                "busy": Out(1),  # A walk is in progress. Registered.
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.address = address = self.address_generator
        step, walk, arriving, run = Signal(), self.walk, self.i.payload, self.o.payload

        m.d.comb += [
            self.o.valid.eq(self.busy),
            step.eq(self.o.valid & self.o.ready),
            # The registers load whether ``i`` is valid or not, which simplifies their enables.
            self.i.ready.eq(~self.busy | (self.o.valid & self.o.ready & run.last)),
        ]
        with m.If(self.i.ready):
            m.d.sync += self.busy.eq(self.i.valid)

        # x + 1 sets the lowest zero of x: the innermost dimension that is not at its end. N never is at its end.
        turning, advance = Signal(_SPATIAL + 1), Signal(_SPATIAL + 1)
        m.d.comb += [turning.eq(self.ends), advance.eq(~turning & (turning + 1))]
        # The next step, if any, begins a walk. Known before it is known whether the step happens.
        loading = Signal()
        m.d.comb += loading.eq(~self.busy | (self.o.valid & run.last))
        with m.If(self.i.ready | step):
            m.d.sync += self.left.eq(Mux(loading, arriving.last, self.left - 1))
        for k, starts in enumerate(arriving.starts):
            goes_on = self.positions[k] + walk.steps[k] + 1
            lows = walk.lows[k] if k < _SPATIAL else 0
            with m.If(self.i.ready | (step & advance[k:].any())):
                m.d.sync += self.positions[k].eq(Mux(loading, starts, Mux(advance[k], goes_on, lows)))
        for k, turn in enumerate(arriving.turns):
            is_last = Mux(advance[k], self.positions[k] >= self.nears[k], self.single[k])
            with m.If(self.i.ready | (step & advance[k:].any())):
                m.d.sync += self.ends[k].eq(Mux(loading, arriving.starts[k] >= turn, is_last))
        with m.If(self.i.ready):
            m.d.sync += walk.eq(arriving)
            for k, turn in enumerate(arriving.turns):
                m.d.sync += [
                    self.single[k].eq(arriving.lows[k] >= turn),
                    self.nears[k].eq(turn - arriving.steps[k] - 1),
                ]

        inside = Signal(_SPATIAL + 1)
        for k, position in enumerate(self.positions):
            m.d.comb += inside[k].eq((position >= 0) & (position <= walk.sizes[k]))
        m.d.comb += [
            address.load.eq(self.i.ready),
            address.loading.eq(loading),
            address.step.eq(step),
            address.over.eq(turning),
            address.origins.eq(arriving.origins),
            address.strides.eq(walk.strides),
            run.address.eq(address.address),
            run.bytes.eq(walk.data_bytes),
            run.inside.eq(inside.all() & ~walk.outside),
            run.skip.eq(1),
            run.last.eq(self.left == 0),
            run.store.eq(walk.store),
            *(run[name].eq(walk[name]) for name in prefetch_members(self._params)),
        ]
        if self._params.folds_pixels:
            turns = Signal()
            self._lines(m, turns, inside[1:].all())
            with m.If(walk.folds):
                m.d.comb += [
                    turning[0].eq(1),
                    step.eq(turns),
                    self.o.valid.eq(self.run_valid),
                    run.address.eq(self.address),
                    run.bytes.eq(self.run.bytes),
                    run.inside.eq(self.run.inside),
                    run.folded.eq(1),
                    run.last.eq(self.run.last),
                ]
        return m

    def _lines(self, m, turns, inside):
        """Makes the runs of a walk with ``folds``: all parts of a line that are not empty, line by line."""
        m.submodules.parts = parts = self.parts
        walk, part, line, run = self.walk, self.part, Signal(PartsLayout(self._params)), self.run
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
            free.eq(~self.run_valid | self.o.ready),
            moves.eq(free & ~self.over & Mux(self.turned, parts.others_done, parts.first_done)),
            makes.eq(moves & (part != _Part.LINE)),
            ends.eq(self.bytes <= length),
            turns.eq(makes & (following == _Part.LINE)),
        ]
        with m.If(free):
            m.d.sync += self.run_valid.eq(makes)
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
