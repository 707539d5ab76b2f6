"""Sums of products, one after the other, with one adder."""

from functools import reduce
from operator import or_
from typing import NamedTuple

from amaranth.hdl import Cat, Const, Module, Mux, Signal, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["NOT_SUM", "SUM", "Calculator", "Step", "named_layout", "names_of"]

#: Terms of every calculator: the sum as it is, and with all its bits turned, which is -sum - 1.
SUM, NOT_SUM = "sum", "not_sum"
_TIMES_BITS = 16


class Step(NamedTuple):
    """What is added in a step: ``term`` · ``times``, and with ``more`` the term once more.

    Attributes
    ----------
    term : str
        A term, ``SUM`` or ``NOT_SUM``.
    times : str or None
        A count; None is 0.
    more : bool
        Once more: counts are stored minus one.
    fresh : bool
        The sum begins with 0, after the term was taken.
    when : str or None
        The condition without which the step is left out.
    keep : str or None
        What its user does with it.
    """

    term: str
    times: str | None = None
    more: bool = False
    fresh: bool = False
    when: str | None = None
    keep: str | None = None


def names_of(steps, what):
    """Names that steps have for a ``term``, ``times``, ``when`` or ``keep``, each once, in their order, as a list."""
    found = dict.fromkeys(getattr(step, what) for step in steps)
    return [name for name in found if name not in (None, SUM, NOT_SUM)]


def named_layout(steps, what, width):
    """Layout of numbers with as many bits, one for each of ``names_of``."""
    return data.StructLayout({name: unsigned(width) for name in names_of(steps, what)})


class Calculator(wiring.Component):
    """A sequence of steps, each of which adds a product to a sum, bit by bit.

    Latency: a step takes a cycle, and one for each bit of its count up to the highest one that is set; with ``more``
    one at least. A step that is left out takes a cycle. ``busy`` falls a cycle after that.

    Parameters
    ----------
    width : int
        Bits of terms and of the sum.
    steps : sequence of Step
        Names are those of the members of ``terms``, ``times``, ``when``.

    Members
    -------
    start : In(1)
        Strobe, while not ``busy``.
    terms : In(named_layout(steps, "term", width))
        Terms, counts and conditions. Each is looked at when the step before has ``ended``, in that cycle.
    times : In(named_layout(steps, "times", 16))
    when : In(named_layout(steps, "when", 1))
    busy : Out(1)
        From the cycle after ``start`` on.
    keep : Out(range(len(names_of(steps, "keep")) + 1))
        Of the present step: ``keeps`` has the numbers of the names; 0 is none.
    begun : Out(1)
        Strobe: ``term`` and ``count`` are those of the present step, and ``sum`` is what it adds to.
    ended : Out(1)
        Strobe: ``sum`` is complete. Of a step that adds nothing, with ``begun``; also before the first step and
        for one that is left out, with ``keep`` 0.
    term : Out(width)
        Meaningful with ``begun``.
    count : Out(16)
        Likewise.
    sum : Out(width)
        Modulo 2^width.
    over : Out(1)
        The sum of terms without a sign has not fit since it began with 0.
    """

    def __init__(self, width, steps):
        if not isinstance(width, int):
            raise TypeError(f"width must be an int, not {width!r}")
        if width < 1:
            raise ValueError(f"width must be positive, not {width!r}")
        self._steps = tuple(steps)
        #: Numbers of what is kept, by names.
        self.keeps = {name: number for number, name in enumerate(names_of(self._steps, "keep"), 1)}
        self._width = width
        super().__init__(
            {
                "start": In(1),
                "terms": In(named_layout(self._steps, "term", width)),
                "times": In(named_layout(self._steps, "times", _TIMES_BITS)),
                "when": In(named_layout(self._steps, "when", 1)),
                "busy": Out(1),
                "keep": Out(range(len(self.keeps) + 1)),
                "begun": Out(1),
                "ended": Out(1),
                "term": Out(width),
                "count": Out(_TIMES_BITS),
                "sum": Out(width),
                "over": Out(1),
            }
        )

    @property
    def most_cycles(self):
        """The most cycles from ``start`` to the first one without ``busy``: all bits of all counts are set."""
        return 2 + sum(1 + (step.more if step.times is None else _TIMES_BITS) for step in self._steps)

    def drive(self, m, others, **values):
        """Drives terms, counts and conditions with ``values`` by their names, or with members of a view, ``others``."""
        for port in (self.terms, self.times, self.when):
            m.d.comb += [port[name].eq(values[name] if name in values else others[name]) for name, _ in port.shape()]

    def elaborate(self, platform):
        m = Module()
        step = self._step(m)
        once, lost = Signal(), Signal()  # the term is to be added once more; bits of it fell off
        adding, twice, added = Signal(), Signal(), Signal(self._width + 1)
        doubled = Cat(Const(0, 1), self.term)
        m.d.comb += [
            adding.eq(self.busy & (once | self.count.any())),
            self.ended.eq(self.busy & ~adding),
            twice.eq(once & self.count[0]),
            added.eq(self.sum + Mux(twice, doubled[: self._width], self.term)),
        ]
        m.d.sync += self.begun.eq(0)
        with m.If(self.start):
            m.d.sync += [self.busy.eq(1), self.keep.eq(0)]
        with m.If(adding):
            with m.If(once | self.count[0]):
                m.d.sync += self.sum.eq(added)
                m.d.sync += self.over.eq(self.over | lost | (twice & self.term[-1]) | added[-1])
            m.d.sync += [
                once.eq(0),
                self.term.eq(doubled),
                lost.eq(lost | self.term[-1]),
                self.count.eq(self.count >> 1),
            ]
        with m.If(self.ended):
            m.d.sync += self.keep.eq(0)
            with m.If(step["end"]):
                m.d.sync += self.busy.eq(0)
            with m.Elif(step["when"]):
                m.d.sync += [
                    self.begun.eq(1),
                    self.keep.eq(step["keep"]),
                    Cat(self.term, lost).eq(step["term"]),
                    self.count.eq(step["times"]),
                    once.eq(step["more"]),
                ]
                with m.If(step["fresh"]):
                    m.d.sync += [self.sum.eq(0), self.over.eq(0)]
        return m

    def _step(self, m):
        """The values of what the next step names, by the attributes of a ``Step``, and whether there is none: ``end``.

        Steps are read from their table one ahead, so that the choice of terms begins at registers: a bit for each term.
        """
        terms = {SUM: Cat(self.sum, self.over), NOT_SUM: Cat(~self.sum, Const(0, 1))}
        used = {step.term for step in self._steps}
        choices = {
            "term": {name: value for name, value in terms.items() if name in used},
            "times": {None: Const(0, _TIMES_BITS)},
            "when": {None: Const(1, 1)},
        }
        for what, values in choices.items():
            values.update((name, getattr(self, _PORTS[what])[name]) for name in names_of(self._steps, what))
        bits = {what: len(values) for what, values in choices.items()}
        line = data.StructLayout(bits | {"more": 1, "fresh": 1, "keep": len(self.keep), "end": 1})
        index, read, now = Signal(range(len(self._steps) + 1)), Signal(line), Signal(line)
        with m.Switch(index):
            for number, step in enumerate(self._steps):
                with m.Case(number):
                    m.d.comb += [read[what].eq(1 << list(choices[what]).index(getattr(step, what))) for what in choices]
                    m.d.comb += [read.more.eq(step.more), read.fresh.eq(step.fresh)]
                    m.d.comb += read.keep.eq(self.keeps.get(step.keep, 0))
            with m.Default():
                m.d.comb += read.end.eq(1)
        with m.If(self.start | (self.ended & ~now.end)):
            m.d.sync += [now.eq(read), index.eq(Mux(read.end, 0, index + 1))]
        values = {
            what: reduce(or_, (Mux(one, value, 0) for one, value in zip(now[what], named.values(), strict=True)))
            for what, named in choices.items()
        }
        return values | {name: now[name] for name in ("more", "fresh", "keep", "end")}


#: What a step names -> the port that has it.
_PORTS = {"term": "terms", "times": "times", "when": "when"}
