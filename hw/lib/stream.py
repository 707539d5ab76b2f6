"""Stream stages: registers and queues between two blocks. All keep the order and lose nothing."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

__all__ = ["DeepQueue", "Queue", "ReadyBuffer", "ShallowQueue", "SkidBuffer", "Slot", "SlowQueue", "TwinBuffer",
           "wide_queue"]  # fmt: skip

#: Items up to which memories are read combinationally: distributed ones, of which no block memory could be made.
_SHALLOW = 32


class ReadyBuffer(wiring.Component):
    """One register that cuts the path of ``ready``; payload and valid pass.

    Latency 0, one transfer a cycle. Holds one item, which catches what comes in the cycle in which the sink stalls. Its
    clock enable is its own state.

    Parameters
    ----------
    shape : shape-like
        Of the payload.

    Members
    -------
    i : In(stream of shape)
        ``ready`` is a register.
    o : Out(stream of shape)
        Combinational from ``i``.
    full : Out(1)
        An item is held.
    """

    def __init__(self, shape):
        self.held = Signal(shape)
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape)), "full": Out(1)})

    def elaborate(self, platform):
        m = Module()
        m.d.comb += [
            self.i.ready.eq(~self.full),
            self.o.valid.eq(self.i.valid | self.full),
            self.o.payload.eq(Mux(self.full, self.held, self.i.payload)),
        ]
        m.d.sync += self.full.eq(self.o.valid & ~self.o.ready)
        with m.If(~self.full):
            m.d.sync += self.held.eq(self.i.payload)
        return m


class SkidBuffer(wiring.Component):
    """Registers in both directions: no output depends combinationally on an input.

    Latency 1, one transfer a cycle. Holds two items: the second catches what comes in the cycle in which the sink
    stalls, before the source is stalled.

    Parameters
    ----------
    shape : shape-like
        Of the payload.

    Members
    -------
    i : In(stream of shape)
        ``ready`` is a register.
    o : Out(stream of shape)
        Registered.
    """

    def __init__(self, shape):
        self.skidded = Signal()  # an item lies in ``skid``, behind the one at the output
        self.skid = Signal(shape)
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape))})

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.i.ready.eq(~self.skidded)
        with m.If(~self.o.valid | self.o.ready):
            m.d.sync += self.o.valid.eq(self.i.valid | self.skidded)
            m.d.sync += self.o.payload.eq(Mux(self.skidded, self.skid, self.i.payload))
            m.d.sync += self.skidded.eq(0)
        with m.Elif(self.i.valid):
            m.d.sync += self.skidded.eq(1)
        # Whatever comes is caught: so the many bits of the payload do not hang on ``o.ready``.
        with m.If(~self.skidded):
            m.d.sync += self.skid.eq(self.i.payload)
        return m


class Queue(wiring.Component):
    """First in, first out; the waiting items lie in a memory, the oldest one in a register.

    Latency 1 when empty, one transfer in each direction in each cycle. The oldest item is in the output register and
    the others in the memory, whose read port always shows the next one. ``i.ready`` and ``o.valid`` are
    registers: a full queue takes the next item in the cycle after one has left. ``o.ready`` enables registers and is
    no part of an address: where to read next is known before. A memory of up to 32 items is read combinationally;
    that of a deeper queue, which is to be a block memory, has a read port with a register of its own.

    Parameters
    ----------
    shape : shape-like
        Of the payload.
    depth : int
        Items it holds, 2 to 1024, a power of two. Only the memory and the counters grow with it.

    Members
    -------
    i : In(stream of shape)
    o : Out(stream of shape)
        Registered.
    level : Out(range(depth + 1))
        Items held, the one at the output included.
    moves : Out(1)
        The output register is filled anew: it shows ``ahead`` in the next cycle.
    ahead : Out(shape)
        The next item, if there is one; not when an item was taken in the cycle before. No memory is on its way.
    """

    def __init__(self, shape, depth):
        if not isinstance(depth, int) or isinstance(depth, bool):
            raise TypeError(f"depth must be an int, not {depth!r}")
        if not 2 <= depth <= 1024 or depth & (depth - 1):
            raise ValueError(f"depth must be a power of two from 2 to 1024, not {depth!r}")
        self.depth = depth
        self.memory = Memory(shape=shape, depth=depth, init=[])
        self.write = self.memory.write_port()
        if depth <= _SHALLOW:
            self.read = self.memory.read_port(domain="comb")
        else:
            # Transparent, so that an item can leave the memory in the cycle after it came.
            self.read = self.memory.read_port(transparent_for=(self.write,))
        # The oldest and the next free place of the memory. As an item is always at the output when the memory holds
        # any, the memory is never full, and equal indices mean that it is empty.
        self.head = Signal(range(depth))
        self.tail = Signal(range(depth))
        self.stored = Signal()  # the memory holds an item; a register, for it chooses what comes next
        self.none = Signal(init=1)  # it holds none; a register of its own, for ``ahead`` goes elsewhere
        super().__init__(
            {
                "i": In(stream.Signature(shape)),
                "o": Out(stream.Signature(shape)),
                "level": Out(range(depth + 1)),
                "moves": Out(1),
                "ahead": Out(shape),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = self.memory
        write, read = self.write, self.read

        push, pop = Signal(), Signal()
        refill = self.moves  # the output register is free, or becomes free
        stored = self.stored
        comes, goes = Signal(), Signal()  # an item goes into the memory, out of it
        following = Signal.like(self.head)  # the oldest place, when the next item has left
        item, waited = Signal.like(self.ahead), Signal.like(self.ahead)  # the next item; a cycle before
        m.d.comb += [
            self.i.ready.eq(~self.level[-1]),  # the level is never more than depth, a power of two
            push.eq(self.i.valid & self.i.ready),
            pop.eq(self.o.valid & self.o.ready),
            refill.eq(~self.o.valid | self.o.ready),
            # An item that finds none waiting goes to the output at once.
            comes.eq(push & (stored | ~refill)),
            goes.eq(refill & stored),
            write.addr.eq(self.tail),
            write.data.eq(self.i.payload),
            # What is no item, or goes to the output at once, is written too, to the place that is free: an enable would
            # have to reach the whole memory from one table.
            write.en.eq(1),
            following.eq(self.head + stored),
            item.eq(Mux(stored, read.data, self.i.payload)),
            self.ahead.eq(Mux(self.none, self.i.payload, waited)),
        ]
        if self.depth <= _SHALLOW:
            m.d.comb += read.addr.eq(self.head)
        else:
            # Either the item behind the next one, when that leaves, or the one that comes into the empty memory.
            m.d.comb += [read.addr.eq(following), read.en.eq(refill | ~stored)]
        _count(m, self.level, push, pop)
        # The level is not zero: as a register of its own, for much hangs on it.
        m.d.sync += self.o.valid.eq(push | (self.level > 1) | (self.o.valid & ~pop))
        with m.If(comes):
            m.d.sync += [self.tail.eq(self.tail + 1), stored.eq(1), self.none.eq(0)]
        with m.Elif(goes):
            m.d.sync += [stored.eq(following != self.tail), self.none.eq(following == self.tail)]
        with m.If(refill):
            m.d.sync += [
                self.head.eq(following),
                self.o.payload.eq(item),
            ]
        m.d.sync += waited.eq(item)
        return m


class ShallowQueue(wiring.Component):
    """First in, first out, in a memory that is read combinationally: for a few wide items, which cost no registers.

    Latency 1, one transfer in each direction in each cycle. ``i.ready`` and ``o.valid`` are registers: a
    full queue takes the next item in the cycle after one has left. Both sides are cut from each other as by a
    :class:`SkidBuffer`, for fewer tables; the memory lies in the path of the payload.

    Parameters
    ----------
    shape : shape-like
        Of the payload.
    depth : int
        Items it holds, 2 to 32, a power of two.
    block : bool
        The payload goes to registers of the sink with one enable and nowhere else: tools make a block memory of those
        and of this one.

    Members
    -------
    i : In(stream of shape)
    o : Out(stream of shape)
    """

    def __init__(self, shape, depth, *, block=False):
        if not isinstance(depth, int) or not 2 <= depth <= _SHALLOW or depth & (depth - 1):
            raise ValueError(f"depth must be a power of two from 2 to 32, not {depth!r}")
        self.depth = depth
        # Yosys makes no logic for a read of what is being written, which is no item yet.
        attributes = {"ram_style": "block", "no_rw_check": 1} if block else {}
        self.memory = Memory(shape=shape, depth=depth, init=[], attrs=attributes)
        self.head = Signal(range(depth))  # place of the oldest item
        self.tail = Signal(range(depth))  # next free place
        self.level = Signal(range(depth + 1))
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape))})

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = self.memory
        write, read = self.memory.write_port(), self.memory.read_port(domain="comb")
        push, pop = Signal(), Signal()
        m.d.comb += [
            self.i.ready.eq(~self.level[-1]),  # the level is never more than depth, a power of two
            push.eq(self.i.valid & self.i.ready),
            pop.eq(self.o.valid & self.o.ready),
            write.addr.eq(self.tail),
            write.data.eq(self.i.payload),
            write.en.eq(self.i.ready),  # what is no item too: nothing late enables the memory
            read.addr.eq(self.head),
            self.o.payload.eq(read.data),
        ]
        _count(m, self.level, push, pop)
        # The level is not zero: as a register of its own, for much hangs on it.
        m.d.sync += self.o.valid.eq(push | (self.level > 1) | (self.o.valid & ~pop))
        with m.If(push):
            m.d.sync += self.tail.eq(self.tail + 1)
        with m.If(pop):
            m.d.sync += self.head.eq(self.head + 1)
        return m


class SlowQueue(wiring.Component):
    """First in, first out, in a memory that is read combinationally, with a register behind it: for very wide items
    that come seldom. Nothing passes the memory, so that there is no choice in front of the register.

    Latency 2, a transfer every other cycle. ``i.ready`` depends on the level only, ``o`` comes from registers.

    Parameters
    ----------
    shape : shape-like
        Of the payload.
    depth : int
        Items it holds, 2 to 32, a power of two.

    Members
    -------
    i : In(stream of shape)
    o : Out(stream of shape)
        Registered.
    level : Out(range(depth + 1))
        Items held, the one at the output included.
    """

    def __init__(self, shape, depth):
        self.queue = ShallowQueue(shape, depth)
        super().__init__(
            {
                "i": In(stream.Signature(shape)),
                "o": Out(stream.Signature(shape)),
                "level": Out(range(depth + 1)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.queue = queue = self.queue
        wiring.connect(m, i=wiring.flipped(self.i), queue=queue.i)
        pop = Signal()
        # The item at the output stays in the memory until it leaves.
        m.d.comb += [
            pop.eq(self.o.valid & self.o.ready),
            queue.o.ready.eq(pop),
            self.level.eq(queue.level),
        ]
        m.d.sync += [
            self.o.valid.eq(queue.o.valid & ~pop),
            self.o.payload.eq(queue.o.payload),
        ]
        return m


class DeepQueue(wiring.Component):
    """First in, first out, in a block memory, with a register behind it: for wide items that may take their time.

    Nothing passes the memory, so that there is no choice in front of the register.

    Latency 3 when empty, one transfer in each direction in each cycle. ``i.ready`` depends on the level only, ``o``
    comes from registers. With ``direct`` the payload comes from the register of the read port, later in its cycle, and
    the latency is 2.

    Parameters
    ----------
    shape : shape-like
        Of the payload.
    depth : int
        Items it holds, 2 to 1024, a power of two.
    direct : bool
        No register is behind that of the read port.

    Members
    -------
    i : In(stream of shape)
    o : Out(stream of shape)
        Registered.
    level : Out(range(depth + 1))
        Items held, those included that are on their way to the output.
    """

    def __init__(self, shape, depth, *, direct=False):
        if not isinstance(depth, int) or not 2 <= depth <= 1024 or depth & (depth - 1):
            raise ValueError(f"depth must be a power of two from 2 to 1024, not {depth!r}")
        self.depth, self._direct = depth, direct
        self.memory = Memory(shape=shape, depth=depth, init=[], attrs={"ram_style": "block"})
        # The next place to read, and the next free one. Of a full queue an item has been read, so equal places mean
        # that the memory is empty.
        self.head = Signal(range(depth))
        self.tail = Signal(range(depth))
        self.fetched = Signal()  # an item is in the register of the read port, and not at the output
        self.word = Signal(shape)  # that register
        super().__init__(
            {
                "i": In(stream.Signature(shape)),
                "o": Out(stream.Signature(shape)),
                "level": Out(range(depth + 1)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = self.memory
        # The register of the read port stands here: so tools see that nothing is read while it is written.
        write, read = self.memory.write_port(), self.memory.read_port(domain="comb")
        push, pop, stored = Signal(), Signal(), Signal()
        refill = Signal()  # the output register is free, or becomes free
        m.d.comb += [
            self.i.ready.eq(~self.level[-1]),  # the level is never more than depth, a power of two
            push.eq(self.i.valid & self.i.ready),
            pop.eq(self.o.valid & self.o.ready),
            refill.eq(~self.o.valid | self.o.ready),
            stored.eq(self.head != self.tail),
            write.addr.eq(self.tail),
            write.data.eq(self.i.payload),
            write.en.eq(self.i.ready),  # what is no item too: nothing late enables the memory
            read.addr.eq(self.head),
        ]
        _count(m, self.level, push, pop)
        with m.If(push):
            m.d.sync += self.tail.eq(self.tail + 1)
        if self._direct:
            m.d.comb += self.o.payload.eq(self.word)
            fetches, fetched = refill, self.o.valid
        else:
            with m.If(refill):
                m.d.sync += [self.o.valid.eq(self.fetched), self.o.payload.eq(self.word)]
            fetches, fetched = refill | ~self.fetched, self.fetched
        with m.If(fetches):
            m.d.sync += [fetched.eq(stored), self.head.eq(self.head + stored)]
            with m.If(stored):
                m.d.sync += self.word.eq(read.data)
        return m


def _count(m, level, push, pop):
    """Follows the level of a queue. Who pushes and pops comes late: so it enables the register, and is not added."""
    with m.If(push ^ pop):
        m.d.sync += level.eq(Mux(push, level + 1, level - 1))


def wide_queue(shape, depth):
    """The queue with the fewest tables for a wide payload: a :class:`ShallowQueue`, or from 32 items on a DeepQueue."""
    return (ShallowQueue if depth < _SHALLOW else DeepQueue)(shape, depth)


class Slot(wiring.Component):
    """One register, which takes an item when it is empty: registered in both directions, and no table for the payload.

    Latency 1, a transfer every other cycle. Holds one item.

    Parameters
    ----------
    shape : shape-like
        Of the payload.

    Members
    -------
    i : In(stream of shape)
        ``ready`` is a register.
    o : Out(stream of shape)
        Registered.
    """

    def __init__(self, shape):
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape))})

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.i.ready.eq(~self.o.valid)
        with m.If(~self.o.valid):
            m.d.sync += [self.o.valid.eq(self.i.valid), self.o.payload.eq(self.i.payload)]
        with m.Elif(self.o.ready):
            m.d.sync += self.o.valid.eq(0)
        return m


class TwinBuffer(wiring.Component):
    """Two registers by turns: what shows is chosen behind them, and ``o.ready`` reaches none of their enables.

    Latency 1, one transfer a cycle. Holds two items. As large as a :class:`~tilewright.hw.lib.stream.SkidBuffer`, for a
    payload that is wide and a ``ready`` that comes late: the choice is in front of what the payload goes to.

    Parameters
    ----------
    shape : shape-like
        Of the payload.

    Members
    -------
    i : In(stream of shape)
        ``ready`` is a register.
    o : Out(stream of shape)
        ``valid`` is a register, ``payload`` one of two.
    """

    def __init__(self, shape):
        self.slots = [Signal(shape, name=f"slot{number}") for number in range(2)]
        self.head = Signal()  # the slot of the item at the output
        self.tail = Signal()  # that of the next item
        self.full = Signal()
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape))})

    def elaborate(self, platform):
        m = Module()
        push, pop = Signal(), Signal()
        m.d.comb += [
            self.i.ready.eq(~self.full),
            push.eq(self.i.valid & self.i.ready),
            pop.eq(self.o.valid & self.o.ready),
            self.o.payload.eq(Mux(self.head, self.slots[1], self.slots[0])),
        ]
        m.d.sync += [
            self.head.eq(self.head ^ pop),
            self.tail.eq(self.tail ^ push),
            self.o.valid.eq(push | self.full | (self.o.valid & ~pop)),
            self.full.eq((self.full | (self.o.valid & push)) & ~pop),
        ]
        for number, slot in enumerate(self.slots):
            # Whatever comes: what is no item is written over by the next one.
            with m.If((self.tail == number) & ~self.full):
                m.d.sync += slot.eq(self.i.payload)
        return m
