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
_PLACES = CHUNK_BITS // 8

#: Places that unit q of a column lies further on than unit 0. Columns that are picked together have so many units that
#: no two bytes of one bank are in the same position, which is the place modulo 8: kb1 0–7; kb2 0–3 and 4–7; kb3 and kb4
#: 0–1, 4–5, 2–3 and 6–7.
_AHEAD = (0, 4, 2, 6)


class RowsLayout(data.StructLayout):
    """Eight rows of a block, 16 bytes each."""

    def __init__(self):
        super().__init__(
            {
                "slot": 1,
                "octet": 2,
                "wide": 1,  # elements have 16 bits
                "enable": unsigned(LANES),  # rows that are inside; the others are zero
                "rows": data.ArrayLayout(CHUNK_BITS, LANES),
            }
        )


class PickLayout(data.StructLayout):
    """Columns of a block side by side: lane l gets unit l mod kb of column l div kb."""

    def __init__(self):
        super().__init__(
            {
                "slot": 1,
                "kb": 2,  # as stored
                "wide": 1,  # elements have 16 bits
                "place": 4,  # byte of column 0 in the rows; column c is c elements further on, modulo 16 bytes
            }
        )


class LineCache(wiring.Component):
    """Two blocks of up to four units of rows, of which columns are picked that lie side by side.

    Element e of unit q of a column is in row q·k + e, where k is the unit's number of elements. An octet of rows comes
    in at once, and a lane takes a unit. So bytes are kept in banks: bank b has byte b of every unit, and a bank has
    eight positions, each a memory, of which one read gives what a pick needs there. The units of a column, which come
    with different octets, lie in different positions of a bank: octets are turned on their way in. What has been read
    is turned back by one multiplexer for each lane.

    Latency: none from ``pick`` to ``units``; rows can be picked in the cycle after they came. Throughput: one pick
    and one octet a cycle.

    Members
    -------
    fill : In(stream of RowsLayout, always ready)
        All octets of a block come before it is picked from.
    pick : In(PickLayout)
        ``wide`` as it was in ``fill``.
    units : Out(array of LANES params.unit_bits)
        Of lanes that belong to no whole column: anything.
    """

    def __init__(self, params):
        self._unit_bytes = params.unit_bytes
        #: Log2 of the units of 8-bit elements that an octet has; of 16-bit elements it has twice as many.
        self._units_log2 = (LANES // params.unit_bytes).bit_length() - 1
        #: Entries of a bank that have the same position, those of one place behind each other.
        self._choices = _PLACES // params.unit_bytes
        octets = _MAX_KB * params.unit_bytes // LANES
        self._octet_width = (octets - 1).bit_length()
        self.positions = [
            Memory(shape=unsigned(self._choices * params.unit_bits), depth=_BLOCKS * octets, init=[])
            for _ in range(LANES)
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
        pick, width = self.pick, self._octet_width
        first = Signal(3)  # position of column 0, unit 0
        m.d.comb += first.eq(Mux(pick.wide, pick.place[1:], pick.place[:3]))
        banks = self._arrange(m, self._turn(m))
        found = Signal(data.ArrayLayout(8 * self._unit_bytes, LANES))  # by position: a byte of every bank
        for position, memory in enumerate(self.positions):
            m.submodules[f"position{position}"] = memory
            write, read = memory.write_port(), memory.read_port(domain="comb")
            octet, choice = self._look(m, position, first)
            m.d.comb += [
                write.addr.eq(Cat(self.fill.p.octet[:width], self.fill.p.slot)),
                write.data.eq(Cat(bank[LANES * entry + position] for entry in range(self._choices) for bank in banks)),
                write.en.eq(self.fill.valid),
                read.addr.eq(Cat(octet[:width], pick.slot)),
                found[position].eq(read.data.word_select(choice, 8 * self._unit_bytes)),
            ]
        self._hand_out(m, found, first)
        return m

    def _turn(self, m):
        """The rows that come, turned by the octet's place; those that are outside are zero."""
        fill, turned = self.fill.p, []
        for row in range(LANES):
            cells = [fill.rows[row].word_select(place, 8) & fill.enable[row].replicate(8) for place in range(_PLACES)]
            out = [Signal(8, name=f"turned{row}_{place}") for place in range(_PLACES)]
            with m.Switch(fill.octet):
                for octet in range(1 << self._octet_width):
                    ahead = _AHEAD[octet << self._units_log2]
                    with m.Case(octet):
                        m.d.comb += [out[(place + ahead) % _PLACES].eq(cell) for place, cell in enumerate(cells)]
            turned.append(out)
        return turned

    def _arrange(self, m, turned):
        """The entries of every bank. Entries of one unit are neighbours: sixteen columns, or eight of 16 bits."""
        banks = []
        for bank in range(self._unit_bytes):
            entries = []
            for number in range(_PLACES * LANES // self._unit_bytes):
                unit, place = divmod(number, _PLACES)
                narrow = turned[unit * self._unit_bytes + bank][(place - _AHEAD[unit]) % _PLACES]
                unit, place = divmod(number, LANES)
                row, byte = unit * self._unit_bytes // 2 + bank // 2, bank % 2
                wide = turned[row][(place - _AHEAD[unit]) % LANES * 2 + byte]
                entry = Signal(8, name=f"bank{bank}_{number}")
                m.d.comb += entry.eq(Mux(self.fill.p.wide, wide, narrow))
                entries.append(entry)
            banks.append(entries)
        return banks

    def _look(self, m, position, first):
        """The octet in which the pick finds what it needs in a position, and which of the entries there."""
        pick, log2 = self.pick, self._units_log2
        distance, unit = Signal(3, name=f"distance{position}"), Signal(2, name=f"unit{position}")
        m.d.comb += [
            distance.eq(position - first),
            # The inverse of _AHEAD, for units that there are.
            unit.eq(Cat(distance[2] & (pick.kb != 0), distance[1] & pick.kb[1])),
        ]
        behind = pick.place[3] ^ (first > position)  # of the two places with this position, the second
        octet = Mux(pick.wide, unit >> (log2 + 1), unit >> log2)
        choice = Mux(pick.wide, unit[: log2 + 1], Cat(behind, unit[:log2]))
        return octet, choice

    def _hand_out(self, m, found, first):
        """To every lane its unit."""
        for lane, unit in enumerate(self.units):
            ahead, position = Signal(3, name=f"ahead{lane}"), Signal(3, name=f"of_lane{lane}")
            with m.Switch(self.pick.kb):
                for kb in range(1, _MAX_KB + 1):
                    with m.Case(kb - 1):
                        m.d.comb += ahead.eq(lane // kb + _AHEAD[lane % kb])
            m.d.comb += [position.eq(first + ahead), unit.eq(found[position])]
