"""A queue of which a part lies in a block memory."""

from amaranth.hdl import Cat, Module, Shape, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from .stream import ShallowQueue

__all__ = ["PartedQueue"]


class PartedQueue(wiring.Component):
    """A :class:`ShallowQueue` of structures, some members of which only go to registers of the sink with one enable:
    tools make a block memory of those registers and what they are read from.

    Latency 1, one transfer in each direction in each cycle.

    Parameters
    ----------
    shape : shape-like
        Of the payload.
    depth : int
        Items it holds, 2 to 32, a power of two.
    block : iterable of str, optional
        Those members; ``a.b`` is one of a member that is a structure itself. Otherwise it is all of the payload.

    Members
    -------
    i : In(stream of shape)
    o : Out(stream of shape)
    """

    def __init__(self, shape, depth, block=None):
        self.queue = ShallowQueue(shape, depth)
        self._places = [slice(0, Shape.cast(shape).width)] if block is None else [_place(shape, path) for path in block]
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape))})

    def elaborate(self, platform):
        m = Module()
        m.submodules.queue = queue = self.queue
        width = sum(place.stop - place.start for place in self._places)
        # Yosys makes no logic for a read of what is being written, which is no item yet.
        attributes = {"ram_style": "block", "no_rw_check": 1}
        m.submodules.memory = memory = Memory(shape=unsigned(width), depth=queue.depth, init=[], attrs=attributes)
        write, read = memory.write_port(), memory.read_port(domain="comb")
        wiring.connect(m, i=wiring.flipped(self.i), queue=queue.i)
        given, taken = self.i.payload.as_value(), self.o.payload.as_value()
        m.d.comb += [
            write.addr.eq(queue.tail),
            write.data.eq(Cat(given[place] for place in self._places)),
            write.en.eq(queue.i.ready),
            read.addr.eq(queue.head),
            self.o.valid.eq(queue.o.valid),
            queue.o.ready.eq(self.o.ready),
            self.o.payload.eq(queue.o.payload),
            # What lies here is not looked at in the other memory, which therefore does not have it.
            Cat(taken[place] for place in self._places).eq(read.data),
        ]
        return m


def _place(shape, path):
    """The bits of a member."""
    first = 0
    for name in path.split("."):
        field = shape[name]
        first, shape = first + field.offset, field.shape
    return slice(first, first + field.width)
