"""Values of some cycles ago."""

from functools import reduce
from operator import or_

from amaranth import Module, unsigned
from amaranth import Mux as DivideMux
from amaranth.hdl import Cat, Const, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["CeilDivider", "chosen", "delay", "digit_product", "first_of", "is_one_of", "masked", "rotate_bytes",
           "shift_down"]  # fmt: skip


def delay(m, value, cycles, *, name):
    """``value`` as it was ``cycles`` cycles ago; unknown in the first cycles, for the registers have no reset.

    Parameters
    ----------
    m : Module
    value : value
    cycles : int
    name : str
        Of the registers; the number of cycles follows it.
    """
    for cycle in range(cycles):
        register = Signal(Value.cast(value).shape(), name=f"{name}_{cycle + 1}", reset_less=True)
        m.d.sync += register.eq(value)
        value = register
    return value


def chosen(code, values):
    """The value of a code: two-way multiplexers, and none for codes that do not come.

    Parameters
    ----------
    code : Value
    values : dict of int to Value
        By code. Of codes that are not here any may come out; codes of the very same value are not told apart.

    Returns
    -------
    Value
    """
    return _chosen(code, values, len(code) - 1)


def _chosen(code, values, bit):
    first = next(iter(values.values()))
    if all(value is first for value in values.values()):
        return first
    ones, zeros = ({key: value for key, value in values.items() if key >> bit & 1 == one} for one in (1, 0))
    if not ones or not zeros:
        return _chosen(code, values, bit - 1)
    return Mux(code[bit], _chosen(code, ones, bit - 1), _chosen(code, zeros, bit - 1))


def first_of(bits):
    """Number of the lowest bit that is high: a code for :func:`chosen`. If none is, any may come out.

    Parameters
    ----------
    bits : list of Value
        A power of two of them.

    Returns
    -------
    Value
    """
    if len(bits) == 1:
        return Cat()
    below, above = bits[: len(bits) // 2], bits[len(bits) // 2 :]
    here = Cat(below).any()
    return Cat(Mux(here, first_of(below), first_of(above)), ~here)


def masked(m, code, values, name):
    """The value of a code, each masked and all joined: what neighbours choose from the same values is not shared.

    Bits of a choice of four then fit one six-input table each. Two-way multiplexers, where neighbours have some in
    common as in a rotator, are mapped one by one.

    Parameters
    ----------
    m : Module
    code : Value
    values : list of Value
        For each code that comes, of the same width.
    name : str
        Of the masks.

    Returns
    -------
    Value
    """
    parts = []
    for number, value in enumerate(values):
        on = Signal(name=f"{name}_is{number}")
        m.d.comb += on.eq(code == number)
        parts.append(value & on.replicate(len(value)))
    return reduce(or_, parts)


def is_one_of(code, values):
    """Whether ``code`` is one of ``values``.

    Compared, and not looked up in a constant: Verilator (5.48 was tried) loses terms of an OR of constants that
    are shifted by a variable.

    Parameters
    ----------
    code : Value
        A signal, as it is used for each of the values.
    values : iterable of int

    Returns
    -------
    Value
        One bit.
    """
    values = tuple(values)
    return code.matches(*values) if values else Const(0, 1)


def rotate_bytes(m, value, distance, *, left, complement=None, name="rotated"):
    """``value`` rotated by so many bytes, one stage for two bits of ``distance``.

    Each stage is a signal of its own: an expression that used the one before four times would grow with every stage.
    Four bytes that are chosen from have two in common with those of the byte two places further: the tree of two-way
    multiplexers would share its halves, and not be found to be a choice of four. With ``complement`` such bytes are
    chosen by different registers: two tables of four inputs for each bit, where it would be three. Without, they are
    masked, which is a single table of six.

    Parameters
    ----------
    m : Module
    value : Value
        A power of two of bytes.
    distance : Value
        Bytes; as many bits as it takes to reach every byte.
    left : bool
        Towards the most significant byte.
    complement : Value or None
        That of ``distance``, from registers of its own: no tool sees that they tell the same.
    name : str
        Of the stages.
    """
    for bit in range(0, len(distance), 2):
        by = distance[bit : bit + 2]
        stage = Signal(len(value), name=f"{name}{bit}")
        m.d.comb += stage.eq(value)
        if complement is not None and len(by) == 2:
            value = _by_turns(stage, (by, ~complement[bit : bit + 2]), 8 << bit, left)
            continue
        places = [8 * turns << bit for turns in range(1 << len(by))]
        value = masked(m, by, [stage.rotate_left(n) if left else stage.rotate_right(n) for n in places], f"{name}{bit}")
    return value


def _by_turns(value, codes, size, left):
    """``value`` rotated by one of both codes, in units of ``size`` bits, two of which have the same one."""
    units = [value.word_select(unit, size) for unit in range(len(value) // size)]
    back = 1 if left else -1

    def unit(n):
        return chosen(codes[n >> 1 & 1], {turns: units[(n - back * turns) % len(units)] for turns in range(4)})

    return Cat(unit(n) for n in range(len(units)))


def shift_down(m, value, distance, *, unit=1):
    """``value`` shifted to the right; its last bit is also set if any bit was lost.

    Combinational. Each stage is a signal: what uses it several times does not repeat it.

    Parameters
    ----------
    m : Module
    value : Value
        Unsigned.
    distance : Value
        Places to shift by, in units.
    unit : int
        Places of a unit, a power of two.
    """
    whole, stages = value, 0
    while stages < len(distance) and unit << stages < len(whole):
        step, moved = unit << stages, Signal(len(whole), name=f"down{unit << stages}")
        m.d.comb += moved.eq(Mux(distance[stages], Cat(value[: step + 1].any(), value[step + 1 :]), value))
        value, stages = moved, stages + 1
    return Mux(distance[stages:].any(), whole.any(), value) if stages < len(distance) else value


def digit_product(m, a, b):
    """``a`` times ``b``, in tables: tools take a multiplier of the device for a ``*``, however small.

    Combinational. Longhand, in digits of two bits: each chooses among none, one, two and three times ``a``. The last
    two places of a sum are those of the result.

    Parameters
    ----------
    m : Module
    a, b : Value
        Unsigned; ``b`` of an even number of bits.

    Returns
    -------
    Value
    """
    if len(b) % 2:
        raise ValueError(f"b must have an even number of bits, not {len(b)}")
    thrice, carried, places = Signal(len(a) + 2), 0, []
    m.d.comb += thrice.eq(a + (a << 1))
    for place in range(0, len(b), 2):
        total = Signal(len(a) + 2, name=f"total{place}")
        m.d.comb += total.eq(carried + Mux(b[place + 1], Mux(b[place], thrice, a << 1), Mux(b[place], a, 0)))
        places.append(total[:2])
        carried = total[2:]
    return Cat(*places, carried)


_PLACES = 11  # of a reciprocal: the fewest with which every quotient is right


class CeilDivider(wiring.Component):
    """Combinational ``ceil(n / t)`` for a traversal stride t of 1 to 8: a small multiplier and a table of reciprocals.

    A box has at most 256 elements, which keeps n below nine bits. Whoever has it adds the divisor minus one, so that no
    sum is in front of the multiplier.

    Members
    -------
    more : In(unsigned(9))
        Dividend, 0 to 256, plus ``t``.
    t : In(unsigned(3))
        Divisor minus one, as descriptors store it.
    o : Out(unsigned(9))
        Quotient, rounded up.
    """

    more: In(unsigned(9))
    t: In(unsigned(3))
    o: Out(unsigned(9))

    def elaborate(self, platform):
        m = Module()
        # Not as a choice of constants, of which tools make a memory, whose contents a proof by induction does not know.
        reciprocals = (DivideMux(self.t == divisor - 1, -(-(1 << _PLACES) // divisor), 0) for divisor in range(1, 9))
        m.d.comb += self.o.eq(self.more * reduce(or_, reciprocals) >> _PLACES)
        return m
