"""The windows of the processor whose commands are being set up."""

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.golden.spec.tmau.processors import own_tag_bits

from ...bus.commands import command_layout
from ..layouts import WindowsLayout, all_windows

__all__ = ["WindowChoice"]


class WindowChoice(wiring.Component):
    """Passes commands, and shows the windows of the processor that they are of; a change of processor waits.

    Combinational for a command of the same processor as the one before. One of another processor passes in the second
    cycle in which nothing is set up, at the earliest. So one register serves all blocks that have rules.

    Specification: docs/cluster.md, "Several processors".

    Parameters
    ----------
    params : TmauParams
        With ``confines_apart``.

    Members
    -------
    i : In(stream of command_layout())
    o : Out(stream of command_layout())
    idle : In(1)
        Of the commands that have passed, none depends on ``chosen`` any more; low from the cycle after one passed.
    windows : In(all_windows(params))
        Of each processor.
    chosen : Out(WindowsLayout)
        Of the command at the output, and of those that have passed. Registered.
    """

    def __init__(self, params):
        self.own_bits = own_tag_bits(params.processors)
        self.whose = Signal(16 - self.own_bits)
        super().__init__(
            {
                "i": In(stream.Signature(command_layout())),
                "o": Out(stream.Signature(command_layout())),
                "idle": In(1),
                "windows": In(all_windows(params)),
                "chosen": Out(WindowsLayout(params)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        number, passes = self.i.p.tag[self.own_bits :], Signal()
        m.d.comb += [
            passes.eq(self.whose == number),
            self.o.p.eq(self.i.p),
            self.o.valid.eq(self.i.valid & passes),
            self.i.ready.eq(self.o.ready & passes),
        ]
        with m.If(self.idle):
            m.d.sync += [self.whose.eq(number), self.chosen.eq(self.windows[number])]
        return m
