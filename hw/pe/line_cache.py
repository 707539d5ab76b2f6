"""Line cache: rows of B that lie across memory, out of which columns are picked."""

from itertools import product

from amaranth import unsigned
from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ..lib.logic import chosen
from ..smem.layouts import CHUNK_BITS
from .params import LANES

__all__ = ["LineCache", "PickLayout", "PlaceLayout", "RowsLayout", "pick_places", "pick_positions"]

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
                "complement": 3,  # ~Cat(octet, wide), from registers of its own: no tool sees that they tell the same
                "enable": unsigned(LANES),  # rows that are inside; the others are zero
                "rows": data.ArrayLayout(CHUNK_BITS, LANES),
            }
        )


class PlaceLayout(data.StructLayout):
    """Where in a position a pick finds what it needs there, of a block."""

    def __init__(self, params):
        super().__init__({"share": range(_shares(params)), "octet": _octet_width(params)})


class PickLayout(data.StructLayout):
    """Columns of a block side by side: lane l gets unit l mod kb of column l div kb."""

    def __init__(self, params):
        ways = params.smem.chunks_a_cycle
        super().__init__(
            {
                "slot": 1,
                "kb": 2,  # as stored
                "wide": 1,  # elements have 16 bits
                "place": 4,  # byte of column 0 in the rows; column c is c elements further on, modulo 16 bytes
                "part": range(LANES // ways),  # lanes from ways · part on
                "positions": data.ArrayLayout(3, ways),  # of these lanes, pick_positions of kb, wide and place
                "places": data.ArrayLayout(PlaceLayout(params), LANES),  # pick_places of kb, wide and place
            }
        )


def _shares(params):
    return _PLACES // params.unit_bytes


def _octet_width(params):
    return (_MAX_KB * params.unit_bytes // LANES - 1).bit_length()


def pick_positions(m, pick):
    """In which position of a bank the unit of each lane lies: so that it need not be found while it is read.

    Parameters
    ----------
    m : Module
    pick : View
        With fields ``kb``, ``wide`` and ``place``.

    Returns
    -------
    list of Value
    """
    positions = []
    for lane in range(LANES):
        ahead, position = Signal(3, name=f"ahead{lane}"), Signal(3, name=f"position{lane}")
        with m.Switch(pick.kb):
            for kb in range(1, _MAX_KB + 1):
                with m.Case(kb - 1):
                    m.d.comb += ahead.eq(lane // kb + _AHEAD[lane % kb])
        m.d.comb += position.eq(_first_position(pick) + ahead)
        positions.append(position)
    return positions


def pick_places(m, params, pick):
    """Where in each position a pick finds what it needs: so that memories need not wait for it.

    Parameters
    ----------
    m : Module
    params : PeParams
    pick : View
        With fields ``kb``, ``wide`` and ``place``.

    Returns
    -------
    list of View
        Of :class:`PlaceLayout`, by position.
    """
    # Log2 of the units of 8-bit elements that an octet has; of 16-bit elements it has twice as many.
    log2 = (LANES // params.unit_bytes).bit_length() - 1
    first = Signal(3)  # position of column 0, unit 0
    m.d.comb += first.eq(_first_position(pick))
    found = []
    for position in range(LANES):
        distance, unit = Signal(3, name=f"distance{position}"), Signal(2, name=f"unit{position}")
        byte = Signal(3, name=f"byte{position}")  # its place, modulo 8
        place = Signal(PlaceLayout(params), name=f"place{position}")
        behind = pick.place[3] ^ (first > byte)  # the second of the two places
        m.d.comb += [
            distance.eq(position - first),
            # The inverse of _AHEAD, for units that there are.
            unit.eq(Cat(distance[2] & (pick.kb != 0), distance[1] & pick.kb[1])),
            byte.eq(position - Cat(Const(0, 1), unit[1], unit[0])),
            place.share.eq(Mux(pick.wide, unit[: log2 + 1], Cat(behind, unit[:log2]))),
            place.octet.eq(Mux(pick.wide, unit >> (log2 + 1), unit >> log2)),
        ]
        found.append(place)
    return found


def _first_position(pick):
    """That of column 0, unit 0."""
    return Mux(pick.wide, pick.place[1:], pick.place[:3])


class LineCache(wiring.Component):
    """Two blocks of up to four units of rows, of which columns are picked that lie side by side.

    Element e of unit q of a column is in row q·k + e, where k is the unit's number of elements. An octet of rows comes
    in at once, and a lane takes a unit. So bytes are kept in banks: bank b has byte b of every unit, and a bank has
    eight positions, each a memory, of which one read gives what a pick needs there. The units of a column lie in
    different positions of a bank: bytes are turned on their way in. What has been read is turned back by two choices of
    four for each lane, one of which is its unit.

    A position takes one byte of a bank in a cycle, and of an octet it gets several: those of its *shares*. A share is
    one unit of eight columns. One after the other is written while the octet stays at ``fill``.

    Latency: none from ``pick`` to ``units``; what was written can be picked in the next cycle. Throughput: one pick a
    cycle; one octet in ``16 / params.unit_bytes`` cycles.

    Members
    -------
    fill : In(stream of RowsLayout)
        All octets of a block come before it is picked from. Taken with the last share. ``ready`` is a register.
    pick : In(PickLayout(params))
        ``wide`` as it was in ``fill``.
    pickable : Out(1)
        Nothing that may be needed for ``pick`` is still to be written.
    units : Out(array of params.smem.chunks_a_cycle data.ArrayLayout(params.unit_bits, 2))
        The first one of a lane is its unit if that lies in the lower four positions, else the second one. Of lanes that
        belong to no whole column: anything. So are bytes of rows that are outside.
    inside : Out(array of params.smem.chunks_a_cycle params.unit_bytes)
        Bytes of ``units`` whose rows are inside; the others are to be zero.
    """

    def __init__(self, params):
        self._unit_bytes, self._ways = params.unit_bytes, params.smem.chunks_a_cycle
        #: Log2 of the units of 8-bit elements that an octet has; of 16-bit elements it has twice as many.
        self._units_log2 = (LANES // params.unit_bytes).bit_length() - 1
        self._shares, self._octet_width = _shares(params), _octet_width(params)
        depth = _BLOCKS * self._shares << self._octet_width
        self.positions = [Memory(shape=unsigned(params.unit_bits), depth=depth, init=[]) for _ in range(LANES)]
        super().__init__(
            {
                "fill": In(stream.Signature(RowsLayout())),
                "pick": In(PickLayout(params)),
                "pickable": Out(1),
                "units": Out(data.ArrayLayout(data.ArrayLayout(params.unit_bits, 2), self._ways)),
                "inside": Out(data.ArrayLayout(params.unit_bytes, self._ways)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        width = self._octet_width
        share = Signal(range(self._shares))
        turned = self._write(m, share)
        found = Signal(data.ArrayLayout(8 * self._unit_bytes, LANES))  # by position: a byte of every bank
        for position, memory in enumerate(self.positions):
            m.submodules[f"position{position}"] = memory
            write, read = memory.write_port(), memory.read_port(domain="comb")
            m.d.comb += [
                write.addr.eq(Cat(share, self.fill.p.octet[:width], self.fill.p.slot)),
                write.data.eq(Cat(bank[position] for bank in turned)),
                write.en.eq(self.fill.valid),
                read.addr.eq(Cat(self.pick.places[position], self.pick.slot)),
                found[position].eq(read.data),
            ]
        self._hand_out(m, found)
        self._cut(m, share)
        return m

    def _write(self, m, share):
        """Bytes of the share that is written: by bank, then by position."""
        fill, log2, unit_bytes = self.fill.p, self._units_log2, self._unit_bytes
        m.d.comb += self.fill.ready.eq(share == self._shares - 1)
        with m.If(self.fill.valid):
            m.d.sync += share.eq(share + 1)
        other_share = Signal(len(share), init=-1)  # its complement
        with m.If(self.fill.valid):
            m.d.sync += other_share.eq(other_share - 1)
        units = []  # the one of the column, twice
        for number, known in enumerate((Cat(share, fill.octet, fill.wide), ~Cat(other_share, fill.complement))):
            now, octet, wide = known[: len(share)], known[len(share) : -1], known[-1]
            narrow = Cat(now[1:], octet)[: log2 + 2] if log2 else octet
            unit = Signal(2, name=f"unit{number}")
            m.d.comb += unit.eq(Mux(wide, Cat(now, octet), narrow))
            units.append(unit)
        turned = []
        for bank in range(unit_bytes):
            cells = [Signal(8, name=f"cell{bank}_{byte}") for byte in range(LANES)]  # by column, or place modulo 8
            for byte, cell in enumerate(cells):
                sources = {}  # by ``wide`` and share
                for number in range(self._shares):
                    rows = (number // 2 * unit_bytes + bank, number * unit_bytes // 2 + bank // 2)
                    places = (number % 2 * LANES + byte, 2 * byte + bank % 2)
                    for wide, (row, place) in enumerate(zip(rows, places, strict=True)):
                        sources[number << 1 | wide] = fill.rows[row].word_select(place, 8)
                m.d.comb += cell.eq(chosen(Cat(fill.wide, share), sources))
            turned.append([Signal(8, name=f"turned{bank}_{position}") for position in range(LANES)])
            for position, value in enumerate(turned[-1]):
                sources = {number: cells[(position - ahead) % LANES] for number, ahead in enumerate(_AHEAD)}
                # Positions two apart have the same sources, and would share halves of their choices.
                m.d.comb += value.eq(chosen(units[position >> 1 & 1], sources))
        return turned

    def _hand_out(self, m, found):
        """To every lane what may be its unit: from the lower four positions, and from the upper ones."""
        for position, units in zip(self.pick.positions, self.units, strict=True):
            for half, unit in enumerate(units):
                m.d.comb += unit.eq(chosen(position[:2], {n: found[4 * half + n] for n in range(4)}))

    def _cut(self, m, share):
        """Which rows are inside, and whether all is there."""
        fill, pick, unit_bytes = self.fill.p, self.pick, self._unit_bytes
        octets = _MAX_KB * unit_bytes // LANES
        inside = Signal(data.ArrayLayout(data.ArrayLayout(LANES, octets), _BLOCKS))
        for block, octet in product(range(_BLOCKS), range(octets)):
            here = (fill.slot == block) & (fill.octet[: self._octet_width] == octet)
            with m.If(self.fill.valid & (share == 0) & here):
                m.d.sync += inside[block][octet].eq(fill.enable)
        rows = Signal(LANES * octets)
        m.d.comb += rows.eq(Mux(pick.slot, inside[1], inside[0]))
        units = [Signal(unit_bytes, name=f"inside{unit}") for unit in range(_MAX_KB)]
        for unit, bits in enumerate(units):
            narrow = rows.word_select(unit, unit_bytes)
            wide = Cat(rows[unit * unit_bytes // 2 + bank // 2] for bank in range(unit_bytes))
            m.d.comb += bits.eq(Mux(pick.wide, wide, narrow))
        with m.Switch(pick.kb):
            for kb in range(1, _MAX_KB + 1):
                with m.Case(kb - 1):
                    for way, bits in enumerate(self.inside):
                        lanes = range(way, LANES, self._ways)
                        m.d.comb += bits.eq(chosen(pick.part, {n: units[lane % kb] for n, lane in enumerate(lanes)}))
        # With two shares: a first one has the places before 8, or unit 0 of 16-bit elements.
        in_first = Mux(pick.wide, pick.kb == 0, pick.place == 0) if self._shares == 2 else 0
        m.d.comb += self.pickable.eq((share == 0) | in_first)
