"""The numbers of a job that the blocks of the engine need (docs/conv.md, "From a kernel to rows")."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from tilewright.spec.conv import CHANNELS_AT_ONCE, JOB, KERNEL_ROWS

from ...lib.layouts import packed_layout
from ...lib.logic import mux_tree
from ..layouts import PlanLayout
from ..params import FOLDS
from .calculator import NOT_SUM, SUM, Calculator, Step
from .rules import JobKind

__all__ = ["ColumnDivider", "JobSetup"]

_COLUMN_BITS = 8
#: A block has at least a row divided by 2^4 bytes.
_FOLDS_LOG2 = exact_log2(FOLDS)
#: Bits of the number of a line.
_LAST_ROW = 24


class ColumnDivider(wiring.Component):
    """Divides kernel columns by merged columns, one bit a cycle: Kw - 1 by g, for Kw and g from 1 to 256.

    Latency: 8 cycles.
    """

    start: In(1)  # Strobe, while not ``busy``; ``columns`` and ``merge`` are constant from then on while ``busy``.
    columns: In(_COLUMN_BITS)  # Kw - 1
    merge: In(_COLUMN_BITS)  # g - 1
    busy: Out(1)  # for 8 cycles after ``start``
    # Valid from the end of ``busy`` until the next ``start``.
    last: Out(_COLUMN_BITS)  # ceil(Kw / g) - 1
    rest: Out(_COLUMN_BITS)  # Kw - last · g - 1

    def elaborate(self, platform):
        m = Module()
        bits_left = Signal(range(_COLUMN_BITS))
        remainder, fits = Signal(_COLUMN_BITS + 1), Signal()
        # ``last`` has the quotient's bits so far, with the remaining bits of the dividend above.
        m.d.comb += [remainder.eq(Cat(self.last[-1], self.rest)), fits.eq(remainder > self.merge)]
        with m.If(self.start):
            m.d.sync += [self.busy.eq(1), bits_left.eq(_COLUMN_BITS - 1), self.last.eq(self.columns), self.rest.eq(0)]
        with m.Elif(self.busy):
            m.d.sync += [
                self.busy.eq(bits_left != 0),
                bits_left.eq(bits_left - 1),
                self.last.eq(Cat(fits, self.last)),
                self.rest.eq(remainder - ((self.merge + 1) & fits.replicate(_COLUMN_BITS + 1))),
            ]
        return m


def _product(term, times, keep=None):
    """The step of a product; its count is stored minus one."""
    return Step(term, times, more=True, fresh=True, keep=keep)


#: Minus the sum: the complement of the sum minus one.
_NEGATE = Step("less", more=True), Step(NOT_SUM, more=True, fresh=True)

#: Words of slaves' memories in lane-private mode: the words of a line of X; those that an output line needs together
#: with those that the next one needs in addition, and the same for pairs of lines; and the distances from kernel row to
#: kernel row, line to line, image to image.
_LANE_STEPS = (
    _product("one", "columns"),
    Step(SUM, "rows", more=True, fresh=True, keep="kernel_stays"),
    _product("one", "planes"),
    Step(SUM, "groups", more=True, fresh=True, keep="words"),
    Step(SUM, "dilation1", more=True, fresh=True, keep="row_words"),
    Step(SUM, "rows", fresh=True),
    Step("words", more=True, keep="image_words"),
    Step("words", "stride1", more=True, keep="fits"),
    Step("words_twice", "stride1", more=True, keep="pairs_fit"),
    _product("words", "stride1", "line_words"),
    # Lines: from the first to the last of a window, then all but one of an image.
    _product("last_kernel_row", "dilation1", "shares"),
    Step("last_line", "stride1", more=True, keep="last_row"),
)

#: A number that a step keeps can be used by the step after the next one.
_STEPS = (
    _product("element", "channels", "pixel"),
    Step(SUM, "merge", keep="merged"),
    # The last block is all bytes but one, divided by the bytes of a block.
    Step("less", more=True),
    Step(SUM, "blocks", fresh=True, keep="last_block"),
    _product("pixel", "columns", "k_row"),
    _product("pixel", "rest", "last_bytes"),
    # Blocks of all steps, counted in blocks of the smallest size, as the room for them is.
    Step("last_block", more=True, fresh=True),
    Step("one", more=True),
    Step(SUM, "rows"),
    Step(SUM, "last_step"),
    Step(SUM, "smallest", fresh=True, keep="weights"),
    _product("x_pitch0", "stride0", "x_point"),
    _product("x_pitch1", "stride1", "x_line"),
    _product("x_pitch0", "step", "x_step"),
    _product("x_pitch1", "dilation1", "x_row"),
    Step("x_pitch1", "top", fresh=True),
    Step("x_pitch0", "left"),
    *_NEGATE,
    Step("x", more=True, keep="x_start"),
    _product("unit", "stride0", "position_point"),
    _product("unit", "width", "position_end"),
    Step("unit", "left", fresh=True),
    *_NEGATE[:1],
    _NEGATE[1]._replace(keep="position_start"),
    *(step._replace(when="lanes") for step in _LANE_STEPS),
    Step("one", "stride1", more=True, when="alone", keep="last_row"),
)


class JobSetup(wiring.Component):
    """Computes the products that the blocks of the engine need, one bit of a product a cycle.

    Latency from a job to its plan: at most ``most_cycles``, and less than half of that for usual sizes. One job at a
    time.

    Parameters
    ----------
    params : ConvUnitParams
    """

    def __init__(self, params):
        self._params = params
        # The bytes of a pixel by the smallest block, in units of a sixteenth of the block.
        self.calculator = Calculator(params.pixel_width + _FOLDS_LOG2, _STEPS)
        self.divider = ColumnDivider()
        super().__init__(
            {
                # Packed jobs. A job is accepted in the cycle after its plan has been; the plan depends on it until
                # then.
                "i": In(stream.Signature(JOB.bits)),
                # Members that a job does not use are undefined; so is the plan of a job that breaks a rule.
                "o": Out(stream.Signature(PlanLayout(params))),
            }
        )

    @property
    def most_cycles(self):
        """The maximum latency."""
        return self.calculator.most_cycles + 10

    def elaborate(self, platform):
        m = Module()
        m.submodules.calculator = calculator = self.calculator
        m.submodules.divider = divider = self.divider
        job = Signal(packed_layout(JOB))
        m.d.comb += job.eq(self.i.payload)
        kind = JobKind(self._params, job)
        with m.FSM():
            with m.State("Wait"), m.If(self.i.valid):
                m.d.comb += divider.start.eq(1)
                m.next = "Divide"
            with m.State("Divide"), m.If(~divider.busy):
                m.d.comb += calculator.start.eq(1)
                m.next = "Calculate"
            with m.State("Calculate"), m.If(~calculator.busy):
                m.next = "Offer"
            with m.State("Offer"):
                m.d.comb += self.o.valid.eq(1)
                with m.If(self.o.ready):
                    m.next = "Accept"
            with m.State("Accept"):
                m.d.comb += self.i.ready.eq(1)
                m.next = "Wait"
        m.d.comb += [divider.columns.eq(job.kernel[0]), divider.merge.eq(job.merge)]
        self._stride = job.stride[1]
        self._rotation(m, job, kind)
        numbers = self._keep(m)
        self._connect(m, job, kind, divider, numbers)
        self._copy(m, job, kind)
        self._derive(m, job, kind, divider, numbers)
        return m

    def _keep(self, m):
        """Registers for the numbers that steps keep, by name: sums, in the bits that are needed."""
        params, calculator = self._params, self.calculator
        address, position, pixel = params.smem.addr_width, params.position_width, params.pixel_width
        row = params.conv.row_bytes.bit_length() - 1
        widths = {"pixel": address + 1, "merged": pixel, "last_bytes": pixel, "last_block": pixel}
        widths |= dict.fromkeys(("position_point", "position_start", "position_end"), position)
        widths |= dict.fromkeys(("k_row", "x_point", "x_line", "x_step", "x_row", "x_start"), address)
        words = exact_log2(params.words)
        # ``pair_words`` is ``image_words`` for pairs, with a dh of 1; the top bit of ``last_row`` marks an overflow.
        widths |= {"words": words + 1}
        widths |= dict.fromkeys(("row_words", "image_words", "line_words", "pair_words"), words)
        widths |= dict.fromkeys(("weights", "kernel_stays", "fits", "pairs_fit", "shares"), 1)
        widths |= {"last_row": _LAST_ROW + 1}
        numbers = {name: Signal(width, name=name) for name, width in widths.items()}
        total = calculator.sum

        def at_most(size):
            """Whether the sum is at most ``size``, a power of two."""
            bits = exact_log2(size)
            return ~(calculator.over | total[bits + 1 :].any() | (total[bits] & total[:bits].any()))

        values = dict.fromkeys(widths, total) | {
            "last_block": total >> row,
            "weights": at_most(params.quarter_bytes >> row - _FOLDS_LOG2),
            "kernel_stays": at_most(KERNEL_ROWS),
            "fits": at_most(params.words),
            "pairs_fit": at_most(params.words),
            "shares": total > self._stride,
            "last_row": Cat(total[:_LAST_ROW], total[_LAST_ROW:].any() | calculator.over),
        }
        with m.If(calculator.ended), m.Switch(calculator.keep):
            for name, number in calculator.keeps.items():
                with m.Case(number):
                    m.d.sync += numbers[name].eq(values[name])
                    if name == "fits":
                        m.d.sync += numbers["pair_words"].eq(total)
        return numbers

    def _connect(self, m, job, kind, divider, numbers):
        """Connects terms, counts and conditions of the steps; a product modulo 2^n needs only n bits of its term."""
        row = self._params.conv.row_bytes.bit_length() - 1
        sizes = range(row - _FOLDS_LOG2, row + 1)
        narrow = {name: job[name][: self._params.smem.addr_width] for name in ("x", "x_pitch0", "x_pitch1")}
        values = {
            "element": 1 << kind.wide,
            "one": 1,
            "less": -1,
            "pixel": numbers["pixel"],
            "last_block": numbers["last_block"],
            "unit": Mux(job.merge.any(), numbers["pixel"], 1),
            "blocks": Cat(job.granularity == size for size in reversed(sizes)),
            "smallest": Cat(job.granularity == size for size in sizes),
            "columns": job.kernel[0],
            "rows": job.kernel[1],
            "rest": divider.rest,
            "last_step": divider.last,
            "step": Mux(job.merge.any(), job.merge, job.dilation[0]),
            "left": job.padding[0],
            "top": job.padding[1],
            "planes": self.o.payload.last_plane,
            "groups": self.o.payload.last_group,
            "last_kernel_row": job.kernel[1],
            "last_line": job.out_height,
            "words": numbers["words"],
            "words_twice": numbers["words"] << 1,
            "lanes": ~kind.convolution,
            "alone": self._may_pair(job, kind, numbers) & ~job.out_height[0],
        }
        self.calculator.drive(m, job, **narrow, **values)

    def _may_pair(self, job, kind, numbers):
        """Whether output lines come in pairs, if lines of X stay."""
        may = (job.dilation[1] == 0) & (job.out_height != 0) & numbers["pairs_fit"] & ~kind.convolution
        return may & self._params.conv.line_pairs

    def _rotation(self, m, job, kind):
        """The words of a line of X in lane-private mode.

        Until the plan is offered, they are those with lines that stay; that lines stay is decided from these words.
        """
        conv, plan, whole = self._params.conv, self.o.payload, exact_log2(self._params.conv.row_bytes)
        # Logarithms of the points of a group, NS · ws.
        points = {size: exact_log2(conv.slaves) + whole - size for size in range(whole - _FOLDS_LOG2, whole + 1)}
        last, reach = Signal(range(conv.slaves * FOLDS)), Signal(8)  # a group's last point; points for later columns
        columns, stride = job.kernel[0], job.stride[0]
        rotates = Signal()  # a word serves several columns of the kernel
        place = job.out_width + Mux(rotates, reach, 0)
        last_place = place + Mux(rotates & plan.raster, last, 0)
        m.d.comb += [
            last.eq(mux_tree(job.granularity, {size: (1 << log2) - 1 for size, log2 in points.items()})),
            reach.eq(Mux(stride[0], columns >> 1, columns)),
            rotates.eq(
                conv.rotation
                & plan.lanes
                & (job.dilation[0] == 0)
                & (stride < 2)
                & (job.granularity >= whole - 1)
                & (reach <= last)
                & (plan.keeps | ~self.o.valid)
            ),
            plan.raster.eq(
                job.raster & (kind.convolution | (rotates & (job.dilation[1] == 0) & (job.out_width >= last)))
            ),
            plan.last_plane.eq(Mux(rotates, stride[0] & (columns != 0), columns)),
            plan.last_place.eq(place),
            plan.last_group.eq(mux_tree(job.granularity, {size: last_place >> log2 for size, log2 in points.items()})),
        ]

    def _copy(self, m, job, kind):
        """Members that are fields of the job, or its kind."""
        plan = self.o.payload
        m.d.comb += [
            *(plan[name].eq(getattr(kind, name)) for name in ("wide", "maximum", "bias", "table", "early")),
            plan.x_signed.eq(~job.type[1]),
            plan.k_signed.eq(kind.weights & ~job.type[0]),
            plan.lanes.eq(~kind.convolution),
            plan.pool.eq(~kind.weights),
            plan.merged.eq(job.merge.any()),
            plan.result_log2.eq(kind.result_log2),
            plan.line_stride.eq(job.stride[1]),
            plan.row_step.eq(job.dilation[1] + 1),
            plan.row_end.eq(job.height + 1),
            plan.row.start.eq(-job.padding[1]),
            plan.last_kernel_row.eq(job.kernel[1]),
            plan.table_address.eq(job.table),
            plan.function_address.eq(job.function_table),
            plan.out_channels.eq(job.out_channels + 1),
            plan.last_column.eq(job.out_width),
            plan.last_image.eq(job.batch),
        ]
        m.d.comb += [plan[name].eq(job[name]) for name in ("granularity", "signal", "k", "k_pitch", "barrier", "tag")]
        for name in ("y", "addend"):
            point, line, image = (job[f"{name}_pitch{n}"] for n in range(3))
            follow = plan[name]
            m.d.comb += [
                follow.start.eq(job[name]),
                follow.point.eq(point),
                follow.line.eq(line << plan.pairs),
                follow.image.eq(image),
                plan.second[name].eq(line),
            ]
        m.d.comb += [plan.post[name].eq(job[name]) for name, _ in plan.post.shape() if name != "add"]
        m.d.comb += plan.post.add.eq(kind.add)
        if self._params.floats:
            m.d.comb += [
                plan.floats.eq(kind.floating & ~kind.maximum),
                plan.brain.eq(kind.brain),
                plan.ordered.eq(kind.floating & kind.maximum),
            ]
        self._zeros(m, job, kind)

    def _zeros(self, m, job, kind):
        """Zero points, and the values of elements outside X and K."""
        plan = self.o.payload

        def fill(bits):
            return Mux(kind.wide, bits, bits[:8].replicate(2))

        def number(bits, is_signed):
            sign = is_signed & Mux(kind.wide, bits[15], bits[7])
            return Cat(bits[:8], Mux(kind.wide, bits[8:], sign.replicate(8)), sign).as_signed()

        least = Cat(Const(0, 7), plan.x_signed & ~kind.wide, Const(0, 7), plan.x_signed)
        m.d.comb += [
            plan.x_fill.eq(Mux(kind.maximum, least, fill(job.x_zero))),
            plan.k_fill.eq(Mux(kind.weights, fill(job.k_zero), fill(Const(1, 16)))),
            plan.x_zero.eq(Mux(kind.maximum, 0, number(job.x_zero, plan.x_signed))),
            plan.k_zero.eq(Mux(kind.weights, number(job.k_zero, plan.k_signed), 0)),
        ]
        if self._params.floats:
            # Floats have no zero points. Their maximum is computed on integers, whose factor is 1.
            with m.If(kind.floating):
                infinite, one = Mux(kind.brain, 0xFF80, 0xFC00), Mux(kind.brain, 0x3F80, 0x3C00)
                m.d.comb += [
                    plan.x_fill.eq(Mux(kind.maximum, infinite, 0)),
                    plan.k_fill.eq(Mux(kind.maximum, 1, Mux(kind.weights, 0, one))),
                    plan.x_zero.eq(0),
                    plan.k_zero.eq(0),
                ]

    def _derive(self, m, job, kind, divider, numbers):
        """Members that are calculated."""
        plan = self.o.payload
        tiles = job.out_channels >> (CHANNELS_AT_ONCE * self._params.conv.slaves).bit_length() - 1
        m.d.comb += [
            plan.x.start.eq(numbers["x_start"]),
            plan.x.point.eq(numbers["x_point"]),
            plan.x.line.eq(Mux(plan.keeps, job.x_pitch[1], numbers["x_line"])),
            plan.x.image.eq(job.x_pitch[2]),
            plan.position.start.eq(numbers["position_start"]),
            plan.position.point.eq(numbers["position_point"]),
            plan.position_step.eq(Mux(plan.merged, numbers["merged"], job.dilation[0] + 1)),
            plan.k_step.eq(numbers["merged"]),
            plan.pixel_bytes.eq(numbers["merged"]),
            plan.last_step.eq(divider.last),
            plan.last_pass.eq(Mux(plan.lanes, numbers["last_block"], tiles)),
            plan.stays.eq(numbers["weights"]),
            plan.kernel_stays.eq(numbers["kernel_stays"] | plan.pool),
            plan.keeps.eq(
                plan.lanes & plan.kernel_stays & numbers["fits"] & numbers["shares"] & ~numbers["last_row"][-1]
            ),
            plan.row.line.eq(Mux(plan.keeps, 1, job.stride[1] + 1)),
            plan.last_row.eq(Mux(plan.keeps, numbers["last_row"], job.out_height)),
        ]
        same = ("x_step", "x_row", "position_end", "k_row", "last_bytes", "last_block", "row_words")
        m.d.comb += [plan[name].eq(numbers[name]) for name in same]
        m.d.comb += [
            plan.pairs.eq(plan.keeps & self._may_pair(job, kind, numbers)),
            plan.alone.eq(plan.pairs & ~job.out_height[0]),
            plan.last_line.eq(job.out_height >> plan.pairs),
            plan.last_row_step.eq(job.kernel[1] + Mux(plan.pairs, job.stride[1] + 1, 0)),
            plan.stride.eq(Mux(plan.pairs, Cat(Const(1, 1), job.stride[1]), job.stride[1])),
            plan.line_words.eq(numbers["line_words"] << plan.pairs),
            plan.image_words.eq(Mux(plan.pairs, numbers["pair_words"], numbers["image_words"])),
        ]
