"""Sums, maxima and the like over groups of neighbouring units, whose size may change from one cycle to the next."""

from functools import partial

from amaranth.hdl import Cat, Const, Mux, Signal, Value
from amaranth.utils import ceil_log2

from ..lib.logic import delay

__all__ = ["Groups", "add", "add_wrapping", "either", "larger"]


def add(value, other, taken):
    """For :meth:`Groups.reduce`: the sum. Without ``taken`` the other one is 0, as in the next two."""
    return value + Mux(taken, other, 0)


def add_wrapping(value, other, taken):
    """The same modulo 2^32."""
    total = add(value, other, taken)
    return total[:32].as_signed() if len(total) > 32 else total


def larger(value, other, taken):
    """For :meth:`Groups.reduce`: the maximum."""
    return Mux(taken & (other > value), other, value)


def either(value, other, taken):
    """For :meth:`Groups.reduce`: the OR."""
    return value | Mux(taken, other, 0)


class Groups:
    """``count`` units in a row, of which each ``sizes[select]`` neighbours are one group; unit 0 begins one.

    The first unit of a group leads it. Reductions work in place, doubling their reach with every step, so that sizes
    share their operators and there is nothing to choose from at the end: only the leaders' results mean something, and
    only those of groups with all their units.

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
        """Steps that join the units of the largest group."""
        return ceil_log2(max(self.sizes))

    def leads(self, select, unit):
        """Whether ``unit`` leads a group."""
        return self._one_of(select, [index for index, size in enumerate(self.sizes) if unit % size == 0])

    def spread(self, m, values, select, *, name):
        """To every unit the value of its leader."""
        chosen = []
        for unit in range(self.count):
            signal = Signal(Value.cast(values[unit]).shape(), name=f"{name}_{unit}")
            with m.Switch(select):
                for index, size in enumerate(self.sizes):
                    with m.Case(index):
                        m.d.comb += signal.eq(values[unit - unit % size])
            chosen.append(signal)
        return chosen

    def reduce(self, m, rows, selects, combine, *, name, steps=None):
        """One value a group, in its leader, ``len(selects)`` cycles later.

        Parameters
        ----------
        m : Module
        rows : sequence of sequences of Value
            Of every unit its own values, equally many; they are joined first.
        selects : sequence of Value
            Index of the groups' size, in each cycle of the pipeline.
        combine : function of value, other, taken
            The operator; without ``taken`` it gives ``value``.
        name : str
            Of the signals.
        steps : sequence of int, optional
            How many of the steps each cycle takes; without it the earlier ones take as many as all can.

        Returns
        -------
        list of Value
        """
        order = [_halve] * ceil_log2(len(rows[0]))
        order += [partial(self._join, reach=1 << step) for step in range(self.depth)]
        per_cycle = -(-len(order) // len(selects))
        steps = [per_cycle] * len(selects) if steps is None else steps
        others = {}  # by unit: its value where another one takes it, else 0
        for cycle, (select, count) in enumerate(zip(selects, steps, strict=True)):
            now, order = order[:count], order[count:]
            for number, step in enumerate(now):
                rows = step(m, rows, others, select=select, combine=combine, name=f"{name}_{cycle}_{number}")
                others = {}
            if order and combine is not larger and order[0] is not _halve:
                # Gates in front of a register are its reset: so they cost no tables, as they would behind it.
                reach = order[0].keywords["reach"]
                others = {
                    unit: delay(m, Mux(taken, rows[unit][0], 0), 1, name=f"{name}_{cycle}_other{unit}")
                    for unit, taken in self._taken(m, select, reach, f"{name}_{cycle}").items()
                }
            rows = [
                [delay(m, value, 1, name=f"{name}_{cycle}_{unit}_{place}") for place, value in enumerate(row)]
                for unit, row in enumerate(rows)
            ]
        return [row[0] for row in rows]

    def _join(self, m, rows, others, *, reach, select, combine, name):
        """Units take over what lies ``reach`` further on, if it is of their group and no nearer one takes it."""
        rows, all_taken = [list(row) for row in rows], self._taken(m, select, reach, name)
        for other, taken in all_taken.items():
            unit = other - reach
            value, taken = (others[other], Const(1)) if other in others else (rows[other][0], taken)
            rows[unit] = [_named(m, combine(rows[unit][0], value, taken), f"{name}_{unit}")]
        return rows

    def _taken(self, m, select, reach, name):
        """By unit: whether one that lies ``reach`` before it takes its value."""
        signals, taken = {}, {}
        for unit in range(self.count):
            takes = tuple(index for index, size in enumerate(self.sizes) if self._takes(unit, size, reach))
            if takes:
                if takes not in signals:
                    signals[takes] = _named(m, self._one_of(select, takes), f"{name}_taken{len(signals)}")
                taken[unit + reach] = signals[takes]
        return taken

    def _takes(self, unit, size, reach):
        member = unit % size
        return member % (2 * reach) == 0 and member + reach < size and unit + reach < self.count

    def _one_of(self, select, indexes):
        if len(indexes) == len(self.sizes):
            return Const(1)
        return Cat(select == index for index in indexes).any()


def _halve(m, rows, others, *, select, combine, name):
    """Each unit's own values in pairs; ``select`` and ``others`` do not matter."""
    return [
        [
            _named(m, combine(*pair, Const(1)), f"{name}_{unit}_{number}") if len(pair) == 2 else pair[0]
            for number, pair in enumerate(row[place : place + 2] for place in range(0, len(row), 2))
        ]
        for unit, row in enumerate(rows)
    ]


def _named(m, value, name):
    """``value`` as a signal, so that what uses it several times does not repeat it."""
    signal = Signal.like(value, name=name)
    m.d.comb += signal.eq(value)
    return signal
