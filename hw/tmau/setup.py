"""Setup: a command and its checked descriptor become the constants of a walk, or a refusal (tmau.md 3 and 9)."""

from amaranth import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.golden.spec import COMMAND, COMMAND_FIELD, Error, Opcode

from .bounds import BoundsDistance, BoundsInterval, IntervalLayout
from .descriptor import CheckedLayout, FaultLayout
from .layouts import ErrorLayout, TransferLayout, command_layout

__all__ = ["LookupLayout", "Setup", "WalkLayout"]


class LookupLayout(data.StructLayout):
    """A command with its descriptor."""

    def __init__(self, params):
        super().__init__(
            {
                "command": command_layout(),
                "checked": CheckedLayout(params),  # meaningful for a load without fault
                "fault": FaultLayout(),  # what is already known to be wrong
            }
        )


class WalkLayout(data.StructLayout):
    """What the walker needs of one command."""

    def __init__(self, params):
        length = params.smem.addr_width + 1
        super().__init__(
            {
                "origin": unsigned(params.addr_width),  # global address of the box's first element, inside or not
                "data_start": unsigned(length),  # bytes of a run before its part inside the tensor
                "data_bytes": unsigned(length),  # bytes of that part
                "strides": data.ArrayLayout(params.addr_width, 4),  # bytes from index to index: stride times traversal
                "lasts": data.ArrayLayout(8, 4),  # last index of dimensions 1 to 4; 0 where folded into the run
                "intervals": data.ArrayLayout(IntervalLayout(), 4),  # indices inside the tensor
                "outside": unsigned(1),  # no byte of the box is inside
            }
        )


class Setup(wiring.Component):
    """Validates a command and derives its walk; refuses a bad one before anything is fetched or written.

    Latency 2 from ``i`` to each output, one command a cycle. A load without fault goes to both ``walks`` and
    ``transfers``, every other command to ``finished``; the next command waits until the one before has left. Addresses
    are computed modulo 2^addr_width.

    Members
    -------
    i : stream of LookupLayout, in
    walks : stream of WalkLayout, out
    transfers : stream of TransferLayout, out
    finished : stream of ErrorLayout, out
        Commands that end here: refused ones, and with code NONE those that move nothing.
    """

    def __init__(self, params):
        self.params = params
        super().__init__(
            {
                "i": In(stream.Signature(LookupLayout(params))),
                "walks": Out(stream.Signature(WalkLayout(params))),
                "transfers": Out(stream.Signature(TransferLayout(params))),
                "finished": Out(stream.Signature(ErrorLayout())),
            }
        )

    def elaborate(self, platform):
        m = Module()
        self._valid = [Signal(name="valid1"), Signal(name="valid2")]
        free2 = Signal()
        load1, load2 = Signal(), Signal()
        m.d.comb += [
            self.i.ready.eq(~self._valid[0] | free2),
            load1.eq(self.i.valid & self.i.ready),
            load2.eq(self._valid[0] & free2),
        ]
        with m.If(self.i.ready):
            m.d.sync += self._valid[0].eq(self.i.valid)
        with m.If(free2):
            m.d.sync += self._valid[1].eq(self._valid[0])

        first = self._multiply(m, load1)
        second = self._place(m, load2, first)
        self._send(m, second, free2)
        return m

    def _multiply(self, m, load):
        """First stage: one product a dimension, distances to the tensor's edges, the rules that need the command."""
        params = self.params
        command, checked = self.i.p.command, self.i.p.checked
        first = Signal(
            data.StructLayout(
                {
                    "command": command_layout(),
                    "checked": CheckedLayout(params),
                    "fault": FaultLayout(),
                    "base": unsigned(params.addr_width),
                    "products": data.ArrayLayout(params.addr_width, 4),
                    "strides": data.ArrayLayout(params.addr_width, 4),
                    "below": data.ArrayLayout(9, 5),
                    "above": data.ArrayLayout(9, 5),
                }
            )
        )
        for d in range(5):
            m.submodules[f"distance{d}"] = distance = BoundsDistance()
            m.d.comb += [distance.coord.eq(command.coords[d]), distance.size.eq(checked.sizes[d])]
            with m.If(load):
                m.d.sync += [first.below[d].eq(distance.below), first.above[d].eq(distance.above)]
        with m.If(load):
            m.d.sync += [
                first.command.eq(command),
                first.checked.eq(checked),
                first.fault.eq(self._judge(m, command, checked)),
                first.base.eq(checked.address + (command.coords[0] << checked.element_log2)),
            ]
            for k in range(4):
                m.d.sync += [
                    first.products[k].eq(command.coords[k + 1] * checked.strides[k]),
                    first.strides[k].eq(checked.strides[k] * (checked.traversals[k] + 1)),
                ]
        return first

    def _judge(self, m, command, checked):
        """The first rule that is broken, by code and then by field."""
        smem = self.params.smem
        end = Signal(smem.addr_width + 2)
        m.d.comb += end.eq(command.smem[: smem.addr_width] + checked.footprint)
        leaves = command.smem[smem.addr_width :].any() | checked.too_large | (end > smem.size_bytes)
        used = [checked.rank > d for d in range(5)]
        rules = [
            *((Error.COORDS, "coords", ~used[d] & command.coords[d].any(), command.coords[d]) for d in range(1, 5)),
            (Error.SMEM_ALIGNMENT, "smem", command.smem[:7].any(), command.smem),
            (Error.SMEM_RANGE, "smem", leaves, command.smem),
            (Error.BARRIER_ALIGNMENT, "barrier", command.signal & command.barrier[:3].any(), command.barrier),
            (
                Error.BARRIER_RANGE,
                "barrier",
                command.signal & command.barrier[smem.addr_width :].any(),
                command.barrier,
            ),
        ]
        fault = Signal(FaultLayout())
        with m.If((self.i.p.fault.code != Error.NONE) | (command.opcode != Opcode.LOAD)):
            m.d.comb += fault.eq(self.i.p.fault)
        for code, field, broken, value in rules:
            with m.Elif(broken):
                m.d.comb += [
                    fault.code.eq(code),
                    fault.field.eq(COMMAND_FIELD + COMMAND.index(field)),
                    fault.value.eq(value.as_unsigned()[:32]),
                ]
        return fault

    def _place(self, m, load, first):
        """Second stage: where the walk starts, what of it is inside, and how many dimensions fold into a run."""
        params, checked = self.params, first.checked
        length = params.smem.addr_width + 1
        second = Signal(
            data.StructLayout(
                {
                    "moves": unsigned(1),
                    "fault": FaultLayout(),
                    "origin": unsigned(params.addr_width),
                    "strides": data.ArrayLayout(params.addr_width, 4),
                    "counts": data.ArrayLayout(9, 5),
                    "intervals": data.ArrayLayout(IntervalLayout(), 5),
                    "folded": unsigned(4),
                    "gapless": unsigned(1),
                    "transfer": TransferLayout(params),
                }
            )
        )
        with m.If(load):
            m.d.sync += [
                second.moves.eq((first.command.opcode == Opcode.LOAD) & (first.fault.code == Error.NONE)),
                second.fault.eq(first.fault),
                second.origin.eq(first.base + sum(first.products)),
                second.strides.eq(first.strides),
                second.counts.eq(checked.counts),
                second.gapless.eq(checked.gapless),
            ]
        for d in range(5):
            m.submodules[f"interval{d}"] = part = BoundsInterval()
            m.d.comb += [
                part.below.eq(first.below[d]),
                part.above.eq(first.above[d]),
                part.count.eq(checked.counts[d]),
                part.traversal.eq(checked.traversals[d - 1] if d else 0),
            ]
            with m.If(load):
                m.d.sync += second.intervals[d].eq(part.interval)

        # A dimension folds into the run if it continues those below it without a gap and they lie wholly inside.
        folded = Signal(4)
        for k in range(4):
            whole = (first.below[k] == 0) & (first.above[k] >= checked.counts[k])
            m.d.comb += folded[k].eq((folded[k - 1] if k else 1) & checked.contiguous[k] & whole)

        # The outermost folded dimension decides which part of the run is inside; one of its indices is `unit` bytes. It
        # is dimension 0 or has traversal 1, so that its distances need no division.
        unit, run_bytes = Signal(length), Signal(length)
        start, end = Signal(9), Signal(9)
        with m.Switch(sum(folded)):
            for d in range(5):
                with m.Case(d):
                    count = checked.counts[d]
                    m.d.comb += [
                        unit.eq(checked.run_bytes[d - 1] if d else 1 << checked.element_log2),
                        run_bytes.eq(checked.run_bytes[d]),
                        start.eq(Mux(first.below[d] < count, first.below[d], count)),
                        end.eq(Mux(first.above[d] < count, first.above[d], count)),
                    ]
        command, transfer = first.command, second.transfer
        with m.If(load):
            m.d.sync += [
                second.folded.eq(folded),
                transfer.tag.eq(command.tag),
                transfer.signal.eq(command.signal),
                transfer.barrier.eq(command.barrier),
                transfer.line.eq(command.smem >> 7),
                transfer.run_bytes.eq(run_bytes),
                transfer.data_start.eq(start * unit),
                transfer.data_end.eq(end * unit),
                transfer.pitch.eq(Mux(checked.gapless, run_bytes, checked.pitch)),
                transfer.swizzle.eq(checked.swizzle),
                transfer.fill.eq(checked.fill),
                transfer.tf32.eq(checked.tf32),
                transfer.bytes.eq(checked.run_bytes[4]),
            ]
        return second

    def _send(self, m, second, free):
        """Hands a command to the walker and the write half, or finishes it here; ``free`` when it leaves."""
        walk, transfer = self.walks.p, self.transfers.p
        outside = Signal()
        m.d.comb += outside.eq(Cat(interval.first >= interval.end for interval in second.intervals).any())
        # A box without a byte inside and without gaps is one run of fill, at the full width of shared memory.
        merged = outside & second.gapless
        m.d.comb += [
            walk.origin.eq(second.origin),
            walk.data_start.eq(second.transfer.data_start),
            walk.data_bytes.eq(second.transfer.data_end - second.transfer.data_start),
            walk.strides.eq(second.strides),
            walk.outside.eq(outside),
            transfer.eq(second.transfer),
        ]
        with m.If(merged):
            m.d.comb += [transfer.run_bytes.eq(second.transfer.bytes), transfer.pitch.eq(second.transfer.bytes)]
        for k in range(4):
            with m.If(second.folded[k] | merged):
                m.d.comb += [walk.intervals[k].first.eq(0), walk.intervals[k].end.eq(1)]
            with m.Else():
                m.d.comb += [
                    walk.lasts[k].eq(second.counts[k + 1] - 1),
                    walk.intervals[k].eq(second.intervals[k + 1]),
                ]
        m.d.comb += [
            self.finished.p.code.eq(second.fault.code),
            self.finished.p.tag.eq(second.transfer.tag),
            self.finished.p.field.eq(second.fault.field),
            self.finished.p.value.eq(second.fault.value),
        ]

        # Walker and write half take their parts independently; a part that has been taken is not offered again.
        walk_sent, transfer_sent = Signal(), Signal()
        valid = self._valid[1]
        walk_done = walk_sent | self.walks.ready
        transfer_done = transfer_sent | self.transfers.ready
        m.d.comb += [
            self.walks.valid.eq(valid & second.moves & ~walk_sent),
            self.transfers.valid.eq(valid & second.moves & ~transfer_sent),
            self.finished.valid.eq(valid & ~second.moves),
            free.eq(~valid | Mux(second.moves, walk_done & transfer_done, self.finished.ready)),
        ]
        m.d.sync += [
            walk_sent.eq(valid & second.moves & walk_done & ~free),
            transfer_sent.eq(valid & second.moves & transfer_done & ~free),
        ]
