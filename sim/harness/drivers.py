"""Drivers of a harness: scripts with random pauses, the transactions that they become, and logs."""

from amaranth.hdl import Cat, Module, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.hw.bus.axi4_lite import AccessLayout, Axi4LiteSignature
from tilewright.hw.smem.layouts import BarrierRequestLayout, BarrierResultLayout

from ..hdl.packing import row_bytes
from ..hdl.word_array import WordArray

__all__ = ["BarrierDriver", "BarrierItemLayout", "Log", "LogRowLayout", "RegisterAnswerLayout", "RegisterDriver",
           "ScriptDriver", "ScriptRowLayout", "Stall", "add_stall"]  # fmt: skip


class Stall(wiring.Component):
    """Decides every cycle whether to go on.

    Parameters
    ----------
    number : int
        Instances with different numbers pause at different times.
    """

    # Of a pause, in 256ths: 0 never pauses, 255 goes on in one cycle of 256.
    probability: In(8)
    # Mixed into the sequence while ``start`` is high.
    seed: In(16)
    # Begin the sequence again.
    start: In(1)
    # No pause in this cycle. Independent from cycle to cycle, so a stream's source must remember that it has shown an
    # item.
    go: Out(1)

    def __init__(self, number):
        self._number = number
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        # Marsaglia's xorshift: 32 new bits a cycle, period 2^32 - 1.
        state = Signal(32, init=1)
        first, second = Signal.like(state), Signal.like(state)
        m.d.comb += [first.eq(state ^ (state << 13)), second.eq(first ^ (first >> 17))]
        m.d.sync += state.eq(second ^ (second << 5))
        with m.If(self.start):
            m.d.sync += state.eq(Cat(self.seed, (self.seed ^ (0x5EED + 0x9E37 * self._number)) | 0x8000))
        m.d.comb += self.go.eq(state[-8:] >= self.probability)
        return m


def add_stall(m, name, number, probability, source):
    """``go`` of a new ``Stall``, which takes ``seed`` and ``start`` from the members of ``source``."""
    m.submodules[name] = stall = Stall(number)
    m.d.comb += [stall.probability.eq(probability), stall.seed.eq(source.seed), stall.start.eq(source.start)]
    return stall.go


class BarrierItemLayout(data.StructLayout):
    """A barrier operation of a script."""

    def __init__(self, params, cores=1):
        super().__init__({"request": BarrierRequestLayout(params, cores), "retry": unsigned(1)})  # until done or error


class BarrierDriver(wiring.Component):
    """Does barrier operations one after the other; repeats those marked ``retry`` until they are done or refused."""

    def __init__(self, params, cores=1):
        super().__init__(
            {
                # Accepted when the final answer comes.
                "i": In(stream.Signature(BarrierItemLayout(params, cores))),
                "requests": Out(stream.Signature(BarrierRequestLayout(params, cores))),
                # The barrier port, seen from the processor.
                "results": In(stream.Signature(BarrierResultLayout())),
                # High for one cycle with the final answer of each item.
                "answer_valid": Out(1),
                "answer": Out(BarrierResultLayout()),
            }
        )

    def elaborate(self, platform):
        m = Module()
        waiting = Signal()
        final = ~self.i.payload.retry | self.results.payload.done | self.results.payload.error
        m.d.comb += [
            self.requests.payload.eq(self.i.payload.request),
            self.requests.valid.eq(self.i.valid & ~waiting),
            self.results.ready.eq(waiting),
            self.answer.eq(self.results.payload),
            self.answer_valid.eq(waiting & self.results.valid & final),
            self.i.ready.eq(self.answer_valid),
        ]
        with m.If(self.requests.valid & self.requests.ready):
            m.d.sync += waiting.eq(1)
        with m.If(waiting & self.results.valid):
            m.d.sync += waiting.eq(0)
        return m


class RegisterAnswerLayout(data.StructLayout):
    """What came back from a register access."""

    def __init__(self):
        super().__init__({"data": unsigned(32), "response": unsigned(2)})  # BRESP or RRESP


class RegisterDriver(wiring.Component):
    """Does AXI4-Lite accesses one after the other; address and data of a write are offered together."""

    def __init__(self, addr_width):
        super().__init__(
            {
                # Accepted when the answer comes.
                "i": In(stream.Signature(AccessLayout())),
                "axi": Out(Axi4LiteSignature(addr_width)),
                # High for one cycle with the answer of each access.
                "answer_valid": Out(1),
                "answer": Out(RegisterAnswerLayout()),
            }
        )

    def elaborate(self, platform):
        m = Module()
        axi, access = self.axi, self.i.payload
        for channel, wanted in (("aw", access.write), ("w", access.write), ("ar", ~access.write)):
            valid, ready = getattr(axi, f"{channel}valid"), getattr(axi, f"{channel}ready")
            taken = Signal(name=f"{channel}_taken")
            m.d.comb += valid.eq(self.i.valid & wanted & ~taken)
            with m.If(self.i.ready):
                m.d.sync += taken.eq(0)
            with m.Elif(valid & ready):
                m.d.sync += taken.eq(1)
        m.d.comb += [
            axi.awaddr.eq(access.address),
            axi.araddr.eq(access.address),
            axi.wdata.eq(access.data),
            axi.wstrb.eq(access.strobe),
            axi.bready.eq(1),
            axi.rready.eq(1),
            self.answer.data.eq(axi.rdata),
            self.answer_valid.eq(axi.bvalid | axi.rvalid),
            self.i.ready.eq(self.answer_valid),
        ]
        with m.If(axi.bvalid):
            m.d.comb += self.answer.response.eq(axi.bresp)
        with m.Else():
            m.d.comb += self.answer.response.eq(axi.rresp)
        return m


class ScriptRowLayout(data.StructLayout):
    """A row of a script."""

    def __init__(self, shape):
        super().__init__({"item": shape, "wait": 1})  # wait until what was issued before is complete


class ScriptDriver(wiring.Component):
    """Issues the first ``count`` items of its script as a stream, back to back without pauses.

    Parameters
    ----------
    shape : shape-like
        Of an item.
    depth : int
        Items of the script.
    number : int
        Of its ``Stall``.
    """

    def __init__(self, shape, *, depth, number):
        self._shape = shape
        self._number = number
        self._row = ScriptRowLayout(shape)
        #: Rows of :class:`ScriptRowLayout`.
        self.script = WordArray(width=8 * row_bytes(self._row), depth=depth)
        super().__init__(
            {
                # The items.
                "o": Out(stream.Signature(shape)),
                # Begin at the first item in the next cycle.
                "start": In(1),
                # Items to issue.
                "count": In(range(depth + 1)),
                # Nothing is issued before it is high; once it is, it stays.
                "enable": In(1),
                # What was issued before is complete. An item whose ``wait`` is set is not issued before.
                "idle": In(1),
                "stall": In(8),
                # Probability of a pause before an item, and how to vary it.
                "seed": In(16),
                # Items that were accepted since the start.
                "issued": Out(range(depth + 1)),
                # All were.
                "finished": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.script = script = self.script
        go = add_stall(m, "stall", self._number, self.stall, self)
        row = Signal(self._row)
        held = Signal()
        following = Signal.like(self.issued)

        m.d.comb += [
            row.eq(script.read_data),
            self.o.payload.eq(row.item),
            # An item that has been shown stays.
            self.o.valid.eq(~self.start & ~self.finished & self.enable & (~row.wait | self.idle) & (go | held)),
            self.finished.eq(self.issued == self.count),
            following.eq(self.issued + (self.o.valid & self.o.ready)),
            script.read_enable.eq(1),
            script.read_address.eq(following),
        ]
        m.d.sync += [self.issued.eq(following), held.eq(self.o.valid & ~self.o.ready)]
        with m.If(self.start):
            m.d.comb += script.read_address.eq(0)
            m.d.sync += [self.issued.eq(0), held.eq(0)]
        return m


class LogRowLayout(data.StructLayout):
    """A row of a log."""

    def __init__(self, shape):
        super().__init__({"cycle": 32, "entry": shape})


class Log(wiring.Component):
    """Keeps what passes, in order, with the cycle; what comes when it is full is counted and lost.

    Parameters
    ----------
    shape : shape-like
        Of an entry.
    depth : int
        Entries that fit.
    """

    def __init__(self, shape, *, depth):
        self._depth = depth
        self._row = LogRowLayout(shape)
        #: Rows of :class:`LogRowLayout`.
        self.memory = WordArray(width=8 * row_bytes(self._row), depth=depth)
        # Entries since the start, lost ones included.
        # Forget all.
        # The time to keep with it.
        # Keep ``entry`` in this cycle.
        super().__init__({"valid": In(1), "entry": In(shape), "cycle": In(32), "start": In(1), "count": Out(32)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = memory = self.memory
        row = Signal(self._row)
        m.d.comb += [
            row.cycle.eq(self.cycle),
            row.entry.eq(self.entry),
            memory.write_enable.eq(self.valid & (self.count < self._depth)),
            memory.write_address.eq(self.count),
            memory.write_data.eq(row),
        ]
        with m.If(self.start):
            m.d.sync += self.count.eq(0)
        with m.Elif(self.valid):
            m.d.sync += self.count.eq(self.count + 1)
        return m
