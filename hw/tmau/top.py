"""The TMAU: data path and registers, for designs that bring their own shared memory, and the unit inside all tops."""

from amaranth.hdl import Module, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from ..bus.axi4 import Axi4Signature
from ..bus.axi4_lite import AccessSignature, Axi4LiteSignature, address_map, map_addr_width, serve_registers
from ..bus.registers import EngineStateSignature
from ..lib.layouts import command_layout
from ..lib.routing import StreamArbiter, StreamGate
from ..smem.host import BARRIER_WINDOW_ADDR_WIDTH
from ..smem.signatures import MoverSignature, connect_whole_lines
from .control import Control
from .datapath import TmauDatapath
from .processors import COMMAND_WINDOW_ADDR_WIDTH, CommandWindow, ProcessorShare
from .signatures import DoneSignature
from .walk.requests import LINE_LOG2

__all__ = ["REGISTER_ADDR_WIDTH", "Tmau", "TmauUnit", "connect_processor", "processor_members", "window_regions"]


def processor_members(params):
    """Members of a TMAU that face its processors and the bus; arrays if there are several processors."""
    commands, done = In(stream.Signature(command_layout())), Out(DoneSignature())
    if params.processors > 1:
        commands, done = commands.array(params.processors), done.array(params.processors)
    members = {
        "commands": commands,  # Commands as words of 512 bits, whose format depends on the opcode.
        # Global memory. Read ID 0 is data, 1 descriptors, 2 old words of reductions; write ID 0.
        "m_axi": Out(Axi4Signature(params.addr_width, params.bus_width, 2)),
        "done": done,  # A command of the processor has ended.
        "irq": Out(1),  # Interrupt, level: a bit is set in both ``irq_status`` and ``irq_enable``.
    }
    if params.prefetches:
        # Lines of 128 bytes that an external cache should fetch. Registered.
        members["prefetches"] = Out(stream.Signature(unsigned(params.addr_width - LINE_LOG2)))
    return members


def connect_processor(m, top, unit):
    """Connects the members of :func:`processor_members` of ``unit`` to ``top``; a stopped unit accepts no commands.

    Commands of a command window alternate with commands of the port. A stopped unit does accept and refuse them.

    Returns
    -------
    dict of str to interface
        Further targets of register accesses, by region: ``commands``, if there is a window.
    """
    window = None
    if unit.params.command_window:
        m.submodules.command_window = window = CommandWindow()
    connect(m, unit.m_axi, flipped(top.m_axi))
    several = unit.params.processors > 1
    for number in range(unit.params.processors):
        commands, done = (port[number] if several else port for port in (top.commands, top.done))
        own, ended = (port[number] if several else port for port in (unit.commands, unit.done))
        source = flipped(commands)
        if unit.params.cores > 1:
            m.submodules[f"gate{number}"] = gate = StreamGate(command_layout())
            m.d.comb += gate.closed.eq(unit.stopped)
            connect(m, source, gate.i)
            source = gate.o
        if window:
            m.submodules.command_arbiter = arbiter = StreamArbiter(command_layout(), 2)
            connect(m, source, arbiter.i[0])
            connect(m, window.commands, arbiter.i[1])
            source = arbiter.o
        connect(m, source, own)
        connect(m, ended, flipped(done))
    m.d.comb += top.irq.eq(unit.irq)
    if unit.params.prefetches:
        connect(m, unit.prefetches, flipped(top.prefetches))
    if not window:
        return {}
    m.d.comb += [getattr(window.done, name).eq(getattr(top.done, name)) for name in ("valid", "tag", "error")]
    return {"commands": window.accesses}


class TmauUnit(wiring.Component):
    """Data path, registers, and the share of several processors; connections only."""

    def __init__(self, params):
        self.params = params
        super().__init__(
            processor_members(params)
            | {
                "smem": Out(MoverSignature(params.smem, params.cores, params.line_words)),
                "accesses": In(AccessSignature()),  # Registers, at the offsets of ``spec.tmau_registers``.
                "state": Out(EngineStateSignature()),
                # The core is stopped. Commands are still accepted, and refused. Registered.
                **({"stopped": Out(1)} if params.cores > 1 else {}),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.core = core = TmauDatapath(self.params)
        m.submodules.control = control = Control(self.params)

        ended = self.done
        if self.params.processors > 1:
            m.submodules.share = share = ProcessorShare(self.params.processors)
            for number in range(self.params.processors):
                connect(m, flipped(self.commands[number]), share.commands[number])
                connect(m, share.done[number], flipped(self.done[number]))
            connect(m, share.merged, core.commands)
            ended = share.ended
        else:
            connect(m, flipped(self.commands), core.commands)
        connect(m, core.axi, flipped(self.m_axi))
        connect(m, core.smem, flipped(self.smem))
        connect(m, core.control, control.datapath)
        connect(m, flipped(self.accesses), control.accesses)
        connect(m, control.state, flipped(self.state))
        if self.params.prefetches:
            connect(m, core.prefetches, flipped(self.prefetches))
        m.d.comb += [
            ended.valid.eq(core.control.done.valid),
            ended.tag.eq(core.control.done.record.tag),
            ended.error.eq(core.control.done.record.code),
            self.irq.eq(control.irq),
        ]
        if self.params.cores > 1:
            m.d.comb += self.stopped.eq(core.control.delivery.stop)
        return m


#: Bits of a byte address in the register space: 4 KiB.
REGISTER_ADDR_WIDTH = 12


def window_regions(params):
    """Bits of a byte address in each window of TmauParams, by region. They are the last regions of an address map."""
    commands = {"commands": COMMAND_WINDOW_ADDR_WIDTH} if params.command_window else {}
    barriers = {"barriers": BARRIER_WINDOW_ADDR_WIDTH} if params.barrier_window else {}
    return commands | barriers


class Tmau(wiring.Component):
    """Data path and registers behind AXI4-Lite; connections only.

    An external shared memory accepts a line a cycle from ``smem.writes``, returns a line a cycle on ``smem.fetch``,
    counts the bytes of each transfer with a barrier from ``smem.landed``, and reports refused barrier operations and
    bank conflicts.

    Attributes
    ----------
    regions : dict of str to Region
        Address map of ``s_axil``: ``tmau``, the registers, and ``commands``, the command window if there is one.
    """

    def __init__(self, params):
        self.params = params
        if params.barrier_window:
            raise ValueError("barrier_window must be False: the barriers of a Tmau are in the external shared memory")
        self.regions = address_map(tmau=REGISTER_ADDR_WIDTH, **window_regions(params))
        super().__init__(
            processor_members(params)
            | {
                "smem": Out(MoverSignature(params.smem, params.cores)),  # The external shared memory.
                "s_axil": In(Axi4LiteSignature(map_addr_width(self.regions))),  # Registers, at ``regions``.
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.unit = unit = TmauUnit(self.params)
        windows = connect_processor(m, self, unit)
        connect_whole_lines(m, unit.smem, self.smem)
        serve_registers(m, self.s_axil, self.regions, tmau=unit.accesses, **windows)
        return m
