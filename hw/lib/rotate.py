"""A barrel rotator."""

from amaranth.hdl import Mux, Signal

__all__ = ["rotate_bytes"]


def rotate_bytes(m, value, distance, *, left, name="rotated"):
    """``value`` rotated by so many bytes, one stage a bit of ``distance``.

    Each stage is a signal of its own: an expression that used the one before twice would double with every stage.

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
    for bit, on in enumerate(distance):
        stage = Signal(len(value), name=f"{name}{bit}")
        m.d.comb += stage.eq(value)
        bits = 8 << bit
        value = Mux(on, stage.rotate_left(bits) if left else stage.rotate_right(bits), stage)
    return value
