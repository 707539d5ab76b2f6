"""Data path, registers and pager together: what every top around the processing engine contains."""

from amaranth import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, flipped

from ..bus.axi4_lite import AccessSignature
from ..bus.commands import command_layout
from ..bus.status import EngineStateSignature
from ..lib.arbiter import StreamArbiter
from ..lib.join import join
from ..smem.signatures import SharedMemorySignature
from .control import Control
from .datapath import PeDatapath
from .layouts import INSTRUCTION_BITS, PageWriteLayout, SegmentWriteLayout
from .pager import MoveDoneLayout, Pager
from .signatures import ProcessorSignature

__all__ = ["PeUnit"]


class PeUnit(wiring.Component):
    """Data path, registers and pager; connections only.

    What a processor puts into registers joins what comes in streams, item by item.

    Members
    -------
    core_number : In(4) if cores > 1
        Number of this core, of so many in a cluster.
    stopped : In(1) if cores > 1
        It is stopped. What comes is still taken, and instructions are refused: so what was put does not wait.
    processor : Out(ProcessorSignature)
    smem : Out(SharedMemorySignature)
    accesses : In(AccessSignature)
        Registers, at the offsets of ``golden.spec.pe.registers``.
    irq : Out(1)
        Level.
    state : Out(EngineStateSignature())
    put_busy : Out(1)
        What was put has not been taken.
    page_moves : Out(stream of command_layout())
        Commands that move pages, for a TMAU; of tags from ``PAGER_TAG`` on.
    page_moved : In(MoveDoneLayout)
        What the TMAU has completed.
    """

    def __init__(self, params, cores=1):
        self.params, self._cores = params, cores
        super().__init__(
            {
                **({"core_number": In(4), "stopped": In(1)} if cores > 1 else {}),
                "processor": Out(ProcessorSignature(params)),
                "smem": Out(SharedMemorySignature(params.smem)),
                "accesses": In(AccessSignature()),
                "irq": Out(1),
                "state": Out(EngineStateSignature()),
                "put_busy": Out(1),
                "page_moves": Out(stream.Signature(command_layout())),
                "page_moved": In(MoveDoneLayout()),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.core = core = PeDatapath(self.params, self._cores)
        m.submodules.control = control = Control(self.params)
        m.submodules.pager = pager = Pager(self.params)
        if self._cores > 1:
            m.d.comb += [core.core_number.eq(self.core_number), core.stopped.eq(self.stopped)]
        self._merge(m, "instructions", INSTRUCTION_BITS, core, control.instructions)
        self._merge(m, "segments", SegmentWriteLayout(self.params), core, control.segments)
        self._merge(m, "pages", PageWriteLayout(self.params), core, control.pages, pager.writes)

        join(m, core=core.smem, smem=flipped(self.smem))
        join(m, core=core.issued, control=control.issued)
        join(m, core=core.collected, control=control.collected)
        join(m, accesses=flipped(self.accesses), control=control.accesses)
        join(m, control=control.state, state=flipped(self.state))
        join(m, control=control.pager_requests, pager=pager.requests)
        join(m, pager=pager.commands, page_moves=flipped(self.page_moves))
        m.d.comb += [
            pager.done.eq(self.page_moved),
            control.events.eq(core.events),
            control.halted.eq(core.halted),
            control.idle.eq(core.idle),
            self.processor.fault_valid.eq(control.reported),
            self.processor.fault.eq(control.report),
            self.processor.halted.eq(core.halted),
            self.irq.eq(control.irq),
            self.put_busy.eq(control.put_busy),
        ]
        return m

    def _merge(self, m, name, shape, core, *others):
        """What comes at the port ``name``, and from others, in turns."""
        port, sink = getattr(self.processor, name), getattr(core, name)
        arbiter = StreamArbiter(shape, 1 + len(others))
        m.submodules[f"{name}_arbiter"] = arbiter
        for source, i in zip((flipped(port), *others), arbiter.i, strict=True):
            join(m, source=source, arbiter=i)
        join(m, arbiter=arbiter.o, core=sink)
