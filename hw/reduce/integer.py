"""Reductions that need no float adder, on eight bytes."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, enum, wiring
from amaranth.lib.wiring import In, Out

from tilewright.spec import Element, Reduction

__all__ = ["IntegerReducer", "OperationLayout", "decode_operation", "reduce_integers"]

_PART = 16  # bits of the smallest elements, in which the operands are processed
_PARTS = 4
_WORD = 32


class _Kind(enum.Enum, shape=2):
    """The source of a result."""

    BITS = 0
    SUM = 1
    CHOICE = 2
    STEP = 3


class _Logic(enum.Enum, shape=2):
    """The function of BITS."""

    SOURCE = 0
    AND = 1
    OR = 2
    XOR = 3


#: By reduction; of all others the result is the source.
_OPERATIONS = {
    Reduction.ADD: (_Kind.SUM, _Logic.SOURCE),
    Reduction.MIN: (_Kind.CHOICE, _Logic.SOURCE),
    Reduction.MAX: (_Kind.CHOICE, _Logic.SOURCE),
    Reduction.INC: (_Kind.STEP, _Logic.SOURCE),
    Reduction.DEC: (_Kind.STEP, _Logic.SOURCE),
    Reduction.AND: (_Kind.BITS, _Logic.AND),
    Reduction.OR: (_Kind.BITS, _Logic.OR),
    Reduction.XOR: (_Kind.BITS, _Logic.XOR),
}


class OperationLayout(data.StructLayout):
    """A reduction of an element type, decoded for an :class:`IntegerReducer`."""

    def __init__(self):
        signs = ("half", "bfloat", "double", "signed_word", "signed_double")
        flags = ("compare", "start", "minimum", "decrement")
        super().__init__(dict.fromkeys(signs + flags, 1) | {"kind": _Kind, "logic": _Logic})


def decode_operation(m, reduction, element, floats, name):
    """The ``OperationLayout`` of ``spec.Reduction`` and ``spec.Element``, as a signal with this name."""
    decoded = Signal(OperationLayout(), name=name)
    bfloat, compare = element == Element.BF16, reduction != Reduction.ADD
    m.d.comb += [
        decoded.half.eq(((element == Element.F16) | bfloat) if floats else 0),
        decoded.bfloat.eq(bfloat if floats else 0),
        decoded.double.eq((element == Element.U64) | (element == Element.S64)),
        decoded.signed_word.eq(decoded.half | (element == Element.S32)),
        decoded.signed_double.eq(decoded.signed_word | (element == Element.S64)),
        decoded.compare.eq(compare),
        decoded.start.eq(compare & (reduction != Reduction.DEC)),
        decoded.minimum.eq(reduction == Reduction.MIN),
        decoded.decrement.eq(reduction == Reduction.DEC),
    ]
    with m.Switch(reduction):
        for number, (kind, logic) in _OPERATIONS.items():
            with m.Case(number):
                m.d.comb += [decoded.kind.eq(kind), decoded.logic.eq(logic)]
    return decoded


def _parts(value):
    return [value.word_select(part, _PART) for part in range(_PARTS)]


def _is_nan(part, bfloat):
    """Whether 16 bits are a NaN, of F16 or of BF16."""
    return part[10:15].all() & Mux(bfloat, part[7:10].all() & part[:7].any(), part[:10].any())


class IntegerReducer(wiring.Component):
    """Combines eight bytes: all reductions of integers, and minimum and maximum of 16-bit floats.

    The result is undefined for an element type that the reduction does not have, and for sums of floats.

    Latency: ``LATENCY`` cycles with ``enable``. Throughput: one result a cycle with ``enable``.

    Specification: docs/tmau.md, "Stores and reductions".

    Parameters
    ----------
    floats : bool
        There are 16-bit floats.
    """

    LATENCY = 2

    def __init__(self, floats=True):
        self._floats = floats
        super().__init__(
            {"old": In(64), "source": In(64), "operation": In(OperationLayout()), "enable": In(1), "o": Out(64)}
        )

    def elaborate(self, platform):
        m = Module()
        old, source, bits = Signal(64), Signal(64), Signal(64)
        first = self.operation
        half, double, bfloat = first.half, first.double, first.bfloat
        second = Signal(OperationLayout())
        total, above = Signal(64), Signal(_PARTS)
        old_nan, source_nan = Signal(_PARTS), Signal(_PARTS)
        chain_total, carries = self._chain(m, first)
        with m.Switch(second.logic):
            with m.Case(_Logic.AND):
                m.d.comb += bits.eq(old & source)
            with m.Case(_Logic.OR):
                m.d.comb += bits.eq(old | source)
            with m.Case(_Logic.XOR):
                m.d.comb += bits.eq(old ^ source)
            with m.Default():
                m.d.comb += bits.eq(source)
        with m.If(self.enable):
            m.d.sync += [
                old.eq(self.old),
                source.eq(self.source),
                second.eq(first),
                total.eq(chain_total),
                # An element has the carry of its last part.
                above.eq(Cat(Mux(half, carries[k], Mux(double, carries[-1], carries[k | 1])) for k in range(_PARTS))),
                old_nan.eq(Cat(half & _is_nan(part, bfloat) for part in _parts(self.old))),
                source_nan.eq(Cat(half & _is_nan(part, bfloat) for part in _parts(self.source))),
            ]
            with m.Switch(second.kind):
                with m.Case(_Kind.SUM):
                    m.d.sync += self.o.eq(total)
                with m.Case(_Kind.CHOICE):
                    use_old = above ^ second.minimum.replicate(_PARTS)
                    m.d.sync += self.o.eq(self._choose(old, source, use_old, old_nan, source_nan))
                with m.Case(_Kind.STEP):
                    words = (self._step(old, source, above, second.decrement, word) for word in range(2))
                    m.d.sync += self.o.eq(Cat(words))
                with m.Default():
                    m.d.sync += self.o.eq(bits)
        return m

    def _chain(self, m, operation):
        """The sum, or a comparison: the carry of an element says that old >= source, and for DEC that old > source.

        One carry chain is cut between elements. An additional place between two parts forwards the carry, or restarts
        the chain; the sum of that place is the incoming carry.
        """
        half, compare, start = operation.half, operation.compare, operation.start
        cuts = (half, ~operation.double, half, Const(1, 1))  # after each part
        a, b = [start], [start]
        ordered = (self._ordered(value, operation) for value in (self.old, self.source))
        for cut, old, source in zip(cuts, *ordered, strict=True):
            a += [old, ~cut | start]
            b += [source ^ compare.replicate(_PART), cut & start]
        chain = Signal(1 + _PARTS * (_PART + 1))
        m.d.comb += chain.eq(Cat(a) + Cat(b))
        places = [chain[1 + k * (_PART + 1) :] for k in range(_PARTS)]
        return Cat(place[:_PART] for place in places), Cat(place[_PART] for place in places)

    @staticmethod
    def _ordered(value, operation):
        """The parts of ``value``, mapped to unsigned numbers in the order of the elements, which keeps integer sums.

        The sign of signed numbers and of floats is inverted, and the other bits of negative floats: -0 is less than +0.
        """
        half = operation.half
        flips = (half, operation.signed_word, half, operation.signed_double)
        for part, flip in zip(_parts(value), flips, strict=True):
            below_zero = half & part[-1]
            yield Cat(part[:-1] ^ below_zero.replicate(_PART - 1), part[-1] ^ flip)

    @staticmethod
    def _choose(old, source, use_old, old_nan, source_nan):
        """The old part or the source, which wins against a NaN; of two NaNs the result is the canonical one."""
        parts = []
        for k, (a, b) in enumerate(zip(_parts(old), _parts(source), strict=True)):
            select = Mux(old_nan[k], 0, use_old[k] | source_nan[k])
            parts.append(Mux(old_nan[k] & source_nan[k], 0x7FFF, Mux(select, a, b))[:_PART])
        return Cat(parts)

    @staticmethod
    def _step(old, source, above, decrement, word):
        """INC or DEC of a word; see ``spec.Reduction``."""
        old, source = old.word_select(word, _WORD), source.word_select(word, _WORD)
        above = above[2 * word + 1]
        stepped = (old + Cat(1, decrement.replicate(_WORD - 1)))[:_WORD]
        down = Mux(above | (old == 0), source, stepped)
        return Mux(decrement, down, Mux(above, 0, stepped))


def reduce_integers(m, name, floats, **operands):
    """Two IntegerReducers for sixteen bytes, with their inputs by name; returns the result."""
    results = []
    for half in range(2):
        m.submodules[f"{name}{half}"] = unit = IntegerReducer(floats)
        halves = {side: operands[side].word_select(half, 64) for side in ("old", "source")}
        m.d.comb += [getattr(unit, operand).eq(value) for operand, value in (operands | halves).items()]
        results.append(unit.o)
    return Cat(results)
