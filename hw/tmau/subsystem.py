"""The TMAU with its shared memory and barriers: what one core of an accelerator has."""

from amaranth import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, flipped

from tilewright.spec import BANKS

from ..bus.axi4_lite import Axi4LiteSignature, address_map, map_addr_width, serve_registers
from ..lib.component import join
from ..lib.routing import StreamShare
from ..smem.host import BarrierWindow
from ..smem.layouts import (
    BarrierEventSignature,
    BarrierRequestLayout,
    BarrierResultLayout,
    ReadLayout,
    connect_mover,
    network_members,
    read_data_layout,
)
from ..smem.top import SharedMemory
from .top import REGISTER_ADDR_WIDTH, TmauUnit, connect_processor, processor_members, window_regions

__all__ = ["TmauSubsystem"]


class TmauSubsystem(wiring.Component):
    """Data path, registers and shared memory; connections only.

    Members
    -------
    s_axil : In(Axi4LiteSignature)
        Registers and shared memory, at ``regions``.
    reads : In(stream of ReadLayout)
        Reads of the consumer: eight chunks of shared memory a cycle, from anywhere.
    read_data : Out(stream of read_data_layout())
        The chunks, one answer for each read, in order.
    barriers : In(stream of BarrierRequestLayout)
        Barrier operations of processors.
    barrier_results : Out(stream of BarrierResultLayout)
        What became of them, one answer for each, in order.
    flip : Out(BarrierEventSignature(params.smem))
        A barrier's phase is complete.
    **processor_members(params)
    **network_members(params.smem, params.cores)

    Attributes
    ----------
    regions : dict of str to Region
        What lies where on ``s_axil``: ``tmau``, the registers, ``smem``, shared memory, and ``commands`` and
        ``barriers``, the windows that ``params`` names.
    """

    def __init__(self, params):
        self.params = params
        self.regions = address_map(tmau=REGISTER_ADDR_WIDTH, smem=params.smem.addr_width, **window_regions(params))
        self.smem = SharedMemory(params.smem.replace(chunks_a_cycle=BANKS), word_bytes=params.line_words)
        super().__init__(
            processor_members(params)
            | network_members(params.smem, params.cores)
            | {
                "s_axil": In(Axi4LiteSignature(map_addr_width(self.regions))),
                "reads": In(stream.Signature(ReadLayout(params.smem))),
                "read_data": Out(stream.Signature(read_data_layout())),
                "barriers": In(stream.Signature(BarrierRequestLayout(params.smem))),
                "barrier_results": Out(stream.Signature(BarrierResultLayout())),
                "flip": Out(BarrierEventSignature(params.smem)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.unit = unit = TmauUnit(self.params)
        m.submodules.smem = smem = self.smem

        windows = connect_processor(m, self, unit)
        connect_mover(m, self, unit.smem, smem.mover)
        join(m, smem=smem.flip, flip=flipped(self.flip))
        join(m, reads=flipped(self.reads), smem=smem.reads)
        join(m, smem=smem.read_data, read_data=flipped(self.read_data))
        if self.params.barrier_window:
            m.submodules.barrier_window = window = BarrierWindow(self.params.smem)
            windows["barriers"] = window.accesses
            share = StreamShare(BarrierRequestLayout(self.params.smem), BarrierResultLayout(), 2)
            m.submodules.barrier_share = share
            join(m, window=window.barriers, share=share.requests[0])
            join(m, share=share.results[0], window=window.barrier_results)
            join(m, barriers=flipped(self.barriers), share=share.requests[1])
            join(m, share=share.results[1], barrier_results=flipped(self.barrier_results))
            join(m, share=share.merged, smem=smem.barriers)
            join(m, smem=smem.barrier_results, share=share.answers)
        else:
            join(m, barriers=flipped(self.barriers), smem=smem.barriers)
            join(m, smem=smem.barrier_results, barrier_results=flipped(self.barrier_results))
        serve_registers(m, self.s_axil, self.regions, tmau=unit.accesses, smem=smem.host, **windows)
        return m
