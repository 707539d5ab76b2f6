"""A sequence of sums of products, computed with one adder."""

from functools import reduce
from operator import or_
from typing import NamedTuple

from amaranth.hdl import Cat, Const, Module, Mux, Signal, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["NOT_SUM", "SUM", "Calculator", "Step", "named_layout", "names_of"]

#: Terms of every calculator: the sum, and its complement, which is -sum - 1.
SUM, NOT_SUM = "sum", "not_sum"
_TIMES_BITS = 16


class Step(NamedTuple):
    """A step adds ``term`` · ``times`` to the sum, and with ``more`` the term once more.

    Attributes
    ----------
    term : str
        A term, ``SUM`` or ``NOT_SUM``.
    times : str or None
        A count; None is 0.
    more : bool
        For counts that are stored minus one.
    fresh : bool
        The sum begins with 0; the term may be the previous sum.
    when : str or None
        The step is skipped if this condition is 0.
    keep : str or None
        A name that tells the user what to do with the sum.
    """

    term: str
    times: str | None = None
    more: bool = False
    fresh: bool = False
    when: str | None = None
    keep: str | None = None


def names_of(steps, attribute):
    """The list of names in one attribute of steps, ``term``, ``times``, ``when`` or ``keep``, in order, each once."""
    names = dict.fromkeys(getattr(step, attribute) for step in steps)
    return [name for name in names if name not in (None, SUM, NOT_SUM)]


def named_layout(steps, attribute, width):
    """Layout of numbers of ``width`` bits, one for each of ``names_of``."""
    return data.StructLayout({name: unsigned(width) for name in names_of(steps, attribute)})


class Calculator(wiring.Component):
    """Performs a sequence of steps, each of which adds a product to a sum, bit by bit.

    Latency: a step takes a cycle, and a cycle for each bit of its count up to the highest one that is set, at least one
    with ``more``. A skipped step takes a cycle. ``busy`` falls a cycle after the last step.

    Parameters
    ----------
    width : int
        Bits of terms and of the sum.
    steps : sequence of Step
        Their names become the members of ``terms``, ``times`` and ``when``.
    """

    def __init__(self, width, steps):
        if not isinstance(width, int):
            raise TypeError(f"width must be an int, not {width!r}")
        if width < 1:
            raise ValueError(f"width must be positive, not {width!r}")
        self._steps = tuple(steps)
        #: Values of ``keep`` by name.
        self.keeps = {name: number for number, name in enumerate(names_of(self._steps, "keep"), 1)}
        self._width = width
        super().__init__(
            {
                "start": In(1),  # Strobe, while not ``busy``.
                # Each is read when the previous step has ``ended``, in that cycle.
                "terms": In(named_layout(self._steps, "term", width)),
                "times": In(named_layout(self._steps, "times", _TIMES_BITS)),
                "when": In(named_layout(self._steps, "when", 1)),
                "busy": Out(1),  # from the cycle after ``start`` on
                # Of the current step: a value of ``keeps``, or 0 for none.
                "keep": Out(range(len(self.keeps) + 1)),
                # Strobe: ``term`` and ``count`` are those of the current step, and ``sum`` is still the previous sum.
                "begun": Out(1),
                # Strobe: ``sum`` is complete; together with ``begun`` if a step adds nothing. With ``keep`` 0 also
                # before the first step and for a skipped step.
                "ended": Out(1),
                "term": Out(width),  # as ``count``, valid with ``begun``
                "count": Out(_TIMES_BITS),
                "sum": Out(width),  # modulo 2^width
                "over": Out(1),  # the unsigned sum has overflowed since it began with 0
            }
        )

    @property
    def most_cycles(self):
        """The maximum cycles from ``start`` to the first one without ``busy``: all bits of all counts are set."""
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
        """The next step, by the attributes of a ``Step``, with values for its names; ``end`` if there is none.

        Steps are decoded one ahead, so that terms are selected by registers, with a bit for each term.
        """
        terms = {SUM: Cat(self.sum, self.over), NOT_SUM: Cat(~self.sum, Const(0, 1))}
        used = {step.term for step in self._steps}
        choices = {
            "term": {name: value for name, value in terms.items() if name in used},
            "times": {None: Const(0, _TIMES_BITS)},
            "when": {None: Const(1, 1)},
        }
        for attribute, port in (("term", self.terms), ("times", self.times), ("when", self.when)):
            choices[attribute].update((name, port[name]) for name in names_of(self._steps, attribute))
        bits = {attribute: len(values) for attribute, values in choices.items()}
        decoded = data.StructLayout(bits | {"more": 1, "fresh": 1, "keep": len(self.keep), "end": 1})
        index, following, current = Signal(range(len(self._steps) + 1)), Signal(decoded), Signal(decoded)
        with m.Switch(index):
            for number, step in enumerate(self._steps):
                with m.Case(number):
                    for attribute, values in choices.items():
                        m.d.comb += following[attribute].eq(1 << list(values).index(getattr(step, attribute)))
                    m.d.comb += [following.more.eq(step.more), following.fresh.eq(step.fresh)]
                    m.d.comb += following.keep.eq(self.keeps.get(step.keep, 0))
            with m.Default():
                m.d.comb += following.end.eq(1)
        with m.If(self.start | (self.ended & ~current.end)):
            m.d.sync += [current.eq(following), index.eq(Mux(following.end, 0, index + 1))]
        selected = {
            attribute: reduce(
                or_, (Mux(bit, value, 0) for bit, value in zip(current[attribute], values.values(), strict=True))
            )
            for attribute, values in choices.items()
        }
        return selected | {name: current[name] for name in ("more", "fresh", "keep", "end")}
