"""Values of some cycles ago."""

from amaranth.hdl import Signal, Value

__all__ = ["delay"]


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
