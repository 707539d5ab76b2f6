"""The shared memory, whole, and the engines that share it."""

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
from .layouts import BarrierRequestLayout, BarrierResultLayout, ReadLayout, ScatterWriteLayout, read_data_layout
from .signatures import BarrierEventSignature, MoverSignature

__all__ = ["SharedMemory", "connect_engines"]


class SharedMemory(wiring.Component):
    """Eight banks of 16 bytes with one write side and one read side, and barriers in them.

    For a line that is written in cycle w, together with its ``landed`` bytes or before them: if no operation of a
    processor was accepted in w - 1 and none has been passed, ``landed`` is accepted at once, and from w + 2 on ``flip``
    has pulsed, try_wait answers that the phase is complete, and reads return the line.

    Parameters
    ----------
    params : SmemParams
    stores : bool
        Engines can write too.
    word_bytes : int or None
        Bytes of the words that lines of the mover come as: :class:`LineLayout`.
    """

    def __init__(self, params, stores=False, word_bytes=None):
        self._params = params
        self._stores = stores
        self._word_bytes = word_bytes
        self.banks = Banks(params)
        scatter = {
            # Any eight chunks, one write a cycle without bank conflicts and, with params.writes_a_cycle of 4 or 2, one
            # in two or four. A bank that lines write in every cycle accepts one every second cycle.
            "scatter": In(stream.Signature(ScatterWriteLayout(params))),
            "scatter_idle": Out(1),  # all accepted writes can be read
            "scatter_conflict_stb": Out(1),  # a write takes another cycle
        }
        super().__init__(
            {
                # One line a cycle, readable in the next one; lines wait only for a barrier, the host, or a scattered
                # chunk that the previous line passed. One fetch a cycle, every second cycle while an engine reads too.
                # Landed bytes never wait if they come every third cycle or less often.
                "mover": In(MoverSignature(params, 1, word_bytes)),
                # Any eight chunks, 2 cycles later, one request a cycle without bank conflicts; with
                # params.chunks_a_cycle of 4 two answers each, for lanes 0 to 3 and lanes 4 to 7, in two cycles.
                "reads": In(stream.Signature(ReadLayout(params))),
                "read_data": Out(stream.Signature(read_data_layout(params.chunks_a_cycle))),
                # Operations of processors: 2 cycles, one every second cycle, every third if params.paced.
                "barriers": In(stream.Signature(BarrierRequestLayout(params))),
                "barrier_results": Out(stream.Signature(BarrierResultLayout())),
                "host": In(AccessSignature()),  # 32-bit words: 2 cycles, and the wait for the banks
                "flip": Out(BarrierEventSignature(params)),  # a phase has completed
                "conflict_stb": Out(1),  # a read of an engine takes another cycle at the banks
                "stall_stb": Out(1),  # a line waits
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
                scatter.accepted.eq(write_arbiter.scattered),
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
