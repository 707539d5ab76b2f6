"""Columns that lie side by side in one block of rows."""

from amaranth import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.spec.pe import MAX_PAGE_LOG2

from ...lib.logic import chosen
from ..layouts import AccessKind, JobKind
from ..params import LANES
from .columns import ColumnLayout, ColumnsOfItemLayout
from .items import ItemLayout

__all__ = [
    "CHUNK_BITS",
    "CHUNK_LOG2",
    "BlockPartLayout",
    "BlockParts",
    "LeaderLayout",
    "LineDirectory",
    "PartColumnLayout",
    "RequestLayout",
    "block_rows",
    "chunk_coordinate",
    "unit_log2",
]  # fmt: skip

#: Log2 of the bytes of a chunk: a block is as wide.
CHUNK_LOG2 = 4
#: Bits of a chunk's place in a row of 65535 elements of 16 bits.
CHUNK_BITS = 17 - CHUNK_LOG2


def chunk_coordinate(column, segment):
    """Which chunk of its row of elements of 8 or 16 bits a column is in."""
    return (column.inner << segment.element_log2[0]) >> CHUNK_LOG2


class PartColumnLayout(data.StructLayout):
    """A column, or a word, as far as its lanes are made of it: some fields of ``ColumnLayout``."""

    def __init__(self, params):
        fields = ColumnLayout(params).members
        super().__init__({name: fields[name] for name in ("inner", "page", "offset", "inside", "code")})


class LeaderLayout(data.StructLayout):
    """A column, with its coordinate in dimension 1."""

    def __init__(self, params):
        super().__init__({**ColumnLayout(params).members, "outer": unsigned(16)})


class BlockPartLayout(data.StructLayout):
    """Columns of an item that are accessed together."""

    def __init__(self, params):
        super().__init__(
            {
                "item": ItemLayout(params),  # its ``last`` and ``job.flush`` apply to this part
                "columns": data.ArrayLayout(PartColumnLayout(params), LANES),
                "on": unsigned(LANES),  # columns that are on, and of this part
                "leader": LeaderLayout(params),  # the first of them; of transposed mm, all lie in its block
                "origin": 4,  # of transposed mm: where column 0 is in dimension 0, or would be beside them; modulo 16
            }
        )


class BlockParts(wiring.Component):
    """Cuts items of transposed mm into parts whose columns lie side by side in one chunk of the same rows.

    Side by side are neighbours that are on and adjoin. Whether two columns belong together is found while the first
    one of the part is. Other items are one part. Columns with an error of their own, which can only be PRODUCT here,
    make a part of their own. An item without any column is one part too. Latency 1, one part a cycle.

    Members
    -------
    i : In(stream of ColumnsOfItemLayout)
        ``ready`` comes late in the cycle: it depends on the columns.
    o : Out(stream of BlockPartLayout)
        Registered.
    """

    def __init__(self, params):
        self._params = params
        super().__init__(
            {
                "i": In(stream.Signature(ColumnsOfItemLayout(params))),
                "o": Out(stream.Signature(BlockPartLayout(params))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        item, columns = self.i.p.item, self.i.p.columns
        on = Cat(column.on for column in columns)
        adjoins = self.i.p.adjoins & on & on[1:]
        done = Signal(LANES)  # columns of parts before
        left, first, joins, rest = Signal(LANES), Signal(LANES), Signal(LANES), Signal(LANES)
        leader, origin = Signal(LeaderLayout(self._params)), Signal(4)
        outers, turn = self.i.p.outers, item.thread[:3]  # place of column 0 among them
        moves = Signal()
        m.d.comb += [
            left.eq(on & ~done),
            first.eq(Cat(left[column] & ~left[:column].any() for column in range(LANES))),
            rest.eq(left & ~joins),
            moves.eq(~self.o.valid | self.o.ready),
            self.i.ready.eq(moves & (rest == 0)),
        ]
        number = Cat(  # of the leader
            Cat(first[column] for column in range(LANES) if column >> bit & 1).any() for bit in range(3)
        )
        m.d.comb += [
            leader.as_value()[: ColumnLayout(self._params).size].eq(
                chosen(number, {n: column.as_value() for n, column in enumerate(columns)})
            ),
            leader.outer.eq(chosen((number + turn)[:3], dict(enumerate(outers)))),
            origin.eq(chosen(number, {n: (column.inner - n)[:4] for n, column in enumerate(columns)})),
        ]
        wrong = Cat(column.code != 0 for column in columns)
        for number in range(LANES):
            beside = Signal(number + 1, name=f"beside{number}")  # columns from which on all are side by side up to here
            m.d.comb += beside.eq(
                Cat(adjoins[start:number].all() & ~wrong[start] & ~wrong[number] for start in range(number + 1))
            )
            alike = Mux(wrong[number], (first & wrong).any(), (first[: number + 1] & beside).any())
            m.d.comb += joins[number].eq(~item.job.transpose | alike)
        with m.If(moves):
            m.d.sync += [
                self.o.valid.eq(self.i.valid),
                self.o.p.item.eq(item),
                self.o.p.item.last.eq(item.last & (rest == 0)),
                self.o.p.item.job.flush.eq(item.job.flush & (done == 0)),
                *(
                    kept[name].eq(column[name])
                    for kept, column in zip(self.o.p.columns, columns, strict=True)
                    for name in kept.shape().members
                ),
                self.o.p.on.eq(left & joins),
                self.o.p.leader.eq(leader),
                self.o.p.origin.eq(origin),
            ]
        with m.If(moves & self.i.valid):
            # All but the rest; nothing, once that is empty.
            m.d.sync += done.eq(~rest & (rest != 0).replicate(LANES))
        return m


def block_rows(params, job):
    """Rows of a block: the elements of a column of mm."""
    return (job.kb + 1) << unit_log2(params, job)


def unit_log2(params, job):
    """Log2 of the elements of a unit."""
    return Mux(job.segment.element_log2[0], params.unit_bytes.bit_length() - 2, params.unit_bytes.bit_length() - 1)


class RequestLayout(data.StructLayout):
    """An access, still by columns."""

    def __init__(self, params):
        super().__init__(
            {
                "part": BlockPartLayout(params),  # its ``item.last`` and ``item.job.flush`` apply to this access
                "kind": unsigned(3),  # AccessKind
                "slot": 1,
                "octet": unsigned(2),
            }
        )


class _TagLayout(data.StructLayout):
    """What is in a block."""

    def __init__(self, params):
        super().__init__(
            {
                "segment_number": unsigned(params.segment_width),
                "kb": unsigned(2),
                "chunk": unsigned(CHUNK_BITS),
                "outer": unsigned(16),
                "page": unsigned(params.page_width),
                "offset": unsigned(MAX_PAGE_LOG2),
            }
        )


class LineDirectory(wiring.Component):
    """Makes accesses of parts. Transposed mm: PICK, after FILL of the block's rows if the line cache does not hold it.

    The block used last but one is replaced. A job with ``flush`` and every STORE empty the directory. Latency 1, one
    access a cycle.

    Members
    -------
    i : In(stream of BlockPartLayout)
    o : Out(stream of RequestLayout)
        Registered.
    """

    def __init__(self, params):
        self._params = params
        super().__init__(
            {
                "i": In(stream.Signature(BlockPartLayout(params))),
                "o": Out(stream.Signature(RequestLayout(params))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        params, part, out = self._params, self.i.p, self.o.p
        job, leader = part.item.job, part.leader
        tag = Signal(_TagLayout(params))
        tags = Signal(data.ArrayLayout(_TagLayout(params), 2))
        held = Signal(2)  # blocks that are good
        recent = Signal()  # the block used last
        filled = Signal()  # that is the one the part at hand has had filled
        octet, last_octet = Signal(2), Signal(2)
        m.d.comb += [
            tag.segment_number.eq(job.segment_number),
            tag.kb.eq(job.kb),
            tag.chunk.eq(chunk_coordinate(leader, job.segment)),
            tag.outer.eq(leader.outer),
            tag.page.eq(leader.page),
            tag.offset.eq(leader.offset),
            last_octet.eq((block_rows(params, job) - 1) >> 3),
        ]
        needs, found, slot = Signal(), Signal(2), Signal()
        fills, moves, leaves = Signal(), Signal(), Signal()
        for number in range(2):
            m.d.comb += found[number].eq(held[number] & (tags[number] == tag) & ~job.flush)
        m.d.comb += [
            needs.eq(job.transpose & part.on.any() & (leader.code == 0)),
            fills.eq(needs & ~filled & ~found.any()),
            slot.eq(Mux(filled, recent, Mux(found.any(), found[1], ~recent))),
            moves.eq(~self.o.valid | self.o.ready),
            self.i.ready.eq(moves & ~fills),
            leaves.eq(self.i.valid & self.i.ready),
        ]
        with m.If(moves):
            m.d.sync += [
                self.o.valid.eq(self.i.valid),
                out.part.eq(part),
                out.part.item.last.eq(part.item.last & ~fills),
                out.part.item.job.flush.eq(job.flush & ~filled & (octet == 0)),
                out.slot.eq(slot),
                out.octet.eq(octet),
                out.kind.eq(self._kind(m, job, needs, fills)),
            ]
        with m.If(leaves):
            m.d.sync += filled.eq(0)
            with m.If(needs):
                m.d.sync += recent.eq(slot)
            with m.Elif(job.flush | (job.kind == JobKind.STORE)):
                m.d.sync += held.eq(0)
        with m.Elif(moves & self.i.valid):
            m.d.sync += octet.eq(octet + 1)
            with m.If(octet == last_octet):
                m.d.sync += [
                    octet.eq(0),
                    filled.eq(1),
                    recent.eq(slot),
                    tags[slot].eq(tag),
                    held.eq(Mux(job.flush, 0, held) | (1 << slot)),
                ]
        return m

    @staticmethod
    def _kind(m, job, needs, fills):
        kind = Signal(3)
        with m.Switch(job.kind):
            with m.Case(JobKind.LOAD):
                m.d.comb += kind.eq(AccessKind.LOAD)
            with m.Case(JobKind.STORE):
                m.d.comb += kind.eq(AccessKind.STORE)
            with m.Default():
                m.d.comb += kind.eq(Mux(fills, AccessKind.FILL, Mux(needs, AccessKind.PICK, AccessKind.COLUMNS)))
        return kind
