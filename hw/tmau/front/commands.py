"""The queue of commands."""

from amaranth.hdl import Module
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ...bus.commands import command_layout
from ...lib.stream import Queue, ShallowQueue

__all__ = ["CommandQueue"]

#: Members of a command that its descriptor is looked up by, and that are checked meanwhile.
_LOOKED_AT = ("opcode", "descriptor")
#: Commands up to which the memory has no register of its own behind it.
_SHALLOW = 32


class CommandQueue(wiring.Component):
    """First in, first out. What is looked at in a command comes from a register; the rest, which goes to another one
    and nowhere else, straight from memory; with ``block`` from a block memory, whose register that one is.

    Latency 1 when empty, one transfer in each direction in each cycle. ``i.ready`` and ``o.valid`` are registers.

    Parameters
    ----------
    depth : int
        Commands it holds, 2 to 64, a power of two.
    block : bool
        Up to 32 commands.

    Members
    -------
    i : In(stream of command_layout())
    o : Out(stream of command_layout())
    level : Out(range(depth + 1))
        Commands held.
    moves : Out(1)
        ``o`` shows another command in the next cycle, or the first one.
    ahead : Out(64)
        The member ``descriptor`` of that one; not when a command was taken in the cycle before.
    """

    def __init__(self, depth, *, block=False):
        layout = command_layout()
        looked_at = data.StructLayout({name: layout[name].shape for name in _LOOKED_AT})
        self.looked_at = Queue(looked_at, depth)
        self.rest = ShallowQueue(layout, depth, block=block) if depth <= _SHALLOW else Queue(layout, depth)
        super().__init__(
            {
                "i": In(stream.Signature(layout)),
                "o": Out(stream.Signature(layout)),
                "level": Out(range(depth + 1)),
                "moves": Out(1),
                "ahead": Out(64),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.looked_at, m.submodules.rest = looked_at, rest = self.looked_at, self.rest
        m.d.comb += [
            # Both hold the same commands.
            self.i.ready.eq(looked_at.i.ready),
            self.o.valid.eq(looked_at.o.valid),
            self.o.p.eq(rest.o.p),
            rest.i.p.eq(self.i.p),
            self.level.eq(looked_at.level),
            self.moves.eq(looked_at.moves),
            self.ahead.eq(looked_at.ahead.descriptor),
        ]
        for queue in (looked_at, rest):
            m.d.comb += [queue.i.valid.eq(self.i.valid), queue.o.ready.eq(self.o.ready)]
        for name in _LOOKED_AT:
            m.d.comb += [looked_at.i.p[name].eq(self.i.p[name]), self.o.p[name].eq(looked_at.o.p[name])]
        return m
