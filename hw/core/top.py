"""A core: the TMAU, the processing engine and maybe the convolution engine around one shared memory."""

from amaranth import Cat, Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, flipped

from ..bus.address_map import address_map, map_addr_width
from ..bus.axi4_lite import Axi4LiteSignature, serve_registers
from ..bus.commands import command_layout
from ..conv.signatures import ConvProcessorSignature
from ..conv.top import CONV_REGISTER_ADDR_WIDTH
from ..conv.unit import ConvUnit
from ..lib.arbiter import StreamArbiter
from ..lib.join import bundle, join
from ..pe.pager import PAGER_TAG
from ..pe.signatures import ProcessorSignature
from ..pe.top import PE_REGISTER_ADDR_WIDTH
from ..pe.unit import PeUnit
from ..smem.engines import connect_engines
from ..smem.layouts import BarrierRequestLayout, BarrierResultLayout
from ..smem.signatures import BarrierEventSignature
from ..smem.top import SharedMemory
from ..tmau.top import REGISTER_ADDR_WIDTH
from ..tmau.unit import TmauUnit
from ..tmau.unit import processor_members as tmau_members

__all__ = ["Core", "conv_members", "core_regions"]


def conv_members(params):
    """What a processor sees of the convolution engine, where there is one, as members of a top; CoreParams.

    Members
    -------
    **ConvProcessorSignature().members
    """
    return dict(ConvProcessorSignature().members) if params.conv else {}


def core_regions(params):
    """What lies where on the AXI4-Lite port of a ``Core``; a dict of str to ``Region``."""
    conv = {"conv": CONV_REGISTER_ADDR_WIDTH} if params.conv else {}
    return address_map(tmau=REGISTER_ADDR_WIDTH, pe=PE_REGISTER_ADDR_WIDTH, **conv, smem=params.smem.addr_width)


class Core(wiring.Component):
    """All engines, their registers and shared memory; connections only.

    The TMAU takes commands of processors and, for pages, of the processing engine's pager, in turns. What the pager's
    commands do is in the TMAU's registers like all else, but their completions are not shown: ``done`` is silent
    for tags from ``PAGER_TAG`` on, which processors do not use.

    Members
    -------
    s_axil : In(Axi4LiteSignature)
        Registers of all engines and shared memory, at ``regions``.
    barriers : In(stream of BarrierRequestLayout)
        Barrier operations of processors.
    barrier_results : Out(stream of BarrierResultLayout)
        What became of them, one answer for each, in order.
    flip : Out(BarrierEventSignature(params.smem))
        A barrier's phase is complete.
    **tmau_members(params.tmau)
    **ProcessorSignature(params.pe).members
    **conv_members(params)
        There is one ``irq``, of all engines.

    Attributes
    ----------
    regions : dict of str to Region
        What lies where on ``s_axil``: ``tmau``, ``pe`` and, if there is one, ``conv``, registers, and ``smem``, shared
        memory.
    """

    def __init__(self, params):
        self.params = params
        self.regions = core_regions(params)
        self.smem = SharedMemory(params.smem, stores=True)
        super().__init__(
            tmau_members(params.tmau)
            | dict(ProcessorSignature(params.pe).members)
            | conv_members(params)
            | {
                "s_axil": In(Axi4LiteSignature(map_addr_width(self.regions))),
                "barriers": In(stream.Signature(BarrierRequestLayout(params.smem))),
                "barrier_results": Out(stream.Signature(BarrierResultLayout())),
                "flip": Out(BarrierEventSignature(params.smem)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.tmau = tmau = TmauUnit(self.params.tmau)
        m.submodules.pe = pe = PeUnit(self.params.pe)
        m.submodules.smem = smem = self.smem
        engines = {"pe": pe}
        self._connect_commands(m, tmau, pe)
        if self.params.conv:
            m.submodules.conv = engines["conv"] = conv = ConvUnit(self.params.conv)
            join(m, conv=conv.processor, processor=flipped(bundle(self, ConvProcessorSignature())))
        accesses = {name: engine.accesses for name, engine in engines.items()}
        serve_registers(m, self.s_axil, self.regions, tmau=tmau.accesses, **accesses, smem=smem.host)

        join(m, tmau=tmau.m_axi, m_axi=flipped(self.m_axi))
        join(m, tmau=tmau.smem, smem=smem.mover)
        join(m, smem=smem.flip, flip=flipped(self.flip))
        join(m, pe=pe.processor, processor=flipped(bundle(self, ProcessorSignature(self.params.pe))))
        connect_engines(m, self, smem, **{name: engine.smem for name, engine in engines.items()})
        m.d.comb += self.irq.eq(tmau.irq | Cat(engine.irq for engine in engines.values()).any())
        return m

    def _connect_commands(self, m, tmau, pe):
        m.submodules.commands_arbiter = arbiter = StreamArbiter(command_layout(), 2)
        join(m, commands=flipped(self.commands), arbiter=arbiter.i[0])
        join(m, page_moves=pe.page_moves, arbiter=arbiter.i[1])
        join(m, arbiter=arbiter.o, tmau=tmau.commands)
        m.d.comb += [
            pe.page_moved.valid.eq(tmau.done.valid),
            pe.page_moved.tag.eq(tmau.done.tag),
            pe.page_moved.error.eq(tmau.done.error != 0),
            self.done.valid.eq(tmau.done.valid & (tmau.done.tag < PAGER_TAG)),
            self.done.tag.eq(tmau.done.tag),
            self.done.error.eq(tmau.done.error),
        ]
