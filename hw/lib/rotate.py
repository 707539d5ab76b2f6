"""A barrel rotator."""

from amaranth.hdl import Cat, Signal

from .choice import chosen, masked

__all__ = ["rotate_bytes"]


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
