"""A core: one shared memory with whichever engines its parameters ask for, behind AXI4 and AXI4-Lite."""

from amaranth.hdl import Cat, Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from tilewright.spec.conv import JOB
from tilewright.spec.memory import BANKS

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
from ..lib.layouts import command_layout
from ..lib.routing import StreamArbiter, StreamGate
from ..lib.stream import Slot
from ..pe.layouts import INSTRUCTION_BITS, ProcessorSignature
from ..pe.pager import PAGER_TAG
from ..pe.top import PE_REGISTER_ADDR_WIDTH, PeUnit
from ..smem.host import BarrierWindow
from ..smem.layouts import BarrierRequestLayout, BarrierResultLayout, ReadLayout, read_data_layout
from ..smem.signatures import BarrierEventSignature, connect_mover, network_members
from ..smem.top import SharedMemory, connect_engines
from ..tmau.processors import CommandWindow
from ..tmau.top import REGISTER_ADDR_WIDTH, TmauUnit, processor_members, window_regions
from .params import ENGINES
from .program.ports import AccessShare, BusShare
from .program.processor import CommandProcessor

__all__ = ["PROGRAM_REGISTER_ADDR_WIDTH", "Core", "core_regions"]

#: Bits of a byte address in the register space of the command processor: 256 bytes.
PROGRAM_REGISTER_ADDR_WIDTH = 8

_REGISTER_ADDR_WIDTHS = {
    "tmau": REGISTER_ADDR_WIDTH,
    "pe": PE_REGISTER_ADDR_WIDTH,
    "conv": CONV_REGISTER_ADDR_WIDTH,
    "program": PROGRAM_REGISTER_ADDR_WIDTH,
}


def core_regions(params):
    """The regions behind the AXI4-Lite port of a ``Core`` with these CoreParams; a dict of str to ``Region``."""
    engines = {name: _REGISTER_ADDR_WIDTHS[name] for name in params.engines}
    return address_map(**engines, smem=params.smem.addr_width, **(window_regions(params.tmau) if params.tmau else {}))


class Core(wiring.Component):
    """Engines, their registers and shared memory; connections only.

    Without an access unit the host brings data to shared memory over ``s_axil``, and the pager's commands are never
    accepted: pages cannot be moved. Without an engine that computes, a consumer outside reads shared memory through
    ``reads``: any eight chunks a cycle.

    The access unit takes commands from the port, the pager, the command processor and the command window in turns.
    Its registers show the pager's commands as all others, but ``done`` is silent for tags from ``PAGER_TAG`` on, which
    processors do not use. A stopped core of a cluster takes no commands, instructions and jobs at its ports; it takes
    and refuses those of its own command processor and windows.

    Attributes
    ----------
    regions : dict of str to Region
        ``tmau``, ``pe``, ``conv`` and ``program``, the registers of what there is; ``smem``, shared memory; and
        ``commands`` and ``barriers``, the windows that ``params.tmau`` names.
    """

    def __init__(self, params):
        self.params = params
        self.regions = core_regions(params)
        tmau, smem = params.tmau, params.smem
        #: Whether an engine reads and writes shared memory itself.
        self._computes = bool(params.pe or params.conv)
        self.smem = SharedMemory(
            smem if self._computes else smem.replace(chunks_a_cycle=BANKS),
            stores=self._computes,
            word_bytes=tmau.line_words if tmau else None,
        )
        members = {
            # Registers of all engines, and shared memory, at ``regions``.
            "s_axil": In(Axi4LiteSignature(map_addr_width(self.regions))),
            "barriers": In(stream.Signature(BarrierRequestLayout(smem))),  # Barrier operations of processors.
            "barrier_results": Out(stream.Signature(BarrierResultLayout())),  # One for each operation, in order.
            "flip": Out(BarrierEventSignature(smem)),  # A barrier's phase is complete.
            "irq": Out(1),  # Interrupt, a level: an enabled status bit of an engine is set.
        }
        if tmau:
            members |= processor_members(tmau) | network_members(smem, tmau.cores)
        if params.pe:
            members |= ProcessorSignature(params.pe).members
        if params.conv:
            members |= ConvProcessorSignature().members
        if params.program:
            members |= {
                "word_done": Out(1),  # Strobe: a word of the program is carried out.
                "word_kind": Out(4),  # With word_done: its kind, spec.core.Kind.
                "word_index": Out(32),  # With word_done: its index, counted from 0; of a job that of its last half.
                "running": Out(1),  # A program runs.
            }
        if not self._computes:
            members |= {
                "reads": In(stream.Signature(ReadLayout(smem))),  # Reads of a consumer: eight chunks, from anywhere.
                "read_data": Out(stream.Signature(read_data_layout())),  # The chunks, one answer a read, in order.
            }
        super().__init__(members)

    def elaborate(self, platform):
        m = Module()
        params, smem = self.params, self.smem
        m.submodules.smem = smem
        engines = {}
        if params.tmau:
            engines["tmau"] = TmauUnit(params.tmau)
        if params.pe:
            engines["pe"] = PeUnit(params.pe, params.cores)
        if params.conv:
            engines["conv"] = ConvUnit(params.conv, params.cores)
        if params.program:
            engines["program"] = CommandProcessor(params, self.regions)
        windows = {}
        if "commands" in self.regions:
            windows["commands"] = CommandWindow()
        if "barriers" in self.regions:
            windows["barriers"] = BarrierWindow(params.smem)
        for name, engine in engines.items():
            m.submodules[name] = engine
        for name, window in windows.items():
            m.submodules[f"{name.removesuffix('s')}_window"] = window

        program = engines.get("program")
        self._connect_work(m, engines, windows.get("commands"))
        self._connect_registers(m, program, engines | windows)
        callers = [caller for caller in (program, windows.get("barriers")) if caller]
        computing = {name: engines[name].smem for name in ("pe", "conv") if name in engines}
        connect_engines(m, self, smem, callers=callers, **computing)
        connect(m, smem=smem.flip, flip=flipped(self.flip))
        if not computing:
            connect(m, reads=flipped(self.reads), smem=smem.reads)
            connect(m, smem=smem.read_data, read_data=flipped(self.read_data))
        if params.tmau:
            self._connect_memory(m, engines["tmau"], program)
        if params.cores > 1:
            others = [engine for name, engine in engines.items() if name != "tmau"]
            m.d.comb += [engine.stopped.eq(engines["tmau"].stopped) for engine in others]
            if params.pe:
                m.d.comb += engines["pe"].core_number.eq(self.lines.number)
        if program:
            self._observe(m, engines)
        m.d.comb += self.irq.eq(Cat(engine.irq for engine in engines.values()).any())
        return m

    def _connect_work(self, m, engines, window):
        """Commands, instructions and jobs, from the ports and from inside, and what is seen of their ends."""
        tmau, pe, conv, program = map(engines.get, ENGINES)
        if tmau:
            sources = [pe and pe.page_moves, program and program.commands, window and window.commands]
            self._connect_commands(m, tmau, [source for source in sources if source is not None])
            self._connect_done(m, tmau, pe, window)
        if pe:
            own = [program.instructions] if program else []
            self._merge(m, "instructions", self.instructions, INSTRUCTION_BITS, own, pe.processor.instructions, tmau)
            connect(m, segments=flipped(self.segments), pe=pe.processor.segments)
            connect(m, pages=flipped(self.pages), pe=pe.processor.pages)
            for name in ("fault_valid", "fault", "halted"):
                m.d.comb += getattr(self, name).eq(getattr(pe.processor, name))
        if conv:
            own = [program.jobs] if program else []
            self._merge(m, "jobs", self.jobs, JOB.bits, own, conv.processor.jobs, tmau)
            m.d.comb += [self.job_ended.eq(conv.processor.job_ended), self.job_end.eq(conv.processor.job_end)]

    def _connect_commands(self, m, tmau, own):
        several = self.params.tmau.processors > 1
        ports, sinks = (port if several else [port] for port in (self.commands, tmau.commands))
        for number, (port, sink) in enumerate(zip(ports, sinks, strict=True)):
            name = f"commands{number}" if several else "commands"
            self._merge(m, name, port, command_layout(), own, sink, tmau)

    def _merge(self, m, name, port, shape, own, sink, tmau):
        """Work of one kind from a port, unless the core is stopped, and from sources inside, in turns."""
        source = flipped(port)
        if self.params.cores > 1:
            m.submodules[f"{name}_gate"] = gate = StreamGate(shape)
            m.d.comb += gate.closed.eq(tmau.stopped)
            connect(m, source=source, gate=gate.i)
            source = gate.o
        if own:
            m.submodules[f"{name}_arbiter"] = arbiter = StreamArbiter(shape, 1 + len(own))
            for origin, i in zip((source, *own), arbiter.i, strict=True):
                connect(m, source=origin, arbiter=i)
            source = arbiter.o
        if own and self.params.pe and self.params.pe.paced:
            # What an engine finds in an item in the cycle in which it comes does not wait for the arbiter too.
            m.submodules[f"{name}_slot"] = slot = Slot(shape)
            connect(m, source=source, slot=slot.i)
            source = slot.o
        connect(m, source=source, sink=sink)

    def _connect_done(self, m, tmau, pe, window):
        if self.params.tmau.processors > 1:
            for port, ended in zip(self.done, tmau.done, strict=True):
                connect(m, tmau=ended, done=flipped(port))
            return
        shown = tmau.done.tag < PAGER_TAG if pe else 1
        m.d.comb += [
            self.done.valid.eq(tmau.done.valid & shown),
            self.done.tag.eq(tmau.done.tag),
            self.done.error.eq(tmau.done.error),
        ]
        if pe:
            m.d.comb += [
                pe.page_moved.valid.eq(tmau.done.valid),
                pe.page_moved.tag.eq(tmau.done.tag),
                pe.page_moved.error.eq(tmau.done.error != 0),
            ]
        if window:
            m.d.comb += [getattr(window.done, name).eq(getattr(self.done, name)) for name in ("valid", "tag", "error")]

    def _connect_registers(self, m, program, targets):
        targets = {name: target.accesses for name, target in targets.items()} | {"smem": self.smem.host}
        if not program:
            serve_registers(m, self.s_axil, self.regions, **targets)
            return
        m.submodules.bridge = bridge = Axi4LiteBridge(self.s_axil.signature.addr_width)
        m.submodules.access_share = share = AccessShare()
        connect(m, axi=flipped(self.s_axil), bridge=bridge.axi)
        connect(m, bridge=bridge.accesses, share=share.sources[0])
        connect(m, program=program.register_writes, share=share.sources[1])
        serve_accesses(m, share.accesses, self.regions, **targets)

    def _connect_memory(self, m, tmau, program):
        """Global memory, and the line port of shared memory or the network of a cluster."""
        connect_mover(m, self, tmau.smem, self.smem.mover)
        if self.params.tmau.prefetches:
            connect(m, tmau=tmau.prefetches, prefetches=flipped(self.prefetches))
        if not program:
            connect(m, tmau=tmau.m_axi, m_axi=flipped(self.m_axi))
            return
        m.submodules.bus_share = share = BusShare(self.params.tmau.addr_width, self.params.tmau.bus_width)
        connect(m, tmau=tmau.m_axi, share=share.unit)
        connect(m, program=program.axi, share=share.reader)
        connect(m, share=share.axi, m_axi=flipped(self.m_axi))

    def _observe(self, m, engines):
        """What the command processor sees of the engines, and what is seen of it."""
        program = engines["program"]
        states = [engine.state for name, engine in engines.items() if name != "program"]
        m.d.comb += [
            program.idle.eq(Cat(state.idle for state in states) | ~0 << len(states)),
            program.failed.eq(Cat(state.failed for state in states)),
            *(tag.eq(state.tag) for tag, state in zip(program.tags, states, strict=False)),
            *(state.clear_error.eq(program.clear_errors) for state in states),
            program.put_busy.eq(engines["pe"].put_busy),
            *(
                getattr(self, name).eq(getattr(program, name))
                for name in ("word_done", "word_kind", "word_index", "running")
            ),
        ]
        connect(m, flip=self.smem.flip, program=program.flip)
