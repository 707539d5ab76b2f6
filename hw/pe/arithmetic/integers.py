"""The integer functions of all threads: sums, logic, shifts, products, packing, look-up."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ...lib.logic import delay, mux_tree, named
from .integer_control import integer_controls
from .multiplier import Multiplier
from .steps import add

__all__ = ["IntegerRow"]


class IntegerRow(wiring.Component):
    """Integer functions, of units ``alu`` and ``lookup``, for all threads.

    Latency: ``LATENCY`` cycles. Throughput: one function a cycle.

    Parameters
    ----------
    threads : int
    lookup_words : int or None
        Entries of the lookup memory of each thread; None: there is none.
    """

    LATENCY = 7

    def __init__(self, threads, lookup_words=None):
        self._threads, self._lookup_words = threads, lookup_words
        words = data.ArrayLayout(32, threads)
        super().__init__(
            {
                # A cycle before the operands.
                "function": In(8),
                "part": In(3),
                "first": In(threads),  # predicate ``ps``
                "second": In(threads),  # predicate ``part``
                "a": In(words),  # 0 if the function has no operand a
                "b": In(words),  # 0 if it has no operand b
                "c": In(words),
                "o": Out(words),
                "holds": Out(threads),  # result for a predicate, in the same cycle as ``o``
                # Entries of all lookup memories, while no function looks up.
                **(
                    {"entry_write": In(1), "entry": In(range(lookup_words)), "entry_data": In(32)}
                    if lookup_words
                    else {}
                ),
            }
        )

    def elaborate(self, platform):
        m = Module()
        self.at = integer_controls(m, self.function, self.part, self._threads)
        for thread in range(self._threads):
            lane = _Lane(m, self, thread)
            lane.build()
        return m


class _Lane:
    """One thread of an IntegerRow, in its module."""

    def __init__(self, m, row, thread):
        self._m, self._row, self._thread = m, row, thread
        self._a, self._b = row.a[thread], row.b[thread]

    def _register(self, name, shape=32):
        return Signal(shape, name=f"{name}{self._thread}", reset_less=True)

    def _late(self, value, cycles, name):
        return delay(self._m, value, cycles, name=f"{name}{self._thread}")

    def build(self):
        m, row, thread = self._m, self._row, self._thread
        c1 = self._late(row.c[thread], 1, "c")
        x, y = self._operands()
        total, less = self._sum(x, y)
        x2, y2 = self._late(x, 1, "x_late"), self._late(y, 1, "y_late")
        limited = self._limit(total, less, x2, y2)
        self._compare(total, less)
        c3 = self._late(c1, 2, "c_late")
        looked, packed = self._look_up(total, limited, c3), self._pack(x, y, x2, y2, c3)
        looked, packed = (
            delay(m, value, 2, name=f"{name}_late{thread}", resets=True)
            for name, value in (("looked", looked), ("packed", packed))
        )
        low, high = self._product(c1)
        choices = {0: looked, 1: packed, 2: low, 3: high}
        m.d.sync += row.o[thread].eq(mux_tree(row.at[6].result, choices))

    def _operands(self):
        """Cycle 0: operand a, or a part of it; operand b, or operand a of another thread."""
        m, row, thread, a, at = self._m, self._row, self._thread, self._a, self._row.at[0]
        x, y = self._register("x"), self._register("y")
        byte = mux_tree(at.byte, {n: a.word_select(n, 8) for n in range(4)})
        sign = named(
            m, (at.signed_byte & byte[7]) | (at.signed_half & Mux(at.upper_half, a[31], a[15])), f"sign{thread}"
        )
        second = Mux(at.bytes, sign.replicate(8), Mux(at.upper_half, a[24:], a[8:16]))
        m.d.sync += x.eq(Cat(byte, second, Mux(at.extends, sign.replicate(16), a[16:])))
        with m.If(at.clears):
            m.d.sync += x.eq(0)
        swapped = self._b
        for bit, swap in enumerate(at.swaps):
            other = thread ^ 1 << bit
            swapped = swapped | (row.a[other] if other < row._threads else a) & swap.replicate(32)
        m.d.sync += y.eq(swapped)
        return x, y

    def _sum(self, x, y):
        """Cycle 1: the sum or difference of words or bytes; which of them are less."""
        m, row, thread, at = self._m, self._row, self._thread, self._row.at[1]
        # One adder serves words and bytes: a bit between two bytes passes the carry on, or sets that of the next byte.
        ends, begins = at.subtracts & at.four, at.subtracts | ~at.four
        left, right = [], []
        for n in range(4):
            left += [x.word_select(n, 8), ends if n < 3 else 0]
            right += [y.word_select(n, 8) ^ at.subtracts.replicate(8), begins if n < 3 else 0]
        total, less = self._register("sum", 36), self._register("less", 4)
        places = named(m, add(Cat(left), Cat(right), at.subtracts), f"places{thread}")
        m.d.sync += total.eq(places)
        first = self._late(row.first[thread], 1, "first")
        # Without a carry the difference is negative. Signs are compared the other way round.
        for n in range(4):
            top = 8 * n + 7
            negative = ~places[9 * n + 8] ^ (at.signed & (x[top] ^ y[top]))
            m.d.sync += less[n].eq(Mux(at.sel, first, negative) if n == 3 else negative)
        with m.If(~at.compares):
            m.d.sync += less.eq(0)
        return Cat(total[9 * n : 9 * n + 8] for n in range(4)), less

    def _limit(self, total, less, x, y):
        """Cycle 2: the minimum or maximum, byte by byte, or logic, or the sum."""
        m, thread, at = self._m, self._thread, self._row.at[2]
        limited, bytes_ = self._register("limited"), []
        for n in range(4):
            left, right = x.word_select(n, 8), y.word_select(n, 8)
            one = named(m, Mux(at.four, less[n], less[3]) ^ at.flips, f"one{thread}_{n}").replicate(8)
            modes = {0: total.word_select(n, 8), 1: Mux(one, left, right), 2: Mux(one, left & right, left | right)}
            modes[3] = left ^ right
            bytes_.append(mux_tree(at.mode, modes))
        m.d.sync += limited.eq(Cat(bytes_))
        return limited

    def _compare(self, total, less):
        """Cycle 2: the result for a predicate, before the others."""
        m, row, thread, at = self._m, self._row, self._thread, self._row.at[2]
        first, second = row.first[thread], row.second[thread]
        joined = mux_tree(row.at[0].join, {0: first & second, 1: first & ~second, 2: first | second, 3: first ^ second})
        joins = self._register("joins", 1)
        m.d.sync += joins.eq(self._late(joined, 1, "joined"))
        with m.If(~row.at[1].joins):
            m.d.sync += joins.eq(0)
        zero = named(m, total == 0, f"zero{thread}")
        holds = joins | (((at.orders & less[3]) | (at.equal & zero)) ^ at.inverts)
        m.d.comb += row.holds[thread].eq(self._late(holds, row.LATENCY - 2, "holds"))

    def _pack(self, x, y, x2, y2, c):
        """Cycles 1 and 2: both operands saturated to bytes or halves; cycle 3: put together."""
        m, at, places = self._m, self._row.at[2], self._row.at[3].places
        (first, first_above), (second, second_above) = (self._saturate(*each) for each in (("x", x, x2), ("y", y, y2)))
        # Bytes of the result below whose sign all bits are one, because the operand is too large.
        above = (
            first_above, Mux(at.pack_bytes, second_above, first_above),
            Mux(at.pack_bytes, first_above, second_above), second_above,
        )  # fmt: skip
        ones = self._late(Cat(above), 1, "ones")
        low, high = first[:8], first[8:]
        low2, high2 = second[:8], second[8:]
        packed = self._register("packed")
        # By code: halves; bytes in the lower half; bytes in the upper half.
        bytes_ = {
            0: {0: (low, ones[0]), 1: (low, ones[0]), 3: (c[:8], 0)},
            1: {0: (high, ones[1]), 1: (low2, ones[1]), 3: (c[8:16], 0)},
            2: {0: (low2, ones[2]), 1: (Const(0, 8), 0), 3: (low, ones[2])},
            3: {0: (high2, ones[3]), 1: (Const(0, 8), 0), 3: (low2, ones[3])},
        }
        for n, choices in bytes_.items():
            words = {code: value | Cat(Value.cast(one).replicate(7), 0) for code, (value, one) in choices.items()}
            m.d.sync += packed.word_select(n, 8).eq(mux_tree(places, words))
        return packed

    def _saturate(self, name, early, value):
        """A word as a byte or half, which is 0 below its sign if the word is too small; whether it is too large.

        ``early`` is the word in cycle 1, ``value`` in cycle 2. Groups of its bits are compared with its sign first.
        """
        m, thread, at = self._m, self._thread, self._row.at[1]
        sign, groups = early[31], []
        for begin, end, counts in (
            (16, 21, 1),
            (21, 26, 1),
            (26, 31, 1),
            (8, 12, at.pack_bytes),
            (12, 16, at.pack_bytes),
        ):
            groups.append(counts & (early[begin:end] ^ sign.replicate(end - begin)).any())
        highest = Mux(at.pack_bytes, early[7], early[15])
        groups.append(Mux(at.pack_unsigned, sign, highest ^ sign))
        outside = named(m, self._late(Cat(groups), 1, f"outside_{name}").any(), f"outside_{name}{thread}")
        at, sign = self._row.at[2], value[31]
        above, below = ~sign & outside, sign & outside
        narrow = self._register(f"narrow_{name}", 16)
        m.d.sync += narrow.eq(value[:16])
        with m.If(below):
            m.d.sync += narrow.eq(0)
        for bit, is_sign in ((7, at.pack_bytes), (15, ~at.pack_bytes)):
            within = (value[bit] | above) & ~below
            m.d.sync += narrow[bit].eq(Mux(is_sign & ~at.pack_unsigned, sign, within))
        return narrow, above

    def _product(self, c):
        """Cycle 6: the lower and the upper half of a product, or of a shifted word."""
        m, (at, next_at) = self._m, (self._row.at[0], self._row.at[1])
        m.submodules[f"multiplier{self._thread}"] = multiplier = Multiplier()
        m.d.comb += [
            multiplier.bytes.eq(at.dp4),
            multiplier.a_signed.eq(Mux(at.dp4, ~at.part[1], at.mulh | at.sar)),
            multiplier.b_signed.eq(Mux(at.dp4, ~at.part[0], at.mulh)),
            multiplier.shifts.eq(at.shifts),
            multiplier.right.eq(at.right),
            multiplier.a.eq(self._a),
            multiplier.b.eq(self._b),
            multiplier.c.eq(c),
            multiplier.adds.eq(next_at.mad),
            multiplier.adds_to_bytes.eq(next_at.dp4),
        ]
        return multiplier.low, multiplier.high

    def _look_up(self, total, limited, old):
        """Cycle 3: the entry of the lookup memory, or what is not from there."""
        m, row, looks = self._m, self._row, self._row.at[3].looks
        looked = self._register("looked")
        if not row._lookup_words:
            m.d.sync += looked.eq(limited)
            return looked
        memory = Memory(shape=32, depth=row._lookup_words, init=[])
        m.submodules[f"lookup{self._thread}"] = memory
        read, write = memory.read_port(), memory.write_port()
        m.d.comb += [
            read.addr.eq(total),
            write.addr.eq(row.entry),
            write.data.eq(row.entry_data),
            write.en.eq(row.entry_write),
        ]
        for n in range(4):
            byte = slice(8 * n, 8 * n + 8)
            choices = {0: limited[byte], 1: read.data[byte], 2: read.data[:8], 3: old[byte]}
            m.d.sync += looked[byte].eq(mux_tree(looks[2 * n : 2 * n + 2], choices))
        return looked
