"""Columns of an item: where the column or word of each thread begins, and which are on."""

from itertools import pairwise

from amaranth.hdl import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.spec.pe import MAX_PAGE_LOG2, PeError

from ...lib.logic import mux_tree
from ..layouts import GuardReadSignature, JobKind, ThreadReadSignature
from ..params import LANES
from .bases import BasisLayout
from .items import ItemLayout

__all__ = ["ColumnLayout", "Columns", "ColumnsOfItemLayout"]


class ColumnLayout(data.StructLayout):
    """The first element of a column, or word. All fields but ``on``, ``inside`` and ``code`` need ``inside``."""

    def __init__(self, params):
        super().__init__(
            {
                "inner": unsigned(16),  # coordinate in dimension 0
                "page": unsigned(params.page_width),  # page entry without the term of dimension 0
                "offset": unsigned(MAX_PAGE_LOG2),  # bytes in the page, without the term of dimension 0
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
                # Bit c: columns c and c + 1 are adjacent elements of one chunk, if both are on.
                "adjoins": unsigned(LANES - 1),
                # Coordinates in dimension 1, by thread modulo LANES, not by column.
                "outers": data.ArrayLayout(16, LANES),
            }
        )


class Columns(wiring.Component):
    """Reads the bases of the threads of an item, adds the immediate, and determines which columns are on.

    A column is on if its thread takes part and its first element is inside. A word is on if its thread takes part and
    one of its elements is inside. A word of LOAD is on even if none is inside, because its register becomes 0.

    Latency: 3 cycles. Throughput: one item a cycle. With ``params.paced``, one item every other cycle, and ``ready``
    depends on registers only. ``predicates`` are read together with ``bases``; ``o`` is registered.
    """

    def __init__(self, params):
        self._params = params
        # Complement of the low bits of the thread, from registers of its own.
        self._complement = Signal(2, reset_less=True)
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
        params, item, out = self._params, self.i.payload, self.o.payload
        read, read_valid = Signal(ItemLayout(params)), Signal()  # stage 1: bases are read
        added, added_valid = Signal(ItemLayout(params)), Signal()  # stage 2: the immediate is added
        adding, read_moves = Signal(), Signal()
        free = Signal(init=1)  # copy of ~o.valid, because it enables hundreds of registers
        m.d.comb += [
            adding.eq(free if params.paced else ~self.o.valid | self.o.ready),
            read_moves.eq(~added_valid | adding),
            # Equal to ~read_valid | read_moves, from signals that enable no registers.
            self.i.ready.eq(~read_valid | ~added_valid | (~self.o.valid if params.paced else adding)),
            self.predicates.predicate.eq(item.job.predicate),
        ]
        for reads in (self.bases, self.predicates):
            m.d.comb += reads.enable.eq(self.i.valid & self.i.ready)
            for lane, group in enumerate(reads.groups):
                m.d.comb += group.eq((item.thread >> 3) + (lane < item.thread[:3]))
        with m.If(self.i.ready):
            m.d.sync += [read_valid.eq(self.i.valid), read.eq(item), self._complement.eq(~item.thread)]
        with m.Elif(read_moves):
            m.d.sync += read_valid.eq(0)
        outers = Signal.like(out.outers)
        with m.If(read_moves):
            m.d.sync += [added_valid.eq(read_valid), added.eq(read)]
            m.d.sync += [outer.eq(row.outer) for outer, row in zip(outers, self.bases.rows, strict=True)]
        with m.Elif(adding):
            m.d.sync += added_valid.eq(0)
        with m.If(adding):
            m.d.sync += [self.o.valid.eq(added_valid), out.item.eq(added), out.outers.eq(outers)]
            m.d.sync += free.eq(~added_valid)
        with m.Elif(self.o.ready):
            m.d.sync += [self.o.valid.eq(0), free.eq(1)]

        begins, takes_part = self._add(m, read, read_moves)
        for column in range(LANES):
            self._check(m, column, added, begins[column], takes_part[column], adding)
        same = Cat(outer == outers[(place + 1) % LANES] for place, outer in enumerate(outers))
        same_outer = Cat(same, same).bit_select(added.thread[:3], LANES - 1)  # by column
        with m.If(adding):
            m.d.sync += out.adjoins.eq(
                same_outer & Cat(_adjoins(*pair, added.job.segment) for pair in pairwise(begins))
            )
        return m

    def _add(self, m, item, moves):
        """Rotates the lanes so that column 0 is first, and adds the immediate."""
        shape = BasisLayout(self._params)
        guards = [~item.job.guard | value for value in self.predicates.values]
        rows = [Cat(row, guard) for row, guard in zip(self.bases.rows, guards, strict=True)]
        # A 4-to-1 and then a 2-to-1 multiplexer. Lanes two apart use different select registers: otherwise synthesis
        # would share halves of their multiplexers, and not find that each is one 4-to-1 multiplexer.
        near, far = (item.thread[:2], ~self._complement), item.thread[2:3]
        for step, codes in ((1, near), (4, (far, far))):
            rotated = [Signal(len(rows[0]), name=f"turned{step}_{lane}") for lane in range(LANES)]
            for lane, value in enumerate(rotated):
                code = codes[lane >> 1 & 1]
                sources = {turns: rows[(lane + step * turns) % LANES] for turns in range(1 << len(code))}
                m.d.comb += value.eq(mux_tree(code, sources))
            rows = rotated
        begins = [Signal(shape, name=f"begin{column}") for column in range(LANES)]
        takes_part = Signal(LANES)
        with m.If(moves):
            m.d.sync += takes_part.eq(Cat(row[-1] for row in rows) & item.present)
            for begin, row in zip(begins, rows, strict=True):
                basis = data.View(shape, row[:-1])
                m.d.sync += [begin.eq(basis), begin.inner.eq(basis.inner + item.imm)]
        return begins, takes_part

    def _check(self, m, number, item, begin, takes_part, moves):
        """Determines whether one column is on, and its error."""
        job, segment = item.job, item.job.segment
        column = self.o.payload.columns[number]
        inside = Signal()  # the first element
        past_file = Signal()  # the accumulator
        with m.Switch(job.ka):
            for ka in range(1, 5):
                with m.Case(ka - 1):
                    m.d.comb += past_file.eq(item.register >= self._params.regs - number // ka)
        multiplies, loads = job.kind == JobKind.MULTIPLY, job.kind == JobKind.LOAD
        granule_log2 = Mux(multiplies, (self._params.unit_bytes - 1).bit_length(), 2)
        single = job.element if self._params.units else 0
        low_bits = Signal(3)  # bits of the first coordinate that must be 0
        misaligned = Signal()
        wraps = Signal()  # a misaligned word has a later element at coordinate 0
        touched, on, code = Signal(), Signal(), Signal(4)
        m.d.comb += [
            # Coordinates have 32 bits, sizes 16.
            inside.eq(begin.inside & ~begin.inner[16:].any() & (begin.inner[:16] < segment.size[0])),
            low_bits.eq(((1 << granule_log2) >> segment.element_log2) - 1),
            misaligned.eq((begin.inner[:3] & low_bits).any() & ~job.transpose & ~single),
            wraps.eq(begin.inside & misaligned & ~multiplies & (begin.inner | low_bits).all()),
            touched.eq(takes_part & (inside | wraps)),
            on.eq(touched | (takes_part & loads)),
        ]
        with m.If(touched & multiplies & past_file):
            m.d.comb += code.eq(PeError.PRODUCT)
        with m.Elif(touched & misaligned):
            m.d.comb += code.eq(PeError.ALIGNMENT)
        with m.If(moves):
            m.d.sync += [
                *(column[name].eq(begin[name]) for name in ("inner", "page", "offset")),
                column.on.eq(on),
                column.inside.eq(inside),
                column.code.eq(code),
            ]


def _adjoins(column, following, segment):
    """Whether two columns are adjacent elements of one chunk, apart from dimension 1."""
    return (
        (column.page == following.page)
        & (column.offset == following.offset)
        & (column.inner[4:16] == following.inner[4:16])
        & ((column.inner[:4] + 1)[:4] == following.inner[:4])
        & ~Mux(segment.element_log2[0], column.inner[:3].all(), column.inner[:4].all())
    )
