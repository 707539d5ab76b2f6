"""The threads of an item: where the columns or words of each begin, and which are on."""

from itertools import pairwise

from amaranth import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.spec.pe import MAX_PAGE_LOG2, PeError

from ...lib.logic import chosen
from ..layouts import GuardReadSignature, JobKind, ThreadReadSignature
from ..params import LANES
from .bases import BasisLayout
from .items import ItemLayout

__all__ = ["ColumnLayout", "Columns", "ColumnsOfItemLayout"]


class ColumnLayout(data.StructLayout):
    """A column, or a word, by its first element."""

    def __init__(self, params):
        super().__init__(
            {
                # Coordinate in dimension 0; means something only if inside, like all but the code.
                "inner": unsigned(16),
                "page": unsigned(params.page_width),  # the entry of its page, but for what dimension 0 adds
                "offset": unsigned(MAX_PAGE_LOG2),  # what the outer dimensions add to its place in that page, in bytes
                "on": 1,
                "inside": 1,
                "code": unsigned(4),  # PRODUCT, ALIGNMENT; 0 if not on
            }
        )


class ColumnsOfItemLayout(data.StructLayout):
    """An item with its columns."""

    def __init__(self, params):
        super().__init__(
            {
                "item": ItemLayout(params),
                "columns": data.ArrayLayout(ColumnLayout(params), LANES),
                # Columns beside which the next one lies in one chunk, if both are on.
                "adjoins": unsigned(LANES - 1),
                # Coordinates in dimension 1: not by columns, but those of thread l modulo LANES in place l.
                "outers": data.ArrayLayout(16, LANES),
            }
        )


class Columns(wiring.Component):
    """Looks up the threads of an item, adds the immediate, and says which columns are on.

    A column is on if its thread takes part and its first element is inside. A word is on if its thread takes part and
    one of its elements is inside; one to be loaded also if none is, as its register becomes 0. Latency 3, one item a
    cycle; every other cycle if ``params.paced``, and ``ready`` depends on registers only then.

    Members
    -------
    i : In(stream of ItemLayout)
    bases : Out(ThreadReadSignature(params, BasisLayout(params)))
    predicates : Out(GuardReadSignature(params))
        Read together with the bases.
    o : Out(stream of ColumnsOfItemLayout)
        Registered.
    """

    def __init__(self, params):
        self._params = params
        self._complement = Signal(2, reset_less=True)  # that of the thread's lowest bits, behind the first register
        super().__init__(
            {
                "i": In(stream.Signature(ItemLayout(params))),
                "bases": Out(ThreadReadSignature(params, BasisLayout(params))),
                "predicates": Out(GuardReadSignature(params)),
                "o": Out(stream.Signature(ColumnsOfItemLayout(params))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        params = self._params
        read, read_valid = Signal(ItemLayout(params)), Signal()
        added, added_valid = Signal(ItemLayout(params)), Signal()
        adding, read_moves = Signal(), Signal()
        free = Signal(init=1)  # nothing is at the output: apart from ``o.valid``, for it enables hundreds of registers
        m.d.comb += [
            adding.eq(free if params.paced else ~self.o.valid | self.o.ready),
            read_moves.eq(~added_valid | adding),
            # ``read_moves``, but of what enables nothing else.
            self.i.ready.eq(~read_valid | ~added_valid | (~self.o.valid if params.paced else adding)),
        ]
        m.d.comb += self.predicates.predicate.eq(self.i.p.job.predicate)
        for reads in (self.bases, self.predicates):
            m.d.comb += reads.enable.eq(self.i.valid & self.i.ready)
            for lane, group in enumerate(reads.groups):
                m.d.comb += group.eq((self.i.p.thread >> 3) + (lane < self.i.p.thread[:3]))
        with m.If(self.i.ready):
            m.d.sync += [read_valid.eq(self.i.valid), read.eq(self.i.p), self._complement.eq(~self.i.p.thread)]
        with m.Elif(read_moves):
            m.d.sync += read_valid.eq(0)
        outers = Signal.like(self.o.p.outers)
        with m.If(read_moves):
            m.d.sync += [added_valid.eq(read_valid), added.eq(read)]
            m.d.sync += [outer.eq(row.outer) for outer, row in zip(outers, self.bases.rows, strict=True)]
        with m.Elif(adding):
            m.d.sync += added_valid.eq(0)
        with m.If(adding):
            m.d.sync += [self.o.valid.eq(added_valid), self.o.p.item.eq(added), self.o.p.outers.eq(outers)]
            m.d.sync += free.eq(~added_valid)
        with m.Elif(self.o.ready):
            m.d.sync += [self.o.valid.eq(0), free.eq(1)]

        begins, takes_part = self._add(m, read, read_moves)
        for column in range(LANES):
            self._judge(m, column, added, begins[column], takes_part[column], adding)
        same = Cat(outer == outers[(place + 1) % LANES] for place, outer in enumerate(outers))
        same_outer = Cat(same, same).bit_select(added.thread[:3], LANES - 1)  # by column: as that of the next one
        with m.If(adding):
            m.d.sync += self.o.p.adjoins.eq(
                same_outer & Cat(_adjoin(*pair, added.job.segment) for pair in pairwise(begins))
            )
        return m

    def _add(self, m, item, moves):
        """Turns the lanes so that column 0 comes first, and adds the immediate."""
        shape = BasisLayout(self._params)
        guards = [~item.job.guard | value for value in self.predicates.values]
        rows = [Cat(row, guard) for row, guard in zip(self.bases.rows, guards, strict=True)]
        # A choice of four, then one of two. Lanes two apart choose by different registers: they would share halves of
        # their choices, which would not be found to be choices of four.
        near, far = (item.thread[:2], ~self._complement), item.thread[2:3]
        for step, codes in ((1, near), (4, (far, far))):
            turned = [Signal(len(rows[0]), name=f"turned{step}_{lane}") for lane in range(LANES)]
            for lane, value in enumerate(turned):
                code = codes[lane >> 1 & 1]
                sources = {turns: rows[(lane + step * turns) % LANES] for turns in range(1 << len(code))}
                m.d.comb += value.eq(chosen(code, sources))
            rows = turned
        guarded = [row[-1] for row in rows]
        rows = [data.View(shape, row[:-1]) for row in rows]
        begins = [Signal(shape, name=f"begin{column}") for column in range(LANES)]
        takes_part = Signal(LANES)
        with m.If(moves):
            m.d.sync += takes_part.eq(Cat(guarded) & item.present)
            for begin, row in zip(begins, rows, strict=True):
                m.d.sync += [begin.eq(row), begin.inner.eq(row.inner + item.imm)]
        return begins, takes_part

    def _judge(self, m, number, item, begin, takes_part, moves):
        """Whether one column is on."""
        job, segment = item.job, item.job.segment
        column = self.o.p.columns[number]
        inside = Signal()  # the first element
        past_file = Signal()  # the accumulator
        with m.Switch(job.ka):
            for ka in range(1, 5):
                with m.Case(ka - 1):
                    m.d.comb += past_file.eq(item.register >= self._params.regs - number // ka)
        multiplies, loads = job.kind == JobKind.MULTIPLY, job.kind == JobKind.LOAD
        granule_log2 = Mux(multiplies, (self._params.unit_bytes - 1).bit_length(), 2)
        low_bits = Signal(3)  # of the first coordinate; they must be 0
        misaligned = Signal()
        wraps = Signal()  # a misaligned word has a later element at coordinate 0
        m.d.comb += [
            # Coordinates have 32 bits, sizes 16.
            inside.eq(begin.inside & ~begin.inner[16:].any() & (begin.inner[:16] < segment.size[0])),
            low_bits.eq(((1 << granule_log2) >> segment.element_log2) - 1),
            misaligned.eq((begin.inner[:3] & low_bits).any() & ~job.transpose),
            wraps.eq(begin.inside & misaligned & ~multiplies & (begin.inner | low_bits).all()),
        ]
        touched, on, code = Signal(), Signal(), Signal(4)
        m.d.comb += [
            touched.eq(takes_part & (inside | wraps)),
            on.eq(touched | (takes_part & loads)),
        ]
        with m.If(touched & multiplies & past_file):
            m.d.comb += code.eq(PeError.PRODUCT)
        with m.Elif(touched & misaligned):
            m.d.comb += code.eq(PeError.ALIGNMENT)
        with m.If(moves):
            m.d.sync += [
                column.inner.eq(begin.inner),
                column.page.eq(begin.page),
                column.offset.eq(begin.offset),
                column.on.eq(on),
                column.inside.eq(inside),
                column.code.eq(code),
            ]


def _adjoin(column, following, segment):
    """Whether two columns lie side by side in one chunk, dimension 1 aside."""
    return (
        (column.page == following.page)
        & (column.offset == following.offset)
        & (column.inner[4:16] == following.inner[4:16])
        & ((column.inner[:4] + 1)[:4] == following.inner[:4])
        & ~Mux(segment.element_log2[0], column.inner[:3].all(), column.inner[:4].all())
    )
