"""F1: every stream stage keeps the order and the stream rules and loses or doubles nothing; queue levels are exact.

One item is tracked. The solver chooses when ``track`` is set and what the item is, so it stands for any item. The
specification counts the items ahead of it; when there are none, the output must be the tracked item.
"""

import pytest
from amaranth.hdl import Assert, Cover, Mux, Signal

from support.formal import Spec
from tilewright.hw.lib.stream import DeepQueue, Queue, ReadyBuffer, ShallowQueue, SkidBuffer, Slot
from tilewright.verify.formal import prove, queue_invariants

WIDTH = 4


class StageSpec(Spec):
    """A stage with a tracked item. Subclasses add where items are stored, which induction needs."""

    given, made = "i", "o"
    constant = "hidden"

    def __init__(self, dut, capacity):
        self.dut = dut
        self.capacity = capacity
        self.track = Signal()
        self.count = Signal(range(capacity + 1))
        self.tracking = Signal()  # the tracked item is in the stage
        self.ahead = Signal(range(capacity + 1))
        self.item = Signal(WIDTH)
        self.hidden = Signal()  # the oldest item is not at the output yet

    def specify(self, m, dut):
        push, pop = dut.i.valid & dut.i.ready, dut.o.valid & dut.o.ready
        m.d.sync += self.count.eq(self.count + push - pop)
        m.d.comb += Assert(self.count <= self.capacity)
        m.d.comb += Assert(dut.o.valid == ((self.count != 0) & ~self.hidden))

        with m.If(self.tracking):
            m.d.comb += Assert(self.ahead < self.count)
            with m.If(self.ahead == 0):
                m.d.comb += Assert(self.hidden | (dut.o.valid & (dut.o.payload == self.item)))
            with m.If(pop):
                m.d.sync += self.tracking.eq(self.ahead != 0)
                m.d.sync += self.ahead.eq(self.ahead - 1)
        with m.Elif(push & self.track):
            m.d.sync += [self.tracking.eq(1), self.item.eq(dut.i.payload), self.ahead.eq(self.count - pop)]

        was_full = Signal()
        with m.If(self.count == self.capacity):
            m.d.sync += was_full.eq(1)
        m.d.comb += Cover(was_full & (self.count == 0) & self.item.all())
        # Full rate is possible.
        m.d.comb += Cover(push & pop & self.tracking & (self.ahead == 0))
        self.add_invariants(m)

    def add_invariants(self, m):
        pass


class ReadyBufferSpec(Spec):
    """The register holds the last item; while it is empty, the input is at the output."""

    given, made = "i", "o"

    def specify(self, m, dut):
        push, pop = dut.i.valid & dut.i.ready, dut.o.valid & dut.o.ready
        count, item = Signal(), Signal(WIDTH)
        m.d.sync += count.eq(count + push - pop)
        with m.If(push):
            m.d.sync += item.eq(dut.i.payload)
        m.d.comb += [
            Assert(dut.i.ready == ~count),
            Assert(dut.o.valid == (count | dut.i.valid)),
            Assert(~dut.o.valid | (dut.o.payload == Mux(count, item, dut.i.payload))),
            Assert(~count | (dut.skid == item)),
            Cover(count & pop & item.all()),
        ]


def test_ready_buffer():
    prove(ReadyBufferSpec(ReadyBuffer(WIDTH)), name="ready-buffer", depth=2, proves="F1")
    prove(ReadyBufferSpec(ReadyBuffer(WIDTH)), name="ready-buffer-cover", mode="cover", depth=4)


class SkidSpec(StageSpec):
    def add_invariants(self, m):
        m.d.comb += Assert(self.dut.skidded == (self.count == 2))
        with m.If(self.tracking & (self.ahead == 1)):
            m.d.comb += Assert(self.dut.skid == self.item)


class QueueSpec(StageSpec):
    def add_invariants(self, m):
        dut = self.dut
        m.d.comb += Assert(dut.level == self.count)
        m.d.comb += queue_invariants(dut)
        # Where the tracked item is stored, and that the read port shows it when it is next.
        probe = dut.memory.read_port(domain="comb")
        m.d.comb += probe.addr.eq(dut.head + self.ahead - 1)
        with m.If(self.tracking & (self.ahead != 0)):
            m.d.comb += Assert(probe.data == self.item)
        with m.If(self.tracking & (self.ahead == 1)):
            m.d.comb += Assert(dut.read.data == self.item)
        # ``ahead`` is the next output, unless an item was accepted in the cycle before.
        popped, loaded, ahead = Signal(), Signal(), Signal.like(dut.ahead)
        m.d.sync += [popped.eq(dut.o.valid & dut.o.ready), loaded.eq(dut.moves & ~popped), ahead.eq(dut.ahead)]
        with m.If(loaded & dut.o.valid):
            m.d.comb += Assert(dut.o.payload == ahead)
        m.d.comb += Assert(dut.moves == (~dut.o.valid | dut.o.ready))


class ShallowQueueSpec(StageSpec):
    def add_invariants(self, m):
        dut = self.dut
        m.d.comb += Assert(dut.level == self.count)
        m.d.comb += queue_invariants(dut)
        # Where the tracked item is stored.
        probe = dut.memory.read_port(domain="comb")
        m.d.comb += probe.addr.eq(dut.head + self.ahead)
        with m.If(self.tracking):
            m.d.comb += Assert(probe.data == self.item)


class DeepQueueSpec(StageSpec):
    """An item passes the memory, the register of the read port and, unless ``direct``, the output register."""

    def __init__(self, dut, capacity, direct=False):
        super().__init__(dut, capacity)
        self._hidden = 2 - direct  # cycles in which an item that finds the queue empty is not at the output

    def add_invariants(self, m):
        dut = self.dut
        read = dut.o.valid + dut.fetched  # items that have left the memory
        late = Signal(3)
        m.d.sync += late.eq(Mux((self.count != 0) & ~dut.o.valid, late + 1, 0))
        m.d.comb += [
            self.hidden.eq(~dut.o.valid),
            Assert(late <= self._hidden),
            Assert(dut.level == self.count),
            *queue_invariants(dut),
            Assert((late != self._hidden - 1) | read.any() | (self._hidden == 1)),
            Assert((late != self._hidden) | dut.o.valid),
        ]
        # Where the tracked item is stored.
        probe = dut.memory.read_port(domain="comb")
        m.d.comb += probe.addr.eq(dut.head + self.ahead - read)
        with m.If(self.tracking & (self.ahead >= read)):
            m.d.comb += Assert(probe.data == self.item)
        with m.If(self.tracking & dut.fetched & (self.ahead == dut.o.valid)):
            m.d.comb += Assert(dut.word == self.item)


SPECS = {
    "slot": lambda: StageSpec(Slot(WIDTH), 1),
    "skid": lambda: SkidSpec(SkidBuffer(WIDTH), 2),
    "queue2": lambda: QueueSpec(Queue(WIDTH, 2), 2),
    "queue8": lambda: QueueSpec(Queue(WIDTH, 8), 8),
    "queue64": lambda: QueueSpec(Queue(WIDTH, 64), 64),
    "shallow8": lambda: ShallowQueueSpec(ShallowQueue(WIDTH, 8), 8),
    "deep8": lambda: DeepQueueSpec(DeepQueue(WIDTH, 8), 8),
    "direct8": lambda: DeepQueueSpec(DeepQueue(WIDTH, 8, direct=True), 8, direct=True),
}


@pytest.mark.parametrize("name", SPECS)
def test_order(name):
    prove(SPECS[name](), name=f"lib-stream-{name}", depth=2, proves="F1")


@pytest.mark.parametrize(
    "name", ["skid", "queue2", *(pytest.param(name, marks=pytest.mark.long) for name in ("queue8", "shallow8"))]
)
def test_every_state_is_reached(name):
    prove(SPECS[name](), name=f"lib-stream-{name}-cover", mode="cover", depth=20)
