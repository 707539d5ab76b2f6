"""A barrel rotator."""

from amaranth.hdl import Signal

from .choice import masked

__all__ = ["rotate_bytes"]


def rotate_bytes(m, value, distance, *, left, name="rotated"):
    """``value`` rotated by so many bytes, one stage for two bits of ``distance``.

    Each stage is a signal of its own: an expression that used the one before four times would grow with every stage.

    Parameters
    ----------
    m : Module
    value : Value
        A power of two of bytes.
    distance : Value
        Bytes; as many bits as it takes to reach every byte.
    left : bool
        Towards the most significant byte.
    name : str
        Of the stages.
    """
    for bit in range(0, len(distance), 2):
        by = distance[bit : bit + 2]
        stage = Signal(len(value), name=f"{name}{bit}")
        m.d.comb += stage.eq(value)
        places = [8 * turns << bit for turns in range(1 << len(by))]
        value = masked(m, by, [stage.rotate_left(n) if left else stage.rotate_right(n) for n in places], f"{name}{bit}")
    return value
