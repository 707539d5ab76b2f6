"""The directory of the line cache: which rows of B its two blocks hold."""

from amaranth import Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.golden.spec.pe.segment import MAX_PAGE_LOG2

from ..layouts import AccessKind, JobKind
from .block_parts import CHUNK_BITS, BlockPartLayout, chunk_coordinate

__all__ = ["LineDirectory", "RequestLayout", "block_rows", "unit_log2"]


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
