"""Data path and registers together: what every top around the TMAU contains."""

from amaranth.hdl import Module, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from ..bus.axi4 import Axi4Signature
from ..bus.axi4_lite import AccessSignature, Axi4LiteSignature, address_map, map_addr_width, serve_registers
from ..bus.registers import EngineStateSignature
from ..lib.layouts import command_layout
from ..lib.routing import StreamArbiter, StreamGate
from ..smem.host import BARRIER_WINDOW_ADDR_WIDTH
from ..smem.layouts import MoverSignature, connect_whole_lines
from .control import Control
from .datapath import TmauDatapath
from .processors import COMMAND_WINDOW_ADDR_WIDTH, CommandWindow, ProcessorShare
from .signatures import DoneSignature
from .walk.requests import LINE_LOG2

__all__ = ["REGISTER_ADDR_WIDTH", "Tmau", "TmauUnit", "connect_processor", "processor_members", "window_regions"]


def processor_members(params):
    """What a processor and the bus see of a TMAU, as members of a component.

    commands : In(stream of command_layout())
        Commands as words of 512 bits; the opcode says which format one has. Of several processors an array, one each.
    m_axi : Out(Axi4Signature)
        Global memory. Read ID 0 is data, 1 descriptors, 2 what a reduction changes; write ID 0.
    done : Out(DoneSignature)
        A command has ended. Of several processors an array, one each, of its own commands.
    irq : Out(1)
        Interrupt, a level: a bit is set in both ``irq_status`` and ``irq_enable``.
    prefetches : Out(stream of unsigned(params.addr_width - 7)) if params.prefetches
        Lines of 128 bytes that a cache outside is to bring. Registered.
    """
    lines = unsigned(params.addr_width - LINE_LOG2)
    commands, done = In(stream.Signature(command_layout())), Out(DoneSignature())
    if params.processors > 1:
        commands, done = commands.array(params.processors), done.array(params.processors)
    return ({"prefetches": Out(stream.Signature(lines))} if params.prefetches else {}) | {
        "commands": commands,
        "m_axi": Out(Axi4Signature(params.addr_width, params.bus_width, 2)),
        "done": done,
        "irq": Out(1),
    }


def connect_processor(m, top, unit):
    """Shows the members of :func:`processor_members` of ``unit`` at ``top``; if it is stopped, no command is taken.

    With a command window, its commands and those of the port are taken in turns; a stopped unit takes and refuses those
    of the window.

    Returns
    -------
    dict of str to interface
        Targets of accesses beside the registers of ``unit``, by region: ``commands``, if there is a window.
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
    """Data path and registers, behind what several processors share; connections only."""

    def __init__(self, params):
        self.params = params
        super().__init__(
            processor_members(params)
            | {
                "smem": Out(MoverSignature(params.smem, params.cores, params.line_words)),
                # Registers, at the offsets of ``spec.tmau_registers``.
                "accesses": In(AccessSignature()),
                "state": Out(EngineStateSignature()),
                # The core of a cluster is stopped. Commands are still taken, and are refused. Registered.
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
    """Bits of a byte address in each window of TmauParams, by its region: the last ones of an address map."""
    commands = {"commands": COMMAND_WINDOW_ADDR_WIDTH} if params.command_window else {}
    barriers = {"barriers": BARRIER_WINDOW_ADDR_WIDTH} if params.barrier_window else {}
    return commands | barriers


class Tmau(wiring.Component):
    """Data path and registers behind AXI4-Lite; connections only.

    A shared memory outside takes a line a cycle from ``smem.writes`` and hands out a line a cycle on ``smem.fetch``,
    takes the bytes of each transfer that names a barrier from ``smem.landed``, and reports what its barriers refused
    and how often its banks conflicted.

    Attributes
    ----------
    regions : dict of str to Region
        What lies where on ``s_axil``: ``tmau``, the registers, and ``commands``, the window if ``params`` names it.
    """

    def __init__(self, params):
        self.params = params
        if params.barrier_window:
            raise ValueError("barrier_window must be False: the barriers of a Tmau lie in the shared memory outside")
        self.regions = address_map(tmau=REGISTER_ADDR_WIDTH, **window_regions(params))
        super().__init__(
            processor_members(params)
            | {
                # The shared memory outside.
                "smem": Out(MoverSignature(params.smem, params.cores)),
                # Registers, at the offsets of ``spec.tmau_registers``.
                "s_axil": In(Axi4LiteSignature(map_addr_width(self.regions))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.unit = unit = TmauUnit(self.params)
        windows = connect_processor(m, self, unit)
        connect_whole_lines(m, unit.smem, self.smem)
        serve_registers(m, self.s_axil, self.regions, tmau=unit.accesses, **windows)
        return m
