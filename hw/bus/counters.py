"""Performance counters that share a memory and an adder."""

from amaranth.hdl import Module, Mux, Signal, Value, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from ..lib.choice import chosen

__all__ = ["Counters", "IncrementsLayout", "widths_of"]

_BITS = 32


def widths_of(counted):
    """Bits of what is added to each counter, by name, for :class:`Counters`; of the values themselves."""
    return {name: len(Value.cast(value)) for name, value in counted.items()}


class IncrementsLayout(data.StructLayout):
    """What is added to each counter in a cycle, of so many bits each."""

    def __init__(self, counted):
        super().__init__({name: unsigned(width) for name, width in counted.items()})


class Counters(wiring.Component):
    """Counters of 32 bits, modulo 2^32.

    The numbers lie in a memory. What is to be added to one waits in a few bits of its own until its turn, which comes
    every ``len(counted)`` cycles. So a number is told when it has had its turn.

    Latency: 1 to ``len(counted)`` cycles. What was added two cycles before a number is asked for is in it.

    Parameters
    ----------
    counted : dict of str to int
        Bits of what is added to each counter in a cycle. Two counters at least: of one, a turn would follow another
        before its number is written.

    Members
    -------
    more : In(IncrementsLayout)
        What is added in this cycle.
    clear : In(1)
        Strobe: all become zero; what was added before its cycle is dropped.
    asked : In(1)
        A number is wanted; it stays until ``told``.
    which : In(range(len(counted)))
        Of which counter, in the order of ``counted``.
    told : Out(1)
        Registered. For one cycle ``value`` is that number; if it is still asked for, it is told again.
    value : Out(32)

    Attributes
    ----------
    turn : Signal
        Whose turn it is; for proofs.
    zeros : Signal
        So many turns from now on find zero, whatever the memory holds; for proofs.
    waiting : dict of str to Signal
        What is to be added to each counter at its turn; for proofs.
    """

    def __init__(self, counted):
        count = len(counted)
        if count < 2:
            raise ValueError(f"there must be two counters at least, not {count}")
        self.turn, self.zeros = Signal(range(count)), Signal(range(count + 1), init=count)
        self.waiting = {
            name: Signal(bits_for(count * ((1 << width) - 1)), name=f"{name}_waiting")
            for name, width in counted.items()
        }
        super().__init__(
            {
                "more": In(IncrementsLayout(counted)),
                "clear": In(1),
                "asked": In(1),
                "which": In(range(len(counted))),
                "told": Out(1),
                "value": Out(_BITS),
            }
        )

    def elaborate(self, platform):
        m = Module()
        count, turn, zeros = len(self.waiting), self.turn, self.zeros
        m.submodules.numbers = numbers = Memory(shape=_BITS, depth=count, init=[])
        read, write = numbers.read_port(domain="comb"), numbers.write_port()

        m.d.sync += turn.eq(Mux(turn == count - 1, 0, turn + 1))
        for number, (name, waiting) in enumerate(self.waiting.items()):
            # Strobes come from all over the engine: no path goes on from there.
            more = Signal.like(self.more[name], name=f"{name}_more")
            m.d.sync += [more.eq(self.more[name]), waiting.eq(Mux(turn == number, 0, waiting) + more)]
            with m.If(self.clear):
                m.d.sync += waiting.eq(0)
        # After a clear, as after a reset, each number is zero at its next turn.
        with m.If(self.clear):
            m.d.sync += zeros.eq(count)
        with m.Elif(zeros != 0):
            m.d.sync += zeros.eq(zeros - 1)

        old, more, place = Signal(_BITS), Signal(max(map(len, self.waiting.values()))), Signal.like(turn)
        m.d.sync += [
            old.eq(Mux(zeros != 0, 0, read.data)),
            more.eq(chosen(turn, dict(enumerate(self.waiting.values())))),
            place.eq(turn),
            self.told.eq(self.asked & (self.which == turn)),
        ]
        m.d.comb += [
            read.addr.eq(turn),
            self.value.eq(old + more),
            write.addr.eq(place),
            write.data.eq(self.value),
            write.en.eq(1),
        ]
        return m
