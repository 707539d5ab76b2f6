"""What passes between those that write memory and the AXI4 write port: bursts, their words, and what became of them.

A chain of blocks has them on both sides, in the order of the bursts: store path, reducer, write guard, write port.
Several movers will meet in front of the reducer.
"""

from amaranth import unsigned
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from ..lib.join import Port

__all__ = ["WriteBurstLayout", "WriteResponseLayout", "WriteWordLayout", "WritesSignature", "processor_members"]


def processor_members(processors):
    """Members of a burst, by name, that say whose it is; none where there is one processor."""
    return {"processor": range(processors)} if processors > 1 else {}


class WriteBurstLayout(data.StructLayout):
    """A legal AXI burst of writes: it does not cross 4 KiB. Of several processors it has the number of its own."""

    def __init__(self, addr_width, bus_bytes, processors=1):
        super().__init__(
            {
                "word": unsigned(addr_width - (bus_bytes.bit_length() - 1)),  # byte address of its first bus word >> …
                "beats_minus_one": unsigned(8),
                "empty": unsigned(1),  # no burst, and no words: only a response is due, in its turn
                "refused": unsigned(1),  # empty, and the response says error; only guard and reducer set it
                "last": unsigned(1),  # last of a transfer; comes back with the response
                "reduction": unsigned(4),  # golden.spec.Reduction
                "element": unsigned(4),  # golden.spec.Element
                **processor_members(processors),
            }
        )


class WriteWordLayout(data.StructLayout):
    """One bus word of a burst."""

    def __init__(self, bus_bytes):
        super().__init__({"data": unsigned(8 * bus_bytes), "strobe": unsigned(bus_bytes)})


class WriteResponseLayout(data.StructLayout):
    """What became of a burst: one for each, in order."""

    def __init__(self, addr_width):
        super().__init__(
            {
                "error": unsigned(1),  # refused by the bus or the guard
                "last": unsigned(1),  # as the burst said
                "address": unsigned(addr_width),  # byte address of the burst's first word
            }
        )


class WritesSignature(Port):
    """Writes, as their source sees them.

    Parameters
    ----------
    addr_width, bus_bytes, processors : int
        As of ``WriteBurstLayout``.

    Members
    -------
    bursts : Out(stream of WriteBurstLayout)
    words : Out(stream of WriteWordLayout)
        Those of all bursts that are not empty, in order.
    responses : In(stream of WriteResponseLayout)
        One for each burst, in order, in a later cycle.
    """

    def __init__(self, addr_width, bus_bytes, processors=1):
        super().__init__(
            {
                "bursts": Out(stream.Signature(WriteBurstLayout(addr_width, bus_bytes, processors))),
                "words": Out(stream.Signature(WriteWordLayout(bus_bytes))),
                "responses": In(stream.Signature(WriteResponseLayout(addr_width))),
            }
        )
