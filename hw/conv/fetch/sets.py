"""The order in which feature rows are asked for, and what the requests of all lanes have in common."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from tilewright.spec.conv import KERNEL_ROWS

from ...lib.loop_nest import LoopNest
from ..layouts import PlanLayout, SetLayout, float_flag

__all__ = ["FeatureTagLayout", "OffsetsLayout", "SetWalker"]

_PART, _INNER, _OUTER, _ROW = range(4)


class FeatureTagLayout(data.StructLayout):
    """What the first buffer must know of an answer."""

    def __init__(self, params):
        super().__init__(
            {
                "set": range(params.sets),
                "word": range(max(params.words, KERNEL_ROWS)),  # of the slaves' memories, or which row of the kernel
                "part": range(params.parts),  # which bytes of the set; of a kernel's row anything
                "period": unsigned(3),  # log2 of the bytes that come: they repeat all over the set
                "slaves": 1,  # rows for the memories of slaves
                "kernel": 1,  # a row of the kernel
                "pair": 1,  # of this set and the next one: those with an even number in the lower half; or of two words
                "turned": 1,  # of a pair of words the second one in the lower half
                "complete": 1,  # the last answer of its set, of both, or of its word
                "flags": SetLayout(),  # ``first`` of this set, ``last`` of this set or of the next one
            }
        )


class OffsetsLayout(data.StructLayout):
    """What is added to the numbers of a place, or compared with them, for all pieces of a request."""

    def __init__(self, params):
        position = signed(params.position_width)
        super().__init__(
            {
                "x": unsigned(params.smem.addr_width),
                "position": position,
                "position_end": position,  # end of the positions of the places themselves; one less unless merged
                "row_begin": signed(19),  # rows of places, from which on the request's row is in X
                "row_end": signed(19),
                "rest": unsigned(8),  # bytes that are left of the pixel, at most 128
                "kernel": 1,  # x is the address
                "second": 2,  # for the lower and the upper half of the lanes: pieces are of the second block
            }
        )


class SetWalker(wiring.Component):
    """Walks the requests of a job: for each tile, kernel row, step and block, or pair of blocks, the parts of the set.

    Sums of floats take the steps of a block before the next block (docs/conv.md, "Order of sums"), and no pairs.

    A request a cycle. ``part``, ``tag`` and what else is of the request at hand are a few tables behind registers;
    ``offsets`` follows two cycles later.

    Parameters
    ----------
    params : ConvUnitParams

    Members
    -------
    start : In(1)
        Strobe: go to the first request of the job.
    plan : In(PlanLayout(params))
        From the cycle of ``start`` until two cycles after the last ``step``.
    step : In(1)
        Strobe: go to the next request, after the last one of a tile to the first one of the next.
    final : In(1)
        The tile is the last one of its pass.
    part : Out(range(params.parts + 1))
    pair : Out(1)
    last : Out(1)
        Of its tile.
    again : Out(1)
        The same part of the block before has been asked for.
    tag : Out(FeatureTagLayout(params))
    offsets : Out(OffsetsLayout(params))
        Registered, of the request of two cycles ago.
    """

    def __init__(self, params):
        self.params = params
        part = range(params.parts + 1)
        # Of parts; of blocks or pairs, and steps, or of floats the other way round; of rows.
        self.nest = LoopNest([len(Signal(part)), params.pixel_width, params.pixel_width if params.floats else 8, 8])
        self.set = Signal(range(params.sets))
        self.begun = Signal()  # the tile has had a set
        self.later = Signal()  # the block is not the first one of its pixel
        self.block = Signal(params.pixel_width)  # first byte of the block in its pixel
        address = params.smem.addr_width
        self.step_x, self.row_x = Signal(address), Signal(address)
        self.position = Signal(signed(params.position_width))
        self.row = Signal(signed(19))
        super().__init__(
            {
                "start": In(1),
                "plan": In(PlanLayout(params)),
                "step": In(1),
                "final": In(1),
                "part": Out(part),
                "pair": Out(1),
                "last": Out(1),
                "again": Out(1),
                "tag": Out(FeatureTagLayout(params)),
                "offsets": Out(OffsetsLayout(params)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.nest = nest = self.nest
        plan, tag, conv = self.plan, self.tag, self.params.conv
        lanes_log2 = self.params.lanes.bit_length() - 1

        size = Signal(3)  # log2 of the bytes of a piece
        m.d.comb += size.eq(Mux(plan.granularity > 4, 4, plan.granularity))
        # Requests of a set are a power of two, those of pairs twice as many as those of one block.
        set_log2 = (conv.units * conv.row_bytes).bit_length() - 1
        units = Cat(size < set_log2 - lanes_log2 - bit for bit in range(len(self.part)))
        pairs, single = Signal(), Signal()  # blocks come by pairs; but this one is the last of an odd number
        steps_first = Signal()
        next_block, next_step, blocks = Signal(), Signal(), Signal.like(nest.lasts[_INNER])
        m.d.comb += [
            steps_first.eq(float_flag(self.params, plan, "floats")),
            next_block.eq(Mux(steps_first, nest.advance[_OUTER], nest.advance[_INNER])),
            next_step.eq(Mux(steps_first, nest.advance[_INNER], nest.advance[_OUTER])),
            blocks.eq(Mux(pairs, plan.last_block >> 1, plan.last_block)),
            pairs.eq(~steps_first & (plan.granularity == conv.row_bytes.bit_length() - 1) & self.params.pairs),
            single.eq(pairs & nest.at_last[_INNER] & ~plan.last_block[0]),
            nest.start.eq(self.start),
            nest.lasts[_PART].eq(Mux(pairs, Cat(Const(1, 1), units), units)),
            nest.lasts[_INNER].eq(Mux(steps_first, plan.last_step, blocks)),
            nest.lasts[_OUTER].eq(Mux(steps_first, blocks, plan.last_step)),
            nest.lasts[_ROW].eq(plan.last_kernel_row),
            nest.step.eq(self.step),
            nest.cut[_PART].eq(single & (self.part == conv.units * self.params.row_slots // self.params.lanes - 1)),
            self.part.eq(nest.indices[_PART]),
            self.pair.eq(pairs & ~single),
            self.last.eq(nest.final),
            self.again.eq(self.later & ~pairs & ~steps_first),
        ]
        m.d.comb += [
            tag.set.eq(self.set),
            tag.part.eq(self.part),
            tag.period.eq(size + lanes_log2),
            tag.pair.eq(self.pair),
            tag.complete.eq(nest.at_last[_PART]),
            tag.flags.first.eq(~self.begun),
            tag.flags.last.eq(nest.at_last[_INNER:].all()),
            tag.flags.final.eq(self.final),
        ]

        pci = Const(1) << plan.granularity
        following, stride = Signal.like(self.step_x), Signal.like(self.step_x)
        m.d.comb += [
            stride.eq(Mux(next_step, plan.x_step, plan.x_row)),
            following.eq(Mux(next_step, self.step_x, self.row_x) + stride),
        ]
        with m.If(self.step & nest.at_last[_PART]):
            m.d.sync += [
                self.set.eq(self.set + Mux(self.pair, 2, 1)),
                self.begun.eq(~nest.final),
                self.later.eq(next_block),
            ]
            with m.If(next_block):
                m.d.sync += self.block.eq(self.block + (pci << self.pair))
            with m.Elif(~(steps_first & next_step)):
                m.d.sync += self.block.eq(0)
            with m.If(~next_block):
                m.d.sync += [
                    self.step_x.eq(Mux(nest.final, 0, following)),
                    self.position.eq(Mux(next_step, self.position + plan.position_step, 0)),
                ]
            with m.Elif(steps_first):
                m.d.sync += [self.step_x.eq(self.row_x), self.position.eq(0)]
            with m.If(nest.advance[_ROW] | nest.final):
                m.d.sync += [
                    self.row_x.eq(Mux(nest.final, 0, following)),
                    self.row.eq(Mux(nest.final, 0, self.row + plan.row_step)),
                ]
        with m.If(self.start):
            m.d.sync += [self.block.eq(0), self.later.eq(0)]

        self._offsets(m, Mux(steps_first, nest.at_last[_INNER], nest.at_last[_OUTER]))
        return m

    def _offsets(self, m, last_step):
        """What is of the request, and then what it is compared with."""
        plan, o = self.plan, self.offsets
        x, position, row = (Signal.like(signal) for signal in (self.step_x, self.position, self.row))
        rest = Signal(signed(self.params.pixel_width + 1))
        second, odd = Signal(2), self.set[0]
        m.d.sync += [
            x.eq(self.step_x + self.block),
            position.eq(self.position + Mux(plan.merged, self.block, 0)),
            row.eq(self.row),
            rest.eq(Mux(last_step, plan.last_bytes, plan.pixel_bytes) - self.block),
            second.eq(Mux(self.pair, Cat(odd, ~odd), 0)),
        ]
        m.d.sync += [
            o.x.eq(x),
            o.position.eq(position),
            o.position_end.eq(plan.position_end + ~position + plan.merged),
            o.row_begin.eq(-row),
            o.row_end.eq(plan.row_end - row),
            o.rest.eq(Mux(rest < 0, 0, Mux(rest[7:-1].any(), 128, rest[:7]))),
            o.second.eq(second),
        ]
