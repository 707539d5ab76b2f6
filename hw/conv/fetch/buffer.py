"""Rows of the kernel in lane-private mode (docs/conv.md, "Lane-private mode")."""

from amaranth.hdl import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from tilewright.spec.conv import KERNEL_ROWS

from ...lib.logic import chosen, delay
from ..layouts import GatheredLayout, PlanLayout, SetLayout, WordWriteLayout
from .sets import FeatureTagLayout

__all__ = ["FeatureBuffer", "KernelRows", "KernelWriteLayout"]


class KernelWriteLayout(data.StructLayout):
    """A write of a row of the kernel."""

    def __init__(self, params):
        row = data.ArrayLayout(128, params.row_slots)
        super().__init__({"row": range(KERNEL_ROWS), "data": row, "enable": unsigned(1)})


class KernelRows(wiring.Component):
    """Holds rows of the kernel, each of one block at one position, repeated all over the row.

    In pooling every row is the fill. Latency 2; a write and a read for each half of the units a cycle.

    Parameters
    ----------
    params : ConvUnitParams

    Members
    -------
    plan : In(PlanLayout(params))
    write : In(KernelWriteLayout(params))
        What is written can be read from the same cycle on.
    read : In(array of params.halves range(KERNEL_ROWS))
    rows : Out(array of params.halves 8 * params.conv.row_bytes)
        What was read two cycles ago.
    """

    def __init__(self, params):
        self.params = params
        super().__init__(
            {
                "plan": In(PlanLayout(params)),
                "write": In(KernelWriteLayout(params)),
                "read": In(data.ArrayLayout(range(KERNEL_ROWS), params.halves)),
                "rows": Out(data.ArrayLayout(8 * params.conv.row_bytes, params.halves)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        bits = 8 * self.params.conv.row_bytes
        m.submodules.memory = memory = Memory(shape=bits, depth=KERNEL_ROWS, init=[])
        write = memory.write_port()
        pool = Signal()
        m.d.sync += pool.eq(self.plan.pool)
        m.d.comb += [
            write.addr.eq(self.write.row),
            write.data.eq(self.write.data),
            write.en.eq(self.write.enable),
        ]
        for number, (address, row) in enumerate(zip(self.read, self.rows, strict=True)):
            read = memory.read_port()
            m.d.comb += [
                read.addr.eq(delay(m, address, 1, name=f"read{number}")),
                row.eq(Mux(pool, self.plan.k_fill.replicate(bits // 16), read.data)),
            ]
        return m


class FeatureBuffer(wiring.Component):
    """Holds sets of rows, and says which are complete.

    What comes is repeated over all slots of 16 bytes, a register; from there the bytes that a request is for are
    written. Sets with even and with odd numbers have a memory each, so that a pair is written at once. In lane-private
    mode rows of features go to the memories of the slaves, and rows of the kernel to a memory of their own.

    An answer a cycle; its set, word or row of the kernel is there two cycles later. Nothing is stalled: who asks has
    seen to it that there is room.

    Parameters
    ----------
    params : ConvUnitParams

    Members
    -------
    i : In(stream of GatheredLayout(params, FeatureTagLayout(params)), always ready)
    slave_writes : Out(array of params.conv.slaves WordWriteLayout(params))
    written : Out(range(2 * params.words))
        Words before this one can be read; counts on over jobs, and once more round the memory.
    kernel_write : Out(KernelWriteLayout(params))
        A row of the kernel, of whatever number, in all of its slots.
    written_kernel : Out(range(2 * KERNEL_ROWS))
        Rows of the kernel, as ``written``.
    sets : Out(stream of SetLayout)
        The sets that are complete, in the order of their numbers, from 0 after a reset.
    read : In(range(params.sets))
        Number of a set.
    rows : Out(array of params.conv.units data.ArrayLayout(128, params.row_slots))
        Registered: its rows, by unit.
    """

    def __init__(self, params):
        self.params = params
        row = data.ArrayLayout(128, params.row_slots)
        self.grain = min(params.lanes * params.conv.row_bytes // 16, 16)  # bytes of a slot that are written together
        self.complete = Signal(range(params.sets + 1))  # sets that have not been handed on
        self.oldest = Signal(range(params.sets))
        super().__init__(
            {
                "i": In(stream.Signature(GatheredLayout(params, FeatureTagLayout(params)), always_ready=True)),
                "slave_writes": Out(WordWriteLayout(params)).array(params.conv.slaves),
                "written": Out(range(2 * params.words)),
                "kernel_write": Out(KernelWriteLayout(params)),
                "written_kernel": Out(range(2 * KERNEL_ROWS)),
                "sets": Out(stream.Signature(SetLayout())),
                "read": In(range(params.sets)),
                "rows": Out(data.ArrayLayout(row, params.conv.units)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        lanes, came = self.params.lanes, self.i.p.tag
        valid, tag = Signal(), Signal(came.shape())
        m.d.sync += [valid.eq(self.i.valid), tag.eq(came)]

        # What comes is repeated; meanwhile the slots are found that it is for, and the grains in each of them.
        come, spread = Signal(data.ArrayLayout(8, 16 * lanes)), Signal(data.ArrayLayout(8, 16 * lanes))
        m.d.comb += come.eq(self.i.p.data)
        for number in range(16 * lanes):
            repeated = {period: come[number % (1 << period)] for period in self._periods()}
            m.d.sync += spread[number].eq(chosen(came.period, repeated))
        slots, grains = self._places(m)
        spread_slots = data.View(data.ArrayLayout(128, lanes), spread)

        row_slots = self.params.row_slots
        strobes = [Cat((one & on).replicate(self.grain) for one in grains) for on in slots]
        words = [Signal(range(self.params.words), name=f"word{half}") for half in (0, 1)]
        # Of a pair of words each half of the slots has its own.
        m.d.comb += [word.eq(tag.word + (tag.pair & (tag.turned != half))) for half, word in enumerate(words)]
        for number, port in enumerate(self.slave_writes):
            mine = range(number * row_slots, (number + 1) * row_slots)
            m.d.comb += [
                port.word.eq(words[mine[0] % lanes * 2 // lanes]),
                port.data.eq(Cat(spread_slots[slot % lanes] for slot in mine)),
                port.strobe.eq(Mux(valid & tag.slaves, Cat(strobes[slot] for slot in mine), 0)),
            ]

        whole = valid & tag.slaves & tag.complete
        m.d.comb += [
            self.kernel_write.row.eq(tag.word),
            self.kernel_write.data.eq(Cat(spread_slots[slot % lanes] for slot in range(row_slots))),
            self.kernel_write.enable.eq(valid & tag.kernel),
        ]
        m.d.sync += [
            self.written.eq(self.written + Mux(whole, Mux(tag.pair, 2, 1), 0)),
            self.written_kernel.eq(self.written_kernel + self.kernel_write.enable),
        ]

        halves = [self._memory(m, odd, valid, tag, spread_slots, slots, grains) for odd in (0, 1)]
        rows, flags = zip(*halves, strict=True)
        m.d.sync += self.rows.eq(Mux(self.read[0], rows[1], rows[0]))

        # Sets are handed on as they are complete.
        completed, handed = Signal(2), Signal()
        m.d.comb += [
            completed.eq(Mux(valid & tag.complete & ~(tag.slaves | tag.kernel), Mux(tag.pair, 2, 1), 0)),
            self.sets.valid.eq(self.complete != 0),
            handed.eq(self.sets.valid & self.sets.ready),
            self.sets.payload.eq(Mux(self.oldest[0], flags[1], flags[0])),
        ]
        m.d.sync += [self.complete.eq(self.complete + completed - handed), self.oldest.eq(self.oldest + handed)]
        return m

    def _periods(self):
        """Logarithms of the bytes after which what comes may repeat."""
        return range(self.params.conv.row_bytes.bit_length() - 5, (16 * self.params.lanes).bit_length())

    def _places(self, m):
        """Which slots of a set, row after row, and which grains in a slot."""
        params, came, whole = self.params, self.i.p.tag, self._periods()[-1]
        span, start = Signal.like(came.period), Signal(range(params.places * params.row_slots))
        # Of a pair each set gets half.
        halved = came.pair & ~came.slaves
        m.d.comb += [span.eq(Mux(halved, whole - 1, came.period)), start.eq(came.part << span)]
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
        """Sets with even or odd numbers: what is read of one, and the flags of the oldest one."""
        params, lanes = self.params, self.params.lanes
        count, half, depth = params.conv.units * params.row_slots, lanes // 2, params.sets // 2
        memory = m.submodules[f"sets{odd}"] = Memory(shape=128 * count, depth=depth, init=[])
        flags = m.submodules[f"flags{odd}"] = Memory(shape=SetLayout(), depth=depth, init=[])
        write, read = memory.write_port(granularity=8 * self.grain), memory.read_port(domain="comb")
        said, told = flags.write_port(), flags.read_port(domain="comb")

        enable, address = Signal(name=f"enable{odd}"), Signal(range(depth), name=f"address{odd}")
        last = tag.flags.last & (~tag.pair | (tag.set[0] != odd))
        written = []
        for slot in range(count):
            lane = slot % lanes
            # Each half of a pair's answer is for one of both, all over the slots that the answer is for.
            other = lane % half + odd * half if params.pairs else lane
            written.append(spread[lane] if other == lane else Mux(tag.pair, spread[other], spread[lane]))
        m.d.comb += [
            enable.eq(valid & ~(tag.slaves | tag.kernel) & (tag.pair | (tag.set[0] == odd))),
            address.eq(tag.set[1:] + (0 if odd else tag.set[0])),  # of an odd set and the next one the next one is even
            write.addr.eq(address),
            write.data.eq(Cat(written)),
            write.en.eq(Cat(grains & (on & enable).replicate(len(grains)) for on in slots[:count])),
            read.addr.eq(self.read[1:]),
            said.addr.eq(address),
            said.data.eq(Cat(tag.flags.first & (tag.set[0] == odd), last, tag.flags.final)),
            said.en.eq(enable & tag.complete),
            told.addr.eq(self.oldest[1:]),
        ]
        return read.data, told.data
