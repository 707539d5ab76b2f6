"""The integer functions of all threads: sums, logic, shifts, products, packing, look-up."""

from types import SimpleNamespace

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from tilewright.spec.arithmetic import Function

from ...lib.logic import delay, is_one_of, mux_tree
from .multiplier import Multiplier

__all__ = ["IntegerRow"]

_SIGNS4 = 0x80808080
_SIGN = 0x80000000


class IntegerRow(wiring.Component):
    """Integer functions, of units ``alu`` and ``lookup``, for all threads.

    Latency: ``LATENCY`` cycles. Throughput: one function a cycle.

    Parameters
    ----------
    threads : int
    lookup_words : int or None
        Entries of the lookup memory of each thread; None: there is none.
    """

    LATENCY = 5

    def __init__(self, threads, lookup_words=None):
        self._threads, self._lookup_words = threads, lookup_words
        words = data.ArrayLayout(32, threads)
        super().__init__(
            {
                "function": In(8),
                "part": In(3),
                "first": In(threads),  # predicate ``ps``
                "second": In(threads),  # predicate ``part``
                "a": In(words),  # 0 if the function has no operand a
                "b": In(words),
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
        self._decode(m)
        for thread in range(self._threads):
            lane = _Lane(m, self, thread)
            lane.build()
        return m

    def _decode(self, m):
        """Controls that all lanes share, by the cycle in which they are used: ``is0`` to ``is4``."""
        groups = {
            "bytes": "XB XBU LOOKUP LOOKB",
            "halves": "XH XHU",
            "signed_part": "XB XH",
            "sel": "SEL",
            "shfl": "SHFL",
            "subtracts": "SUB SUB4 MIN MAX MINU MAXU MIN4 MAX4 MINU4 MAXU4 EQ NE LT LE GT GE LTU LEU GTU GEU",
            "flips": "MIN MAX LT LE GT GE MIN4 MAX4",
            "four": "ADD4 SUB4 MIN4 MAX4 MINU4 MAXU4",
            "and_": "AND", "or_": "OR", "xor": "XOR",
            "logic": "AND OR XOR",
            "low_limit": "MIN MINU MIN4 MINU4",
            "limits": "MIN MAX MINU MAXU MIN4 MAX4 MINU4 MAXU4",
            "packs": "PACKB PACKBU PACKH PACKHU",
            "pack_bytes": "PACKB PACKBU",
            "pack_unsigned": "PACKBU PACKHU",
            "multiplies": "MUL MULH MULHU MAD DP4 SHL SHR SAR",
            "dp4": "DP4",
            "adds": "MAD DP4",
            "high": "MULH MULHU SHR SAR",
            "mulh": "MULH", "sar": "SAR",
            "shifts": "SHL SHR SAR",
            "right": "SHR SAR",
            "lookup": "LOOKUP LOOKB",
            "lookb": "LOOKB",
            "equal": "EQ NE", "orders": "LT LTU LE LEU GT GTU GE GEU",
            "or_equal": "LE LEU GT GTU",
            "inverts": "NE GT GTU GE GEU",
            "joins": "PAND POR PXOR PANDN",
            "pand": "PAND", "por": "POR", "pxor": "PXOR",
        }  # fmt: skip
        stages = [{name: Signal(name=f"{name}0") for name in groups} | {"part": self.part}]
        m.d.comb += [
            stages[0][name].eq(is_one_of(self.function, (Function[function] for function in functions.split())))
            for name, functions in groups.items()
        ]
        for cycle in range(1, self.LATENCY):
            stages.append({name: delay(m, value, 1, name=f"{name}_at{cycle}") for name, value in stages[-1].items()})
        self.at = [SimpleNamespace(**stage) for stage in stages]


class _Lane:
    """One thread of an IntegerRow, in its module."""

    def __init__(self, m, row, thread):
        self._m, self._row, self._thread = m, row, thread
        self._a, self._b, self._c = row.a[thread], row.b[thread], row.c[thread]

    def _register(self, name, shape=32):
        return Signal(shape, name=f"{name}{self._thread}", reset_less=True)

    def build(self):
        m, (at0, at1, at2, at3, at4) = self._m, self._row.at
        x, y, c = self._register("x"), self._register("y"), self._register("c1_")
        flips = (at0.flips & at0.four).replicate(32) & _SIGNS4 | (at0.flips & ~at0.four).replicate(32) & _SIGN
        m.d.sync += [
            x.eq(self._left(at0) ^ flips),
            y.eq((Mux(at0.sel, 0, self._b) ^ flips) ^ at0.subtracts.replicate(32)),
            c.eq(self._c),
        ]
        result, less = self._sum(at1, x, y, c)
        limited = self._limit(at2, result, less, x, y)
        self._compare(at2, result, less)
        product = self._product()
        looked = self._look_up(at2, at3, result, limited, c)
        m.d.sync += self._row.o[self._thread].eq(Mux(at4.multiplies, product, looked))

    def _left(self, at0):
        """Operand a, or the part of it, or what takes its place."""
        row, a = self._row, self._a
        byte = mux_tree(at0.part[:2], {n: a.word_select(n, 8) for n in range(4)})
        half = Mux(at0.part[0], a[16:], a[:16])
        sign = at0.signed_part & Mux(at0.bytes, byte[7], half[15])
        upper = Mux(at0.bytes, sign.replicate(8), half[8:])
        part = Cat(Mux(at0.bytes, byte, half[:8]), upper, sign.replicate(16))
        others = {}
        for bit in range(8):
            other = self._thread ^ 1 << bit
            others[bit] = row.a[other] if other < row._threads else a
        swapped = mux_tree(at0.part, others)
        whole = Mux(at0.sel & ~row.first[self._thread], self._b, Mux(at0.shfl, swapped, a))
        return Mux(at0.bytes | at0.halves, part, whole)

    def _sum(self, at1, x, y, c):
        """Cycle 1: the sum or difference, logic, or packing; and which bytes, or words, are less."""
        m = self._m
        carry, sums, carries = at1.subtracts, [], []
        for n in range(4):
            total = Signal(9, name=f"sum{self._thread}_{n}")
            m.d.comb += total.eq(x.word_select(n, 8) + y.word_select(n, 8) + carry)
            sums.append(total[:8])
            carries.append(total[8])
            carry = Mux(at1.four, at1.subtracts, total[8])
        logic = Mux(at1.and_, x & y, Mux(at1.or_, x | y, x ^ y))
        result, less = self._register("result"), self._register("less", 4)
        m.d.sync += [
            result.eq(Mux(at1.packs, self._pack(at1, x, y, c), Mux(at1.logic, logic, Cat(*sums)))),
            # Without a carry the difference is negative. A word decides for all of its bytes.
            less.eq(Mux(at1.four, ~Cat(*carries), (~carries[3]).replicate(4))),
        ]
        return result, less

    def _pack(self, at1, x, y, c):
        """Both operands saturated to bytes or halves, and put together."""
        m = self._m
        narrow = []
        for name, value in (("x", x), ("y", y)):
            negative = value[31]
            fits_byte = Mux(at1.pack_unsigned, value[8:] == 0, (value[7:] == 0) | value[7:].all())
            fits_half = Mux(at1.pack_unsigned, value[16:] == 0, (value[15:] == 0) | value[15:].all())
            fits, limit = Signal(name=f"{name}_fits{self._thread}"), Signal(16, name=f"{name}_limit{self._thread}")
            m.d.comb += [
                fits.eq(Mux(at1.pack_bytes, fits_byte, fits_half)),
                # 0 and 2^n − 1, or −2^(n−1) and 2^(n−1) − 1
                limit.eq((~negative).replicate(16)),
                limit[7].eq(Mux(at1.pack_bytes & ~at1.pack_unsigned, negative, ~negative)),
                limit[15].eq(Mux(at1.pack_bytes | at1.pack_unsigned, ~negative, negative)),
            ]
            narrow.append(Mux(fits, value[:16], limit))
        first, second = narrow
        pair = Cat(first[:8], second[:8])
        packed = Cat(Mux(at1.part[0], c[:16], pair), Mux(at1.part[0], pair, 0))
        return Mux(at1.pack_bytes, packed, Cat(first, second))

    def _limit(self, at2, result, less, x, y):
        """Cycle 2: the minimum or maximum, byte by byte."""
        m = self._m
        flips = (at2.flips & at2.four).replicate(32) & _SIGNS4 | (at2.flips & ~at2.four).replicate(32) & _SIGN
        x, y = (delay(m, value, 1, name=f"{name}2_{self._thread}") for name, value in (("x", x), ("y", y)))
        chosen = Cat(
            Mux(less[n] == at2.low_limit, x.word_select(n, 8), ~y.word_select(n, 8)) for n in range(4)
        )  # y is inverted
        limited = self._register("limited")
        m.d.sync += limited.eq(Mux(at2.limits, chosen ^ flips, result))
        return limited

    def _compare(self, at2, result, less):
        """Cycle 2: the result for a predicate, two cycles before the others."""
        m, row, thread = self._m, self._row, self._thread
        first, second = (
            delay(m, bits[thread], 2, name=f"{name}_predicate{thread}")
            for name, bits in (("first", row.first), ("second", row.second))
        )
        zero = Signal(name=f"zero{thread}")
        m.d.comb += zero.eq(result == 0)
        joined = Mux(
            at2.pand, first & second, Mux(at2.por, first | second, Mux(at2.pxor, first ^ second, first & ~second))
        )
        ordered = ((at2.orders & less[3]) | ((at2.equal | at2.or_equal) & zero)) ^ at2.inverts
        holds = Signal(name=f"holds{thread}_2", reset_less=True)
        m.d.sync += holds.eq(Mux(at2.joins, joined, ordered))
        m.d.comb += row.holds[thread].eq(delay(m, holds, row.LATENCY - 3, name=f"holds{thread}"))

    def _product(self):
        """Cycle 4: the product."""
        m, (at0, _, at2, _, at4) = self._m, self._row.at
        m.submodules[f"multiplier{self._thread}"] = multiplier = Multiplier()
        places = Signal(5, name=f"places{self._thread}")
        # To the right by n is the high half of a product with 2^(32 − n); by 0, the low half of one with 1.
        m.d.comb += places.eq(Mux(at0.right, -self._b[:5], self._b[:5]))
        stays = delay(m, at0.right & (self._b[:5] == 0), 4, name=f"stays{self._thread}")
        m.d.comb += [
            multiplier.bytes.eq(at0.dp4),
            multiplier.a_signed.eq(Mux(at0.dp4, ~at0.part[1], at0.mulh | at0.sar)),
            multiplier.b_signed.eq(Mux(at0.dp4, ~at0.part[0], at0.mulh)),
            multiplier.a.eq(self._a),
            multiplier.b.eq(Mux(at0.shifts, 1 << places, self._b)),
            multiplier.c.eq(delay(m, self._c, 2, name=f"addend{self._thread}")),
            multiplier.adds.eq(at2.adds),
            multiplier.high.eq(at4.high & ~stays),
            multiplier.packed.eq(at4.dp4),
        ]
        return multiplier.o

    def _look_up(self, at2, at3, result, limited, c):
        """Cycle 3: the entry of the lookup memory, or what is not from there."""
        m, row = self._m, self._row
        looked = self._register("looked")
        if not row._lookup_words:
            m.d.sync += looked.eq(limited)
            return looked
        memory = Memory(shape=32, depth=row._lookup_words, init=[])
        m.submodules[f"lookup{self._thread}"] = memory
        read, write = memory.read_port(), memory.write_port()
        m.d.comb += [
            read.addr.eq(result),
            write.addr.eq(row.entry),
            write.data.eq(row.entry_data),
            write.en.eq(row.entry_write),
        ]
        old = delay(m, c, 2, name=f"old{self._thread}")
        merged = Cat(
            Mux(at3.lookb & (at3.part[:2] != n), old.word_select(n, 8), read.data[:8] if n == 0 else
                Mux(at3.lookb, read.data[:8], read.data.word_select(n, 8)))
            for n in range(4)
        )  # fmt: skip
        m.d.sync += looked.eq(Mux(at3.lookup, merged, limited))
        return looked
