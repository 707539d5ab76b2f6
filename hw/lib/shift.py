"""Shifts that tell of what falls off."""

from amaranth.hdl import Cat, Mux, Signal

__all__ = ["shift_down"]


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
