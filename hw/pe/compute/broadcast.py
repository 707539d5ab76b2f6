"""Broadcaster: makes steps of the multiplication out of the columns that come from memory."""

from amaranth import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from ...lib.choice import chosen
from ...lib.stream import DeepQueue
from ..layouts import ColumnsLayout, MultiplyLayout
from ..params import LANES
from ..sharing import SPLIT_COLUMNS
from .layouts import StepLayout
from .parts import PartCutter, unit_lanes

__all__ = ["ITEMS", "Broadcaster"]

#: Items of columns that wait at most.
ITEMS = 16


class Broadcaster(wiring.Component):
    """Broadcasts every column that is on exactly once; steps without a column that is on are left out.

    Parts of one step that follow each other, as where a step's columns come in several items, are put together: a step
    is handed on when the next part is for another one, or when it is the mm's last. If all columns behind it are off,
    the last step of an mm may be one with ``on`` 0.

    Latency: six cycles from an mm's last item to its step. Throughput: one part a cycle, and a step for each, without
    a pause between items or between instructions.

    Members
    -------
    multiplies : In(stream of MultiplyLayout)
    columns : In(stream of ColumnsLayout)
        ``ITEMS`` wait in a block memory.
    steps : Out(stream of StepLayout)
        ``units`` of members that are not on are of no meaning.
    begins : Out(1)
        Strobe: ``steps`` has another payload in the next cycle.
    register : Out(params.reg_width)
        Its field ``register``, in the same cycle as ``begins``.
    busy : Out(1)
        There is an mm whose last step has not been taken.
    """

    def __init__(self, params):
        self._params = params
        self.queue = DeepQueue(ColumnsLayout(params), ITEMS)
        self.cutter = PartCutter(params)
        self.full = Signal()  # a step, or what has come of it
        super().__init__(
            {
                "multiplies": In(stream.Signature(MultiplyLayout(params))),
                "columns": In(stream.Signature(ColumnsLayout(params))),
                "steps": Out(stream.Signature(StepLayout(params))),
                "begins": Out(1),
                "register": Out(params.reg_width),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.queue = queue = self.queue
        m.submodules.cutter = cutter = self.cutter
        connect(m, broadcaster=flipped(self.columns), queue=queue.i)
        connect(m, queue=queue.o, cutter=cutter.columns)
        connect(m, broadcaster=flipped(self.multiplies), cutter=cutter.multiplies)
        m.d.comb += self.busy.eq(self.multiplies.valid | cutter.busy | self.full)

        parts, steps = cutter.parts, self.steps
        part, step = parts.p, steps.p
        # A part that merges finds its step still here: only the last one of an mm leaves before it.
        m.d.comb += [
            steps.valid.eq(self.full & (step.last | (parts.valid & ~part.merges))),
            parts.ready.eq(~self.full | part.merges | steps.ready),
            self.begins.eq(parts.valid & parts.ready & ~part.merges),
            self.register.eq(part.register),
        ]
        with m.If(parts.valid & parts.ready):
            m.d.sync += self.full.eq(1)
            with m.If(~self.begins):
                m.d.sync += [step.on.eq(step.on | part.on), step.last.eq(part.last)]
            with m.Else():
                m.d.sync += [step[name].eq(part[name]) for name in step.shape().members if name != "units"]
            self._put_units(m)
        with m.Elif(steps.valid & steps.ready):
            m.d.sync += self.full.eq(0)
        return m

    def _put_units(self, m):
        """Units of members that are on go to their place; the others stay."""
        part, step = self.cutter.parts.p, self.steps.p
        for unit in range(LANES):
            value = Signal(self._params.unit_bits, name=f"unit{unit}")
            sources = {offset: part.units[lane] for offset, lane in unit_lanes(unit).items()}
            m.d.comb += value.eq(chosen(part.offset, sources))
            for second, place in enumerate((unit, LANES + unit)):
                on = part.on[SPLIT_COLUMNS * second :]
                here = Cat((part.kb == kb - 1) & on[unit // kb] for kb in range(1, 5) if unit // kb < len(on)).any()
                with m.If(here & (part.second == second)):
                    m.d.sync += step.units[place].eq(value)
