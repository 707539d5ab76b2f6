"""The shared memory: banks, their readers and writers, and the barriers that lie in them."""

from amaranth.hdl import Module, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from tilewright.golden.spec import LINE_BYTES

from ..bus.axi4_lite import AccessLayout, AnswerLayout
from .arbiter import ReadArbiter, WriteArbiter
from .banks import Banks
from .barrier import BarrierUnit
from .consumer import ConsumerPort
from .host import HostPort
from .layouts import (
    BarrierRequestLayout,
    BarrierResultLayout,
    LandedLayout,
    LineLayout,
    ReadLayout,
    ScatterWriteLayout,
    read_data_layout,
)
from .scatter import ScatterPort

__all__ = ["SharedMemory"]


class SharedMemory(wiring.Component):
    """Eight banks of 16 bytes with one write side and one read side, and barriers in them.

    Whoever writes a line and hands over its ``landed`` bytes in the same cycle w, or later, can rely on this: if no
    operation of a processor was accepted in w - 1 and none has been passed over, ``landed`` is accepted at once, and
    from w + 2 on ``flip_valid`` has pulsed, try_wait answers that the phase is complete, and reads see the line.

    Parameters
    ----------
    params : SmemParams
    stores : bool
        The consumer can write too.

    Members
    -------
    writes : In(stream of LineLayout)
        One line a cycle; readable in the next cycle. Waits only while a barrier or the host must have the bank, and
        by turns for a scattered write.
    fetches : In(stream of unsigned(params.row_width))
        Lines to read; one a cycle, every second one while the consumer reads too.
    line : Out(8 * LINE_BYTES)
        The line, in the cycle after the handshake.
    landed : In(stream of LandedLayout)
        Bytes for the transaction count of a barrier. Never waits if it comes every third cycle or less often.
    reads : In(stream of ReadLayout)
    read_data : Out(stream of read_data_layout())
        The consumer: any eight chunks; 2 cycles, one request a cycle without bank conflicts.
    scatter : In(stream of ScatterWriteLayout) if stores
        The consumer's writes: any eight chunks, one write a cycle without bank conflicts, every
        second one while lines come too.
    scatter_idle : Out(1) if stores
        Reads see all scattered writes that have been accepted.
    scatter_conflict_stb : Out(1) if stores
        High for each cycle that a scattered write takes beyond its first.
    barriers : In(stream of BarrierRequestLayout)
    barrier_results : Out(stream of BarrierResultLayout)
        Operations of processors; 2 cycles, one every second cycle.
    host_requests : In(stream of AccessLayout)
    host_responses : Out(stream of AnswerLayout)
        32-bit words; reads 2 cycles, writes 1, and what they wait for the banks.
    flip_valid : Out(1)
    flip_address : Out(params.addr_width)
        High for one cycle when a phase has completed, with the barrier's byte address.
    error_valid : Out(1)
    error_address : Out(params.addr_width)
        High for one cycle when a barrier operation was refused, with the address it named.
    conflict_stb : Out(1)
        High for each cycle that a consumer's request takes at the banks beyond its first.
    stall_stb : Out(1)
        High for each cycle that a line waits.

    Attributes
    ----------
    banks : Banks
        For backdoor access in simulations.
    """

    def __init__(self, params, stores=False):
        self._params = params
        self._stores = stores
        self.banks = Banks(params)
        scatter = {
            "scatter": In(stream.Signature(ScatterWriteLayout(params))),
            "scatter_idle": Out(1),
            "scatter_conflict_stb": Out(1),
        }
        super().__init__(
            {
                "writes": In(stream.Signature(LineLayout(params))),
                "fetches": In(stream.Signature(unsigned(params.row_width))),
                "line": Out(8 * LINE_BYTES),
                "landed": In(stream.Signature(LandedLayout(params))),
                "reads": In(stream.Signature(ReadLayout(params))),
                "read_data": Out(stream.Signature(read_data_layout())),
                "barriers": In(stream.Signature(BarrierRequestLayout(params))),
                "barrier_results": Out(stream.Signature(BarrierResultLayout())),
                "host_requests": In(stream.Signature(AccessLayout())),
                "host_responses": Out(stream.Signature(AnswerLayout())),
                "flip_valid": Out(1),
                "flip_address": Out(params.addr_width),
                "error_valid": Out(1),
                "error_address": Out(params.addr_width),
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
        m.submodules.write_arbiter = write_arbiter = WriteArbiter(self._params, self._stores)

        connect(m, landed=flipped(self.landed), barrier=barrier.landed)
        connect(m, barriers=flipped(self.barriers), barrier=barrier.requests)
        connect(m, barrier=barrier.results, barrier_results=flipped(self.barrier_results))
        connect(m, reads=flipped(self.reads), consumer=consumer.reads)
        connect(m, consumer=consumer.read_data, read_data=flipped(self.read_data))
        connect(m, host_requests=flipped(self.host_requests), host=host.requests)
        connect(m, host=host.responses, host_responses=flipped(self.host_responses))

        connect(m, barrier=barrier.fetches, read_arbiter=read_arbiter.barrier)
        connect(m, host=host.fetches, read_arbiter=read_arbiter.host)
        connect(m, fetches=flipped(self.fetches), read_arbiter=read_arbiter.lines)
        connect(m, consumer=consumer.fetches, read_arbiter=read_arbiter.consumer)
        connect(m, writes=flipped(self.writes), write_arbiter=write_arbiter.lines)
        connect(m, barrier=barrier.write_back, write_arbiter=write_arbiter.write_back)
        connect(m, host=host.writes, write_arbiter=write_arbiter.host)

        if self._stores:
            m.submodules.scatter = scatter = ScatterPort(self._params)
            connect(m, scatter_writes=flipped(self.scatter), scatter=scatter.i)
            connect(m, scatter=scatter.o, write_arbiter=write_arbiter.scatter)
            m.d.comb += [
                self.scatter_idle.eq(scatter.idle),
                self.scatter_conflict_stb.eq(scatter.conflict_stb),
            ]

        m.d.comb += [
            banks.read.eq(read_arbiter.banks),
            banks.write.eq(write_arbiter.banks),
            read_arbiter.banks_data.eq(banks.read_data),
            self.line.eq(banks.read_data),
            consumer.fetched.eq(banks.read_data),
            barrier.fetched.eq(read_arbiter.chunk),
            host.fetched.eq(read_arbiter.chunk),
            self.flip_valid.eq(barrier.flip_valid),
            self.flip_address.eq(barrier.flip_address),
            self.error_valid.eq(barrier.error_valid),
            self.error_address.eq(barrier.error_address),
            self.conflict_stb.eq(consumer.conflict_stb),
            self.stall_stb.eq(write_arbiter.stall_stb),
        ]
        return m
