"""Rules that several kinds of commands obey: windows, and which reductions there are.

Functions of values, combinational; their users choose where the registers are.

Specification: docs/tmau.md, "Windows", "Stores and reductions".
"""

from amaranth import Cat, Const

from tilewright.golden.spec import Element, Reduction

from ...reduce.float_sums import is_summed

__all__ = ["above", "missing_floats", "no_reduction", "outside_global", "outside_shared", "reaches_out"]

_E, _R = Element, Reduction
_WHOLE = (_E.U32, _E.S32, _E.U64, _E.S64)
_EXTREMES = (*_WHOLE, _E.F16, _E.BF16)
#: Element types of each reduction.
_ELEMENTS = {
    _R.ADD: (_E.U32, _E.S32, _E.U64, _E.F16, _E.BF16, _E.F32),
    _R.MIN: _EXTREMES,
    _R.MAX: _EXTREMES,
    _R.INC: (_E.U32,),
    _R.DEC: (_E.U32,),
    _R.AND: _WHOLE,
    _R.OR: _WHOLE,
    _R.XOR: _WHOLE,
}


def no_reduction(reduction, element):
    """Whether there is no such reduction of the element type; also for ``Reduction.NONE``."""
    return ~Cat(
        (reduction == op) & Cat(element == member for member in elements).any() for op, elements in _ELEMENTS.items()
    ).any()


def missing_floats(params, element):
    """Whether reductions of the element type need floats, which the hardware lacks."""
    if params.has("reductions_float"):
        return Const(0)
    return is_summed(element)


def above(address, bits):
    """Whether an address has ones above its first ``bits`` bits: sums of the others are as long as those."""
    return address[bits:].any() if bits < len(address) else Const(0)


def outside_global(windows, first, last):
    """Whether bytes ``first`` … ``last`` leave the global window.

    Parameters
    ----------
    windows : View of WindowsLayout
    first, last : Value
        Byte addresses; ``last`` computed without wrap, or with one bit for all above those of memory.
    """
    end = 12 + len(windows.global_first)
    return windows.confine_global & (
        last[end:].any() | (first[12:end] < windows.global_first) | (last[12:end] > windows.global_last)
    )


def outside_shared(windows, first, last):
    """Whether bytes ``first`` … ``last`` of shared memory, both addresses that exist, leave the shared window."""
    return windows.confine_shared & ((first >> 7 < windows.shared_first) | (last >> 7 > windows.shared_last))


def reaches_out(windows, first, end):
    """As :func:`outside_shared`, of the bytes from ``first`` to in front of ``end``: nothing is subtracted first."""
    beyond = Cat(Const(0, 7), windows.shared_last + 1) < end
    return windows.confine_shared & ((first >> 7 < windows.shared_first) | beyond)
