"""Setup: a command and its checked descriptor become a job, or a refusal (docs/tmau.md, "Tile mode" to "Errors")."""

from amaranth import Cat, Module, Mux, Signal, signed, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.golden.spec import Element, Error, Opcode

from ..descriptor.derive import walk_order
from ..descriptor.layouts import FaultLayout, LookupLayout
from ..jobs import IntervalLayout, JobLayout
from ..layouts import ErrorLayout, WindowsLayout
from ..walk.bounds import BoundsDistance, BoundsInterval
from .fold import Fold
from .tensor_rules import CommandRules

__all__ = ["Setup"]


class _FirstLayout(data.StructLayout):
    """After the first stage; dimensions in the order of the walk, so that 1 to 3 are W, H, D in im2col mode."""

    def __init__(self, params):
        super().__init__(
            {
                "lookup": LookupLayout(params),
                "products": data.ArrayLayout(params.addr_width, 5),  # bytes from coordinate 0 to the start
                "low_products": data.ArrayLayout(params.addr_width, 3),  # im2col: to the first position of a round
                "strides": data.ArrayLayout(params.addr_width, 5),  # bytes of a step
                "below": data.ArrayLayout(9, 5),
                "above": data.ArrayLayout(9, 5),
                "starts": data.ArrayLayout(signed(34), 4),  # im2col: see PixelWalkLayout
                "lows": data.ArrayLayout(signed(18), 3),
                "highs": data.ArrayLayout(signed(35), 3),
            }
        )


class _SecondLayout(data.StructLayout):
    """After the second stage: the job, but for what depends on whether its box is wholly outside."""

    def __init__(self, params):
        super().__init__(
            {
                "moves": unsigned(1),
                "fault": FaultLayout(),
                "descriptor": unsigned(params.addr_width),  # its address
                "job": JobLayout(params),
                "counts": data.ArrayLayout(9, 5),
                "intervals": data.ArrayLayout(IntervalLayout(), 5),
                "folded": unsigned(4),
                "gather": unsigned(1),
                "gapless": unsigned(1),
            }
        )


class Setup(wiring.Component):
    """Validates a command on a tensor and derives its walk; refuses a bad one before anything is fetched or written.

    Latency 2 from ``i`` to each output, one command a cycle: first products and distances, then sums. A load, store or
    reduction without fault leaves as a job, every other command ends here. Addresses are computed modulo 2^addr_width.

    Members
    -------
    i : In(stream of LookupLayout)
        Commands on tensors, invalidations, and whatever is known to be wrong.
    windows : In(WindowsLayout)
    jobs : Out(stream of JobLayout)
    finished : Out(stream of ErrorLayout)
        Commands that end here: refused ones, and with code NONE those that move nothing.
    busy : Out(1)
        A command is in here.
    """

    def __init__(self, params):
        self.params = params
        super().__init__(
            {
                "i": In(stream.Signature(LookupLayout(params))),
                "windows": In(WindowsLayout(params)),
                "jobs": Out(stream.Signature(JobLayout(params))),
                "finished": Out(stream.Signature(ErrorLayout(params))),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.rules = rules = CommandRules(self.params)
        first, second = Signal(_FirstLayout(self.params)), Signal(_SecondLayout(self.params))
        valid1, valid2, free2 = Signal(), Signal(), Signal()
        load1, load2 = Signal(), Signal()
        m.d.comb += [
            self.i.ready.eq(~valid1 | free2),
            load1.eq(self.i.valid & self.i.ready),
            load2.eq(valid1 & free2),
            free2.eq(~valid2 | Mux(second.moves, self.jobs.ready, self.finished.ready)),
            self.jobs.valid.eq(valid2 & second.moves),
            self.finished.valid.eq(valid2 & ~second.moves),
            self.busy.eq(valid1 | valid2),
            rules.i.eq(self.i.p),
            rules.windows.eq(self.windows),
            rules.load.eq(load1),
            rules.held.eq(first.lookup),
        ]
        with m.If(self.i.ready):
            m.d.sync += valid1.eq(self.i.valid)
        with m.If(free2):
            m.d.sync += valid2.eq(valid1)

        coords = Signal(data.ArrayLayout(signed(32), 5))
        order = walk_order(self.i.p.checked, self.i.p.command.coords, 0)
        m.d.comb += [rules.coords.eq(coords), *(coords[d].eq(order[d]) for d in range(5))]
        ahead1, ahead2 = Signal.like(first), Signal.like(second)
        self._multiply(m, coords, ahead1)
        self._place(m, first, rules.fault, ahead2)
        with m.If(load1):
            m.d.sync += first.eq(ahead1)
        with m.If(load2):
            m.d.sync += second.eq(ahead2)
        self._finish(m, second)
        return m

    def _multiply(self, m, coords, first):
        """First stage: products of coordinates and strides, distances to the tensor's edges."""
        command, checked = self.i.p.command, self.i.p.checked
        m.d.comb += first.lookup.eq(self.i.p)
        for d in range(5):
            m.submodules[f"distance{d}"] = distance = BoundsDistance()
            # The offset shifts position and bounding box alike; in tile mode it is zero.
            spatial = d in (1, 2, 3)
            position = coords[d] + command.offsets[d - 1] if spatial else coords[d]
            m.d.comb += [
                distance.coord.eq(coords[d]),
                distance.size.eq(checked.sizes[d]),
                first.below[d].eq(distance.below),
                first.above[d].eq(distance.above),
                first.products[d].eq(position * checked.strides[d]),
                first.strides[d].eq(checked.strides[d] * (checked.traversals[d] + 1)),
            ]
            if d:
                m.d.comb += first.starts[d - 1].eq(position)
            if spatial:
                k = d - 1
                low = checked.lows[k] + command.offsets[k]
                m.d.comb += [
                    first.lows[k].eq(low),
                    first.highs[k].eq(checked.highs[k] + command.offsets[k]),
                    first.low_products[k].eq(low * checked.strides[d]),
                ]

    def _place(self, m, first, fault, second):
        """Second stage: where the walk starts, what of it is inside, and how many dimensions fold into a run."""
        command, checked, job = first.lookup.command, first.lookup.checked, second.job
        store = (command.opcode == Opcode.STORE) | (command.opcode == Opcode.REDUCE)
        m.submodules.fold = fold = Fold(len(job.transfer.bytes))
        m.d.comb += [
            second.moves.eq((fault.code == Error.NONE) & (store | (command.opcode == Opcode.LOAD))),
            second.fault.eq(fault),
            second.descriptor.eq(command.descriptor),
            second.counts.eq(checked.counts),
            second.gather.eq(checked.gather),
            second.gapless.eq(checked.gapless),
            second.folded.eq(fold.folded),
            job.store.eq(store),
            job.im2col.eq(checked.im2col),
            *(getattr(fold, name).eq(first[name]) for name in ("below", "above")),
            *(
                getattr(fold, name).eq(checked[name])
                for name in ("counts", "run_bytes", "contiguous", "unit_log2", "gather")
            ),
        ]
        for d in range(5):
            m.submodules[f"interval{d}"] = part = BoundsInterval()
            m.d.comb += [
                part.below.eq(first.below[d]),
                part.above.eq(first.above[d]),
                part.count.eq(checked.counts[d]),
                part.traversal.eq(checked.traversals[d]),
                second.intervals[d].eq(part.interval),
            ]
        self._transfer(m, first, fold, store, job.transfer)
        self._walks(m, first, fold, store, job)

    def _transfer(self, m, first, fold, store, transfer):
        """What the path that makes the transfer needs."""
        command, checked = first.lookup.command, first.lookup.checked
        immediate = store & command.fill
        m.d.comb += [
            transfer.tag.eq(command.tag),
            transfer.signal.eq(command.signal & ~store),
            transfer.barrier.eq(command.barrier),
            transfer.smem.eq(Mux(immediate, 0, command.smem)),
            transfer.run_bytes.eq(fold.bytes),
            transfer.data_start.eq(fold.data_start),
            transfer.data_end.eq(fold.data_end),
            transfer.gap.eq(checked.gap),
            transfer.swizzle.eq(checked.swizzle),
            transfer.fill.eq(Cat(checked.fill, checked.fill)),
            transfer.immediate.eq(immediate),
            transfer.tf32.eq(~store & (checked.element == Element.TF32)),
            transfer.element.eq(checked.element),
            transfer.bytes.eq(checked.run_bytes[4]),
        ]
        with m.If(command.opcode == Opcode.REDUCE):
            m.d.comb += transfer.reduction.eq(command.reduction)

    def _walks(self, m, first, fold, store, job):
        """Where the walk starts: sums, of which both modes share the largest."""
        checked, walk, pixels = first.lookup.checked, job.walk, job.pixels
        images = checked.address[: self.params.addr_width] + first.products[0] + first.products[4]
        for d in range(4):
            # In dimensions below d a round begins at ``low``.
            spatial = [(first.low_products[k] if k < d else first.products[k + 1]) for k in range(3)]
            m.d.comb += pixels.origins[d].eq(images + sum(spatial))
        m.d.comb += [
            walk.store.eq(store),
            walk.origin.eq(pixels.origins[0]),
            walk.data_start.eq(fold.data_start),
            walk.data_bytes.eq(fold.data_end - fold.data_start),
            walk.strides.eq(first.strides),
            pixels.store.eq(store),
            pixels.data_start.eq(fold.data_start),
            pixels.data_bytes.eq(fold.data_end - fold.data_start),
            pixels.starts.eq(first.starts),
            pixels.lows.eq(first.lows),
            pixels.highs.eq(first.highs),
            pixels.last.eq(checked.pixels),
        ]
        for d in range(4):
            m.d.comb += [pixels.strides[d].eq(first.strides[d + 1]), pixels.sizes[d].eq(checked.sizes[d + 1])]
        for k in range(3):
            m.d.comb += pixels.steps[k].eq(checked.traversals[k + 1])

    def _finish(self, m, second):
        """The outputs: levels of the walk, and what ends here."""
        job, walk = self.jobs.p, self.jobs.p.walk
        empty = Cat(interval.first >= interval.end for interval in second.intervals)
        merged = Signal()
        # A box without a byte inside is one run, unless shared memory has gaps that must be left alone: fill at full
        # width, or nothing to store.
        m.d.comb += [
            merged.eq(empty.any() & (second.gapless | second.job.store)),
            job.eq(second.job),
            walk.outside.eq(empty.any()),
            job.pixels.outside.eq(empty[0]),
        ]
        with m.If(merged & ~second.job.im2col):
            m.d.comb += job.transfer.run_bytes.eq(second.job.transfer.bytes)
        for d in range(5):
            inner = second.folded[d - 1] if d else ~second.gather
            with m.If(inner | merged):
                m.d.comb += [walk.intervals[d].first.eq(0), walk.intervals[d].end.eq(1)]
            with m.Else():
                m.d.comb += [walk.lasts[d].eq(second.counts[d] - 1), walk.intervals[d].eq(second.intervals[d])]
        m.d.comb += [
            self.finished.p.code.eq(second.fault.code),
            self.finished.p.tag.eq(second.job.transfer.tag),
            self.finished.p.field.eq(second.fault.field),
            self.finished.p.address.eq(Mux(second.fault.code == Error.DESCRIPTOR_READ, second.descriptor, 0)),
        ]
