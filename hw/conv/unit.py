"""Data path and registers together: what every top around the convolution engine contains."""

from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, flipped

from ..bus.axi4_lite import AccessSignature
from ..bus.status import EngineStateSignature
from ..lib.join import join
from ..smem.signatures import SharedMemorySignature
from .control import ConvControl
from .datapath import ConvDatapath
from .signatures import ConvProcessorSignature

__all__ = ["ConvUnit"]


class ConvUnit(wiring.Component):
    """Data path and registers; connections only.

    Members
    -------
    stopped : In(1) if cores > 1
        The core, of so many in a cluster, is stopped. Jobs are still taken, and are refused.
    processor : Out(ConvProcessorSignature())
    smem : Out(SharedMemorySignature(params.smem))
    accesses : In(AccessSignature)
        Registers, at the offsets of ``golden.spec.conv.registers``.
    irq : Out(1)
        Level.
    state : Out(EngineStateSignature())
    """

    def __init__(self, params, cores=1):
        self.params, self._cores = params, cores
        super().__init__(
            {
                **({"stopped": In(1)} if cores > 1 else {}),
                "processor": Out(ConvProcessorSignature()),
                "smem": Out(SharedMemorySignature(params.smem)),
                "accesses": In(AccessSignature()),
                "irq": Out(1),
                "state": Out(EngineStateSignature()),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.core = core = ConvDatapath(self.params, self._cores)
        m.submodules.control = control = ConvControl(self.params)
        if self._cores > 1:
            m.d.comb += core.stopped.eq(self.stopped)
        join(m, core=core.processor, processor=flipped(self.processor))
        join(m, core=core.smem, smem=flipped(self.smem))
        join(m, accesses=flipped(self.accesses), control=control.accesses)
        join(m, control=control.state, state=flipped(self.state))
        m.d.comb += [
            control.ended.eq(core.processor.job_ended),
            control.end.eq(core.processor.job_end),
            control.events.eq(core.events),
            control.waiting.eq(core.waiting),
            control.idle.eq(core.idle),
            self.irq.eq(control.irq),
        ]
        return m
