"""Sums, maxima and ORs over groups of neighbouring units, whose size may change from one cycle to the next."""

from functools import partial

from amaranth.hdl import Cat, Const, Mux, Signal, Value
from amaranth.utils import ceil_log2

from ..lib.logic import delay, named

__all__ = ["Groups", "add", "add_wrapping", "check_units", "either", "larger"]


def add(value, other, use):
    """For :meth:`Groups.reduce`: the sum, with 0 unless ``use``, as in the functions below."""
    return value + Mux(use, other, 0)


def add_wrapping(value, other, use):
    """The same modulo 2^32."""
    total = add(value, other, use)
    return total[:32].as_signed() if len(total) > 32 else total


def larger(value, other, use):
    """For :meth:`Groups.reduce`: the maximum."""
    return Mux(use & (other > value), other, value)


def either(value, other, use):
    """For :meth:`Groups.reduce`: the OR."""
    return value | Mux(use, other, 0)


def check_units(unit_bytes, sizes):
    """Raises ValueError if units of ``unit_bytes`` bytes cannot make groups of these sizes."""
    if unit_bytes % 2 or unit_bytes < 2:
        raise ValueError(f"unit_bytes must be even and 2 or more, not {unit_bytes!r}")
    if max(sizes) * unit_bytes > 64:
        raise ValueError(f"a group must have at most 64 bytes, not {max(sizes) * unit_bytes!r}")


class Groups:
    """``count`` units in a row; each ``sizes[select]`` neighbours are a group, from unit 0 on.

    The first unit of a group leads it. Reductions work in place and double their reach with every step, so that all
    sizes share their operators and no multiplexer follows. Only the results of leaders of complete groups are defined.

    Parameters
    ----------
    count : int
    sizes : sequence of int
        1 or more each.
    """

    def __init__(self, count, sizes):
        self.count = count
        self.sizes = tuple(sizes)

    @property
    def depth(self):
        """Steps to join the units of the largest group."""
        return ceil_log2(max(self.sizes))

    def leads(self, select, unit):
        """Whether ``unit`` leads a group."""
        return self._one_of(select, [index for index, size in enumerate(self.sizes) if unit % size == 0])

    def spread(self, m, values, select, *, name):
        """The value of its leader for every unit."""
        spread = []
        for unit in range(self.count):
            signal = Signal(Value.cast(values[unit]).shape(), name=f"{name}_{unit}")
            with m.Switch(select):
                for index, size in enumerate(self.sizes):
                    with m.Case(index):
                        m.d.comb += signal.eq(values[unit - unit % size])
            spread.append(signal)
        return spread

    def reduce(self, m, rows, selects, combine, *, name, steps=None):
        """One value a group, in its leader, ``len(selects)`` cycles later.

        Parameters
        ----------
        m : Module
        rows : sequence of sequences of Value
            The values of each unit, the same number for all; they are joined first.
        selects : sequence of Value
            Index of the size of groups, in each cycle of the pipeline.
        combine : function of value, other, use
            The operator; without ``use`` it gives ``value``.
        name : str
            Prefix of signal names.
        steps : sequence of int, optional
            Steps in each cycle; by default they are distributed evenly, more to the earlier cycles.

        Returns
        -------
        list of Value
        """
        order = [_halve] * ceil_log2(len(rows[0]))
        order += [partial(self._join, reach=1 << step) for step in range(self.depth)]
        per_cycle = -(-len(order) // len(selects))
        steps = [per_cycle] * len(selects) if steps is None else steps
        for cycle, (select, count) in enumerate(zip(selects, steps, strict=True)):
            now, order = order[:count], order[count:]
            for number, step in enumerate(now):
                rows = step(m, rows, select=select, combine=combine, name=f"{name}_{cycle}_{number}")
            rows = [
                [delay(m, value, 1, name=f"{name}_{cycle}_{unit}_{place}") for place, value in enumerate(row)]
                for unit, row in enumerate(rows)
            ]
        return [row[0] for row in rows]

    def _join(self, m, rows, *, reach, select, combine, name):
        """Units join the value ``reach`` further on, if it is of their group and no nearer unit joins it."""
        rows, uses = [list(row) for row in rows], self._uses(m, select, reach, name)
        for other, use in uses.items():
            unit = other - reach
            rows[unit] = [named(m, combine(rows[unit][0], rows[other][0], use), f"{name}_{unit}")]
        return rows

    def _uses(self, m, select, reach, name):
        """By unit: whether the one ``reach`` before it uses its value."""
        signals, use = {}, {}
        for unit in range(self.count):
            sizes = tuple(index for index, size in enumerate(self.sizes) if self._joins(unit, size, reach))
            if sizes:
                if sizes not in signals:
                    signals[sizes] = named(m, self._one_of(select, sizes), f"{name}_taken{len(signals)}")
                use[unit + reach] = signals[sizes]
        return use

    def _joins(self, unit, size, reach):
        member = unit % size
        return member % (2 * reach) == 0 and member + reach < size and unit + reach < self.count

    def _one_of(self, select, indexes):
        if len(indexes) == len(self.sizes):
            return Const(1)
        return Cat(select == index for index in indexes).any()


def _halve(m, rows, *, select, combine, name):
    """Joins the values of each unit in pairs; ``select`` is unused."""
    return [
        [
            named(m, combine(*pair, Const(1)), f"{name}_{unit}_{number}") if len(pair) == 2 else pair[0]
            for number, pair in enumerate(row[place : place + 2] for place in range(0, len(row), 2))
        ]
        for unit, row in enumerate(rows)
    ]
