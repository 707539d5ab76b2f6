"""Blocks of rows, for transposed mm: which columns share a block, and which blocks the line cache holds."""

from amaranth.hdl import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.spec.pe import MAX_PAGE_LOG2

from ...lib.logic import mux_tree
from ..layouts import AccessKind, JobKind
from ..params import LANES
from .columns import ColumnLayout, ColumnsOfItemLayout
from .items import ItemLayout

__all__ = [
    "CHUNK_LOG2",
    "BlockPartLayout",
    "BlockParts",
    "LineDirectory",
    "PartColumnLayout",
    "RequestLayout",
    "block_rows",
    "unit_log2",
]

#: Log2 of the bytes of a chunk, which is the width of a block.
CHUNK_LOG2 = 4
#: Bits of the number of a chunk in a row of 65535 elements of 16 bits.
_CHUNK_BITS = 17 - CHUNK_LOG2


def block_rows(params, job):
    """Rows of a block: the elements of a column of mm."""
    return (job.kb + 1) << unit_log2(params, job)


def unit_log2(params, job):
    """Log2 of the elements of a unit."""
    return Mux(job.segment.element_log2[0], params.unit_bytes.bit_length() - 2, params.unit_bytes.bit_length() - 1)


class PartColumnLayout(data.StructLayout):
    """Fields of ``ColumnLayout`` from which the lanes of a column or word are made."""

    def __init__(self, params):
        fields = ColumnLayout(params).members
        super().__init__({name: fields[name] for name in ("inner", "page", "offset", "inside", "code")})


class _LeaderLayout(data.StructLayout):
    """A column, with its coordinate in dimension 1."""

    def __init__(self, params):
        super().__init__({**ColumnLayout(params).members, "outer": unsigned(16)})


class BlockPartLayout(data.StructLayout):
    """Columns of an item that are accessed together."""

    def __init__(self, params):
        super().__init__(
            {
                "item": ItemLayout(params),  # ``last`` and ``job.flush`` apply to this part
                "columns": data.ArrayLayout(PartColumnLayout(params), LANES),
                "on": unsigned(LANES),  # columns that are on and belong to this part
                "leader": _LeaderLayout(params),  # the first of them; with transposed mm, all are in its block
                # With transposed mm: coordinate of column 0 in dimension 0, if it were adjacent to them; modulo 16.
                "origin": 4,
            }
        )


class RequestLayout(data.StructLayout):
    """An access, still by columns."""

    def __init__(self, params):
        super().__init__(
            {
                "part": BlockPartLayout(params),  # ``item.last`` and ``item.job.flush`` apply to this access
                "kind": unsigned(3),  # AccessKind
                "slot": 1,
                "octet": unsigned(2),
            }
        )


class BlockParts(wiring.Component):
    """Splits items of transposed mm into parts whose columns are adjacent elements of one chunk of the same rows.

    Columns with an error of their own, which can only be PRODUCT here, are one part. Items of other jobs, and items
    without a column that is on, are one part.

    Latency: 1 cycle. Throughput: one part a cycle. ``i.ready`` is late, because it depends on the columns; ``o`` is
    registered.
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
        item, columns, out = self.i.payload.item, self.i.payload.columns, self.o.payload
        on = Cat(column.on for column in columns)
        done = Signal(LANES)  # columns of earlier parts
        remaining, first, joins, rest = Signal(LANES), Signal(LANES), Signal(LANES), Signal(LANES)
        leader, origin = Signal(_LeaderLayout(self._params)), Signal(4)
        outers, turn = self.i.payload.outers, item.thread[:3]  # index of column 0 in outers
        moves = Signal()
        m.d.comb += [
            remaining.eq(on & ~done),
            first.eq(Cat(remaining[column] & ~remaining[:column].any() for column in range(LANES))),
            rest.eq(remaining & ~joins),
            moves.eq(~self.o.valid | self.o.ready),
            self.i.ready.eq(moves & (rest == 0)),
        ]
        number = Cat(  # of the leader
            Cat(first[column] for column in range(LANES) if column >> bit & 1).any() for bit in range(3)
        )
        m.d.comb += [
            leader.as_value()[: ColumnLayout(self._params).size].eq(
                mux_tree(number, {n: column.as_value() for n, column in enumerate(columns)})
            ),
            leader.outer.eq(mux_tree((number + turn)[:3], dict(enumerate(outers)))),
            origin.eq(mux_tree(number, {n: (column.inner - n)[:4] for n, column in enumerate(columns)})),
        ]
        self._join(m, on, first, joins)
        with m.If(moves):
            m.d.sync += [
                self.o.valid.eq(self.i.valid),
                out.item.eq(item),
                out.item.last.eq(item.last & (rest == 0)),
                out.item.job.flush.eq(item.job.flush & (done == 0)),
                *(
                    target[name].eq(column[name])
                    for target, column in zip(out.columns, columns, strict=True)
                    for name in target.shape().members
                ),
                out.on.eq(remaining & joins),
                out.leader.eq(leader),
                out.origin.eq(origin),
            ]
        with m.If(moves & self.i.valid):
            # All columns but the rest; none, once the rest is empty.
            m.d.sync += done.eq(~rest & (rest != 0).replicate(LANES))
        return m

    def _join(self, m, on, first, joins):
        """Which columns belong to the part of a column that is the first: found for all, in parallel with the first."""
        columns = self.i.payload.columns
        adjoins = self.i.payload.adjoins & on & on[1:]
        wrong = Cat(column.code != 0 for column in columns)
        for number in range(LANES):
            beside = Signal(number + 1, name=f"beside{number}")  # columns from which all are adjacent up to this one
            m.d.comb += beside.eq(
                Cat(adjoins[start:number].all() & ~wrong[start] & ~wrong[number] for start in range(number + 1))
            )
            same = Mux(wrong[number], (first & wrong).any(), (first[: number + 1] & beside).any())
            m.d.comb += joins[number].eq(~self.i.payload.item.job.transpose | same)


class _TagLayout(data.StructLayout):
    """Identity of a block."""

    def __init__(self, params):
        super().__init__(
            {
                "segment_number": unsigned(params.segment_width),
                "kb": unsigned(2),
                "chunk": unsigned(_CHUNK_BITS),  # of the row
                "outer": unsigned(16),
                "page": unsigned(params.page_width),
                "offset": unsigned(MAX_PAGE_LOG2),
            }
        )


class LineDirectory(wiring.Component):
    """Makes accesses of parts. For transposed mm: PICK, after FILL of the block's rows unless the line cache holds it.

    The block that was not used last is replaced. A job with ``flush``, and every STORE, empties the directory.

    Latency: 1 cycle. Throughput: one access a cycle. ``o`` is registered.
    """

    def __init__(self, params):
        self._params = params
        super().__init__(
            {"i": In(stream.Signature(BlockPartLayout(params))), "o": Out(stream.Signature(RequestLayout(params)))}
        )

    def elaborate(self, platform):
        m = Module()
        params, part, out = self._params, self.i.payload, self.o.payload
        job, leader = part.item.job, part.leader
        tag = Signal(_TagLayout(params))
        tags = Signal(data.ArrayLayout(_TagLayout(params), 2))
        present = Signal(2)  # blocks that are valid
        recent = Signal()  # the block used last
        filled = Signal()  # ... which was filled for the current part
        octet, last_octet = Signal(2), Signal(2)
        needs_block, hits, slot = Signal(), Signal(2), Signal()
        fills, moves, leaves = Signal(), Signal(), Signal()
        m.d.comb += [
            tag.segment_number.eq(job.segment_number),
            tag.kb.eq(job.kb),
            tag.chunk.eq((leader.inner << job.segment.element_log2[0]) >> CHUNK_LOG2),
            *(tag[name].eq(leader[name]) for name in ("outer", "page", "offset")),
            last_octet.eq((block_rows(params, job) - 1) >> 3),
            *(hits[block].eq(present[block] & (tags[block] == tag) & ~job.flush) for block in range(2)),
            needs_block.eq(job.transpose & part.on.any() & (leader.code == 0)),
            fills.eq(needs_block & ~filled & ~hits.any()),
            slot.eq(Mux(filled, recent, Mux(hits.any(), hits[1], ~recent))),
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
                out.kind.eq(self._kind(m, job, needs_block, fills)),
            ]
        with m.If(leaves):
            m.d.sync += filled.eq(0)
            with m.If(needs_block):
                m.d.sync += recent.eq(slot)
            with m.Elif(job.flush | (job.kind == JobKind.STORE)):
                m.d.sync += present.eq(0)
        with m.Elif(moves & self.i.valid):
            m.d.sync += octet.eq(octet + 1)
            with m.If(octet == last_octet):
                m.d.sync += [
                    octet.eq(0),
                    filled.eq(1),
                    recent.eq(slot),
                    tags[slot].eq(tag),
                    present.eq(Mux(job.flush, 0, present) | (1 << slot)),
                ]
        return m

    @staticmethod
    def _kind(m, job, needs_block, fills):
        kind = Signal(3)
        with m.Switch(job.kind):
            with m.Case(JobKind.LOAD):
                m.d.comb += kind.eq(AccessKind.LOAD)
            with m.Case(JobKind.STORE):
                m.d.comb += kind.eq(AccessKind.STORE)
            with m.Default():
                m.d.comb += kind.eq(Mux(fills, AccessKind.FILL, Mux(needs_block, AccessKind.PICK, AccessKind.COLUMNS)))
        return kind
