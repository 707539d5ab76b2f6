"""Setup of commands on tensors: a command and its checked descriptor become a job or a refusal (docs/tmau.md)."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from tilewright.spec import COMMAND, COMMAND_FIELD, Element, Error, Opcode

from ..descriptor.layouts import FaultLayout, ListSignature, LookupLayout, aligned
from ..jobs import JobLayout
from ..layouts import ErrorLayout, WindowsLayout, prefetch_members
from ..walk.address import BoundsDistance, BoundsInterval
from .dimensions import DimensionPicker, Fold, OriginSum
from .rules import CommandRules, named_receivers

__all__ = ["Setup"]


class _MeasuredLayout(data.StructLayout):
    """A dimension after the second stage."""

    def __init__(self, params):
        super().__init__(
            {
                "number": unsigned(3),
                "again": unsigned(1),
                "first": unsigned(1),
                "last": unsigned(1),
                "below": unsigned(9),
                "above": unsigned(9),
                "start": unsigned(9),
                "end": unsigned(9),
                "count": unsigned(9),
                "traversal": unsigned(3),
                "bytes": unsigned(params.smem.addr_width + 1),
                "piece": unsigned(params.smem.addr_width + 1),  # of the previous dimensions, or of a unit
                "contiguous": unsigned(1),
                "rows": unsigned(1),  # unless it is part of the run, its runs outside the tensor are folded
                "stride": unsigned(9),  # bytes of a step of dimension 0
                "out_of_box": unsigned(1),  # the start is outside the bounding box
            }
        )


class _EndLayout(data.StructLayout):
    """The end of the command at the outputs, beside its job."""

    def __init__(self, params):
        super().__init__(
            {
                "fault": FaultLayout(),
                "descriptor": unsigned(params.addr_width),  # its address
                "moves": unsigned(1),  # it is a job
                "checks_start": unsigned(1),  # it is refused if its start is outside the bounding box
                "mergeable": unsigned(1),  # a box that is entirely outside is one run
                "fills": unsigned(1),  # contiguous runs outside may be folded
                **prefetch_members(params),  # it has a job, and then ends here
            }
        )


class Setup(wiring.Component):
    """Checks a command on a tensor and derives its walk; a bad command is refused before any data are moved.

    One dimension a cycle passes three stages: DimensionPicker; products and distances to the edges of the tensor; sums,
    intervals and runs. The job is assembled in the output registers. Latency: 2 plus the number of dimensions
    (``DimensionPicker``), 3 for a command that needs none. A command stays at ``i`` for at least three cycles. The next
    one follows without a gap if the job has left when its first dimension enters the third stage.

    A correct load, store or reduction becomes a job; other commands end here. If prefetches are reported, a prefetch
    that would fit shared memory does both. Addresses are computed modulo 2^addr_width.
    """

    def __init__(self, params):
        self._params = params
        self.picker = DimensionPicker(params)
        self.placing = Signal()  # the third stage holds a dimension, ``measured``
        self.starting = Signal()  # it is the command's first one
        self.measured = Signal(_MeasuredLayout(params))
        self.level = Signal(3)  # of the walk, for the dimension in the third stage
        self.offered = Signal()  # a job or an end is at the outputs
        super().__init__(
            {
                # Commands on tensors, invalidations, and commands with a known fault.
                "i": In(stream.Signature(LookupLayout(params))),
                "dimensions": Out(ListSignature(params)),  # Of the command at ``i``, with which its first one arrives.
                "windows": In(WindowsLayout(params)),
                "jobs": Out(stream.Signature(JobLayout(params))),
                # Commands that end here: refused ones, and with code NONE commands that move nothing.
                "finished": Out(stream.Signature(ErrorLayout(params))),
                "busy": Out(1),  # A command is being set up.
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.rules = rules = CommandRules(self._params)
        m.submodules.picker = picker = self.picker
        m.submodules.origin = origin = OriginSum(addr_width=self._params.addr_width)
        m.submodules.fold = fold = Fold(self._params.smem.addr_width + 1)
        connect(m, picker.dimensions, flipped(self.dimensions))
        next_level = Signal(3)  # for the dimension in the second stage
        measured = self.measured
        # The job is reset, because walkers compare members that a command may leave unset.
        job, end = Signal(JobLayout(self._params)), Signal(_EndLayout(self._params), reset_less=True)
        step, places, takes = Signal(), Signal(), Signal()
        outside = Signal()  # the whole box is outside

        # A job may leave when the first dimension of the next command arrives. An end leaves before, because
        # ``finished.ready`` is late.
        twice = end.prefetch if self._params.prefetches else Const(0, 1)
        moves = end.moves & self.jobs.ready & ~twice
        leaves = Mux(end.moves, moves, self.finished.ready)
        m.d.comb += [
            # Only a first dimension waits. ``takes`` has a high fan-out, and so depends on few registers.
            step.eq(~(self.starting & self.offered) | moves),
            takes.eq(self.starting & (~self.offered | moves)),
            places.eq(step & self.placing),
            picker.step.eq(step),
            picker.i.payload.eq(self.i.payload),
            picker.i.valid.eq(self.i.valid),
            self.i.ready.eq(picker.i.ready),
            self.jobs.valid.eq(self.offered & end.moves),
            self.finished.valid.eq(self.offered & ~end.moves),
            self.busy.eq(picker.valid | self.placing | self.offered),
            rules.i.eq(self.i.payload),
            rules.windows.eq(self.windows),
        ]
        with m.If(step):
            m.d.sync += [self.placing.eq(picker.valid), self.starting.eq(picker.valid & picker.o.first)]
        with m.If(places & measured.last):
            m.d.sync += self.offered.eq(1)
        with m.Elif(leaves):
            m.d.sync += self.offered.eq(0)

        with m.If(self.offered & end.moves & self.jobs.ready & twice):
            m.d.sync += end.moves.eq(0)

        m.d.comb += next_level.eq(Mux(measured.first, 1, self.level + ~fold.folded))
        stride = self._measure(m, step, picker.o, origin, fold, measured, end)
        with m.If(takes):
            self._take(m, rules.fault, measured, job, end)
        with m.If(step & picker.valid & ~picker.o.first & ~picker.o.again):
            self._keep(m, picker.o, measured, stride, fold, job, next_level)
        with m.If(step):
            m.d.sync += self.level.eq(Mux(picker.o.first, 0, next_level))
        self._place(m, places, takes, measured, origin, fold, job, outside)
        with m.If(self.placing & measured.out_of_box & ~measured.first & end.checks_start):
            m.d.sync += [
                end.moves.eq(0),
                end.fault.code.eq(Error.START),
                end.fault.field.eq(COMMAND_FIELD + COMMAND.index("coords")),
            ]
        self._offer(m, job, end, fold, outside)
        return m

    def _measure(self, m, step, picked, origin, fold, measured, end):
        """Second stage: distances to the edges of the tensor, and products of limbs."""
        m.submodules.distance = distance = BoundsDistance()
        folds, fills, rows, stride = Signal(), Signal(), Signal(), Signal(self._params.addr_width)
        m.d.comb += [
            # Dimension 1 is here while the command is being stored in ``end``.
            fills.eq(Mux(measured.first, self._fills(), end.fills)),
            rows.eq(~picked.first & fold.folded & fills & (picked.traversal == 0)),
            # Only tile mode uses the distances of all dimensions, and there offsets are zero.
            distance.coord.eq(picked.position),
            distance.size.eq(picked.size),
            distance.count.eq(picked.count),
            distance.traversal.eq(picked.traversal),
            # The walk begins at the first byte inside the tensor, because neither runs nor folded runs have addresses
            # before it.
            folds.eq(Mux(picked.first, ~self.i.payload.checked.gather, fold.whole & picked.contiguous)),
            origin.step.eq(step),
            origin.position.eq(picked.position),
            origin.stride.eq(picked.stride),
            origin.none.eq((folds | rows) & ~picked.again & (picked.position < 0)),
            origin.start.eq(self.picker.valid & picked.first),
            origin.address.eq(aligned(self._params, self.i.payload.checked.address)),
            stride.eq(self._stride(m, picked)),
        ]
        with m.If(step):
            same = ("number", "again", "first", "last", "count", "traversal", "bytes", "contiguous")
            m.d.sync += [measured[name].eq(picked[name]) for name in same]
            m.d.sync += [measured[name].eq(getattr(distance, name)) for name in ("below", "above", "start", "end")]
            m.d.sync += [
                # The previous dimension is one stage ahead, so that no multiplexer precedes Fold's multipliers.
                measured.piece.eq(Mux(picked.first, 1 << self.i.payload.checked.unit_log2, measured.bytes)),
                measured.stride.eq(stride),
                measured.rows.eq(rows),
                measured.out_of_box.eq(
                    ~picked.again
                    & (picked.number != 4)
                    & ((picked.position < picked.low) | (picked.position >= picked.high))
                ),
            ]
        return stride

    def _stride(self, m, picked):
        """Bytes of a step, stride times traversal, with one adder: 3 = 2 + 1, 5 = 4 + 1, 6 = 4 + 2, 7 = 8 - 1."""
        step, stride = picked.traversal, Signal(self._params.addr_width)
        log2, other, less = Signal(2), Signal(self._params.addr_width), Signal()
        m.d.comb += [
            stride.eq(picked.stride),
            log2.eq(Cat((step == 1) | (step == 2) | (step >= 6), step >= 3)),
            less.eq(step == 6),
        ]
        with m.Switch(step):
            with m.Case(2, 4):
                m.d.comb += other.eq(stride)
            with m.Case(5):
                m.d.comb += other.eq(stride << 1)
            with m.Case(6):
                m.d.comb += other.eq(~stride)
        return (stride << log2) + other + less

    def _fills(self):
        """Whether runs outside the tensor are contiguous and written."""
        command, checked = self.i.payload.command, self.i.payload.checked
        return (command.opcode == Opcode.LOAD) & checked.gapless & ~checked.im2col

    def _keep(self, m, picked, measured, stride, fold, job, level):
        """Stores the numbers of the second stage in the job, when dimension 0 has reached the third stage."""
        walk, pixels = job.walk, job.pixels
        if self._params.folds_pixels:
            with m.If(picked.number == 1):
                m.d.sync += pixels.folds.eq(self._folds(picked, measured, fold))
        with m.Switch(Mux(job.im2col, picked.number, level)):  # both are 1 for dimension 1
            for d in range(1, 5):
                with m.Case(d):
                    m.d.sync += walk.strides[d].eq(aligned(self._params, stride))
        turn = picked.high - picked.traversal - 1
        with m.Switch(picked.number):
            for d in range(1, 5):
                with m.Case(d):
                    m.d.sync += [
                        pixels.starts[d - 1].eq(picked.position),
                        pixels.sizes[d - 1].eq(picked.size),
                        pixels.steps[d - 1].eq(picked.traversal),
                    ]
                    if d < 4:
                        m.d.sync += [pixels.lows[d - 1].eq(picked.low), pixels.turns[d - 1].eq(turn)]

    def _folds(self, picked, measured, fold):
        """Whether pixels along W may be folded; valid when dimension 0 enters the third stage.

        Short lines and short walks are faster pixel by pixel.
        """
        command, checked = self.i.payload.command, self.i.payload.checked
        adjoin = checked.gapless & (picked.stride == measured.bytes) & (picked.traversal == 0)
        worth_it = (measured.bytes < self._params.bus_bytes) & picked.size[2:].any() & checked.pixels[4:].any()
        return (command.opcode == Opcode.LOAD) & fold.whole & adjoin & worth_it

    def _take(self, m, found, measured, job, end):
        """Stores the members of the command, which is still at the input, in the job."""
        command, checked = self.i.payload.command, self.i.payload.checked
        walk, pixels, transfer = job.walk, job.pixels, job.transfer
        opcode = command.opcode
        store = (opcode == Opcode.STORE) | (opcode == Opcode.REDUCE)
        immediate = store & command.fill
        m.d.sync += [
            end.fault.eq(found),
            end.descriptor.eq(command.descriptor),
            end.moves.eq((found.code == Error.NONE) & (store | (opcode == Opcode.LOAD))),
            end.checks_start.eq(checked.im2col & ((found.code == Error.NONE) | (found.code > Error.START))),
            # Not if shared memory has gaps that must not be written. Fill takes the full width, a store does nothing.
            end.mergeable.eq((checked.gapless | store) & ~checked.im2col),
            end.fills.eq(self._fills()),
            walk.folds.eq(0),
            job.store.eq(store),
            job.im2col.eq(checked.im2col),
            transfer.tag.eq(command.tag),
            transfer.signal.eq(command.signal & ~store),
            transfer.barrier.eq(command.barrier),
            transfer.smem.eq(Mux(immediate, 0, command.smem)),
            transfer.gap.eq(checked.gap),
            transfer.swizzle.eq(checked.swizzle),
            transfer.fill.eq(checked.fill),
            transfer.immediate.eq(immediate),
            transfer.tf32.eq(~store & (checked.element == Element.TF32) if self._params.has("tf32") else 0),
            transfer.reduction.eq(Mux(opcode == Opcode.REDUCE, command.reduction, 0)),
            transfer.element.eq(checked.element),
            transfer.bytes.eq(checked.bytes),
            walk.strides[0].eq(measured.stride),
            pixels.last.eq(checked.pixels),
        ]
        if self._params.cores > 1:
            m.d.sync += transfer.receivers.eq(named_receivers(self._params, command))
        if self._params.prefetches:
            fits = ~checked.too_large & (checked.footprint <= self._params.smem.size_bytes)
            prefetches = (opcode == Opcode.PREFETCH) & (found.code == Error.NONE) & fits
            m.d.sync += [named.prefetch.eq(prefetches) for named in (end, job, walk, pixels)]
            with m.If(prefetches):
                m.d.sync += end.moves.eq(1)

    def _place(self, m, places, takes, measured, origin, fold, job, outside):
        """Third stage: origin of the walk, indices inside, and folded dimensions."""
        checked, walk, pixels = self.i.payload.checked, job.walk, job.pixels
        m.submodules.interval = part = BoundsInterval()
        empty, before = Signal(2), Signal()  # of the last dimension; an earlier one is outside
        m.d.comb += [
            *(getattr(part, name).eq(measured[name]) for name in ("below", "above", "count", "traversal")),
            *(
                getattr(fold, name).eq(measured[name])
                for name in ("first", "start", "end", "count", "contiguous", "piece")
            ),
            fold.step.eq(places & ~measured.again),
            fold.dimension_bytes.eq(measured.bytes),
            fold.gather.eq(checked.gather),
            outside.eq(Cat(empty, before).any()),
        ]
        with m.If(places & ~measured.again):
            m.d.sync += walk.origin.eq(origin.sum)
            with m.If(measured.first | ~job.im2col):  # in im2col mode only the channels count
                m.d.sync += [empty.eq(part.empty), before.eq(outside & ~measured.first)]
        last, interval = self._level(m, measured, fold, part, walk)
        for d in range(5):
            here = takes if d == 0 else self.placing & ~measured.again & (self.level == d)
            with m.If(here & ~fold.folded):
                m.d.sync += [walk.lasts[d].eq(last), walk.intervals[d].eq(interval)]
        # Other levels have one index. Missing spatial dimensions have one position, 0; W is never missing.
        with m.If(takes):
            for d in range(5):
                with m.If((d > 0) | fold.folded):
                    m.d.sync += [walk.lasts[d].eq(0), walk.intervals[d].first.eq(0), walk.intervals[d].end.eq(1)]
            for k in range(1, 3):
                listed = (pixels.starts, pixels.lows, pixels.turns, pixels.sizes, pixels.steps)
                m.d.sync += [numbers[k].eq(0) for numbers in listed]
        with m.If(self.placing & measured.again):
            for k in range(1, 4):
                with m.If(measured.number <= k):
                    m.d.sync += pixels.origins[k].eq(origin.sum)

    def _level(self, m, measured, fold, part, walk):
        """Last index and inside indices of the level of a dimension that is not part of the run."""
        last, interval = Signal(8), Signal.like(part.interval)
        starts, ends = measured.start != 0, measured.end != measured.count
        inside_end = starts + measured.end - measured.start
        with m.If(measured.rows):
            # One index for all runs before the tensor, and one for all runs after it.
            m.d.comb += [interval.first.eq(starts), interval.end.eq(inside_end), last.eq(inside_end - ~ends)]
        with m.Else():
            m.d.comb += [interval.eq(part.interval), last.eq(measured.count - 1)]
        with m.If(self.placing & measured.rows & ~measured.again & ~fold.folded):
            m.d.sync += [
                walk.folds.eq(1),
                walk.before.eq(fold.start_bytes),
                walk.behind.eq(measured.bytes - fold.end_bytes),
                walk.level_bytes.eq(measured.bytes),
            ]
        return last, interval

    def _offer(self, m, job, end, fold, outside):
        """The outputs, and the members that both walks share."""
        out, merged = self.jobs.payload, Signal()
        m.d.comb += [
            merged.eq(outside & end.mergeable),
            out.eq(job),
            *(last.eq(Mux(merged, 0, kept)) for last, kept in zip(out.walk.lasts, job.walk.lasts, strict=True)),
            out.walk.store.eq(job.store),
            out.walk.folds.eq(job.walk.folds & ~outside),
            out.walk.data_bytes.eq(fold.data_bytes),
            out.pixels.store.eq(job.store),
            out.pixels.data_bytes.eq(fold.data_bytes),
            out.walk.outside.eq(outside),
            out.pixels.outside.eq(outside),
            out.pixels.origins[0].eq(job.walk.origin),
            *(out.pixels.strides[d].eq(job.walk.strides[d + 1]) for d in range(4)),
            out.transfer.run_bytes.eq(Mux(merged, job.transfer.bytes, fold.bytes)),
            out.transfer.data_start.eq(fold.data_start),
            out.transfer.data_end.eq(fold.data_end),
            out.transfer.fill.eq(Cat(job.transfer.fill[:32], job.transfer.fill[:32])),
            self.finished.payload.code.eq(end.fault.code),
            self.finished.payload.tag.eq(job.transfer.tag),
            self.finished.payload.field.eq(end.fault.field),
            self.finished.payload.address.eq(Mux(end.fault.code == Error.DESCRIPTOR_READ, end.descriptor, 0)),
        ]
