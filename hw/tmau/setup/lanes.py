"""Setup of copies between memory and lanes (docs/layouts.md, "Lane-local memory")."""

from amaranth.hdl import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.spec import COMMAND_FIELD, LANES, Element, Error, LaneLayout

from ...lib.layouts import command_layout, command_view
from ...lib.loop_nest import LoopNest
from ..descriptor.layouts import FaultLayout
from ..jobs import BlockJobLayout
from ..layouts import ErrorLayout, WindowsLayout
from .rules import above, outside_global, outside_shared
from .strides import LaneCursor, StrideCalculator, StridesLayout

__all__ = ["MAX_EU_LOG2", "MAX_LANES_LOG2", "LaneSetup", "SidesLayout", "element_log2", "lane_rules"]

MAX_LANES_LOG2 = 6  # 64 lanes of 16 bytes are the smallest shared memory
MAX_EU_LOG2 = 7


class SidesLayout(data.StructLayout):
    """A LANES command with the numbers that the rules compare."""

    def __init__(self, params):
        self.bits = max(params.addr_width, 32)  # of an address, in global or in shared memory
        super().__init__(
            {
                "command": command_layout(),
                "tensor": StridesLayout(params),  # in global memory
                "source": StridesLayout(params),
                "destination": StridesLayout(params),
                # Address after the last byte, in a lane or in global memory, without the start's bits above ``bits``.
                "source_end": unsigned(self.bits + 1),
                "destination_end": unsigned(self.bits + 1),
            }
        )


def element_log2(element):
    """Log2 of the bytes of an element type; 0 for an unknown type."""
    log2 = 0
    for member in Element:
        log2 |= Mux(element == member, member.bytes.bit_length() - 1, 0)
    return log2


def lane_rules(params, windows, sides):
    """Every rule as (code, field, broken), by code and then by field number.

    Parameters
    ----------
    windows : View of WindowsLayout
    sides : View of SidesLayout
    """
    smem, c, bits = params.smem, command_view(LANES, sides.command), sides.shape().bits
    source_global, destination_global = c.source_layout == LaneLayout.GLOBAL, c.destination_layout == LaneLayout.GLOBAL
    signals = ~destination_global & c.signal
    lane_bytes = smem.size_bytes >> c.lanes_log2
    last_lane = (1 << c.lanes_log2) - 1
    element_mask = (1 << element_log2(c.element)) - 1
    eu_mask = (1 << c.eu_log2) - 1
    barrier = c.barrier[: smem.addr_width]
    both_lanes = ~source_global & ~destination_global
    # Addresses of sides in lanes fit shared memory, or an earlier rule is broken.
    source, source_end, destination, destination_end = (
        place[: smem.addr_width + 1] for place in (c.source, sides.source_end, c.destination, sides.destination_end)
    )
    overlapping = (source < destination_end) & (destination < source_end)

    def misaligned(address, layout):
        padded = (layout == LaneLayout.ALIGNED) | (layout == LaneLayout.ROW_ALIGNED)
        return (address & (element_mask | Mux(padded, eu_mask, 0))).any()

    def beyond(name):
        strides, end = sides[name], sides[f"{name}_end"]
        too_far = above(end, smem.addr_width + 1) | (end[: smem.addr_width + 1] > lane_bytes) | above(c[name], bits)
        return (c[f"{name}_layout"] != LaneLayout.GLOBAL) & (strides.too_large | too_far)

    def no_lane(layout, lane):
        return lane > Mux(layout == LaneLayout.GLOBAL, 0, last_lane)

    def outside(is_global, address, end):
        # Lanes occupy all of shared memory.
        last = Cat((end - 1)[: bits + 1], above(address, bits))
        return Mux(is_global, outside_global(windows, address, last), outside_shared(windows, 0, smem.size_bytes - 1))

    missing = (destination_global & (not params.has("stores"))) | (both_lanes & (not params.has("local_copies")))
    return [
        (Error.UNSUPPORTED, "destination_layout", missing),
        (Error.ELEMENT, "element", c.element > max(Element)),
        (Error.BARRIER_ALIGNMENT, "barrier", signals & c.barrier[:3].any()),
        (Error.BARRIER_RANGE, "barrier", signals & c.barrier[smem.addr_width :].any()),
        (Error.BLOCK_ALIGNMENT, "source", misaligned(c.source, c.source_layout)),
        (Error.BLOCK_ALIGNMENT, "destination", misaligned(c.destination, c.destination_layout)),
        (Error.BLOCK_RANGE, "source", beyond("source")),
        (Error.BLOCK_RANGE, "destination", beyond("destination")),
        (Error.OVERLAP, "destination", both_lanes & overlapping),
        (Error.LANES, "lanes_log2", c.lanes_log2 > MAX_LANES_LOG2),
        (Error.LANES, "eu_log2", (c.eu_log2 > MAX_EU_LOG2) | (c.eu_log2 < element_log2(c.element))),
        (Error.LANES, "destination_layout", source_global & destination_global),
        (Error.LANES, "source_lane", no_lane(c.source_layout, c.source_lane)),
        (Error.LANES, "destination_lane", no_lane(c.destination_layout, c.destination_lane)),
        (Error.WINDOW, "barrier", signals & outside_shared(windows, barrier, barrier)),
        (Error.WINDOW, "source", outside(source_global, c.source, sides.source_end)),
        (Error.WINDOW, "destination", outside(destination_global, c.destination, sides.destination_end)),
    ]


_CALCULATION = 6  # latency of the stride calculator


class LaneSetup(wiring.Component):
    """Checks a LANES command and expands it to jobs, one every other cycle; one command at a time.

    A job moves a channel, or a row if a side is ROW_ALIGNED. All jobs but the last one are quiet. The first job is
    offered 15 cycles after the command was accepted.
    """

    def __init__(self, params):
        self._params = params
        super().__init__(
            {
                "i": In(stream.Signature(command_layout())),
                "windows": In(WindowsLayout(params)),
                "jobs": Out(stream.Signature(BlockJobLayout(params))),
                "finished": Out(stream.Signature(ErrorLayout(params))),  # Refused commands.
                "busy": Out(1),  # A command is being set up.
            }
        )

    def elaborate(self, platform):
        m = Module()
        sides = Signal(SidesLayout(self._params))
        fault = Signal(FaultLayout())
        command = command_view(LANES, sides.command)
        moving, refusing = Signal(), Signal()
        # No rule is broken: the first job follows in the next cycle. Registered, because of its high fan-out.
        start = Signal()
        phase = Signal(range(16))
        ended = self._move(m, moving, start, sides, command)
        m.d.sync += start.eq(0)

        with m.FSM() as fsm:
            with m.State("Idle"):
                m.d.comb += self.i.ready.eq(1)
                m.d.sync += [sides.command.eq(self.i.payload), phase.eq(0)]
                with m.If(self.i.valid):
                    m.next = "Measure"
            with m.State("Measure"):
                m.d.sync += phase.eq(phase + 1)
                # Three tensors pass the calculator, followed by ends, rules, and the first broken rule.
                with m.If(phase == _CALCULATION + 6):
                    with m.If(fault.code == Error.NONE):
                        m.d.sync += start.eq(1)
                        m.next = "Move"
                    with m.Else():
                        m.next = "Refuse"
            with m.State("Move"):
                m.d.comb += moving.eq(1)
                with m.If(ended):
                    m.next = "Idle"
            with m.State("Refuse"):
                m.d.comb += refusing.eq(1)
                with m.If(self.finished.ready):
                    m.next = "Idle"
        m.d.comb += [
            self.busy.eq(~fsm.ongoing("Idle")),
            self.finished.valid.eq(refusing),
            self.finished.payload.code.eq(fault.code),
            self.finished.payload.tag.eq(command.tag),
            self.finished.payload.field.eq(fault.field),
        ]
        self._measure(m, phase, sides, command)
        self._judge(m, sides, command, fault)
        return m

    def _measure(self, m, phase, sides, command):
        """Computes the strides in global memory, at the source, and at the destination, with one calculator."""
        m.submodules.calculator = calculator = StrideCalculator(self._params)
        shape, log2 = calculator.i, Signal(2)
        m.d.comb += [
            log2.eq(element_log2(command.element)),
            *(shape.sizes[d].eq(command[f"shape{d}"]) for d in range(4)),
            shape.element_log2.eq(log2),
            shape.eu_log2.eq(command.eu_log2),
        ]
        for turn, name in enumerate(("source", "destination"), start=1):
            layout, lane = command[f"{name}_layout"], command[f"{name}_lane"]
            with m.If((phase == turn) & (layout != LaneLayout.GLOBAL)):
                m.d.comb += [
                    shape.layout.eq(layout),
                    shape.start_lane.eq(lane),
                    shape.lanes_log2.eq(command.lanes_log2),
                ]
        for turn, side in enumerate((sides.tensor, sides.source, sides.destination)):
            with m.If(phase == turn + _CALCULATION):
                m.d.sync += side.eq(calculator.o)
        bits = sides.shape().bits
        m.d.sync += [
            sides.source_end.eq(command.source[:bits] + sides.source.bytes),
            sides.destination_end.eq(command.destination[:bits] + sides.destination.bytes),
        ]

    def _judge(self, m, sides, command, fault):
        """Finds the first broken rule, two cycles after its numbers are valid."""
        rules = lane_rules(self._params, self.windows, sides)
        broken, chosen = Signal(len(rules)), Signal(len(rules))
        m.d.sync += [broken.eq(Cat(condition for _, _, condition in rules)), fault.eq(0)]
        m.d.comb += chosen.eq(broken & -broken)  # the lowest one
        for index, (code, field, _) in enumerate(rules):
            with m.If(chosen[index]):
                m.d.sync += [fault.code.eq(code), fault.field.eq(COMMAND_FIELD + LANES.index(field))]

    def _move(self, m, moving, start, sides, command):
        """Makes the jobs; returns whether the last one leaves."""
        params, tensor = self._params, sides.tensor
        m.submodules.loop = loop = LoopNest([16] * 3)  # rows, channels, batches
        address = Signal(params.addr_width)  # of this piece in global memory
        by_row = (command.source_layout == LaneLayout.ROW_ALIGNED) | (
            command.destination_layout == LaneLayout.ROW_ALIGNED
        )
        from_global = command.source_layout == LaneLayout.GLOBAL
        to_global = command.destination_layout == LaneLayout.GLOBAL
        within = ~from_global & ~to_global
        size = Mux(by_row, tensor.row, tensor.channel)
        # A job left in the previous cycle. Registered, so that ``jobs.ready`` does not reach the loops and cursors.
        step = Signal()
        m.d.sync += step.eq(self.jobs.valid & self.jobs.ready)
        m.d.comb += [
            loop.start.eq(start),
            loop.step.eq(step),
            loop.lasts[0].eq(Mux(by_row, command.shape1, 0)),
            loop.lasts[1].eq(command.shape2),
            loop.lasts[2].eq(command.shape3),
        ]

        places = []
        for name in ("source", "destination"):
            m.submodules[name] = cursor = LaneCursor(params)
            places.append(cursor.address)
            m.d.comb += [
                cursor.strides.eq(sides[name]),
                cursor.lanes_log2.eq(command.lanes_log2),
                cursor.start_lane.eq(command[f"{name}_lane"]),
                cursor.base.eq(command[name]),
                cursor.start.eq(start),
                cursor.step.eq(step),
                cursor.next_channel.eq(loop.at_last[0]),
                cursor.next_batch.eq(loop.at_last[:2].all()),
            ]
        with m.If(start):
            m.d.sync += address.eq(Mux(to_global, command.destination, command.source))
        with m.Elif(step):
            m.d.sync += address.eq(address + size)

        store = ~from_global
        job = self.jobs.payload
        m.d.comb += [
            self.jobs.valid.eq(moving & ~start & ~step),
            job.store.eq(store),
            job.address.eq(Mux(within, 0, address)),
            job.smem.eq(Mux(store, *places)),
            job.size.eq(size),
            job.loop.eq(within & self._params.has("local_copies")),
            job.target.eq(places[1]),
            job.tag.eq(command.tag),
            job.quiet.eq(~loop.final),
            job.signal.eq(command.signal & ~to_global),
            job.barrier.eq(command.barrier),
            job.bytes.eq(tensor.bytes),
        ]
        return step & loop.final
