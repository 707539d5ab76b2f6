"""The first buffer, and rows of the kernel (docs/conv.md, "Order of work", "Lane-private mode")."""

from amaranth.hdl import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from tilewright.spec.conv import KERNEL_ROWS

from ...lib.logic import delay, mux_tree
from ..layouts import GatheredLayout, PlanLayout, SetLayout, WordWriteLayout
from .sets import FeatureTagLayout

__all__ = ["FeatureBuffer", "KernelRows", "KernelWriteLayout"]


class KernelWriteLayout(data.StructLayout):
    """A write of a row of the kernel."""

    def __init__(self, params):
        row = data.ArrayLayout(128, params.row_slots)
        super().__init__({"row": range(KERNEL_ROWS), "data": row, "enable": unsigned(1)})


class KernelRows(wiring.Component):
    """Holds rows of the kernel in lane-private mode; each is one block at one position, repeated to fill the row.

    In pooling every row is the fill. Latency 2; a write, and a read for each half of the units, a cycle.

    Parameters
    ----------
    params : ConvUnitParams
    """

    def __init__(self, params):
        self._params = params
        super().__init__(
            {
                "plan": In(PlanLayout(params)),
                "write": In(KernelWriteLayout(params)),  # readable from the same cycle on
                "read": In(data.ArrayLayout(range(KERNEL_ROWS), params.halves)),
                # Of the read of two cycles ago.
                "rows": Out(data.ArrayLayout(8 * params.conv.row_bytes, params.halves)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        bits = 8 * self._params.conv.row_bytes
        m.submodules.memory = memory = Memory(shape=bits, depth=KERNEL_ROWS, init=[])
        write = memory.write_port()
        pool = Signal()
        m.d.sync += pool.eq(self.plan.pool)
        m.d.comb += [write.addr.eq(self.write.row), write.data.eq(self.write.data), write.en.eq(self.write.enable)]
        for number, (address, row) in enumerate(zip(self.read, self.rows, strict=True)):
            read = memory.read_port()
            m.d.comb += [
                read.addr.eq(delay(m, address, 1, name=f"read{number}")),
                row.eq(Mux(pool, self.plan.k_fill.replicate(bits // 16), read.data)),
            ]
        return m


class FeatureBuffer(wiring.Component):
    """Holds sets of feature rows, one row for each unit, that all slaves use, and offers the complete ones.

    An answer is repeated over all slots of 16 bytes and registered; from there the bytes of its request are written.
    Sets with even and odd numbers have separate memories, so that a pair is written at once. In lane-private mode
    feature rows go to the memories of the slaves, and rows of the kernel to :class:`KernelRows`.

    An answer a cycle, without stalls: requests are made only for free room. Its set, word or kernel row is complete two
    cycles later.

    Parameters
    ----------
    params : ConvUnitParams
    """

    def __init__(self, params):
        self._params = params
        row = data.ArrayLayout(128, params.row_slots)
        self.grain = min(params.lanes * params.conv.row_bytes // 16, 16)  # bytes of a slot with a common write enable
        self.complete = Signal(range(params.sets + 1))  # sets that have not been accepted
        self.oldest = Signal(range(params.sets))
        super().__init__(
            {
                "i": In(stream.Signature(GatheredLayout(params, FeatureTagLayout(params)), always_ready=True)),
                "slave_writes": Out(WordWriteLayout(params)).array(params.conv.slaves),
                # Words before this one can be read; a count over jobs that wraps after two rounds of the memory.
                "written": Out(range(2 * params.words)),
                "kernel_write": Out(KernelWriteLayout(params)),  # a row of the kernel, repeated over all slots
                "written_kernel": Out(range(2 * KERNEL_ROWS)),  # the same count for rows of the kernel
                # Complete sets, in the order of their numbers, from 0 after a reset.
                "sets": Out(stream.Signature(SetLayout())),
                "read": In(range(params.sets)),  # number of a set
                "rows": Out(data.ArrayLayout(row, params.conv.units)),  # its rows, by unit; registered
            }
        )

    def elaborate(self, platform):
        m = Module()
        lanes, row_slots = self._params.lanes, self._params.row_slots
        input_tag = self.i.payload.tag
        valid, tag = Signal(), Signal(input_tag.shape())
        m.d.sync += [valid.eq(self.i.valid), tag.eq(input_tag)]

        # The answer is repeated; meanwhile its slots, and its grains in each slot, are computed.
        answer, spread_bytes = (Signal(data.ArrayLayout(8, 16 * lanes), name=name) for name in ("answer", "spread"))
        m.d.comb += answer.eq(self.i.payload.data)
        for number in range(16 * lanes):
            repeated = {period: answer[number % (1 << period)] for period in self._periods()}
            m.d.sync += spread_bytes[number].eq(mux_tree(input_tag.period, repeated))
        spread = data.View(data.ArrayLayout(128, lanes), spread_bytes)
        slots, grains = self._places(m)

        strobes = [Cat((grain & slot).replicate(self.grain) for grain in grains) for slot in slots]
        words = [Signal(range(self._params.words), name=f"word{half}") for half in (0, 1)]
        # With a pair each half of the slots has its own word.
        m.d.comb += [word.eq(tag.word + (tag.pair & (tag.turned != half))) for half, word in enumerate(words)]
        for number, port in enumerate(self.slave_writes):
            slave_slots = range(number * row_slots, (number + 1) * row_slots)
            m.d.comb += [
                port.word.eq(words[slave_slots[0] % lanes * 2 // lanes]),
                port.data.eq(Cat(spread[slot % lanes] for slot in slave_slots)),
                port.strobe.eq(Mux(valid & tag.slaves, Cat(strobes[slot] for slot in slave_slots), 0)),
            ]

        word_complete = valid & tag.slaves & tag.complete
        m.d.comb += [
            self.kernel_write.row.eq(tag.word),
            self.kernel_write.data.eq(Cat(spread[slot % lanes] for slot in range(row_slots))),
            self.kernel_write.enable.eq(valid & tag.kernel),
        ]
        m.d.sync += [
            self.written.eq(self.written + Mux(word_complete, Mux(tag.pair, 2, 1), 0)),
            self.written_kernel.eq(self.written_kernel + self.kernel_write.enable),
        ]

        halves = [self._memory(m, odd, valid, tag, spread, slots, grains) for odd in (0, 1)]
        rows, flags = zip(*halves, strict=True)
        m.d.sync += self.rows.eq(Mux(self.read[0], rows[1], rows[0]))

        completed, accepted = Signal(2), Signal()
        m.d.comb += [
            completed.eq(Mux(valid & tag.complete & ~(tag.slaves | tag.kernel), Mux(tag.pair, 2, 1), 0)),
            self.sets.valid.eq(self.complete != 0),
            accepted.eq(self.sets.valid & self.sets.ready),
            self.sets.payload.eq(Mux(self.oldest[0], flags[1], flags[0])),
        ]
        m.d.sync += [self.complete.eq(self.complete + completed - accepted), self.oldest.eq(self.oldest + accepted)]
        return m

    def _periods(self):
        """Logarithms of the bytes after which an answer may repeat."""
        return range(self._params.conv.row_bytes.bit_length() - 5, (16 * self._params.lanes).bit_length())

    def _places(self, m):
        """The slots of a set, row after row, that an answer is for, and the grains in a slot."""
        params, tag, whole = self._params, self.i.payload.tag, self._periods()[-1]
        span, start = Signal.like(tag.period), Signal(range(params.places * params.row_slots))
        # With a pair each set gets half of the answer.
        m.d.comb += [span.eq(Mux(tag.pair & ~tag.slaves, whole - 1, tag.period)), start.eq(tag.part << span)]
        count = max(params.conv.units, params.conv.slaves) * params.row_slots

        def within(number, low, bits):
            equal = (start[low + bit] == (number >> bit & 1) for bit in range(bits))
            return Cat(same | (span > low + bit) for bit, same in enumerate(equal)).all() if bits else 1

        slots, grains = Signal(count), Signal(16 // self.grain)
        low, bits = self.grain.bit_length() - 1, (16 // self.grain).bit_length() - 1
        m.d.sync += [
            slots.eq(Cat(within(slot, 4, (count - 1).bit_length()) for slot in range(count))),
            grains.eq(Cat(within(number, low, bits) for number in range(16 // self.grain))),
        ]
        return slots, grains

    def _memory(self, m, odd, valid, tag, spread, slots, grains):
        """The memory of sets with even or odd numbers. Returns the rows of the set that is read, and the flags of the
        oldest set."""
        params, lanes = self._params, self._params.lanes
        count, half, depth = params.conv.units * params.row_slots, lanes // 2, params.sets // 2
        memory = m.submodules[f"sets{odd}"] = Memory(shape=128 * count, depth=depth, init=[])
        flags = m.submodules[f"flags{odd}"] = Memory(shape=SetLayout(), depth=depth, init=[])
        write, read = memory.write_port(granularity=8 * self.grain), memory.read_port(domain="comb")
        flags_write, flags_read = flags.write_port(), flags.read_port(domain="comb")

        enable, address = Signal(name=f"enable{odd}"), Signal(range(depth), name=f"address{odd}")
        last = tag.flags.last & (~tag.pair | (tag.set[0] != odd))
        written = []
        for slot in range(count):
            lane = slot % lanes
            # Each half of a pair's answer is for one of the two sets, repeated over all slots of the answer.
            pair_lane = lane % half + odd * half if params.pairs else lane
            written.append(spread[lane] if pair_lane == lane else Mux(tag.pair, spread[pair_lane], spread[lane]))
        m.d.comb += [
            enable.eq(valid & ~(tag.slaves | tag.kernel) & (tag.pair | (tag.set[0] == odd))),
            address.eq(tag.set[1:] + (0 if odd else tag.set[0])),  # a pair may begin with an odd set
            write.addr.eq(address),
            write.data.eq(Cat(written)),
            write.en.eq(Cat(grains & (slot & enable).replicate(len(grains)) for slot in slots[:count])),
            read.addr.eq(self.read[1:]),
            flags_write.addr.eq(address),
            flags_write.data.eq(Cat(tag.flags.first & (tag.set[0] == odd), last, tag.flags.final)),
            flags_write.en.eq(enable & tag.complete),
            flags_read.addr.eq(self.oldest[1:]),
        ]
        return read.data, flags_read.data
