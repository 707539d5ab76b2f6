"""Data path, registers and pager together: what every top around the processing engine contains."""

from amaranth import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, flipped

from ..bus.axi4_lite import AccessLayout, AnswerLayout
from ..bus.commands import command_layout
from ..lib.arbiter import StreamArbiter
from ..lib.join import join
from .control import Control
from .datapath import PeDatapath, shared_memory_members
from .layouts import INSTRUCTION_BITS, FaultLayout, PageWriteLayout, SegmentWriteLayout
from .pager import MoveDoneLayout, Pager

__all__ = ["PeUnit", "processor_members"]


def processor_members(params):
    """What a processor sees of a processing engine, as members of a component.

    instructions : stream of unsigned(128), in
        In program order.
    segments, pages : streams of SegmentWriteLayout and PageWriteLayout, in
        Not while an instruction uses them.
    fault_valid, fault : 1, FaultLayout, out
        Strobe: an instruction has reported; code 0 if it had no error. That is known long before the instruction has
        been performed.
    halted : 1, out
        Strobe: a halt is performed, and so is all before it.
    irq : 1, out
        Level.
    """
    return {
        "instructions": In(stream.Signature(INSTRUCTION_BITS)),
        "segments": In(stream.Signature(SegmentWriteLayout(params))),
        "pages": In(stream.Signature(PageWriteLayout(params))),
        "fault_valid": Out(1),
        "fault": Out(FaultLayout(params)),
        "halted": Out(1),
        "irq": Out(1),
    }


class PeUnit(wiring.Component):
    """Data path, registers and pager; connections only.

    What a processor puts into registers joins what comes in streams, item by item.

    Members
    -------
    accesses, answers : streams of AccessLayout in and AnswerLayout out
        Registers, at the offsets of ``golden.spec.pe.registers``.
    page_moves : stream of command_layout(), out
        Commands that move pages, for a TMAU; of tags from ``PAGER_TAG`` on.
    page_moved : MoveDoneLayout, in
        What it has completed.

    and those of :func:`processor_members` and ``core.shared_memory_members``.
    """

    def __init__(self, params):
        self.params = params
        super().__init__(
            processor_members(params)
            | shared_memory_members(params)
            | {
                "accesses": In(stream.Signature(AccessLayout())),
                "answers": Out(stream.Signature(AnswerLayout())),
                "page_moves": Out(stream.Signature(command_layout())),
                "page_moved": In(MoveDoneLayout()),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.core = core = PeDatapath(self.params)
        m.submodules.control = control = Control(self.params)
        m.submodules.pager = pager = Pager(self.params)
        params = self.params
        self._merge(m, "instructions", INSTRUCTION_BITS, core.instructions, self.instructions, control.instructions)
        self._merge(m, "segments", SegmentWriteLayout(params), core.segments, self.segments, control.segments)
        self._merge(m, "pages", PageWriteLayout(params), core.pages, self.pages, control.pages, pager.writes)

        for name in ("reads", "scatter", "barriers"):
            join(m, core=getattr(core, name), port=flipped(getattr(self, name)))
        for name in ("read_data", "barrier_results"):
            join(m, port=flipped(getattr(self, name)), core=getattr(core, name))
        join(m, core=core.issued, control=control.issued)
        join(m, core=core.collected, control=control.collected)
        join(m, accesses=flipped(self.accesses), control=control.accesses)
        join(m, control=control.answers, answers=flipped(self.answers))
        join(m, control=control.pager_requests, pager=pager.requests)
        join(m, pager=pager.commands, page_moves=flipped(self.page_moves))
        m.d.comb += [
            core.scatter_idle.eq(self.scatter_idle),
            core.bank_conflict.eq(self.bank_conflict),
            pager.done.eq(self.page_moved),
            control.events.eq(core.events),
            control.halted.eq(core.halted),
            control.idle.eq(core.idle),
            self.fault_valid.eq(control.reported),
            self.fault.eq(control.report),
            self.halted.eq(core.halted),
            self.irq.eq(control.irq),
        ]
        return m

    def _merge(self, m, name, shape, sink, port, *others):
        m.submodules[f"{name}_arbiter"] = arbiter = StreamArbiter(shape, 1 + len(others))
        join(m, port=flipped(port), arbiter=arbiter.i[0])
        for index, other in enumerate(others, start=1):
            join(m, other=other, arbiter=arbiter.i[index])
        join(m, arbiter=arbiter.o, sink=sink)
