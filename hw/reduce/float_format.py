"""Floating-point formats, and their numbers taken apart."""

from dataclasses import dataclass
from types import SimpleNamespace

from amaranth.hdl import Array, Cat, Const, Signal

__all__ = ["BF16", "F16", "F32", "FloatFormat", "unpack"]


@dataclass(frozen=True)
class FloatFormat:
    """A binary format of IEEE 754.

    Attributes
    ----------
    exponent, mantissa : int
        Bits, the hidden one not counted.
    flush : bool
        Subnormal operands and sums are zeros of their sign.
    """

    exponent: int
    mantissa: int
    flush: bool = False

    @property
    def width(self):
        """Bits of a number."""
        return 1 + self.exponent + self.mantissa


F16 = FloatFormat(5, 10)
BF16 = FloatFormat(8, 7)
F32 = FloatFormat(8, 23, flush=True)


def unpack(m, name, formats, index, value, exponent_bits, mantissa_bits):
    """The parts of ``value``, a number of ``formats[index]``, at the widths of the largest format.

    Returns
    -------
    namespace of Signal
        ``sign``; ``size``, which orders the numbers without their signs; ``exponent``, at least 1; ``significand``,
        with the hidden bit on top and flushed to zero if the format says so; ``nan`` and ``infinite``.
    """
    parts = [_parts(fmt, value, mantissa_bits) for fmt in formats]
    widths = {
        "sign": 1,
        "size": exponent_bits + mantissa_bits,
        "exponent": exponent_bits,
        "significand": 1 + mantissa_bits,
        "nan": 1,
        "infinite": 1,
    }
    chosen = {part: Signal(width, name=f"{name}_{part}") for part, width in widths.items()}
    m.d.comb += [signal.eq(Array(each[part] for each in parts)[index]) for part, signal in chosen.items()]
    return SimpleNamespace(**chosen)


def _parts(fmt, value, mantissa_bits):
    mantissa, exponent = value[: fmt.mantissa], value[fmt.mantissa : fmt.width - 1]
    hidden = exponent.any()
    kept = mantissa & hidden.replicate(fmt.mantissa) if fmt.flush else mantissa
    return {
        "sign": value[fmt.width - 1],
        "size": value[: fmt.width - 1],
        "exponent": Cat(exponent[0] | ~hidden, exponent[1:]),
        "significand": Cat(Const(0, mantissa_bits - fmt.mantissa), kept, hidden),
        "nan": exponent.all() & mantissa.any(),
        "infinite": exponent.all() & ~mantissa.any(),
    }
