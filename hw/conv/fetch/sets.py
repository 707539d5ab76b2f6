"""The order of requests for feature rows, and what the lanes of a request have in common."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from tilewright.spec.conv import KERNEL_ROWS

from ...lib.loop_nest import LoopNest
from ..layouts import PlanLayout, SetLayout, float_flag

__all__ = ["FeatureTagLayout", "OffsetsLayout", "SetWalker"]

_PART, _INNER, _OUTER, _ROW = range(4)


class FeatureTagLayout(data.StructLayout):
    """The destination of a gathered answer in the first buffer, in slaves' memories or in the kernel's memory."""

    def __init__(self, params):
        super().__init__(
            {
                "set": range(params.sets),
                "word": range(max(params.words, KERNEL_ROWS)),  # of the slaves' memories, or a row of the kernel
                "part": range(params.parts),  # the position of its bytes in the set; undefined for a row of the kernel
                "period": unsigned(3),  # log2 of its bytes, which repeat over the set
                "slaves": 1,  # rows for the memories of slaves
                "kernel": 1,  # a row of the kernel
                "pair": 1,  # for this set and the next one, the even one in the lower half; or for two words
                "turned": 1,  # a pair of words with the second word in the lower half
                "complete": 1,  # the last answer for its set, for both sets, or for its word
                "flags": SetLayout(),  # ``first`` of this set, ``last`` of this set or of the next one
            }
        )


class OffsetsLayout(data.StructLayout):
    """What is added to the numbers of places, or compared with them, for all pieces of a request."""

    def __init__(self, params):
        position = signed(params.position_width)
        super().__init__(
            {
                "x": unsigned(params.smem.addr_width),
                "position": position,
                "position_end": position,  # end of the positions of places; one less unless merged
                # The request's row is in X for rows of places from ``row_begin`` to ``row_end`` - 1.
                "row_begin": signed(19),
                "row_end": signed(19),
                "rest": unsigned(8),  # remaining bytes of the pixel, at most 128
                "kernel": 1,  # a row of the kernel: x is its address
                "second": 2,  # for the lower and the upper half of the lanes: pieces of the second block
            }
        )


class SetWalker(wiring.Component):
    """Walks the requests of a job: for each tile, kernel row, step and block, or pair of blocks, the parts of the set.

    For sums of floats the steps of a block come before the next block (docs/conv.md, "Order of sums"), without pairs.

    A request a cycle. ``offsets`` is two cycles later than the other outputs, which are a few LUTs after registers.

    Parameters
    ----------
    params : ConvUnitParams
    """

    def __init__(self, params):
        self._params = params
        part = range(params.parts + 1)
        # Parts; blocks or pairs, and steps, with floats in the other order; rows.
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
                "start": In(1),  # Strobe: go to the first request of the job.
                "plan": In(PlanLayout(params)),  # constant from ``start`` until two cycles after the last ``step``
                "step": In(1),  # Strobe: go to the next request, also from tile to tile.
                "final": In(1),  # the tile is the last one of its pass
                "part": Out(part),
                "pair": Out(1),
                "last": Out(1),  # the last request of its tile
                "again": Out(1),  # the same part of the previous block has been requested
                "tag": Out(FeatureTagLayout(params)),
                "offsets": Out(OffsetsLayout(params)),  # of the request of two cycles ago; registered
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.nest = nest = self.nest
        plan, tag, conv = self.plan, self.tag, self._params.conv
        lanes_log2 = self._params.lanes.bit_length() - 1

        size = Signal(3)  # log2 of the bytes of a piece
        m.d.comb += size.eq(Mux(plan.granularity > 4, 4, plan.granularity))
        # The number of requests of a set is a power of two; a pair has twice as many.
        set_log2 = (conv.units * conv.row_bytes).bit_length() - 1
        units = Cat(size < set_log2 - lanes_log2 - bit for bit in range(len(self.part)))
        pairs, single = Signal(), Signal()  # blocks come in pairs; this one is the last of an odd number
        steps_first = Signal()  # steps before blocks
        next_block, next_step, blocks = Signal(), Signal(), Signal.like(nest.lasts[_INNER])
        m.d.comb += [
            steps_first.eq(float_flag(self._params, plan, "floats")),
            next_block.eq(Mux(steps_first, nest.advance[_OUTER], nest.advance[_INNER])),
            next_step.eq(Mux(steps_first, nest.advance[_INNER], nest.advance[_OUTER])),
            blocks.eq(Mux(pairs, plan.last_block >> 1, plan.last_block)),
            pairs.eq(~steps_first & (plan.granularity == conv.row_bytes.bit_length() - 1) & self._params.pairs),
            single.eq(pairs & nest.at_last[_INNER] & ~plan.last_block[0]),
            nest.start.eq(self.start),
            nest.lasts[_PART].eq(Mux(pairs, Cat(Const(1, 1), units), units)),
            nest.lasts[_INNER].eq(Mux(steps_first, plan.last_step, blocks)),
            nest.lasts[_OUTER].eq(Mux(steps_first, blocks, plan.last_step)),
            nest.lasts[_ROW].eq(plan.last_kernel_row),
            nest.step.eq(self.step),
            nest.cut[_PART].eq(single & (self.part == conv.units * self._params.row_slots // self._params.lanes - 1)),
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
        """Registers the numbers of the request, and then what places are compared with."""
        plan, o = self.plan, self.offsets
        x, position, row = (Signal.like(signal) for signal in (self.step_x, self.position, self.row))
        rest = Signal(signed(self._params.pixel_width + 1))
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
