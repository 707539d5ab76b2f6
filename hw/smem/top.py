"""The shared memory: banks, their readers and writers, and the barriers that lie in them."""

from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from ..bus.axi4_lite import AccessSignature
from ..lib.routing import StreamArbiter, StreamShare
from ..lib.stream import SkidBuffer, Slot
from .banks import Banks, ReadArbiter, WriteArbiter
from .barrier import BarrierUnit
from .chunk_ports import ConsumerPort, ScatterPort
from .host import HostPort
from .layouts import (
    BarrierEventSignature,
    BarrierRequestLayout,
    BarrierResultLayout,
    MoverSignature,
    ReadLayout,
    ScatterWriteLayout,
    read_data_layout,
)

__all__ = ["SharedMemory", "connect_engines"]


class SharedMemory(wiring.Component):
    """Eight banks of 16 bytes with one write side and one read side, and barriers in them.

    For a line that is written with its ``landed`` bytes in the same cycle w, or before them, this holds: if no
    operation of a processor was accepted in w - 1 and none has been passed over, ``landed`` is accepted at once, and
    from w + 2 on ``flip`` has pulsed, try_wait answers that the phase is complete, and reads see the line.

    Parameters
    ----------
    params : SmemParams
    stores : bool
        The consumer can write too.
    word_bytes : int or None
        The mover hands on its lines as words: :class:`LineLayout`.

    Members
    -------
    mover : In(MoverSignature(params, 1, word_bytes))
        A written line is readable in the next cycle; ``writes`` takes one a cycle, and waits only while a barrier or
        the host must have the bank, or for a scattered write that waits in one of its banks since the line before.
        ``fetch`` takes one a cycle, every second one while the consumer reads too. ``landed`` never waits if it comes
        every third cycle or less often.
    reads : In(stream of ReadLayout)
    read_data : Out(stream of read_data_layout(params.chunks_a_cycle))
        The consumer: any eight chunks; 2 cycles, one request a cycle without bank conflicts. With
        ``params.chunks_a_cycle`` of 4 a request has two answers, of lanes 0 to 3 and of lanes 4 to 7, in two cycles.
    scatter : In(stream of ScatterWriteLayout) if stores
        The consumer's writes: any eight chunks, one write a cycle without bank conflicts. A bank that
        lines write in every cycle takes one every second cycle, others are not held up. With
        ``params.writes_a_cycle`` of 4 or 2 a write takes up to two or four cycles.
    scatter_idle : Out(1) if stores
        Reads see all scattered writes that have been accepted.
    scatter_conflict_stb : Out(1) if stores
        High for each cycle that a scattered write takes beyond its first.
    barriers : In(stream of BarrierRequestLayout)
    barrier_results : Out(stream of BarrierResultLayout)
        Operations of processors; 2 cycles, one every second cycle, or with ``params.paced`` every third.
    host : In(AccessSignature)
        32-bit words; 2 cycles, and what they wait for the banks. A request is accepted after the first.
    flip : Out(BarrierEventSignature)
        A phase has completed.
    conflict_stb : Out(1)
        High for each cycle that a consumer's request takes at the banks beyond its first.
    stall_stb : Out(1)
        High for each cycle that a line waits.

    Attributes
    ----------
    banks : Banks
        For backdoor access in simulations.
    """

    def __init__(self, params, stores=False, word_bytes=None):
        self._params = params
        self._stores = stores
        self._word_bytes = word_bytes
        self.banks = Banks(params)
        scatter = {
            "scatter": In(stream.Signature(ScatterWriteLayout(params))),
            "scatter_idle": Out(1),
            "scatter_conflict_stb": Out(1),
        }
        super().__init__(
            {
                "mover": In(MoverSignature(params, 1, word_bytes)),
                "reads": In(stream.Signature(ReadLayout(params))),
                "read_data": Out(stream.Signature(read_data_layout(params.chunks_a_cycle))),
                "barriers": In(stream.Signature(BarrierRequestLayout(params))),
                "barrier_results": Out(stream.Signature(BarrierResultLayout())),
                "host": In(AccessSignature()),
                "flip": Out(BarrierEventSignature(params)),
                "conflict_stb": Out(1),
                "stall_stb": Out(1),
                **(scatter if stores else {}),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.banks = banks = self.banks
        m.submodules.barrier = barrier = BarrierUnit(self._params)
        m.submodules.consumer = consumer = ConsumerPort(self._params)
        m.submodules.host = host = HostPort(self._params)
        m.submodules.read_arbiter = read_arbiter = ReadArbiter(self._params)
        m.submodules.write_arbiter = write_arbiter = WriteArbiter(self._params, self._stores, self._word_bytes)

        mover = self.mover
        connect(m, landed=flipped(mover.landed), barrier=barrier.landed)
        connect(m, barrier=barrier.refused, refused=flipped(mover.refused))
        connect(m, barrier=barrier.flip, flip=flipped(self.flip))
        connect(m, barriers=flipped(self.barriers), barrier=barrier.requests)
        connect(m, barrier=barrier.results, barrier_results=flipped(self.barrier_results))
        connect(m, reads=flipped(self.reads), consumer=consumer.reads)
        connect(m, consumer=consumer.read_data, read_data=flipped(self.read_data))
        connect(m, accesses=flipped(self.host), host=host.accesses)

        connect(m, barrier=barrier.fetches, read_arbiter=read_arbiter.barrier)
        connect(m, host=host.fetches, read_arbiter=read_arbiter.host)
        connect(m, rows=flipped(mover.fetch.rows), read_arbiter=read_arbiter.lines)
        connect(m, consumer=consumer.fetches, read_arbiter=read_arbiter.consumer)
        connect(m, writes=flipped(mover.writes), write_arbiter=write_arbiter.lines)
        connect(m, barrier=barrier.write_back, write_arbiter=write_arbiter.write_back)
        connect(m, host=host.writes, write_arbiter=write_arbiter.host)

        if self._stores:
            m.submodules.scatter = scatter = ScatterPort(self._params)
            connect(m, scatter_writes=flipped(self.scatter), scatter=scatter.i)
            m.d.comb += [
                write_arbiter.scatter.eq(scatter.o),
                scatter.taken.eq(write_arbiter.scattered),
                scatter.emptied.eq(write_arbiter.emptied),
                self.scatter_idle.eq(scatter.idle),
                self.scatter_conflict_stb.eq(scatter.conflict_stb),
            ]

        m.d.comb += [
            banks.read.eq(read_arbiter.banks),
            banks.write.eq(write_arbiter.banks),
            consumer.other_bank.eq(read_arbiter.single_bank),
            mover.fetch.line.eq(banks.read_data),
            consumer.fetched.eq(banks.read_data),
            barrier.fetched.eq(consumer.other_chunk),
            host.fetched.eq(consumer.other_chunk),
            mover.bank_conflict.eq(consumer.conflict_stb),
            self.conflict_stb.eq(consumer.conflict_stb),
            self.stall_stb.eq(write_arbiter.stall_stb),
        ]
        return m


def connect_engines(m, top, smem, *, callers=(), **engines):
    """Connects engines, and the barrier ports of ``top``, to a shared memory, with stores if there are engines.

    One engine has reads and scattered writes for itself; several take turns. Without engines reads are not connected.

    Parameters
    ----------
    m : Module
    top : Component
        With ``barriers``, ``barrier_results`` and ``params.smem``.
    smem : SharedMemory
    callers : sequence of interface
        Other blocks that do barrier operations, with ``barriers`` and ``barrier_results``.
    **engines : SharedMemorySignature
        Ports of the engines, by name.
    """
    params, ports = top.params.smem, list(engines.values())
    if not ports and not callers:
        connect(m, barriers=flipped(top.barriers), smem=smem.barriers)
        connect(m, smem=smem.barrier_results, barrier_results=flipped(top.barrier_results))
        return
    share = StreamShare(BarrierRequestLayout(params), BarrierResultLayout(), len(ports) + len(callers) + 1)
    m.submodules.barrier_share = share
    for number, port in enumerate([*ports, *callers]):
        connect(m, port=port.barriers, share=share.requests[number])
        connect(m, share=share.results[number], port=port.barrier_results)
    for port in ports:
        m.d.comb += [port.scatter_idle.eq(smem.scatter_idle), port.bank_conflict.eq(smem.conflict_stb)]
    connect(m, barriers=flipped(top.barriers), share=share.requests[-1])
    connect(m, share=share.results[-1], barrier_results=flipped(top.barrier_results))
    if ports and params.paced:
        # The banks' grant waits for a request, but not for the choice among requesters.
        m.submodules.barrier_slot = slot = Slot(BarrierRequestLayout(params))
        connect(m, share=share.merged, slot=slot.i)
        connect(m, slot=slot.o, smem=smem.barriers)
    else:
        connect(m, share=share.merged, smem=smem.barriers)
    connect(m, smem=smem.barrier_results, share=share.answers)
    if not ports:
        return
    if len(ports) == 1:
        (port,) = ports
        connect(m, engine=port.reads, smem=smem.reads)
        connect(m, smem=smem.read_data, engine=port.read_data)
        connect(m, engine=port.scatter, smem=smem.scatter)
        return
    m.submodules.read_share = reads = StreamShare(ReadLayout(params), read_data_layout(), len(ports))
    m.submodules.scatter_arbiter = scatter = StreamArbiter(ScatterWriteLayout(params), len(ports))
    for number, port in enumerate(ports):
        connect(m, engine=port.reads, share=reads.requests[number])
        connect(m, share=reads.results[number], engine=port.read_data)
        connect(m, engine=port.scatter, arbiter=scatter.i[number])
    m.submodules.reads_buffer = buffer = SkidBuffer(ReadLayout(params))
    connect(m, share=reads.merged, buffer=buffer.i)
    connect(m, buffer=buffer.o, smem=smem.reads)
    connect(m, smem=smem.read_data, share=reads.answers)
    connect(m, arbiter=scatter.o, smem=smem.scatter)
