"""Data path and registers together: what every top around the TMAU contains."""

from amaranth import Module, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, flipped

from tilewright.golden.spec import LINE_BYTES

from ..bus.axi4 import Axi4Signature
from ..bus.axi4_lite import AccessLayout, AnswerLayout
from ..bus.commands import command_layout
from ..lib.join import join
from ..smem.layouts import LandedLayout, LineLayout
from .control import Control
from .datapath import TmauDatapath

__all__ = ["TmauUnit", "processor_members", "shared_memory_members"]


def processor_members(params):
    """What a processor and the bus see of a TMAU, as members of a component.

    commands : stream of command_layout, in
    m_axi : Axi4Signature, out
        Global memory. Read ID 0 is data, 1 descriptors, 2 what a reduction changes; write ID 0.
    done_valid : 1, out
        Strobe: a command has ended; for a load that landed, its barrier flips in the next cycle at the earliest.
    done_tag : 16, out
    done_error : 8, out
        ``golden.spec.Error``.
    irq : 1, out
        Level.
    """
    return {
        "commands": In(stream.Signature(command_layout())),
        "m_axi": Out(Axi4Signature(params.addr_width, params.bus_width, 2)),
        "done_valid": Out(1),
        "done_tag": Out(16),
        "done_error": Out(8),
        "irq": Out(1),
    }


def shared_memory_members(params):
    """What a TMAU wants of shared memory, as members of a component.

    writes : stream of LineLayout, out
    fetches : stream of unsigned(row_width), out
        Lines to read, by address >> 7.
    line : unsigned(1024), in
        In the cycle after each handshake.
    landed : stream of LandedLayout, out
        Bytes for a barrier, in the cycle of the transfer's last write or later.
    barrier_error, barrier_address : in
        Strobe and address of a refused barrier operation, for the error record.
    bank_conflict : in
        Strobe, counted.
    """
    return {
        "writes": Out(stream.Signature(LineLayout(params.smem))),
        "fetches": Out(stream.Signature(unsigned(params.smem.row_width))),
        "line": In(8 * LINE_BYTES),
        "landed": Out(stream.Signature(LandedLayout(params.smem))),
        "barrier_error": In(1),
        "barrier_address": In(params.smem.addr_width),
        "bank_conflict": In(1),
    }


class TmauUnit(wiring.Component):
    """Data path and registers; connections only.

    Members
    -------
    accesses : In(stream of AccessLayout)
    answers : Out(stream of AnswerLayout)
        Registers, at the offsets of ``golden.spec.tmau.registers``.
    **processor_members(params)
    **shared_memory_members(params)
    """

    def __init__(self, params):
        self.params = params
        super().__init__(
            processor_members(params)
            | shared_memory_members(params)
            | {"accesses": In(stream.Signature(AccessLayout())), "answers": Out(stream.Signature(AnswerLayout()))}
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.core = core = TmauDatapath(self.params)
        m.submodules.control = control = Control(self.params)

        join(m, commands=flipped(self.commands), core=core.commands)
        join(m, core=core.axi, m_axi=flipped(self.m_axi))
        join(m, core=core.writes, writes=flipped(self.writes))
        join(m, core=core.fetches, fetches=flipped(self.fetches))
        join(m, core=core.landed, landed=flipped(self.landed))
        join(m, accesses=flipped(self.accesses), control=control.accesses)
        join(m, control=control.answers, answers=flipped(self.answers))
        m.d.comb += [
            core.line.eq(self.line),
            core.windows.eq(control.windows),
            core.invalidate_descriptors.eq(control.invalidate_descriptors),
            control.done.eq(core.done),
            control.events.eq(core.events),
            control.queue_level.eq(core.queue_level),
            control.idle.eq(core.idle),
            control.barrier_error.eq(self.barrier_error),
            control.barrier_address.eq(self.barrier_address),
            control.bank_conflict.eq(self.bank_conflict),
            self.done_valid.eq(core.done.valid),
            self.done_tag.eq(core.done.record.tag),
            self.done_error.eq(core.done.record.code),
            self.irq.eq(control.irq),
        ]
        return m
