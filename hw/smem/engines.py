"""Engines that compute, at one shared memory."""

from amaranth.lib.wiring import flipped

from ..lib.arbiter import StreamArbiter
from ..lib.join import join
from ..lib.share import StreamShare
from ..lib.slot import Slot
from ..lib.stream import SkidBuffer
from .layouts import (
    BarrierRequestLayout,
    BarrierResultLayout,
    ReadLayout,
    ScatterWriteLayout,
    read_data_layout,
)

__all__ = ["connect_engines"]


def connect_engines(m, top, smem, *, callers=(), **engines):
    """Connects engines, and the barrier ports of ``top``, to a shared memory with stores.

    One engine has reads and scattered writes for itself; of several each gets its turn.

    Parameters
    ----------
    m : Module
    top : Component
        With ``barriers``, ``barrier_results`` and ``params.smem``.
    smem : SharedMemory
    callers : sequence of interface
        Others that do barrier operations, with ``barriers`` and ``barrier_results``.
    **engines : SharedMemorySignature
        Ports of the engines, by name.
    """
    params, ports = top.params.smem, list(engines.values())
    share = StreamShare(BarrierRequestLayout(params), BarrierResultLayout(), len(ports) + len(callers) + 1)
    m.submodules.barrier_share = share
    for number, port in enumerate([*ports, *callers]):
        join(m, port=port.barriers, share=share.requests[number])
        join(m, share=share.results[number], port=port.barrier_results)
    for port in ports:
        m.d.comb += [port.scatter_idle.eq(smem.scatter_idle), port.bank_conflict.eq(smem.conflict_stb)]
    join(m, barriers=flipped(top.barriers), share=share.requests[-1])
    join(m, share=share.results[-1], barrier_results=flipped(top.barrier_results))
    if params.paced:
        # The banks' grant waits for a request, but not for whose turn it is.
        m.submodules.barrier_slot = slot = Slot(BarrierRequestLayout(params))
        join(m, share=share.merged, slot=slot.i)
        join(m, slot=slot.o, smem=smem.barriers)
    else:
        join(m, share=share.merged, smem=smem.barriers)
    join(m, smem=smem.barrier_results, share=share.answers)
    if len(ports) == 1:
        (port,) = ports
        join(m, engine=port.reads, smem=smem.reads)
        join(m, smem=smem.read_data, engine=port.read_data)
        join(m, engine=port.scatter, smem=smem.scatter)
        return
    m.submodules.read_share = reads = StreamShare(ReadLayout(params), read_data_layout(), len(ports))
    m.submodules.scatter_arbiter = scatter = StreamArbiter(ScatterWriteLayout(params), len(ports))
    for number, port in enumerate(ports):
        join(m, engine=port.reads, share=reads.requests[number])
        join(m, share=reads.results[number], engine=port.read_data)
        join(m, engine=port.scatter, arbiter=scatter.i[number])
    m.submodules.reads_buffer = buffer = SkidBuffer(ReadLayout(params))
    join(m, share=reads.merged, buffer=buffer.i)
    join(m, buffer=buffer.o, smem=smem.reads)
    join(m, smem=smem.read_data, share=reads.answers)
    join(m, arbiter=scatter.o, smem=smem.scatter)
