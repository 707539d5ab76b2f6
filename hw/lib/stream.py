"""Stream stages: registers and queues between two blocks. Every stage keeps the order and loses nothing."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

__all__ = ["DeepQueue", "Queue", "ReadyBuffer", "ShallowQueue", "SkidBuffer", "Slot", "wide_queue"]

#: Depth up to which a memory is distributed and read combinationally; deeper ones are block memories.
_SHALLOW = 32


class _Stage(wiring.Component):
    """The ports that all stages have: a stream ``i``, and a stream ``o`` of the same shape."""

    def __init__(self, shape, **members):
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape)), **members})


class SkidBuffer(_Stage):
    """Two registers: no output depends combinationally on an input.

    Latency 1, one transfer a cycle. The second register catches the item that arrives in the cycle in which the sink
    stalls.
    """

    def __init__(self, shape):
        self.skidded = Signal()  # ``skid`` holds an item, which follows the one at the output
        self.skid = Signal(shape)
        super().__init__(shape)

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.i.ready.eq(~self.skidded)
        with m.If(~self.o.valid | self.o.ready):
            m.d.sync += [
                self.o.valid.eq(self.i.valid | self.skidded),
                self.o.payload.eq(Mux(self.skidded, self.skid, self.i.payload)),
                self.skidded.eq(0),
            ]
        with m.Elif(self.i.valid):
            m.d.sync += self.skidded.eq(1)
        # Loaded whether or not the word is valid, so that the payload's clock enable does not depend on ``o.ready``.
        with m.If(~self.skidded):
            m.d.sync += self.skid.eq(self.i.payload)
        return m


class ReadyBuffer(_Stage):
    """One register that cuts the path of ``ready``; payload and valid pass combinationally.

    Latency 0, one transfer a cycle. ``i.ready`` is a register. The register catches the item that arrives in the cycle
    in which the sink stalls.
    """

    def __init__(self, shape):
        self.skidded = Signal()  # ``skid`` holds an item, which is at the output
        self.skid = Signal(shape)
        super().__init__(shape)

    def elaborate(self, platform):
        m = Module()
        m.d.comb += [
            self.i.ready.eq(~self.skidded),
            self.o.valid.eq(self.i.valid | self.skidded),
            self.o.payload.eq(Mux(self.skidded, self.skid, self.i.payload)),
        ]
        m.d.sync += self.skidded.eq(self.o.valid & ~self.o.ready)
        with m.If(~self.skidded):
            m.d.sync += self.skid.eq(self.i.payload)
        return m


class Slot(_Stage):
    """One register, which is loaded when it is empty: registered in both directions, without a multiplexer.

    Latency 1, one transfer every other cycle.
    """

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.i.ready.eq(~self.o.valid)
        with m.If(~self.o.valid):
            m.d.sync += [self.o.valid.eq(self.i.valid), self.o.payload.eq(self.i.payload)]
        with m.Elif(self.o.ready):
            m.d.sync += self.o.valid.eq(0)
        return m


class _MemoryQueue(_Stage):
    """What the queues have in common: a memory, its indices, and ``level``, the number of items in the queue.

    ``i.ready`` depends on the level only: a full queue accepts the next item in the cycle after one has left.
    """

    def __init__(self, shape, depth, deepest, attributes, **members):
        if not isinstance(depth, int) or not 2 <= depth <= deepest or depth & (depth - 1):
            raise ValueError(f"depth must be a power of two from 2 to {deepest}, not {depth!r}")
        self.depth = depth
        self.memory = Memory(shape=shape, depth=depth, init=[], attrs=attributes)
        self.head, self.tail = Signal(range(depth)), Signal(range(depth))  # next entry to read, next free entry
        super().__init__(shape, level=Out(range(depth + 1)), **members)

    def _count(self, m):
        """Drives ``i.ready`` and ``level``; returns the strobes of both handshakes."""
        push, pop, level = Signal(), Signal(), self.level
        m.d.comb += [
            self.i.ready.eq(~level[-1]),  # the level never exceeds the depth, a power of two
            push.eq(self.i.valid & self.i.ready),
            pop.eq(self.o.valid & self.o.ready),
        ]
        # Both strobes arrive late, so they enable the register instead of entering the sum.
        with m.If(push ^ pop):
            m.d.sync += level.eq(Mux(push, level + 1, level - 1))
        return push, pop

    def _mark_valid(self, m, push, pop):
        """Makes ``o.valid``, which drives much logic, a register: whether the level is not zero."""
        m.d.sync += self.o.valid.eq(push | (self.level > 1) | (self.o.valid & ~pop))

    def _write(self, m, write, enable):
        # Invalid words are written too, to the free entry: so no late signal enables the memory.
        m.d.comb += [write.addr.eq(self.tail), write.data.eq(self.i.payload), write.en.eq(enable)]


class Queue(_MemoryQueue):
    """First in, first out: the oldest item is in the output register, the others are in a memory.

    Latency 1 when empty, one transfer in each direction in each cycle. ``o`` and ``i.ready`` are registered.
    ``o.ready`` enables registers and is not part of an address. Memories of up to 32 entries are read combinationally;
    deeper ones, which are meant to be block memories, through a registered port.

    ``moves`` says that the output register is loaded at the end of the cycle. It is loaded with ``ahead``, which does
    not pass through the memory, unless an item was accepted in the cycle before.

    Parameters
    ----------
    depth : int
        Number of items, 2 to 1024, a power of two.
    """

    def __init__(self, shape, depth):
        super().__init__(shape, depth, 1024, {}, moves=Out(1), ahead=Out(shape))
        self.write = self.memory.write_port()
        if depth <= _SHALLOW:
            self.read = self.memory.read_port(domain="comb")
        else:
            # Transparent, so that an item can leave the memory in the cycle after its arrival.
            self.read = self.memory.read_port(transparent_for=(self.write,))
        # The memory is never full, because the oldest item is at the output: equal indices mean that it is empty.
        self.stored = Signal()  # the memory is not empty
        self.none = Signal(init=1)  # the complement, in a register of its own because ``ahead`` has another sink

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = self.memory
        read, stored, refill = self.read, self.stored, self.moves
        push, pop = self._count(m)
        self._mark_valid(m, push, pop)
        self._write(m, self.write, 1)
        store, fetch = Signal(), Signal()  # an item enters the memory, leaves it
        following = Signal.like(self.head)  # the entry after the next item
        item, last_item = Signal.like(self.ahead), Signal.like(self.ahead)  # the next item; the same a cycle ago
        m.d.comb += [
            refill.eq(~self.o.valid | self.o.ready),
            # An item that finds an empty memory goes to the output register directly.
            store.eq(push & (stored | ~refill)),
            fetch.eq(refill & stored),
            following.eq(self.head + stored),
            item.eq(Mux(stored, read.data, self.i.payload)),
            self.ahead.eq(Mux(self.none, self.i.payload, last_item)),
        ]
        if self.depth <= _SHALLOW:
            m.d.comb += read.addr.eq(self.head)
        else:
            # Either the item after the one that leaves, or the item that enters the empty memory.
            m.d.comb += [read.addr.eq(following), read.en.eq(refill | ~stored)]
        with m.If(store):
            m.d.sync += [self.tail.eq(self.tail + 1), stored.eq(1), self.none.eq(0)]
        with m.Elif(fetch):
            m.d.sync += [stored.eq(following != self.tail), self.none.eq(following == self.tail)]
        with m.If(refill):
            m.d.sync += [self.head.eq(following), self.o.payload.eq(item)]
        m.d.sync += last_item.eq(item)
        return m


class ShallowQueue(_MemoryQueue):
    """First in, first out, in a memory that is read combinationally: the cheapest queue for a few wide items.

    Latency 1, one transfer in each direction in each cycle. ``i.ready`` and ``o.valid`` are registers; the payload
    comes from the memory.

    Parameters
    ----------
    depth : int
        Number of items, 2 to 32, a power of two.
    block : bool
        The sink loads the payload into registers that share one clock enable, and uses it nowhere else: tools merge
        memory and registers into a block memory.
    """

    def __init__(self, shape, depth, *, block=False):
        # Yosys makes no bypass for a read of the entry that is being written, which is free.
        super().__init__(shape, depth, _SHALLOW, {"ram_style": "block", "no_rw_check": 1} if block else {})

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = self.memory
        read = self.memory.read_port(domain="comb")
        push, pop = self._count(m)
        self._mark_valid(m, push, pop)
        self._write(m, self.memory.write_port(), self.i.ready)
        m.d.comb += [read.addr.eq(self.head), self.o.payload.eq(read.data)]
        with m.If(push):
            m.d.sync += self.tail.eq(self.tail + 1)
        with m.If(pop):
            m.d.sync += self.head.eq(self.head + 1)
        return m


class DeepQueue(_MemoryQueue):
    """First in, first out, in a block memory without a bypass: for wide items that tolerate latency.

    Latency 3 when empty, one transfer in each direction in each cycle. ``o`` is registered. With ``direct`` the latency
    is 2, and the payload comes from the register of the read port.

    Parameters
    ----------
    depth : int
        Number of items, 2 to 1024, a power of two.
    direct : bool
        No register follows the register of the read port.
    """

    def __init__(self, shape, depth, *, direct=False):
        super().__init__(shape, depth, 1024, {"ram_style": "block"})
        self._direct = direct
        self.fetched = Signal()  # ``word`` holds an item that is not at the output
        self.word = Signal(shape)  # the register of the read port

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = self.memory
        # The read port is combinational and its register is here, so that tools see that no read meets a write.
        read = self.memory.read_port(domain="comb")
        push, _ = self._count(m)
        self._write(m, self.memory.write_port(), self.i.ready)
        stored, refill = Signal(), Signal()
        m.d.comb += [
            refill.eq(~self.o.valid | self.o.ready),
            # Equal indices mean that the memory is empty: one item of a full queue has already been read.
            stored.eq(self.head != self.tail),
            read.addr.eq(self.head),
        ]
        with m.If(push):
            m.d.sync += self.tail.eq(self.tail + 1)
        if self._direct:
            m.d.comb += self.o.payload.eq(self.word)
            fetch, valid = refill, self.o.valid
        else:
            with m.If(refill):
                m.d.sync += [self.o.valid.eq(self.fetched), self.o.payload.eq(self.word)]
            fetch, valid = refill | ~self.fetched, self.fetched
        with m.If(fetch):
            m.d.sync += [valid.eq(stored), self.head.eq(self.head + stored)]
            with m.If(stored):
                m.d.sync += self.word.eq(read.data)
        return m


def wide_queue(shape, depth):
    """The queue with the fewest LUTs for a wide payload: a ShallowQueue, or from 32 items on a DeepQueue."""
    return (ShallowQueue if depth < _SHALLOW else DeepQueue)(shape, depth)
