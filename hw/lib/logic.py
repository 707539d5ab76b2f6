"""Functions that build logic in the module of their caller: delays, choices, shifts and small arithmetic."""

from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Const, Mux, Signal, Value

__all__ = [
    "ceil_divide",
    "delay",
    "digit_product",
    "is_one_of",
    "leading_zeros",
    "lowest_set",
    "masked_choice",
    "mux_tree",
    "named",
    "rotate_bytes",
    "shift_down",
]

#: Fraction bits of a reciprocal: the fewest with which every quotient of ``ceil_divide`` is exact.
_RECIPROCAL_BITS = 11


def named(m, value, name):
    """``value`` as a signal, so that an expression that uses it several times does not repeat it."""
    signal = Signal.like(value, name=name)
    m.d.comb += signal.eq(value)
    return signal


def delay(m, value, cycles, *, name, resets=False):
    """``value`` of ``cycles`` cycles ago, from registers that are called ``name`` and a number.

    They have no reset, so that tools may take LUTs that shift for three and more. With ``resets`` they do not.
    """
    for cycle in range(cycles):
        register = Signal(Value.cast(value).shape(), name=f"{name}_{cycle + 1}", reset_less=not resets)
        m.d.sync += register.eq(value)
        value = register
    return value


def mux_tree(code, values):
    """The value of a code, by two-way multiplexers; codes without a value take none.

    Parameters
    ----------
    code : Value
    values : dict of int to Value
        By code. The result is undefined for other codes. Codes that have the same object share it.
    """
    return _mux_tree(code, values, len(code) - 1)


def _mux_tree(code, values, bit):
    first = next(iter(values.values()))
    if all(value is first for value in values.values()):
        return first
    ones, zeros = ({key: value for key, value in values.items() if key >> bit & 1 == side} for side in (1, 0))
    if not ones or not zeros:
        return _mux_tree(code, values, bit - 1)
    return Mux(code[bit], _mux_tree(code, ones, bit - 1), _mux_tree(code, zeros, bit - 1))


def masked_choice(m, code, values, name):
    """The value of a code, each masked and all ORed: of up to four values a bit is a single LUT6.

    For words whose places choose from the same values: two-way multiplexers would be shared between bits and take more
    LUTs. Masks are called ``name`` and a number.
    """
    masked = []
    for number, value in enumerate(values):
        mask = Signal(name=f"{name}_is{number}")
        m.d.comb += mask.eq(code == number)
        masked.append(value & mask.replicate(len(value)))
    return reduce(or_, masked)


def lowest_set(bits):
    """Number of the lowest bit that is high, for :func:`mux_tree`; undefined if none is. ``bits`` are 2^n values."""
    if len(bits) == 1:
        return Cat()
    low, high = bits[: len(bits) // 2], bits[len(bits) // 2 :]
    in_low = Cat(low).any()
    return Cat(Mux(in_low, lowest_set(low), lowest_set(high)), ~in_low)


def leading_zeros(m, value):
    """Number of zeros above the highest one of ``value``, in a tree; all ones if ``value`` is zero."""
    width = 1 << (len(value) - 1).bit_length()
    # From the lowest place up: whether a part has a one, and the zeros above it.
    parts = [(bit, Const(0, 0)) for bit in Cat(Const(0, width - len(value)), value)]
    while len(parts) > 1:
        pairs = []
        for number, ((low, low_count), (high, high_count)) in enumerate(zip(parts[::2], parts[1::2], strict=True)):
            name = f"{len(parts) // 2}_{number}"
            count = Cat(Mux(high, high_count, low_count), ~high)
            pairs.append((named(m, low | high, f"some_{name}"), named(m, count, f"zeros_{name}")))
        parts = pairs
    return parts[0][1]


def is_one_of(code, values):
    """Whether the signal ``code`` is one of ``values``.

    It is compared, not looked up in a constant: Verilator (5.48 was tried) loses terms of an OR of constants that are
    shifted by a variable.
    """
    values = tuple(values)
    return code.matches(*values) if values else Const(0, 1)


def rotate_bytes(m, value, distance, *, left, inverse=None, name="rotated"):
    """``value`` rotated by ``distance`` bytes, left or right, in one stage for two bits of ``distance``.

    Each stage is a signal, so that the expression does not grow fourfold with every stage. Units that are two places
    apart choose from two common ones: ``inverse`` keeps tools from sharing these halves of a choice.

    Parameters
    ----------
    m : Module
    value : Value
        2^n bytes.
    distance : Value
        n bits.
    inverse : Value or None
        The inverted distance, from registers of its own.
    left : bool
        Towards the most significant byte.
    name : str
        Prefix of the stages' names.
    """
    for bit in range(0, len(distance), 2):
        step = distance[bit : bit + 2]
        stage = Signal(len(value), name=f"{name}{bit}")
        m.d.comb += stage.eq(value)
        distances = [8 * code << bit for code in range(1 << len(step))]
        rotated = [stage.rotate_left(bits) if left else stage.rotate_right(bits) for bits in distances]
        if inverse is None or len(step) == 1:
            value = masked_choice(m, step, rotated, f"{name}{bit}")
            continue
        unit, choices = 8 << bit, dict(enumerate(rotated))
        chosen = [mux_tree(code, choices) for code in (step, ~inverse[bit : bit + 2])]
        value = Cat(chosen[number >> 1 & 1].word_select(number, unit) for number in range(len(stage) // unit))
    return value


def shift_down(m, value, distance, *, unit=1):
    """``value`` shifted right by ``distance`` units of ``unit`` bits; its lowest bit also says if a one was lost.

    Parameters
    ----------
    m : Module
    value : Value
        Unsigned.
    distance : Value
    unit : int
        A power of two.
    """
    whole, stages = value, 0
    while stages < len(distance) and unit << stages < len(whole):
        step, stage = unit << stages, Signal(len(whole), name=f"down{unit << stages}")
        m.d.comb += stage.eq(Mux(distance[stages], Cat(value[: step + 1].any(), value[step + 1 :]), value))
        value, stages = stage, stages + 1
    return Mux(distance[stages:].any(), whole.any(), value) if stages < len(distance) else value


def digit_product(m, a, b):
    """The product of two small unsigned values in LUTs: tools take a multiplier of the device for any ``*``.

    Long multiplication in digits of two bits, each of which selects zero, one, two or three times ``a``. ``b`` has an
    even number of bits.
    """
    if len(b) % 2:
        raise ValueError(f"b must have an even number of bits, not {len(b)}")
    triple, carry, digits = Signal(len(a) + 2), 0, []
    m.d.comb += triple.eq(a + (a << 1))
    for bit in range(0, len(b), 2):
        total = Signal(len(a) + 2, name=f"total{bit}")
        m.d.comb += total.eq(carry + Mux(b[bit + 1], Mux(b[bit], triple, a << 1), Mux(b[bit], a, 0)))
        digits.append(total[:2])
        carry = total[2:]
    return Cat(*digits, carry)


def ceil_divide(raised, t):
    """``ceil(n / (t + 1))`` for n up to 256, the most elements of a box, and a ``t`` of three bits.

    ``raised`` is n + t, so that no adder precedes the multiplication by a reciprocal.
    """
    # An OR of masked constants: tools turn a choice of constants into a memory, whose contents induction does not know.
    reciprocals = (Mux(t == number, -(-(1 << _RECIPROCAL_BITS) // (number + 1)), 0) for number in range(8))
    return (raised * reduce(or_, reciprocals) >> _RECIPROCAL_BITS)[:9]
