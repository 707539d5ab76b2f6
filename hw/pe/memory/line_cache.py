"""Line cache: rows of B that lie across memory, out of which columns are picked."""

from amaranth import unsigned
from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ...smem.layouts import CHUNK_BITS
from ..params import LANES

__all__ = ["LineCache", "PickLayout", "RowsLayout"]

_BLOCKS = 2
_MAX_KB = 4


class RowsLayout(data.StructLayout):
    """Eight rows of a block, 16 bytes each."""

    def __init__(self):
        super().__init__(
            {
                "slot": 1,
                "octet": 2,
                "enable": unsigned(LANES),  # rows that are inside; the others are zero
                "rows": data.ArrayLayout(CHUNK_BITS, LANES),
            }
        )


class PickLayout(data.StructLayout):
    """Columns of a block that are picked: lane l gets unit l mod kb of column l div kb."""

    def __init__(self):
        super().__init__(
            {
                "slot": 1,
                "kb": 2,  # as stored
                "wide": 1,  # elements have 16 bits
                "bytes": data.ArrayLayout(4, LANES),  # of the lane's column in the rows
            }
        )


class LineCache(wiring.Component):
    """Two blocks of up to four units of rows; each octet of rows is one word of a memory of its own.

    Element e of unit q of a column is in row q·k + e, where k is the unit's number of elements. So column 0 and 1 of a
    pick have up to four units, columns 2 and 3 two, the others one; every column takes its bytes out of all the rows
    it can have, and every lane one of the units of a column.

    Latency: none from ``pick`` to ``units``; rows can be picked in the cycle after they came. Throughput: one pick
    and one octet a cycle.

    Members
    -------
    fill : In(stream of RowsLayout, always ready)
        Octet 0 begins a block: all other rows of it become zero until they come.
    pick : In(PickLayout)
    units : Out(array of LANES params.unit_bits)
        Of lanes that belong to no whole column: anything.
    """

    def __init__(self, params):
        self._params = params
        # A block of 8-bit elements has the most rows: four units of so many.
        self.octets = [
            Memory(shape=LANES * CHUNK_BITS, depth=_BLOCKS, init=[])
            for _ in range(_MAX_KB * params.unit_bytes // LANES)
        ]
        super().__init__(
            {
                "fill": In(stream.Signature(RowsLayout(), always_ready=True)),
                "pick": In(PickLayout()),
                "units": Out(data.ArrayLayout(params.unit_bits, LANES)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        rows, enable = self._rows(m)
        columns = [self._column(m, column, rows, enable) for column in range(LANES)]
        unit_bits = self._params.unit_bits
        with m.Switch(self.pick.kb):
            for stored in range(_MAX_KB):
                kb = stored + 1
                with m.Case(stored):
                    for lane in range(LANES // kb * kb):
                        unit = columns[lane // kb].word_select(lane % kb, unit_bits)
                        m.d.comb += self.units[lane].eq(unit)
        return m

    def _rows(self, m):
        """All rows of the block that is picked from, and which of them are inside."""
        fill, slot = self.fill.payload, self.pick.slot
        count = LANES * len(self.octets)
        rows = Signal(data.ArrayLayout(CHUNK_BITS, count))
        inside = Signal(data.ArrayLayout(count, _BLOCKS))
        enable = Signal(count)
        m.d.comb += enable.eq(inside[slot])
        with m.If(self.fill.valid & (fill.octet == 0)):
            m.d.sync += inside[fill.slot].eq(0)
        for number, memory in enumerate(self.octets):
            m.submodules[f"octet{number}"] = memory
            write, read = memory.write_port(), memory.read_port(domain="comb")
            m.d.comb += [
                write.addr.eq(fill.slot),
                write.data.eq(fill.rows),
                write.en.eq(self.fill.valid & (fill.octet == number)),
                read.addr.eq(slot),
                Cat(rows[LANES * number + row] for row in range(LANES)).eq(read.data),
            ]
            with m.If(write.en):
                m.d.sync += inside[fill.slot].word_select(number, LANES).eq(fill.enable)
        return rows, enable

    def _column(self, m, column, rows, enable):
        """The units that a column of the pick can have, one after the other."""
        most = max(kb for kb in range(1, _MAX_KB + 1) if column < LANES // kb)
        place = Signal(4, name=f"place{column}")
        with m.Switch(self.pick.kb):
            for kb in range(1, most + 1):
                with m.Case(kb - 1):
                    m.d.comb += place.eq(self.pick.bytes[column * kb])

        count = most * self._params.unit_bytes
        pairs = Signal(data.ArrayLayout(16, count), name=f"pairs{column}")
        units = Signal(8 * count, name=f"units{column}")
        for row in range(count):
            pair = rows[row].word_select(place[1:], 16)
            m.d.comb += pairs[row].eq(Mux(enable[row], pair, 0))
        narrow = Cat(pair.word_select(place[0], 8) for pair in pairs)
        wide = Cat(pairs[row] for row in range(count // 2))
        m.d.comb += units.eq(Mux(self.pick.wide, wide, narrow))
        return units
