"""Inputs that change at the same moment."""

from amaranth.hdl import Cat, Value

from .streams import packed

__all__ = ["set_together"]


def set_together(ctx, *inputs):
    """Sets inputs as ``ctx.set`` does one by one, but the design settles once and not after each.

    Parameters
    ----------
    *inputs : (value-like, value)
        Signals or their parts, and what :func:`packed` takes for each.

    Raises
    ------
    TypeError, ValueError
        As of :func:`packed`; then nothing is set.
    """
    signals, bits, offset = [], 0, 0
    for signal, value in inputs:
        bits |= packed(signal.shape(), value) << offset
        signals.append(Value.cast(signal))
        offset += len(signals[-1])
    ctx.set(Cat(signals), bits)
