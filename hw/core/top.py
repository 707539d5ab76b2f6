"""A core: the TMAU, the processing engine and maybe the convolution engine around one shared memory."""

from amaranth import Cat, Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, flipped

from tilewright.spec.conv import JOB

from ..bus.axi4_lite import (
    Axi4LiteBridge,
    Axi4LiteSignature,
    address_map,
    map_addr_width,
    serve_accesses,
    serve_registers,
)
from ..conv.layouts import ConvProcessorSignature
from ..conv.top import CONV_REGISTER_ADDR_WIDTH, ConvUnit
from ..lib.component import join
from ..lib.layouts import command_layout
from ..lib.routing import StreamArbiter, StreamGate
from ..lib.stream import Slot
from ..pe.layouts import INSTRUCTION_BITS, ProcessorSignature
from ..pe.pager import PAGER_TAG
from ..pe.top import PE_REGISTER_ADDR_WIDTH, PeUnit
from ..smem.host import BarrierWindow
from ..smem.layouts import (
    BarrierEventSignature,
    BarrierRequestLayout,
    BarrierResultLayout,
    connect_mover,
    network_members,
)
from ..smem.top import SharedMemory, connect_engines
from ..tmau.processors import CommandWindow
from ..tmau.top import REGISTER_ADDR_WIDTH, TmauUnit, window_regions
from ..tmau.top import processor_members as tmau_members
from .program.ports import AccessShare, BusShare
from .program.processor import CommandProcessor

__all__ = ["PROGRAM_REGISTER_ADDR_WIDTH", "Core", "conv_members", "core_regions", "program_members"]

#: Bits of a byte address in the register space of the command processor: 256 bytes.
PROGRAM_REGISTER_ADDR_WIDTH = 8


def conv_members(params):
    """What a processor sees of the convolution engine, where there is one, as members of a top; CoreParams.

    Members
    -------
    **ConvProcessorSignature().members
    """
    return dict(ConvProcessorSignature().members) if params.conv else {}


def program_members(params):
    """What is seen of the command processor, where there is one, as members of a top; CoreParams.

    Members
    -------
    word_done : Out(1)
        Strobe: a word of the program has been carried out: its engine has been handed it, its wait is over.
    word_kind : Out(4)
        With that: what it was, spec.core.Kind.
    word_index : Out(32)
        With that: which one, counted from 0 on; of a job its last half.
    running : Out(1)
        A program runs.
    """
    shown = {"word_done": Out(1), "word_kind": Out(4), "word_index": Out(32), "running": Out(1)}
    return shown if params.program else {}


def core_regions(params):
    """What lies where on the AXI4-Lite port of a ``Core``; a dict of str to ``Region``."""
    conv = {"conv": CONV_REGISTER_ADDR_WIDTH} if params.conv else {}
    program = {"program": PROGRAM_REGISTER_ADDR_WIDTH} if params.program else {}
    engines = {"tmau": REGISTER_ADDR_WIDTH, "pe": PE_REGISTER_ADDR_WIDTH} | conv
    return address_map(**engines, **program, smem=params.smem.addr_width, **window_regions(params.tmau))


class Core(wiring.Component):
    """All engines, their registers and shared memory; connections only.

    The TMAU takes commands of processors and, for pages, of the processing engine's pager, in turns. What the pager's
    commands do is in the TMAU's registers like all else, but their completions are not shown: ``done`` is silent
    for tags from ``PAGER_TAG`` on, which processors do not use. With a command processor inside, each engine takes what
    that hands out and what comes at the ports here in turns. A core of a cluster that is stopped takes no commands,
    instructions and jobs at its ports; those of its own are taken and refused.

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
    **program_members(params)
    **network_members(params.smem, params.tmau.cores)

    Attributes
    ----------
    regions : dict of str to Region
        What lies where on ``s_axil``: ``tmau``, ``pe`` and, if there is one, ``conv`` and ``program``, registers,
        ``smem``, shared memory, and ``commands`` and ``barriers``, the windows that ``params.tmau`` names.
    """

    def __init__(self, params):
        self.params = params
        self.regions = core_regions(params)
        self.smem = SharedMemory(params.smem, stores=True, word_bytes=params.tmau.line_words)
        super().__init__(
            tmau_members(params.tmau)
            | dict(ProcessorSignature(params.pe).members)
            | conv_members(params)
            | program_members(params)
            | network_members(params.smem, params.tmau.cores)
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
        m.submodules.pe = pe = PeUnit(self.params.pe, self.params.tmau.cores)
        m.submodules.smem = smem = self.smem
        engines = {"tmau": tmau, "pe": pe}
        if self.params.conv:
            m.submodules.conv = engines["conv"] = ConvUnit(self.params.conv, self.params.tmau.cores)
        program = None
        if self.params.program:
            m.submodules.program = program = CommandProcessor(self.params, self.regions)
        windows = {}
        if self.params.tmau.command_window:
            m.submodules.command_window = windows["commands"] = CommandWindow()
        if self.params.tmau.barrier_window:
            m.submodules.barrier_window = windows["barriers"] = BarrierWindow(self.params.smem)
        self._connect_handed(m, engines, program, windows.get("commands"))
        self._connect_registers(m, engines, program, windows)
        self._show_done(m, tmau, pe, windows.get("commands"))

        connect_mover(m, self, tmau.smem, smem.mover)
        if self.params.tmau.cores > 1:
            stopped = [engine.stopped for engine in (*engines.values(), program) if engine and engine is not tmau]
            m.d.comb += [pe.core_number.eq(self.lines.number), *(port.eq(tmau.stopped) for port in stopped)]
        join(m, smem=smem.flip, flip=flipped(self.flip))
        if self.params.tmau.prefetches:
            join(m, tmau=tmau.prefetches, prefetches=flipped(self.prefetches))
        ports = {name: engine.smem for name, engine in engines.items() if name != "tmau"}
        callers = [caller for caller in (program, windows.get("barriers")) if caller]
        connect_engines(m, self, smem, callers=callers, **ports)
        if program:
            self._observe(m, engines, program)
            m.submodules.bus_share = share = BusShare(self.params.tmau.addr_width, self.params.tmau.bus_width)
            join(m, tmau=tmau.m_axi, share=share.unit)
            join(m, program=program.axi, share=share.reader)
            join(m, share=share.axi, m_axi=flipped(self.m_axi))
        else:
            join(m, tmau=tmau.m_axi, m_axi=flipped(self.m_axi))
        interrupts = [*engines.values(), program] if program else engines.values()
        m.d.comb += self.irq.eq(Cat(engine.irq for engine in interrupts).any())
        return m

    def _connect_handed(self, m, engines, program, window):
        """What each engine is handed: from ports and window here, from the pager, from the command processor."""
        tmau, pe = engines["tmau"], engines["pe"]
        own = [program] if program else []
        commands = [pe.page_moves, *(source.commands for source in (*own, window) if source)]
        self._hand(m, "commands", command_layout(), commands, tmau.commands, tmau)
        instructions = [source.instructions for source in own]
        self._hand(m, "instructions", INSTRUCTION_BITS, instructions, pe.processor.instructions, tmau)
        join(m, segments=flipped(self.segments), pe=pe.processor.segments)
        join(m, pages=flipped(self.pages), pe=pe.processor.pages)
        for name in ("fault_valid", "fault", "halted"):
            m.d.comb += getattr(self, name).eq(getattr(pe.processor, name))
        if self.params.conv:
            conv = engines["conv"].processor
            self._hand(m, "jobs", JOB.bits, [source.jobs for source in own], conv.jobs, tmau)
            m.d.comb += [self.job_ended.eq(conv.job_ended), self.job_end.eq(conv.job_end)]

    def _hand(self, m, name, shape, own, sink, tmau):
        """Work of one kind: what comes at the port, unless the core is stopped, and what is its own, in turns."""
        port = flipped(getattr(self, name))
        if self.params.tmau.cores > 1:
            m.submodules[f"{name}_gate"] = gate = StreamGate(shape)
            m.d.comb += gate.closed.eq(tmau.stopped)
            join(m, port=port, gate=gate.i)
            port = gate.o
        if not own:
            join(m, port=port, sink=sink)
            return
        m.submodules[f"{name}_arbiter"] = arbiter = StreamArbiter(shape, 1 + len(own))
        for source, i in zip((port, *own), arbiter.i, strict=True):
            join(m, source=source, arbiter=i)
        if self.params.pe.paced:
            # What an engine finds of it in the cycle in which it comes does not wait for the choice too.
            m.submodules[f"{name}_slot"] = slot = Slot(shape)
            join(m, arbiter=arbiter.o, slot=slot.i)
            join(m, slot=slot.o, sink=sink)
        else:
            join(m, arbiter=arbiter.o, sink=sink)

    def _connect_registers(self, m, engines, program, windows):
        targets = {name: target.accesses for name, target in (engines | windows).items()} | {"smem": self.smem.host}
        if not program:
            serve_registers(m, self.s_axil, self.regions, **targets)
            return
        m.submodules.bridge = bridge = Axi4LiteBridge(self.s_axil.signature.addr_width)
        m.submodules.access_share = share = AccessShare()
        join(m, axi=flipped(self.s_axil), bridge=bridge.axi)
        join(m, bridge=bridge.accesses, share=share.sources[0])
        join(m, program=program.register_writes, share=share.sources[1])
        serve_accesses(m, share.accesses, self.regions, program=program.accesses, **targets)

    def _show_done(self, m, tmau, pe, window):
        m.d.comb += [
            pe.page_moved.valid.eq(tmau.done.valid),
            pe.page_moved.tag.eq(tmau.done.tag),
            pe.page_moved.error.eq(tmau.done.error != 0),
            self.done.valid.eq(tmau.done.valid & (tmau.done.tag < PAGER_TAG)),
            self.done.tag.eq(tmau.done.tag),
            self.done.error.eq(tmau.done.error),
        ]
        if window:
            m.d.comb += [getattr(window.done, name).eq(getattr(self.done, name)) for name in ("valid", "tag", "error")]

    def _observe(self, m, engines, program):
        """What the command processor knows of the engines, and what is seen of it."""
        states = [engine.state for engine in engines.values()]
        m.d.comb += [
            program.idle.eq(Cat(state.idle for state in states) | ~0 << len(states)),
            program.failed.eq(Cat(state.failed for state in states)),
            *(tag.eq(state.tag) for tag, state in zip(program.tags, states, strict=False)),
            *(state.clear_error.eq(program.clear_errors) for state in states),
            program.put_busy.eq(engines["pe"].put_busy),
            *(getattr(self, name).eq(getattr(program, name)) for name in program_members(self.params)),
        ]
        join(m, flip=self.smem.flip, program=program.flip)
