"""Bases: the part of each thread's address that does not depend on the immediate of the instruction."""

from itertools import pairwise

from amaranth.hdl import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from tilewright.spec.pe import MAX_PAGE_LOG2

from ..layouts import BASES_SETS, LANE_READ_LATENCY, LaneReadSignature, SegmentEntryLayout, ThreadReadSignature
from ..params import LANES

__all__ = ["TERM_LATENCY", "Bases", "BasisLayout", "address_terms"]


#: Cycles from a coordinate to its terms.
TERM_LATENCY = 2


def address_terms(m, params, coordinates, *, page_log2, pages_below, shift, enable=1):
    """Splits a coordinate of each lane into page coordinate and offset, and weighs both: two multipliers a lane.

    A left shift is a product with a power of two. A page coordinate is a right shift: the upper half of a product with
    a weight that is shifted left by the rest of eight. Results are modulo 2 to the power of their width, which loses
    nothing of coordinates that are inside.

    Parameters
    ----------
    m : Module
    params : PeParams
    coordinates : list of Value
        16 bits for each lane, all of one dimension.
    page_log2 : Value
        Log2 of the elements of a page in this dimension.
    pages_below : Value
        Pages from one page coordinate to the next.
    shift : Value
        Log2 of the bytes from one coordinate in the page to the next.
    enable : Value
        The pipeline moves.

    Returns
    -------
    list of Value, list of Value
        For each lane, ``TERM_LATENCY`` cycles later: terms of the page number, and of the offset in the page in bytes.
        Offsets of different dimensions have no bit in common.
    """
    low, high = page_log2[:3], page_log2[3]
    weight = Signal(params.page_width + 1 + 8)  # of a page coordinate that is shifted left by ``low``, times 2^8
    power, far = Signal(16), Signal()  # 2^shift, shift modulo 16; shift is 16 or more
    ones, distance, was_far = Signal(16), Signal(5), Signal()
    mask = Signal(MAX_PAGE_LOG2)  # bits of this dimension in an offset
    with m.If(enable):
        m.d.sync += [
            weight.eq((pages_below << 8) >> low),
            power.eq(1 << shift[:4]),
            far.eq(shift[4]),
            ones.eq((1 << page_log2) - 1),
            distance.eq(shift),
            mask.eq(ones << distance),
            was_far.eq(far),
        ]
    pages, offsets = [], []
    for lane, coordinate in enumerate(coordinates):
        whole = Signal(16, name=f"whole{lane}")
        # Without a reset these are the registers of the multipliers.
        product = Signal(MAX_PAGE_LOG2, name=f"product{lane}", reset_less=True)
        page_term = Signal(params.page_width, name=f"page_term{lane}", reset_less=True)
        # The coordinate without the bits of the offset, which the reset of the register clears.
        page = Signal(16, name=f"page{lane}", reset_less=True)
        with m.If(enable):
            m.d.sync += [
                whole.eq(coordinate),
                page[:8].eq(Mux(high, coordinate[8:], coordinate[:8])),
                page[8:].eq(coordinate[8:]),
                product.eq(whole * power),
                page_term.eq((page * weight)[8:]),
            ]
            for bit in range(7):
                with m.If(low > bit):
                    m.d.sync += page[bit].eq(0)
            with m.If(high):
                m.d.sync += page[8:].eq(0)
        # If the shift is 16 or more, the mask has no bit below 16.
        offsets.append(Cat(product[:16], Mux(was_far, product[:4], product[16:])) & mask)
        pages.append(page_term)
    return pages, offsets


class BasisLayout(data.StructLayout):
    """A thread's offsets, those of the outer dimensions summed to a page number and an offset in the page."""

    def __init__(self, params):
        super().__init__(
            {
                "inner": unsigned(32),  # dimension 0
                "outer": unsigned(16),  # dimension 1; undefined if not inside, or at rank 1
                "page": unsigned(params.page_width),  # includes the segment's first entry
                "offset": unsigned(MAX_PAGE_LOG2),  # bytes
                "inside": 1,  # in all dimensions but 0
            }
        )


class _ReadLayout(data.StructLayout):
    """A lane read in flight."""

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
    """Reads the offset registers of all threads, group by group, and stores the bases.

    There are ``BASES_SETS`` sets; a build replaces one of them. A build takes one lane read a cycle, and four cycles
    from the last answer to ``busy`` low. Between builds the read port has a latency of one cycle. The memories are
    block RAMs, which devices have more of than the design needs.
    """

    def __init__(self, params):
        self._params = params
        # Lanes read different groups. With one group all read the same row, and one wide memory takes fewer blocks.
        self._lanes = LANES if params.groups == 1 else 1  # of each memory
        row = data.ArrayLayout(BasisLayout(params), self._lanes)
        self._memories = [
            Memory(shape=row, depth=BASES_SETS * params.groups, init=[], attrs={"ram_style": "block"})
            for _ in range(LANES // self._lanes)
        ]
        self._in_flight = [Signal(_ReadLayout(params), name=f"answer{n}") for n in range(LANE_READ_LATENCY)]
        self._placed = [Signal(_ReadLayout(params), name=f"placed{n}") for n in range(TERM_LATENCY)]
        self._summed = Signal(_ReadLayout(params))  # the read whose terms are in the sums
        super().__init__(
            {
                # The set that is built, stable from ``start`` until ``busy`` is low again, or read.
                "set": In(range(BASES_SETS)),
                "start": In(1),  # strobe, while not ``busy``: read the registers
                # Stable from ``start`` until ``busy`` is low again:
                "segment": In(SegmentEntryLayout(params)),
                "first": In(params.reg_width),  # register of dimension 0
                "by_rows": In(1),  # dimension 1 is left out of page and offset
                "busy": Out(1),
                "lane_reads": Out(LaneReadSignature(params)),
                "reads": In(ThreadReadSignature(params, BasisLayout(params))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        self._read(m)
        # The read whose answer is at the input, and the one whose coordinate is placed.
        answer, placed, summed = self._in_flight[-1], self._placed[-1], self._summed
        m.d.sync += [self._placed[0].eq(answer), summed.eq(placed)]
        m.d.sync += [later.eq(earlier) for earlier, later in pairwise(self._placed)]
        with m.If(summed.valid & summed.last & (summed.group == self._params.groups - 1)):
            m.d.sync += self.busy.eq(0)

        segment = self.segment
        size, page_log2 = Signal(16), Signal(4)  # of the dimension of the answer
        pages_below, shift = Signal(self._params.page_width + 1), Signal(5)
        counts = Signal()  # the dimension has terms in page and offset; dimension 0 has none here
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
        pages, offsets = address_terms(
            m,
            self._params,
            [word[:16] for word in self.lane_reads.data],
            # A dimension without terms has pages of one element that do not count.
            page_log2=Mux(counts, page_log2, 0),
            pages_below=Mux(counts, pages_below, 0),
            shift=shift,
        )
        self._store(m, [self._sum(m, lane, pages[lane], offsets[lane], size) for lane in range(LANES)])
        return m

    def _read(self, m):
        """Reads the registers of a group, dimension by dimension, then those of the next group."""
        reads, sent = self.lane_reads.requests, self._in_flight[0]
        request = reads.payload
        dimension, last = Signal(2), Signal()
        m.d.comb += last.eq(dimension == self.segment.rank)
        m.d.sync += [
            sent.valid.eq(reads.valid & reads.ready),
            sent.dimension.eq(dimension),
            sent.last.eq(last),
            sent.group.eq(request.group),
        ]
        m.d.sync += [later.eq(earlier) for earlier, later in pairwise(self._in_flight)]
        with m.If(self.start):
            m.d.sync += [
                self.busy.eq(1),
                reads.valid.eq(1),
                request.register.eq(self.first),
                request.group.eq(0),
                dimension.eq(0),
            ]
        with m.Elif(reads.valid & reads.ready):
            m.d.sync += [request.register.eq(request.register + 1), dimension.eq(dimension + 1)]
            with m.If(last):
                m.d.sync += [
                    reads.valid.eq(request.group != self._params.groups - 1),
                    request.register.eq(self.first),
                    request.group.eq(request.group + 1),
                    dimension.eq(0),
                ]

    def _sum(self, m, lane, page, offset, size):
        """Sums the terms of all dimensions of a lane's thread in a register."""
        placed, coordinate = self._placed[-1], self.lane_reads.data[lane]
        # Delayed like the terms:
        below = [Signal(name=f"below{lane}_{n}") for n in range(TERM_LATENCY)]
        values = [Signal(32, name=f"value{lane}_{n}") for n in range(TERM_LATENCY)]
        # Coordinates have 32 bits, sizes 16.
        m.d.sync += [below[0].eq(~coordinate[16:].any() & (coordinate[:16] < size)), values[0].eq(coordinate)]
        for delays in (below, values):
            m.d.sync += [later.eq(earlier) for earlier, later in pairwise(delays)]
        sums = Signal(BasisLayout(self._params), name=f"sums{lane}")
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
                    sums.page.eq(sums.page + page),
                    sums.offset.eq(sums.offset | offset),
                    sums.inside.eq(sums.inside & below[-1]),
                ]
            with m.If(placed.dimension == 1):
                m.d.sync += sums.outer.eq(values[-1])
        return sums

    def _store(self, m, sums):
        """Writes the sums of a group after its last dimension, and reads those of the requested groups."""
        summed, reads = self._summed, self.reads
        for number, memory in enumerate(self._memories):
            lanes = range(number * self._lanes, (number + 1) * self._lanes)
            m.submodules[f"memory{number}"] = memory
            # The register of the read port is here. This shows tools that a write and a read never coincide.
            write, read = memory.write_port(), memory.read_port(domain="comb")
            row = Signal(memory.shape, name=f"row{number}", reset_less=True)
            with m.If(reads.enable & ~write.en):
                m.d.sync += row.eq(read.data)
            m.d.comb += [
                write.addr.eq(Cat(self.set, summed.group)),
                write.en.eq(summed.valid & summed.last),
                read.addr.eq(Cat(self.set, reads.groups[lanes[0]])),
            ]
            for lane, target, source in zip(lanes, write.data, row, strict=True):
                m.d.comb += [target.eq(sums[lane]), reads.rows[lane].eq(source)]
