"""What coordinates of elements add to the numbers of their pages, and to their places in them."""

from itertools import pairwise

from amaranth import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from tilewright.spec.pe import MAX_PAGE_LOG2

from ..layouts import BASES_SETS, LANE_READ_LATENCY, LaneReadSignature, SegmentEntryLayout, ThreadReadSignature
from ..params import LANES

__all__ = ["Bases", "BasisLayout", "Places"]


class Places(wiring.Component):
    """Splits a coordinate of each lane into page coordinate and place, and weighs both: two products a lane.

    A shift to the left is a product with a power of two. A page coordinate is a shift to the right: it is taken from
    the upper half of a product with what is shifted to the left by the rest of eight.

    Latency 2, one coordinate a lane and cycle. All is modulo the width of the result: of coordinates that are inside,
    nothing is lost.

    Members
    -------
    enable : In(1)
        The pipeline moves.
    coordinates : In(array of LANES 16)
    page_log2 : In(4)
        Log2 of the elements of a page in this dimension; goes with the coordinates, as the next two.
    pages_below : In(unsigned(params.page_width + 1))
        Pages from one page coordinate to the next.
    shift : In(5)
        Log2 of bytes from one place to the next.
    pages : Out(array of LANES params.page_width)
        Shares of the page number, two cycles later.
    offsets : Out(array of LANES 20)
        Shares of the offset in the page, in bytes, two cycles later; dimensions have no bit in common.
    """

    def __init__(self, params):
        self._params = params
        super().__init__(
            {
                "enable": In(1),
                "coordinates": In(data.ArrayLayout(16, LANES)),
                "page_log2": In(4),
                "pages_below": In(params.page_width + 1),
                "shift": In(5),
                "pages": Out(data.ArrayLayout(params.page_width, LANES)),
                "offsets": Out(data.ArrayLayout(MAX_PAGE_LOG2, LANES)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        width = self._params.page_width
        low, high = self.page_log2[:3], self.page_log2[3]
        weight = Signal(width + 1 + 8)  # of a page coordinate that is ``low`` bits to the left, times 2^8
        power, far = Signal(16), Signal()  # the shift, modulo 16; it is 16 or more
        ones, distance, was_far = Signal(16), Signal(5), Signal()
        mask = Signal(MAX_PAGE_LOG2)  # ones where the place is in an offset
        with m.If(self.enable):
            m.d.sync += [
                weight.eq((self.pages_below << 8) >> low),
                power.eq(1 << self.shift[:4]),
                far.eq(self.shift[4]),
                ones.eq((1 << self.page_log2) - 1),
                distance.eq(self.shift),
                mask.eq(ones << distance),
                was_far.eq(far),
            ]
        for lane, coordinate in enumerate(self.coordinates):
            whole = Signal(16, name=f"whole{lane}")
            # Without a reset these are registers that multipliers have.
            product = Signal(MAX_PAGE_LOG2, name=f"product{lane}", reset_less=True)
            share = Signal(width, name=f"share{lane}", reset_less=True)
            page = Signal(16, name=f"page{lane}", reset_less=True)  # but for places; its reset is their gate
            with m.If(self.enable):
                m.d.sync += [
                    whole.eq(coordinate),
                    page[:8].eq(Mux(high, coordinate[8:], coordinate[:8])),
                    page[8:].eq(coordinate[8:]),
                    product.eq(whole * power),
                    share.eq((page * weight)[8:]),
                ]
                for bit in range(7):
                    with m.If(low > bit):
                        m.d.sync += page[bit].eq(0)
                with m.If(high):
                    m.d.sync += page[8:].eq(0)
            # Where it is far, the mask has no bit before 16.
            moved = Cat(product[:16], Mux(was_far, product[:4], product[16:]))
            m.d.comb += [self.offsets[lane].eq(moved & mask), self.pages[lane].eq(share)]
        return m


#: Cycles from a coordinate to its share of the address.
_PLACE_LATENCY = 2


class BasisLayout(data.StructLayout):
    """A thread's offsets, those of the outer dimensions summed to a page number and an offset."""

    def __init__(self, params):
        super().__init__(
            {
                "inner": unsigned(32),  # dimension 0
                "outer": unsigned(16),  # dimension 1; meaningless if not inside, or without one
                "page": unsigned(params.page_width),  # from the segment's first entry on
                "offset": unsigned(MAX_PAGE_LOG2),  # bytes
                "inside": 1,  # in all dimensions but 0
            }
        )


class _AnswerLayout(data.StructLayout):
    """What is known of a lane read while it is under way."""

    def __init__(self, params):
        super().__init__(
            {
                "valid": 1,
                "dimension": unsigned(2),
                "last": 1,  # the group's last
                "group": unsigned(params.group_width),
            }
        )


class Bases(wiring.Component):
    """Reads the offset registers of all threads, group by group, and holds what comes out of them in memory.

    There are ``BASES_SETS`` sets of them; a build replaces one, and the others stay as they are.

    One lane read a cycle; from the last one's answer to ``busy`` low it takes four cycles. Between builds the read
    port has a latency of one cycle. The memories are block memories, which have room where tables are short.

    Members
    -------
    set : In(range(BASES_SETS))
        From ``start`` until ``busy`` is low again: the one that is built. With ``reads.enable``: the one that is read.
    start : In(1)
        Strobe, while not ``busy``: read them again.
    segment : In(SegmentEntryLayout)
    first : In(params.reg_width)
        Register of dimension 0.
    by_rows : In(1)
        Dimension 1 is left out of page and offset. Like ``segment`` and ``first``, it holds from ``start`` until
        ``busy`` is low again.
    busy : Out(1)
    lane_reads : Out(LaneReadSignature)
    reads : In(ThreadReadSignature(params, BasisLayout(params)))
    """

    def __init__(self, params):
        self._params = params
        # Lanes read groups of their own. Of one group they all read the same row: a wide memory takes fewer blocks.
        self._lanes = LANES if params.groups == 1 else 1  # of each memory
        row = data.ArrayLayout(BasisLayout(params), self._lanes)
        self._memories = [
            Memory(shape=row, depth=BASES_SETS * params.groups, init=[], attrs={"ram_style": "block"})
            for _ in range(LANES // self._lanes)
        ]
        self._under_way = [Signal(_AnswerLayout(params), name=f"answer{n}") for n in range(LANE_READ_LATENCY)]
        self._placed = [Signal(_AnswerLayout(params), name=f"placed{n}") for n in range(_PLACE_LATENCY)]
        self._written = Signal(_AnswerLayout(params))  # whose sums are in registers
        super().__init__(
            {
                "set": In(range(BASES_SETS)),
                "start": In(1),
                "segment": In(SegmentEntryLayout(params)),
                "first": In(params.reg_width),
                "by_rows": In(1),
                "busy": Out(1),
                "lane_reads": Out(LaneReadSignature(params)),
                "reads": In(ThreadReadSignature(params, BasisLayout(params))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        self._read(m)
        # What goes with the answer of this cycle, and with the coordinate whose share is known in this cycle.
        answer, placed = self._under_way[-1], self._placed[-1]
        m.d.sync += self._placed[0].eq(answer)
        m.d.sync += [later.eq(now) for now, later in pairwise(self._placed)]
        written = self._written
        m.d.sync += written.eq(placed)
        with m.If(written.valid & written.last & (written.group == self._params.groups - 1)):
            m.d.sync += self.busy.eq(0)

        segment = self.segment
        # Of the dimension of the answer: what it is measured with. Dimension 0 has no share here.
        size, page_log2 = Signal(16), Signal(4)
        pages_below, shift = Signal(self._params.page_width + 1), Signal(5)
        counts = Signal()  # the dimension has a share in page and offset
        m.d.comb += [
            size.eq(segment.size[answer.dimension]),
            page_log2.eq(segment.page_log2[answer.dimension]),
            counts.eq(answer.dimension > self.by_rows),
        ]
        with m.Switch(answer.dimension):
            for dimension in (1, 2, 3):
                with m.Case(dimension):
                    m.d.comb += [
                        pages_below.eq(segment.pages_below[dimension - 1]),
                        shift.eq(segment.shift[dimension - 1]),
                    ]
        m.submodules.places = places = Places(self._params)
        m.d.comb += [
            places.enable.eq(1),
            # Without a share the page has one element, and is none of many.
            places.page_log2.eq(Mux(counts, page_log2, 0)),
            places.pages_below.eq(Mux(counts, pages_below, 0)),
            places.shift.eq(shift),
        ]
        m.d.comb += [places.coordinates[lane].eq(self.lane_reads.data[lane][:16]) for lane in range(LANES)]
        self._hold(m, [self._gather(m, lane, places, size) for lane in range(LANES)])
        return m

    def _read(self, m):
        """The registers of a group, dimension by dimension, then those of the next."""
        reads, sent = self.lane_reads.requests, self._under_way[0]
        dimension, last = Signal(2), Signal()
        m.d.comb += last.eq(dimension == self.segment.rank)
        m.d.sync += [
            sent.valid.eq(reads.valid & reads.ready),
            sent.dimension.eq(dimension),
            sent.last.eq(last),
            sent.group.eq(reads.p.group),
        ]
        m.d.sync += [later.eq(now) for now, later in pairwise(self._under_way)]
        with m.If(self.start):
            m.d.sync += [
                self.busy.eq(1),
                reads.valid.eq(1),
                reads.p.register.eq(self.first),
                reads.p.group.eq(0),
                dimension.eq(0),
            ]
        with m.Elif(reads.valid & reads.ready):
            with m.If(last):
                m.d.sync += [
                    reads.valid.eq(reads.p.group != self._params.groups - 1),
                    reads.p.register.eq(self.first),
                    reads.p.group.eq(reads.p.group + 1),
                    dimension.eq(0),
                ]
            with m.Else():
                m.d.sync += [reads.p.register.eq(reads.p.register + 1), dimension.eq(dimension + 1)]

    def _gather(self, m, lane, places, size):
        """What the dimensions of one lane's thread add, summed in a register."""
        params = self._params
        placed = self._placed[-1]
        coordinate = self.lane_reads.data[lane]
        # As old as the shares.
        below = [Signal(name=f"below{lane}_{n}") for n in range(_PLACE_LATENCY)]
        values = [Signal(32, name=f"value{lane}_{n}") for n in range(_PLACE_LATENCY)]
        # Coordinates have 32 bits, sizes 16.
        m.d.sync += [below[0].eq(~coordinate[16:].any() & (coordinate[:16] < size)), values[0].eq(coordinate)]
        for delays in (below, values):
            m.d.sync += [later.eq(now) for now, later in pairwise(delays)]
        sums = Signal(BasisLayout(params), name=f"sums{lane}")
        with m.If(placed.valid):
            with m.If(placed.dimension == 0):
                m.d.sync += [
                    sums.inner.eq(values[-1]),
                    sums.page.eq(self.segment.first_entry),
                    sums.offset.eq(0),
                    sums.inside.eq(1),
                ]
            with m.Else():
                m.d.sync += [
                    sums.page.eq(sums.page + places.pages[lane]),
                    sums.offset.eq(sums.offset | places.offsets[lane]),
                    sums.inside.eq(sums.inside & below[-1]),
                ]
            with m.If(placed.dimension == 1):
                m.d.sync += sums.outer.eq(values[-1])
        return sums

    def _hold(self, m, sums):
        """Writes the sums of a group when the last ones have come, and reads those of the groups that are asked for."""
        written, reads = self._written, self.reads
        for number, memory in enumerate(self._memories):
            lanes = range(number * self._lanes, (number + 1) * self._lanes)
            m.submodules[f"memory{number}"] = memory
            # The register of the read port stands here: so tools see that nothing is read while it is written.
            write, read = memory.write_port(), memory.read_port(domain="comb")
            row = Signal(memory.shape, name=f"row{number}", reset_less=True)
            with m.If(reads.enable & ~write.en):
                m.d.sync += row.eq(read.data)
            m.d.comb += [
                write.addr.eq(Cat(self.set, written.group)),
                write.en.eq(written.valid & written.last),
                read.addr.eq(Cat(self.set, reads.groups[lanes[0]])),
            ]
            for lane, target, source in zip(lanes, write.data, row, strict=True):
                m.d.comb += [target.eq(sums[lane]), reads.rows[lane].eq(source)]
