"""From the descriptor cache to the three kinds of setup."""

from amaranth import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.golden.spec import Error, Opcode

from ...bus.commands import command_layout
from ..descriptor.layouts import LookupLayout

__all__ = ["Router"]

_BLOCKS = (
    Opcode.COPY_BLOCK,
    Opcode.PREFETCH_BLOCK,
    Opcode.COMMIT,
    Opcode.WAIT,
    Opcode.WAIT_ALL,
    Opcode.REPLACE,
)


class Router(wiring.Component):
    """Hands every command to the room that knows it, and keeps the order: one room works at a time.

    Combinational. Commands for the room that works follow each other one a cycle; a command for another room waits
    until that one is no longer busy.

    Members
    -------
    i : In(stream of LookupLayout)
    tensors : Out(stream of LookupLayout)
        Commands with a descriptor, invalidations, and everything that is already known to be wrong.
    blocks, lanes : Out(stream of command_layout())
        Commands on blocks, descriptor fields and groups; LANES.
    busy : In(3)
        Rooms of ``tensors``, ``blocks`` and ``lanes`` with commands in them.
    """

    def __init__(self, params):
        super().__init__(
            {
                "i": In(stream.Signature(LookupLayout(params))),
                "tensors": Out(stream.Signature(LookupLayout(params))),
                "blocks": Out(stream.Signature(command_layout())),
                "lanes": Out(stream.Signature(command_layout())),
                "busy": In(3),
            }
        )

    def elaborate(self, platform):
        m = Module()
        room = Signal(range(3))
        with m.If(self.i.p.fault.code == Error.NONE):
            with m.Switch(self.i.p.command.opcode):
                with m.Case(*_BLOCKS):
                    m.d.comb += room.eq(1)
                with m.Case(Opcode.LANES):
                    m.d.comb += room.eq(2)
        m.d.comb += [
            self.tensors.p.eq(self.i.p),
            self.blocks.p.eq(self.i.p.command),
            self.lanes.p.eq(self.i.p.command),
        ]
        for number, port in enumerate((self.tensors, self.blocks, self.lanes)):
            here = (room == number) & ~(self.busy & ~(1 << number)).any()
            m.d.comb += port.valid.eq(self.i.valid & here)
            with m.If(here):
                m.d.comb += self.i.ready.eq(port.ready)
        return m
