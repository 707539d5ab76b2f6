"""Small products in tables."""

from amaranth.hdl import Cat, Mux, Signal

__all__ = ["digit_product"]


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
